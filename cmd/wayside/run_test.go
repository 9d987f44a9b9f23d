package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience bounds every wait for something that should happen at once.
const patience = 60 * time.Second

// The official client's producers leave a goroutine that looks at its timer again when
// the send timeout is over, half a minute after they were closed.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/apache/pulsar-client-go/pulsar.(*partitionProducer).failTimeoutMessages"))
}

// anything is right.
const anything = "*"

// outcome is what a command left behind.
type outcome struct {
	code           int
	stdout, stderr string
}

// command runs a command to its end.
func command(t *testing.T, stdin string, args ...string) outcome {
	t.Helper()
	return commandIn(t, environment(), stdin, args...)
}

func commandIn(t *testing.T, env func(string) (string, bool), stdin string, args ...string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var stdout, stderr bytes.Buffer
	m := &Main{Stdin: strings.NewReader(stdin), Stdout: &stdout, Stderr: &stderr, Env: env}
	code := m.Run(ctx, args)
	if ctx.Err() != nil {
		t.Errorf("wayside %s did not end", strings.Join(args, " "))
	}
	return outcome{code, stdout.String(), stderr.String()}
}

// want fails the test unless the command ended so; texts are looked for, "" admits none
// and anything admits all.
func (o outcome) want(t *testing.T, code int, stdout, stderr string) {
	t.Helper()
	if o.code != code {
		t.Errorf("exit %d, want %d", o.code, code)
	}
	for _, c := range []struct{ name, got, want string }{{"stdout", o.stdout, stdout}, {"stderr", o.stderr, stderr}} {
		if c.want == anything {
			continue
		}
		if c.want == "" && c.got != "" || !strings.Contains(c.got, c.want) {
			t.Errorf("%s is %q, want %q", c.name, c.got, c.want)
		}
	}
}

// background is a command under way. Its standard error is a stream of JSON log lines,
// followed by errors for people.
type background struct {
	t       *testing.T
	signals chan os.Signal
	cancel  context.CancelFunc
	ended   chan struct{}
	code    int

	mu     sync.Mutex
	moved  *sync.Cond
	lines  []string
	closed bool
	stdout bytes.Buffer
}

// start runs a command in the background; the test's end stops it.
func start(t *testing.T, env func(string) (string, bool), args ...string) *background {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	b := &background{t: t, signals: make(chan os.Signal, 2), cancel: cancel, ended: make(chan struct{})}
	b.moved = sync.NewCond(&b.mu)
	r, w := io.Pipe()
	var reading sync.WaitGroup
	reading.Go(func() { b.collect(r) })
	m := &Main{Stdin: strings.NewReader(""), Stdout: lockedWriter{b}, Stderr: w, Env: env, Signals: b.signals}
	go func() {
		defer close(b.ended)
		b.code = m.Run(ctx, args)
		_ = w.Close()
		reading.Wait()
	}()
	t.Cleanup(func() {
		cancel()
		b.wait()
	})
	return b
}

type lockedWriter struct{ b *background }

func (w lockedWriter) Write(p []byte) (int, error) {
	w.b.mu.Lock()
	defer w.b.mu.Unlock()
	w.b.moved.Broadcast()
	return w.b.stdout.Write(p)
}

func (b *background) collect(r io.Reader) {
	scanner := bufio.NewScanner(r)
	for scanner.Scan() {
		b.mu.Lock()
		b.lines = append(b.lines, scanner.Text())
		b.moved.Broadcast()
		b.mu.Unlock()
	}
	b.mu.Lock()
	b.closed = true
	b.moved.Broadcast()
	b.mu.Unlock()
}

// until waits for a condition on lines and output, both locked.
func (b *background) until(what string, holds func() bool) {
	b.t.Helper()
	timer := time.AfterFunc(patience, func() {
		b.mu.Lock()
		b.closed = true
		b.moved.Broadcast()
		b.mu.Unlock()
	})
	defer timer.Stop()
	b.mu.Lock()
	defer b.mu.Unlock()
	for !holds() {
		if b.closed {
			b.t.Fatalf("%s has not come; standard error:\n%s\nstandard output:\n%s", what, strings.Join(b.lines, "\n"), b.stdout.String())
		}
		b.moved.Wait()
	}
}

// logged waits for a log line with that message and returns it.
func (b *background) logged(message string, pairs ...string) map[string]any {
	b.t.Helper()
	var found map[string]any
	b.until(message, func() bool {
		for _, line := range b.lines {
			var l map[string]any
			if json.Unmarshal([]byte(line), &l) != nil || l["msg"] != message {
				continue
			}
			if len(pairs) == 0 || l[pairs[0]] == pairs[1] {
				found = l
			}
		}
		return found != nil
	})
	return found
}

func (b *background) wait() int {
	b.t.Helper()
	select {
	case <-b.ended:
	case <-time.After(patience):
		b.t.Error("the command does not end")
	}
	return b.code
}

func (b *background) stderr() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(b.lines, "\n")
}

// broker is a wayside serve in the background.
type broker struct {
	*background
	url   string // of its Pulsar listener
	admin string // of its admin listener
}

// serve starts a broker on free ports of the loopback interface and waits until it is
// ready.
func serve(t *testing.T, dir string, args ...string) *broker {
	t.Helper()
	all := append([]string{"serve", "--data", dir, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--set", "log.format=json"}, args...)
	b := &broker{background: start(t, environment(), all...)}
	b.logged("ready")
	b.url = "pulsar://" + b.logged("listening", "for", "pulsar")["address"].(string)
	b.admin = "http://" + b.logged("listening", "for", "admin")["address"].(string)
	return b
}

// end stops it with SIGTERM.
func (b *broker) end() {
	b.t.Helper()
	b.signals <- syscall.SIGTERM
	if code := b.wait(); code != exitDone {
		b.t.Errorf("exit %d after SIGTERM:\n%s", code, b.stderr())
	}
}
