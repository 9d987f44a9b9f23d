// Command crashtest kills a running broker with -9 at random moments under mixed load of
// the official Go client, starts it again and checks what it promised: every receipt
// seen is there, once and in order, no message id names two messages, no cursor is
// ahead of its acknowledgements and no confirmed acknowledgement is forgotten; and that
// transactions are there as a whole or not at all. That is PL-09 of the cases that people
// met with other brokers, writes that were confirmed and saved later; its other half, what
// a loss of power takes of what was not synced, is boltstore's TestPowerCutJournal.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/log"
)

func main() {
	bin := flag.String("bin", "bin/wayside", "the broker")
	rounds := flag.Int("rounds", 20, "kills")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "of all random choices")
	dir := flag.String("dir", "", "data directory (default: a new temporary one, removed at the end)")
	longest := flag.Duration("longest", 3*time.Second, "longest life of a broker under load")
	flag.Parse()
	if err := run(*bin, *dir, *rounds, *seed, *longest); err != nil {
		fmt.Fprintf(os.Stderr, "crash: seed %d: %v\n", *seed, err)
		os.Exit(1)
	}
}

// run plays all rounds.
func run(bin, dir string, rounds int, seed uint64, longest time.Duration) error {
	if dir == "" {
		d, err := os.MkdirTemp("", "wayside-crash-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(d)
		dir = d
	}
	rnd := rand.New(rand.NewPCG(seed, 1))
	b := &broker{bin: bin, dir: filepath.Join(dir, "data")}
	book := newBook()
	fmt.Printf("crash: seed %d, %d rounds\n", seed, rounds)
	begin := time.Now()
	for round := 1; round <= rounds; round++ {
		life := 100*time.Millisecond + time.Duration(rnd.Int64N(int64(longest)))
		if err := playRound(b, book, rnd, round, life); err != nil {
			b.kill()
			return fmt.Errorf("round %d: %w", round, err)
		}
		if round%10 == 0 || round == rounds {
			fmt.Printf("crash: %d rounds, %s, %s\n", round, book.summary(), book.ledger.summary())
		}
	}
	if err := b.check(book); err != nil {
		return fmt.Errorf("after the last round: %w", err)
	}
	for _, idle := range []string{book.idle(), book.ledger.idle()} {
		if idle != "" {
			return fmt.Errorf("%s: the run tested nothing", idle)
		}
	}
	fmt.Printf("crash: passed, %d kills in %s: %s\n", rounds, time.Since(begin).Round(time.Second), book.summary())
	return nil
}

// check looks at what the last kill left.
func (b *broker) check(book *book) error {
	defer b.kill()
	if err := b.start(); err != nil {
		return err
	}
	client, err := b.client()
	if err != nil {
		return err
	}
	defer client.Close()
	return verify(client, book)
}

// playRound starts the broker, checks what the last kill left, loads it and kills it.
func playRound(b *broker, book *book, rnd *rand.Rand, round int, life time.Duration) error {
	begin := time.Now()
	if err := b.start(); err != nil {
		return err
	}
	started := time.Since(begin)
	client, err := b.client()
	if err != nil {
		return err
	}
	if err := verify(client, book); err != nil {
		client.Close()
		return err
	}
	client.Close()
	if checked := time.Since(begin); checked > 10*time.Second {
		fmt.Printf("crash: round %d: started in %s, checked in %s\n", round, started.Round(time.Millisecond), checked.Round(time.Millisecond))
	}
	ctx, cancel := context.WithTimeout(context.Background(), life)
	defer cancel()
	l, err := startLoad(ctx, b, book, rnd, round)
	if err != nil {
		return err
	}
	<-ctx.Done()
	b.kill()
	l.stop()
	return nil
}

// broker is the process under test.
type broker struct {
	bin, dir string
	port     int
	cmd      *exec.Cmd
	said     chan string // the tail of what it printed, once it has ended
}

// start runs the broker and waits until it says that it is ready.
func (b *broker) start() (err error) {
	if b.port, err = freePort(); err != nil {
		return err
	}
	b.cmd = exec.Command(b.bin, "serve", "--data", b.dir,
		"--listen", fmt.Sprintf("127.0.0.1:%d", b.port), "--admin", "127.0.0.1:0", "--set", "topics.deduplication=true")
	b.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := b.cmd.StderrPipe()
	if err != nil {
		return err
	}
	b.cmd.Stdout = b.cmd.Stderr
	if err := b.cmd.Start(); err != nil {
		return fmt.Errorf("start broker: %w", err)
	}
	b.said = make(chan string, 1)
	go collect(out, b.said)
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		if c, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", b.port), time.Second); err == nil {
			return c.Close()
		}
		select {
		case tail := <-b.said:
			b.said <- tail
			return fmt.Errorf("the broker ended at start:\n%s", tail)
		case <-time.After(10 * time.Millisecond):
		}
	}
	return fmt.Errorf("the broker does not listen after 20 s")
}

// collect keeps the last lines of an output.
func collect(r io.Reader, said chan<- string) {
	var tail []string
	s := bufio.NewScanner(r)
	for s.Scan() {
		if tail = append(tail, s.Text()); len(tail) > 30 {
			tail = tail[1:]
		}
	}
	said <- strings.Join(tail, "\n")
}

// kill ends the broker without a word and waits for it.
func (b *broker) kill() {
	if b.cmd != nil && b.cmd.Process != nil {
		_ = b.cmd.Process.Kill()
		_ = b.cmd.Wait()
	}
	b.cmd = nil
}

func (b *broker) client() (pulsar.Client, error) {
	return pulsar.NewClient(pulsar.ClientOptions{
		URL: fmt.Sprintf("pulsar://127.0.0.1:%d", b.port), OperationTimeout: 10 * time.Second,
		ConnectionTimeout: 2 * time.Second, Logger: log.DefaultNopLogger(), EnableTransaction: true,
	})
}

// freePort is one that stays free while no life of the broker listens there: below the range from which the kernel
// takes ports of outgoing connections.
func freePort() (int, error) {
	var err error
	for range 100 {
		var l net.Listener
		if l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10000+rand.IntN(5000))); err == nil {
			return l.Addr().(*net.TCPAddr).Port, l.Close()
		}
	}
	return 0, fmt.Errorf("no free port between 10000 and 15000: %w", err)
}
