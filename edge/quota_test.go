package edge_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"wayside/edge"
)

// quota lets the store say that it has so many bytes.
func (k *kit) quota(bytes int64) {
	hook := func(st *edge.StoreStats) { st.Quota = bytes }
	k.hooks.stats.Store(&hook)
}

func hundredBytes(_ int, m *edge.Message) { m.Data = []byte(strings.Repeat("x", 100)) }

func TestAtTheQuotaProducersWaitUntilThereIsRoom(t *testing.T) {
	for full, want := range map[edge.WhenFull]error{edge.WhenFullHold: edge.ErrQuotaHold, edge.WhenFullFail: edge.ErrQuotaFail} {
		k := newKit(t, func(o *edge.Options) { o.WhenFull = full })
		topic := k.topic("full")
		c, in := k.subscribe(topic, subscription("s", edge.Exclusive))
		c.Flow(100)
		owner, ownerEnd := k.producer(topic, edge.ProducerOptions{Access: edge.AccessExclusive})
		_, waiterEnd := k.producer(topic, edge.ProducerOptions{Access: edge.AccessWait})
		k.publishAll(owner, messages(10, hundredBytes)...)
		k.quota(1_000)
		k.broker.Sweep(0)
		for _, e := range []*end{ownerEnd, waiterEnd} {
			eventually(t, "a producer is closed", func() bool { return errors.Is(e.reason(), want) })
		}
		if len(waiterEnd.turns()) != 0 {
			t.Error("the one that waited had its turn on the way")
		}
		if _, err := topic.AddProducer(t.Context(), edge.ProducerOptions{}, &end{}, &peer{}); !errors.Is(err, want) {
			t.Fatalf("a new producer: %v", err)
		}
		in.await(t, 10)
		k.ack(c, in.from(0)...)
		p, _ := k.producer(topic, edge.ProducerOptions{})
		k.publish(p, "a")
	}
}

func TestDroppingTheOldestLetsABlockedConsumerGoOn(t *testing.T) {
	k := newKit(t, func(o *edge.Options) { o.WhenFull, o.UnackedPerConsumer = edge.WhenFullDropOldest, 10 })
	topic := k.topic("drop")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	at := k.publishAll(p, messages(30, hundredBytes)...)
	c, in := k.subscribe(topic, subscription("s", edge.Shared))
	c.Flow(100)
	in.await(t, 10)
	k.quota(2_000) // of 3,000 bytes 1,200 have to go
	k.broker.Sweep(0)
	in.await(t, 20)
	if got := in.from(10)[0]; got.Less(at[12]) {
		t.Fatalf("then came %v", got)
	}
	if n := k.broker.Stats().Dropped; n < 12 || n > 14 {
		t.Fatalf("%d entries were dropped", n)
	}
}

// What a reader has in front of it that is acknowledged does not count for the room
// that is made.
func TestDroppingTheOldestBeginsAtTheSlowestCursor(t *testing.T) {
	k := newKit(t, func(o *edge.Options) { o.WhenFull = edge.WhenFullDropOldest })
	topic := k.topic("drop")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	c, _ := k.subscribe(topic, subscription("s", edge.Exclusive))
	at := k.publishAll(p, messages(100, hundredBytes)...)
	done := make(chan error, 1)
	c.Ack(parts(at[49]), true, func(err error) { done <- err })
	if err := recv(t, done); err != nil {
		t.Fatal(err)
	}
	k.subscribe(topic, edge.SubscribeOptions{Name: "r", Start: &edge.Earliest, Epoch: -1})
	k.quota(4_000)
	k.broker.Sweep(0)
	if n := topic.Stats().Subscriptions["s"].Backlog; n > 36 {
		t.Fatalf("%d of 50 entries are left where 36 fit", n)
	}
}

func TestAReaderHoldsWhatItHasNotRead(t *testing.T) {
	k := newKit(t, func(o *edge.Options) { o.KeepAcked = 0 })
	topic := k.topic("floor")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	k.publishAll(p, messages(2_500, nil)...) // three ledgers
	durable, in := k.subscribe(topic, subscription("s", edge.Exclusive))
	durable.Flow(3_000)
	reader, inReader := k.subscribe(topic, edge.SubscribeOptions{Name: "r", Start: &edge.Earliest, Epoch: -1})
	eventually(t, "all came", func() bool { return in.count() == 2_500 })
	k.ack(durable, in.from(0)...)
	start := topic.Spans().Start()
	k.broker.Sweep(0)
	barrier(t, k, topic)
	if topic.Spans().Start() != start {
		t.Fatal("a connected reader lost what it had not read")
	}
	reader.Flow(3_000)
	eventually(t, "all came", func() bool { return inReader.count() == 2_500 })
	k.ack(reader, inReader.from(0)...)
	k.broker.Sweep(0)
	eventually(t, "closed ledgers are trimmed", func() bool { return start.Less(topic.Spans().Start()) })
}

// barrier waits until all that was asked of the store is done.
func barrier(t *testing.T, k *kit, topic *edge.Topic) {
	t.Helper()
	p, _ := k.producer(topic, edge.ProducerOptions{})
	done := make(chan struct{})
	p.Close(func() { close(done) })
	<-done
}

func TestAnIdleTopicIsUnloadedAndASoughtReaderIsNot(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("idle")
	sought := k.topic("sought")
	p, _ := k.producer(sought, edge.ProducerOptions{})
	at := k.publish(p, "a", "b")
	c, _ := k.subscribe(sought, edge.SubscribeOptions{Name: "r", Start: &edge.Earliest, Epoch: -1})
	if err := c.Seek(t.Context(), edge.SeekTarget{Position: at[1]}); err != nil {
		t.Fatal(err)
	}
	p.Close(nil)
	k.broker.Sweep(30 * time.Second)
	if n := len(k.broker.OpenTopics()); n != 2 {
		t.Fatalf("%d topics are open", n)
	}
	k.broker.Sweep(3 * time.Minute) // the reader's minute is over, and the topic idle
	k.broker.Sweep(3 * time.Minute)
	if n := len(k.broker.OpenTopics()); n != 0 {
		t.Fatalf("%d topics are open", n)
	}
	if _, err := topic.AddProducer(t.Context(), edge.ProducerOptions{}, &end{}, &peer{}); !errors.Is(err, edge.ErrUnloaded) {
		t.Fatalf("the old topic took a producer: %v", err)
	}
}

func TestPartitionsAndPlainTopicsDoNotMeet(t *testing.T) {
	k := newKit(t, nil)
	opening, goOn := make(chan struct{}), make(chan struct{})
	var once atomic.Bool
	hook := func(edge.TopicName) {
		if once.CompareAndSwap(false, true) {
			close(opening)
			<-goOn
		}
	}
	k.hooks.open.Store(&hook)
	opened := outcome(func() error { _, err := k.broker.Open(t.Context(), k.name("x"), true); return err })
	<-opening
	split := outcome(func() error { return k.broker.CreatePartitions(t.Context(), k.name("x"), 2) })
	stillWaits(t, "creating partitions", split)
	close(goOn)
	if err := recv(t, opened); err != nil {
		t.Fatal(err)
	}
	if err := recv(t, split); !errors.Is(err, edge.ErrExists) {
		t.Fatalf("partitions beside a plain topic: %v", err)
	}
	if _, ok := k.broker.Partitions(k.name("x")); ok {
		t.Fatal("the plain topic is partitioned")
	}
}

func TestPartitionsNeverBecomeFewer(t *testing.T) {
	k := newKit(t, nil)
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		base := k.name(name)
		if err := k.broker.CreatePartitions(t.Context(), base, 2); err != nil {
			t.Fatal(err)
		}
		if err := k.broker.Unload(t.Context(), base.WithPartition(0)); err != nil {
			t.Fatal(err)
		}
		hook := func(edge.TopicName) { <-time.After(5 * time.Millisecond) } // both have begun by then
		k.hooks.open.Store(&hook)
		more := outcome(func() error { return k.broker.UpdatePartitions(t.Context(), base, 9) })
		less := outcome(func() error { return k.broker.UpdatePartitions(t.Context(), base, 3) })
		if err := recv(t, more); err != nil {
			t.Fatal(err)
		}
		_ = recv(t, less)
		k.hooks.open.Store(nil)
		if n, _ := k.broker.Partitions(base); n != 9 {
			t.Fatalf("%s has %d partitions", name, n)
		}
	}
}
