package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	pulsarlog "github.com/apache/pulsar-client-go/pulsar/log"
	"github.com/prometheus/client_golang/prometheus"
)

// Cases that people met with other brokers, by the numbers that they have among ours:
// what they share, a whole broker under the official client.

// official connects the official client.
func (b *broker) official() pulsar.Client {
	b.t.Helper()
	c, err := pulsar.NewClient(pulsar.ClientOptions{
		URL: b.url, OperationTimeout: patience, Logger: pulsarlog.DefaultNopLogger(), MetricsRegisterer: prometheus.NewRegistry(),
	})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(c.Close)
	return c
}

func producerOf(t *testing.T, c pulsar.Client, o pulsar.ProducerOptions) pulsar.Producer {
	t.Helper()
	p, err := c.CreateProducer(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// consumerOf makes a Shared consumer that begins at the earliest message.
func consumerOf(t *testing.T, c pulsar.Client, topic, name string) pulsar.Consumer {
	t.Helper()
	s, err := c.Subscribe(pulsar.ConsumerOptions{
		Topic: topic, SubscriptionName: name, Type: pulsar.Shared, AckWithResponse: true,
		SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// publish sends messages and waits for all receipts.
func publish(t *testing.T, p pulsar.Producer, bodies ...string) (ids []pulsar.MessageID) {
	t.Helper()
	ids = make([]pulsar.MessageID, len(bodies))
	done := make(chan error, len(bodies))
	for i, body := range bodies {
		p.SendAsync(t.Context(), &pulsar.ProducerMessage{Payload: []byte(body)}, func(id pulsar.MessageID, _ *pulsar.ProducerMessage, err error) {
			ids[i] = id
			done <- err
		})
	}
	for range bodies {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(patience):
			t.Fatal("no receipt")
		}
	}
	return ids
}

// take receives and acknowledges so many messages.
func take(t *testing.T, s pulsar.Consumer, n int) (bodies []string) {
	t.Helper()
	for range n {
		select {
		case m := <-s.Chan():
			if err := s.Ack(m.Message); err != nil {
				t.Fatal(err)
			}
			bodies = append(bodies, string(m.Payload()))
		case <-time.After(patience):
			t.Fatalf("%d of %d messages came", len(bodies), n)
		}
	}
	return bodies
}

// bodies are so many different texts.
func bodies(prefix string, n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("%s-%04d.", prefix, i))
	}
	return list
}

// get asks the admin listener.
func (b *broker) get(path string) (status int, body string) {
	b.t.Helper()
	defer http.DefaultClient.CloseIdleConnections()
	response, err := http.Get(b.admin + path)
	if err != nil {
		b.t.Fatal(err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return response.StatusCode, string(raw)
}

// ask is get of something in JSON.
func (b *broker) ask(path string, to any) {
	b.t.Helper()
	status, body := b.get(path)
	if err := json.Unmarshal([]byte(body), to); err != nil {
		b.t.Fatalf("%s: %d %s: %v", path, status, body, err)
	}
}

// metric is the value of a metric of the whole broker.
func (b *broker) metric(name string) string {
	b.t.Helper()
	_, text := b.get("/metrics")
	for line := range strings.Lines(text) {
		if found, value, _ := strings.Cut(line, " "); found == name || strings.HasPrefix(found, name+"{") {
			return strings.TrimSpace(value)
		}
	}
	b.t.Fatalf("no metric %s", name)
	return ""
}

// errors are the error lines of the log.
func (b *broker) errors() (lines []string) {
	for line := range strings.Lines(b.stderr()) {
		if strings.Contains(line, `"level":"ERROR"`) {
			lines = append(lines, line)
		}
	}
	return lines
}

// comes waits until something holds.
func comes(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !holds(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

// killed is a copy of a broker's directory, as kill -9 would leave it now.
func killed(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	names, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range names {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if os.IsNotExist(err) {
			continue // segments are made under another name
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(to, e.Name()), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// edit changes the files of a stopped broker that match and returns how many it changed.
func edit(t *testing.T, dir, match string, change func(b []byte) []byte) (changed int) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, match))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no %s in %s: %v", match, dir, err)
	}
	for _, path := range paths {
		was, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		is := change(bytes.Clone(was))
		if bytes.Equal(was, is) {
			continue
		}
		changed++
		if err := os.WriteFile(path, is, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return changed
}

func pulsarProducer(topic string) pulsar.ProducerOptions {
	return pulsar.ProducerOptions{Topic: topic, SendTimeout: patience, DisableBlockIfQueueFull: false}
}

// less reports whether an id lies before another.
func less(a, b pulsar.MessageID) bool {
	if a.LedgerID() != b.LedgerID() {
		return a.LedgerID() < b.LedgerID()
	}
	return a.EntryID() < b.EntryID()
}
