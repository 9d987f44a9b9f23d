package edge_test

import (
	"testing"

	"wayside/edge"
	"wayside/edge/edgetest"
)

// What is acknowledged stays readable up to keep_acked, and of what is more the oldest
// ledgers go, of whatever topic.
func TestTheNewestAcknowledgedDataIsKept(t *testing.T) {
	const entry = 100
	k := newKit(t, func(o *edge.Options) { o.KeepAcked = 3 * edgetest.MemRollAfter * entry })
	stored := func(topic *edge.Topic) int64 {
		_, _, bytes := topic.Spans().Totals()
		return bytes / entry
	}
	fill := func(topic *edge.Topic, ledgers int, publish int64) {
		p, _ := k.producer(topic, edge.ProducerOptions{})
		k.publishAll(p, messages(ledgers*edgetest.MemRollAfter, func(_ int, m *edge.Message) {
			m.Data, m.Facts.Publish = make([]byte, entry), publish
		})...)
		p.Close(nil)
	}
	a, b := k.topic("a"), k.topic("b")
	fill(a, 2, 10)
	fill(b, 1, 5)
	k.broker.Sweep(0)
	if stored(a) != 2*edgetest.MemRollAfter || stored(b) != edgetest.MemRollAfter {
		t.Fatalf("%d and %d entries are kept of what fits", stored(a), stored(b))
	}
	fill(a, 1, 1) // whose clock went back: it is the newest all the same
	k.broker.Sweep(0)
	barrier(t, k, b)
	k.broker.Sweep(0)
	barrier(t, k, b)
	if stored(a) != 3*edgetest.MemRollAfter || stored(b) != 0 {
		t.Fatalf("%d and %d entries are kept, the oldest are b's", stored(a), stored(b))
	}
	late, in := k.subscribe(a, subscription("late", edge.Exclusive))
	late.Flow(5000)
	in.await(t, 3*edgetest.MemRollAfter)
}

// Nothing goes that somebody has not acknowledged, however much it is.
func TestUnacknowledgedDataIsNotTrimmed(t *testing.T) {
	k := newKit(t, func(o *edge.Options) { o.KeepAcked = 0 })
	topic := k.topic("held")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	c, in := k.subscribe(topic, subscription("s", edge.Shared))
	k.publishAll(p, messages(2*edgetest.MemRollAfter+10, nil)...)
	c.Flow(edgetest.MemRollAfter + 1)
	in.await(t, edgetest.MemRollAfter+1)
	for i, d := range in.all() {
		if i < edgetest.MemRollAfter {
			k.ack(c, d.Entry.Position)
		}
	}
	for range 3 {
		k.broker.Sweep(0)
		barrier(t, k, topic)
	}
	if entries, _, _ := topic.Spans().Totals(); entries != edgetest.MemRollAfter+10 {
		t.Fatalf("%d entries are there", entries)
	}
}

// TrimNow does not wait for the bounds of what is kept, and leaves what somebody wants or
// retention keeps.
func TestTrimmedByRequest(t *testing.T) {
	k := newKit(t, func(o *edge.Options) { o.KeepAcked = 1 << 30 })
	topic := k.topic("t")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	c, in := k.subscribe(topic, subscription("s", edge.Shared))
	k.publishAll(p, messages(10, nil)...)
	c.Flow(100)
	in.await(t, 10)
	entries := func() (n int64) {
		if err := topic.TrimNow(t.Context()); err != nil {
			t.Fatal(err)
		}
		n, _, _ = topic.Spans().Totals()
		return n
	}
	if n := entries(); n != 10 {
		t.Fatalf("%d entries are there of 10 that are not acknowledged", n)
	}
	for _, d := range in.all() {
		k.ack(c, d.Entry.Position)
	}
	if n := entries(); n != 0 {
		t.Fatalf("%d entries are there that nobody wants", n)
	}
	k.rule(topic.Name().String(), func(p *edge.Policies) { p.Retention = &edge.Retention{Minutes: -1, MiB: -1} })
	k.publishAll(p, messages(5, nil)...)
	in.await(t, 15)
	for _, d := range in.all()[10:] {
		k.ack(c, d.Entry.Position)
	}
	if n := entries(); n != 5 {
		t.Fatalf("%d entries are there of 5 that are retained", n)
	}
}
