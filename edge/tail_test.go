package edge_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"wayside/edge"
)

// Who waits gets what is published though the ledger cannot be read: it comes from memory,
// to every subscription, whole.
func TestTheTailNeedsNoReading(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("tail")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	var ins []*inbox
	for i := range 3 {
		c, in := k.subscribe(topic, subscription(fmt.Sprint("s", i), edge.Shared))
		c.Flow(100)
		ins = append(ins, in)
	}
	broken := func([]edge.Range) error { return errors.New("not to be read") }
	k.hooks.read.Store(&broken)
	k.publishAll(p, messages(20, func(i int, m *edge.Message) { m.Facts.Producer, m.Facts.Sequence = "p", int64(i) })...)
	for _, in := range ins {
		in.await(t, 20)
		for i, d := range in.all() {
			if e := d.Entry; string(e.Data) != fmt.Sprint(i) || e.Index != uint64(i) || e.Facts.Sequence != int64(i) || e.Facts.Messages != 1 {
				t.Fatalf("as number %d came %+v", i, e)
			}
		}
	}
}

// The tail stays in its share, whatever is published, and lets go what nobody reads.
func TestTheTailStaysInItsShare(t *testing.T) {
	k := newKit(t, func(o *edge.Options) { o.Budget = edge.NewBudget(4 << 20) })
	_, limit := k.broker.Budget().Usage(edge.ShareTail)
	topics := []*edge.Topic{k.topic("a"), k.topic("b")}
	ins := make([]*inbox, len(topics))
	for round := range 40 {
		for i, topic := range topics {
			p, _ := k.producer(topic, edge.ProducerOptions{})
			if round == 0 {
				c, in := k.subscribe(topic, subscription("s", edge.Shared))
				c.Flow(10_000)
				ins[i] = in
			}
			size := 1 << (round % 18)
			k.publishAll(p, messages(10, func(_ int, m *edge.Message) { m.Data = make([]byte, size) })...)
			if used, _ := k.broker.Budget().Usage(edge.ShareTail); used > limit {
				t.Fatalf("%d bytes of %d are kept", used, limit)
			}
			p.Close(nil)
		}
	}
	for _, in := range ins {
		in.await(t, 400)
		for i, d := range in.all() {
			if want := 1 << (i / 10 % 18); len(d.Entry.Data) != want || d.Entry.Index != uint64(i) {
				t.Fatalf("entry %d has %d bytes and index %d", i, len(d.Entry.Data), d.Entry.Index)
			}
		}
	}
	k.publish(mustProduce(k, topics[0]), "x")
	if used, _ := k.broker.Budget().Usage(edge.ShareTail); used == 0 {
		t.Error("nothing is kept")
	}
	k.broker.Sweep(0)
	k.broker.Sweep(0)
	if used, _ := k.broker.Budget().Usage(edge.ShareTail); used != 0 {
		t.Errorf("%d bytes are kept for nobody", used)
	}
}

// What is only partly in memory comes in order and whole, across ledgers too.
func TestTheTailJoinsTheLedger(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("joined")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	k.publish(p, "a", "b")
	c, in := k.subscribe(topic, subscription("s", edge.Shared))
	c.Flow(1)
	in.await(t, 1)
	k.publish(p, "c")
	other, _ := k.subscribe(topic, subscription("other", edge.Shared))
	other.Flow(100)
	k.publish(p, "d", "e")
	c.Flow(100)
	if got := in.await(t, 5); !slices.Equal(got, []string{"a", "b", "c", "d", "e"}) {
		t.Fatalf("%v", got)
	}
}

func mustProduce(k *kit, topic *edge.Topic) *edge.Producer {
	p, _ := k.producer(topic, edge.ProducerOptions{})
	return p
}
