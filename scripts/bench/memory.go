package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

// uplinkConfig lets everything that is published here wait for a cloud that is not there.
const uplinkConfig = `storage: {quota: 64GiB}
uplink:
  url: pulsar://127.0.0.1:1
  routes:
    - {from: "public/default/memory-*", to: "public/default/memory-{1}"}
`

// memory prints what the broker holds for itself: anonymous memory, that is, without the pages of its files that the
// kernel keeps mapped as long as it likes.
func memory(args []string) error {
	f := flag.NewFlagSet("memory", flag.ExitOnError)
	wayside := f.String("wayside", "", "`FILE` of the broker")
	data := f.String("data", "", "`FOLDER` for its data (a new one, removed at the end)")
	clients := f.Int("clients", 50, "clients that publish and consume")
	millions := f.String("millions", "1,10", "backlogs, in millions of messages of 128 bytes")
	topics := f.Int("topics", 10_000, "topics with one idle consumer each")
	if err := f.Parse(args); err != nil {
		return err
	}
	folder, leave, err := dataFolder(*data)
	if err != nil {
		return err
	}
	defer leave()
	fmt.Println(fileSystem(folder))
	if err := backlogs(*wayside, folder, *clients, *millions); err != nil {
		return err
	}
	return idleTopics(*wayside, folder, *topics)
}

// backlogs lets a backlog grow with the uplink on and clients at work.
func backlogs(wayside, folder string, clients int, millions string) error {
	config := filepath.Join(folder, "uplink.yaml")
	if err := os.WriteFile(config, []byte(uplinkConfig), 0o600); err != nil {
		return err
	}
	p, d, err := memoryPeer([]string{wayside}, folder, "backlog", "-c", config)
	if err != nil {
		return err
	}
	defer p.stop()
	ctx, cancel := context.WithCancel(context.Background())
	var working sync.WaitGroup
	defer working.Wait()
	defer cancel()
	var failed atomic.Int64
	for i := range clients {
		t, err := newTalker(ctx, d, i)
		if err != nil {
			return err
		}
		working.Go(func() { t.talk(ctx, &failed) })
	}
	peak := watchPeak(ctx, &working, p)
	fmt.Printf("uplink on, %d clients, no backlog: %s\n", clients, p.memory())
	have := 0
	for _, m := range strings.Split(millions, ",") {
		want, err := strconv.Atoi(m)
		if err != nil {
			return fmt.Errorf("-millions: %q is no number", m)
		}
		if err := fill(d, topic{name: "memory-backlog", subscriptions: []string{"keep"}}, (want-have)*1_000_000, 128); err != nil {
			return err
		}
		have = want
		fmt.Printf("uplink on, %d clients, backlog of %d million: %s, %.1f MiB at most so far\n", clients, want, p.memory(), mib(peak.Load()))
	}
	if n := failed.Load(); n > 0 {
		return fmt.Errorf("%d readings of the clients did not pass meanwhile", n)
	}
	return nil
}

// memoryPeer starts a broker of its own; wayside is the command that runs the program.
func memoryPeer(wayside []string, folder, name string, more ...string) (*peer, *pulsarDriver, error) {
	listen, err := freeAddress()
	if err != nil {
		return nil, nil, err
	}
	admin, err := freeAddress()
	if err != nil {
		return nil, nil, err
	}
	dir := filepath.Join(folder, name)
	p := &peer{name: name, dir: dir, address: listen,
		command: slices.Concat(wayside, []string{"serve", "--data", filepath.Join(dir, "data"), "--listen", listen, "--admin", admin}, more)}
	if err := p.start(); err != nil {
		p.stop()
		return nil, nil, err
	}
	return p, &pulsarDriver{url: "pulsar://" + listen, admin: "http://" + admin}, nil
}

// A talker is one client that publishes readings to a topic of its own and consumes them.
type talker struct {
	client   pulsar.Client
	producer pulsar.Producer
	consumer pulsar.Consumer
}

