package edge_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"wayside/edge"
)

// lines is a log.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) { l.mu.Lock(); defer l.mu.Unlock(); return l.all.Write(p) }

func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.all.String(), text)
}

// failing publishes to a store that fails, and waits until the producer is closed.
func (k *kit) failing(topic *edge.Topic, cause error) {
	k.Helper()
	p, e := k.producer(topic, edge.ProducerOptions{})
	k.store.Fail(cause)
	if a := recv(k.T, send(p, message("a"))); a.err == nil {
		k.Fatal("a failed write was receipted")
	}
	eventually(k.T, "the producer is closed", func() bool { return e.reason() != nil })
	k.store.Fail(nil)
}

// A store without room lets what is acknowledged go, though it may be kept as long as
// there is room; says so in its health; admits nobody for a moment; and fills no log.
func TestWhereThereIsNoRoomNothingAcknowledgedIsKept(t *testing.T) {
	log := &lines{}
	k := newKit(t, func(o *edge.Options) { o.Logger = slog.New(slog.NewTextHandler(log, nil)) })
	topic := k.topic("short")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	k.publish(p, "a", "b", "c")
	kept := func() (n int64) {
		for _, r := range k.broker.Records() {
			n += r.Bytes
		}
		return n
	}
	k.broker.Sweep(0)
	if kept() == 0 || len(k.broker.Health()) != 0 {
		t.Fatalf("with room: %d bytes are kept, health %q", kept(), k.broker.Health())
	}
	k.failing(topic, edge.ErrStoreFull)
	if why := k.broker.Health(); len(why) != 1 || !strings.Contains(why[0], "no room") {
		t.Errorf("health %q", why)
	}
	if _, err := topic.AddProducer(t.Context(), edge.ProducerOptions{}, &end{}, &peer{}); !errors.Is(err, edge.ErrQuotaHold) {
		t.Errorf("a producer at once: %v", err)
	}
	eventually(t, "what is acknowledged is let go", func() bool { k.broker.Sweep(0); return kept() == 0 })
	var again *edge.Producer
	eventually(t, "a producer is admitted again", func() bool {
		var err error
		again, err = topic.AddProducer(t.Context(), edge.ProducerOptions{}, &end{}, &peer{})
		return err == nil
	})
	k.publish(again, "d")
	if why := k.broker.Health(); len(why) != 0 {
		t.Errorf("health after all %q", why)
	}
	for range 3 {
		k.failing(topic, errors.New("a broken disk"))
	}
	if n := log.count("publishing failed"); n != 2 {
		t.Errorf("%d lines about failures, want one of each kind", n)
	}
}
