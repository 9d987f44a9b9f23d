package edge_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"wayside/edge"
)

// Cases that people met with other brokers, by the numbers that they have among ours.

// PT-01: the same name ends up both partitioned and not.
func TestPT01ANameIsPartitionedOrNotNeverBoth(t *testing.T) {
	k := newKit(t, func(o *edge.Options) { o.AutoPartitions = 1 })
	if n, err := k.broker.Metadata(t.Context(), k.name("auto"), true); n != 1 || err != nil {
		t.Fatalf("%d partitions: %v", n, err)
	}
	_, err := k.broker.Open(t.Context(), k.name("auto"), true)
	wants(t, "the bare name", err, edge.ErrNotAllowed)
	for i := range 100 {
		name := k.name(fmt.Sprint("race", i))
		plain := outcome(func() error { _, err := k.broker.Open(t.Context(), name, true); return err })
		split := outcome(func() error { return k.broker.CreatePartitions(t.Context(), name, 2) })
		asked := outcome(func() error { _, err := k.broker.Metadata(t.Context(), name, true); return err })
		errPlain, errSplit := recv(t, plain), recv(t, split)
		if err := recv(t, asked); err != nil {
			t.Fatal(err)
		}
		_, partitioned := k.broker.Partitions(name)
		if exists := k.broker.Exists(name); exists == partitioned || exists != (errPlain == nil) {
			t.Fatalf("%s: plain %t (%v), partitioned %t (%v)", name, exists, errPlain, partitioned, errSplit)
		}
	}
}

// PT-03: messages in new partitions, sent before consumers noticed, are missed.
func TestPT03NewPartitionsHaveTheSubscriptionsFromTheStart(t *testing.T) {
	k := newKit(t, nil)
	base := k.name("grows")
	if err := k.broker.CreatePartitions(t.Context(), base, 3); err != nil {
		t.Fatal(err)
	}
	for _, sub := range []string{"a", "b"} {
		k.subscribe(k.topic("grows-partition-0"), subscription(sub, edge.Shared))
	}
	if err := k.broker.UpdatePartitions(t.Context(), base, 5); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"grows-partition-3", "grows-partition-4"} {
		p, _ := k.producer(k.topic(name), edge.ProducerOptions{})
		k.publishAll(p, messages(100, nil)...)
	}
	k.restart(nil)
	for _, sub := range []string{"a", "b"} {
		came := 0
		for _, name := range []string{"grows-partition-3", "grows-partition-4"} {
			late := subscription(sub, edge.Shared)
			late.Initial = edge.InitialLatest
			c, in := k.subscribe(k.topic(name), late)
			c.Flow(1_000)
			came += len(in.await(t, 100))
		}
		if came != 200 {
			t.Errorf("%s was given %d", sub, came)
		}
	}
	wants(t, "fewer", k.broker.UpdatePartitions(t.Context(), base, 4), edge.ErrBadRequest)
}

// PT-05: idle clean-up removes one partition; clients of the parent can no longer start.
func TestPT05AnIdlePartitionComesBackOnDemand(t *testing.T) {
	k := newKit(t, func(o *edge.Options) { o.AutoCreate = false })
	if err := k.broker.CreatePartitions(t.Context(), k.name("p"), 2); err != nil {
		t.Fatal(err)
	}
	p, _ := k.producer(k.topic("p-partition-0"), edge.ProducerOptions{})
	k.publish(p, "kept")
	p.Close(nil)
	if err := k.broker.Delete(t.Context(), k.name("p-partition-1"), false); err != nil {
		t.Fatal(err)
	}
	k.broker.Sweep(time.Hour)
	k.broker.Sweep(time.Hour)
	open := func(name string) *edge.Topic {
		topic, err := k.broker.Open(t.Context(), k.name(name), k.broker.AutoCreates(k.name(name)))
		if err != nil {
			t.Fatal(err)
		}
		return topic
	}
	k.producer(open("p-partition-1"), edge.ProducerOptions{})
	c, in := k.subscribe(open("p-partition-0"), subscription("s", edge.Shared))
	c.Flow(1)
	if got := in.await(t, 1); !slices.Equal(got, []string{"kept"}) {
		t.Errorf("%q came", got)
	}
	_, err := k.broker.Open(t.Context(), k.name("p-partition-2"), false)
	if !errors.Is(err, edge.ErrTopicNotFound) {
		t.Errorf("beyond the count: %v", err)
	}
}

// DD-01, its last part: deduplication that is switched on counts for who is there.
func TestDD01DeduplicationIsSwitchedUnderItsProducers(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("dedup")
	p, _ := k.producer(topic, edge.ProducerOptions{Name: "meter", UserProvided: true})
	same := func() bool {
		m := message("x")
		m.Facts.Producer, m.Facts.Sequence, m.Facts.Highest = "meter", 7, 7
		a := recv(t, send(p, m))
		if a.err != nil {
			t.Fatal(a.err)
		}
		return a.Duplicate
	}
	if first, second := same(), same(); first || second {
		t.Fatal("dropped while nobody asked for it")
	}
	k.rule(own, func(p *edge.Policies) { p.Deduplication = new(true) })
	if first, second := same(), same(); first || !second {
		t.Error("not dropped once it is on")
	}
	k.rule(topic.Name().String(), func(p *edge.Policies) { p.Deduplication = new(false) })
	if first, second := same(), same(); first || second {
		t.Error("dropped though the topic has it off")
	}
	k.rule(own, func(p *edge.Policies) { *p = edge.Policies{} })
}