// newTalker connects and lets a first reading pass, so that what is measured is clients at work.
func newTalker(ctx context.Context, d *pulsarDriver, i int) (*talker, error) {
	c, err := d.client()
	if err != nil {
		return nil, err
	}
	t, topic := &talker{client: c}, fmt.Sprintf("memory-chat-%d", i)
	if t.consumer, err = c.Subscribe(pulsar.ConsumerOptions{Topic: topic, SubscriptionName: "s", Type: pulsar.Shared}); err == nil {
		if t.producer, err = c.CreateProducer(pulsar.ProducerOptions{Topic: topic, DisableBatching: true}); err == nil {
			err = t.exchange(ctx)
		}
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("client %d: %w", i, err)
	}
	return t, nil
}

func (t *talker) exchange(ctx context.Context) error {
	if _, err := t.producer.Send(ctx, &pulsar.ProducerMessage{Payload: make([]byte, 128)}); err != nil {
		return err
	}
	m, err := t.consumer.Receive(ctx)
	if err != nil {
		return err
	}
	return t.consumer.Ack(m)
}

// talk passes a reading a second until the context ends, and counts those that failed.
func (t *talker) talk(ctx context.Context, failed *atomic.Int64) {
	defer t.client.Close()
	for tick := time.NewTicker(time.Second); ; {
		select {
		case <-ctx.Done():
			tick.Stop()
			return
		case <-tick.C:
		}
		if err := t.exchange(ctx); err != nil && ctx.Err() == nil {
			failed.Add(1)
		}
	}
}

// watchPeak keeps the highest anonymous memory seen, also while the server starts.
func watchPeak(ctx context.Context, working *sync.WaitGroup, p *peer) *atomic.Int64 {
	var peak atomic.Int64
	working.Go(func() {
		for tick := time.NewTicker(20 * time.Millisecond); ; {
			select {
			case <-ctx.Done():
				tick.Stop()
				return
			case <-tick.C:
			}
			peak.Store(max(peak.Load(), p.anonymous()))
		}
	})
	return &peak
}

// idleTopics opens topics with one idle consumer each and prints what each costs.
func idleTopics(wayside, folder string, n int) error {
	p, d, err := memoryPeer([]string{wayside}, folder, "topics", "--set", "limits.memory=64MiB")
	if err != nil {
		return err
	}
	defer p.stop()
	const each = 500
	before, routines := p.anonymous(), goroutines(d)
	for from := 0; from < n; from += each {
		c, err := d.client()
		if err != nil {
			return err
		}
		defer c.Close()
		for i := from; i < min(from+each, n); i++ {
			if _, err := c.Subscribe(pulsar.ConsumerOptions{
				Topic: fmt.Sprintf("idle-%d", i), SubscriptionName: "s", ReceiverQueueSize: 1,
			}); err != nil {
				return fmt.Errorf("consumer %d: %w", i, err)
			}
		}
	}
	after, now := p.anonymous(), goroutines(d)
	fmt.Printf("%d topics with an idle consumer each: %s, %.2f KiB a topic, %d goroutines more\n",
		n, p.memory(), float64(after-before)/1024/float64(n), now-routines)
	return nil
}

// goroutines asks the broker's metrics.
func goroutines(d *pulsarDriver) int {
	answer, err := http.Get(d.admin + "/metrics")
	if err != nil {
		return 0
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(line, "go_goroutines "); ok {
			n, _ := strconv.ParseFloat(strings.TrimSpace(v), 64)
			return int(n)
		}
	}
	return 0
}

// memory tells anonymous and resident memory.
func (p *peer) memory() string {
	return fmt.Sprintf("%.1f MiB anonymous, %.1f MiB resident", mib(p.anonymous()), mib(p.status("VmRSS:")))
}

func (p *peer) anonymous() int64 { return p.status("RssAnon:") }

// status reads a field of the process's status, in bytes.
func (p *peer) status(field string) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid()))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, field); ok {
			n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(v), " kB"), 10, 64)
			return n << 10
		}
	}
	return 0
}

func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }
