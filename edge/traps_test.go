package edge_test

import (
	"slices"
	"testing"

	"wayside/edge"
)

// Traps of protocol.md, section 4, that are the core's alone. pulsar/testdata/traps.txt
// lists all of them.

// What is acknowledged stays as long as its ledger is open, for readers and seeks to come.
func TestTrap72WhatIsAcknowledgedCanBeReadAgain(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("kept")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	at := k.publish(p, numbers(0, 5)...)
	c, in := k.subscribe(topic, subscription("s", edge.Exclusive))
	c.Flow(10)
	in.await(t, 5)
	k.ack(c, at...)
	for range 3 { // a ledger that is closed by one round would go with the next
		k.broker.Sweep(0)
		barrier(t, k, topic)
	}
	r, got := k.subscribe(topic, edge.SubscribeOptions{Name: "r", Kind: edge.Exclusive, Start: &edge.Earliest, Epoch: -1})
	r.Flow(10)
	if bodies := got.await(t, 5); !slices.Equal(bodies, numbers(0, 5)) {
		t.Errorf("a reader got %v", bodies)
	}
	if err := c.Seek(t.Context(), edge.SeekTarget{Position: edge.Earliest}); err != nil {
		t.Fatal(err)
	}
	c, in = k.subscribe(topic, subscription("s", edge.Exclusive))
	c.Flow(10)
	if bodies := in.await(t, 5); !slices.Equal(bodies, numbers(0, 5)) {
		t.Errorf("after a seek came %v", bodies)
	}
}

func TestTrap86TheUnackedLimitsHoldForEachEntryAndOpenAgain(t *testing.T) {
	const limit, n = 10, 100
	for name, set := range map[string]func(*edge.Options){
		"consumer":     func(o *edge.Options) { o.UnackedPerConsumer = limit },
		"subscription": func(o *edge.Options) { o.UnackedPerSubscription = limit },
	} {
		for _, kind := range []edge.SubKind{edge.Shared, edge.KeyShared} {
			t.Run(name+" "+kind.String(), func(t *testing.T) {
				k := newKit(t, set)
				topic := k.topic("limit")
				p, _ := k.producer(topic, edge.ProducerOptions{})
				k.publishAll(p, messages(n, func(i int, m *edge.Message) { m.Facts.Slot = uint16(1 + i%7) })...)
				c, in := k.subscribe(topic, subscription("s", kind))
				c.Flow(10 * n)
				for acked := range n {
					eventually(t, "something comes", func() bool { return in.count() > acked })
					if held := in.count() - acked; held > limit {
						t.Fatalf("%d are unacknowledged after %d acks", held, acked)
					}
					k.ack(c, in.from(acked)[0])
				}
			})
		}
	}
}
