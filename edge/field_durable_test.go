package edge_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"wayside/edge"
	"wayside/edge/edgetest"
)

// Cases that people met with other brokers, by the numbers that they have among ours:
// what was confirmed, and what was not.

// BI-05: acked messages return after the consumer or broker dies; the state in memory ran
// ahead of the saved one.
func TestFieldBI05WhatIsConfirmedStaysAndNothingElseDoes(t *testing.T) {
	k := &kit{T: t, store: edgetest.NewMemStore(), hooks: &hooks{}}
	k.start(nil)
	topic := k.topic("bi05")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	at := k.publishAll(p, messages(100, nil)...)
	c, in := k.subscribe(topic, subscription("s", edge.Shared))
	c.Flow(1000)
	in.await(t, 100)
	k.ack(c, at[:40]...)
	broken := errors.New("read-only file system")
	k.store.Fail(broken)
	for _, p := range at[40:] {
		done := make(chan error, 1)
		c.Ack(parts(p), false, func(err error) { done <- err })
		if err := recv(t, done); err == nil {
			t.Fatalf("the acknowledgement of %v was confirmed", p)
		}
	}
	// The disk is lost now, and the broker with it: another one finds what is on it.
	k.store.Close()                      //nolint:errcheck // it cannot store any more
	k.broker.Close(context.Background()) //nolint:errcheck // as above
	after := &kit{T: t, store: k.store.Reopen(), hooks: &hooks{}}
	after.start(nil)
	c, in = after.subscribe(after.topic("bi05"), subscription("s", edge.Shared))
	c.Flow(1000)
	if got := in.await(t, 60); !slices.Equal(got, numbers(40, 60)) {
		t.Errorf("after the crash came %v", got)
	}
	after.stop()
}

// dd is a producer name that counts for duplicates.
func dd(k *kit, topic *edge.Topic) *edge.Producer {
	p, _ := k.producer(topic, edge.ProducerOptions{Name: "meter", UserProvided: true})
	return p
}

// DD-05: "cannot tell yet whether this is a duplicate": the resend storm never ends.
func TestFieldDD05WhatIsResentWaitsForTheFirstOutcome(t *testing.T) {
	const n = 4000
	k := newKit(t, func(o *edge.Options) { o.Deduplication = true })
	topic := k.topic("dd05")
	resend := func(p *edge.Producer) <-chan answer {
		answers := make(chan answer, n)
		for i := range int64(n) {
			m := numbered(i)
			m.Facts.Producer = p.Name()
			p.Publish(m, func(r edge.Receipt, err error) { answers <- answer{r, err} })
		}
		return answers
	}
	k.store.Hold() // commits take their time
	p := dd(k, topic)
	first := resend(p)
	p.Close(nil) // its connection is cut
	second := resend(dd(k, topic))
	select {
	case a := <-second:
		t.Fatalf("answered before the first one was stored: %+v", a)
	default:
	}
	k.store.Release()
	for i := range n {
		if a := recv(t, first); a.err != nil || a.Duplicate {
			t.Fatalf("message %d: %+v, %v", i, a, a.err)
		}
		if a := recv(t, second); a.err != nil || !a.Duplicate {
			t.Fatalf("message %d again: %+v, %v", i, a, a.err)
		}
	}
	if stored := topic.Stats().Entries; stored != n {
		t.Errorf("%d are stored", stored)
	}
}

// DD-07: a device restarts and counts from the start again under the same name; all new
// data are confirmed and dropped.
func TestFieldDD07WhoCountsFromTheStartAgainIsNamed(t *testing.T) {
	var log bytes.Buffer
	k := newKit(t, func(o *edge.Options) {
		o.Deduplication = true
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})
	topic := k.topic("dd07")
	run := func(from func(p *edge.Producer) int64) (duplicates int) {
		p := dd(k, topic)
		defer p.Close(nil)
		for i := range int64(100) {
			if k.send(p, numbered(from(p)+i)).Duplicate {
				duplicates++
			}
		}
		return duplicates
	}
	next := func(p *edge.Producer) int64 { return p.LastSequence() + 1 }
	for range 2 { // automatic ids go on where the name stands
		if n := run(next); n != 0 {
			t.Errorf("%d of new messages were dropped", n)
		}
	}
	if log.Len() > 0 || k.broker.Stats().Duplicates != 0 {
		t.Errorf("%d duplicates, log: %s", k.broker.Stats().Duplicates, log.String())
	}
	if n := run(func(*edge.Producer) int64 { return 0 }); n != 100 {
		t.Errorf("%d were dropped of those that count from the start", n)
	}
	if n := k.broker.Stats().Duplicates; n != 100 {
		t.Errorf("%d are counted", n)
	}
	text := log.String()
	if strings.Count(text, "\n") != 1 || !strings.Contains(text, "producer=meter") || !strings.Contains(text, topic.Name().String()) {
		t.Errorf("the log says: %s", text)
	}
}
