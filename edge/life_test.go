package edge_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"wayside/edge"
)

// briefly is how long a test gives something the chance to happen that must not.
const briefly = 30 * time.Millisecond

// outcome runs something on a goroutine of its own.
func outcome(do func() error) <-chan error {
	ch := make(chan error, 1)
	go func() { ch <- do() }()
	return ch
}

// stillWaits fails if there is an outcome already.
func stillWaits(t *testing.T, what string, ch <-chan error) {
	t.Helper()
	select {
	case err := <-ch:
		t.Fatalf("%s: it did not wait: %v", what, err)
	case <-time.After(briefly):
	}
}

func TestOpenTopicsCountOnceAgainstTheLimit(t *testing.T) {
	k := newKit(t, func(o *edge.Options) { o.Topics = 3 })
	for _, name := range []string{"a", "b", "c"} {
		k.topic(name)
	}
	if _, err := k.broker.Open(t.Context(), k.name("d"), true); !errors.Is(err, edge.ErrLimit) {
		t.Fatalf("the fourth topic: %v", err)
	}
	if err := k.broker.Delete(t.Context(), k.name("a"), false); err != nil {
		t.Fatal(err)
	}
	k.topic("d")
}

func TestCloseWaitsForATopicThatIsBeingOpened(t *testing.T) {
	k := newKit(t, nil)
	opening, goOn := make(chan struct{}), make(chan struct{})
	hook := func(edge.TopicName) { close(opening); <-goOn }
	k.hooks.open.Store(&hook)
	opened := outcome(func() error {
		_, err := k.broker.Open(context.Background(), k.name("late"), true)
		return err
	})
	<-opening
	closed := outcome(func() error { return k.broker.Close(context.Background()) })
	stillWaits(t, "close", closed)
	close(goOn)
	if err := recv(t, opened); err != nil {
		t.Fatal(err)
	}
	if err := recv(t, closed); err != nil {
		t.Fatal(err)
	}
	k.hooks.open.Store(nil)
	if _, err := k.store.OpenLedger(k.name("late"), nil); err != nil {
		t.Fatalf("the ledger was left open: %v", err)
	}
}

func TestCloseWaitsForATopicThatIsBeingUnloaded(t *testing.T) {
	k := newKit(t, nil)
	k.topic("busy")
	k.store.Hold()
	unloaded := outcome(func() error { return k.broker.Unload(context.Background(), k.name("busy")) })
	eventually(t, "the unload is under way", func() bool { return len(k.broker.OpenTopics()) == 0 })
	closed := outcome(func() error { return k.broker.Close(context.Background()) })
	stillWaits(t, "close", closed)
	k.store.Release()
	for _, ch := range []<-chan error{closed, unloaded} {
		if err := recv(t, ch); err != nil {
			t.Fatal(err)
		}
	}
}

// A client that gives up waiting changes nothing: the place is free when the ledger is.
func TestAnUnloadGoesOnWithoutItsCaller(t *testing.T) {
	k := newKit(t, nil)
	k.topic("slow")
	k.store.Hold()
	ctx, cancel := context.WithCancel(t.Context())
	unloaded := outcome(func() error { return k.broker.Unload(ctx, k.name("slow")) })
	eventually(t, "the unload is under way", func() bool { return len(k.broker.OpenTopics()) == 0 })
	cancel()
	if err := recv(t, unloaded); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	opened := outcome(func() error {
		_, err := k.broker.Open(context.Background(), k.name("slow"), true)
		return err
	})
	stillWaits(t, "open", opened)
	k.store.Release()
	if err := recv(t, opened); err != nil {
		t.Fatal(err)
	}
}

func TestADeletionGoesOnWithoutItsCaller(t *testing.T) {
	var created atomic.Int32
	k := newKit(t, func(o *edge.Options) {
		o.OnCreate = func(edge.TopicName) []string { created.Add(1); return []string{"reserved"} }
	})
	k.topic("gone")
	if err := k.broker.Unload(t.Context(), k.name("gone")); err != nil {
		t.Fatal(err)
	}
	k.store.Hold()
	ctx, cancel := context.WithCancel(t.Context())
	deleted := outcome(func() error { return k.broker.Delete(ctx, k.name("gone"), false) })
	stillWaits(t, "delete", deleted)
	cancel()
	if err := recv(t, deleted); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	opened := outcome(func() error {
		_, err := k.broker.Open(context.Background(), k.name("gone"), true)
		return err
	})
	stillWaits(t, "open", opened)
	k.store.Release()
	if err := recv(t, opened); err != nil {
		t.Fatal(err)
	}
	if n := created.Load(); n != 2 {
		t.Fatalf("the topic was created %d times", n)
	}
	if got := k.topic("gone").Subscriptions(); len(got) != 1 {
		t.Fatalf("subscriptions of the new topic: %v", got)
	}
}

func TestTheEndIsToldBehindWhatIsUnderWay(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("ending")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	c, in := k.subscribe(topic, subscription("s", edge.Exclusive))
	k.store.Hold()
	sent := send(p, message("last"))
	ended := outcome(func() error {
		_, err := k.broker.Terminate(context.Background(), topic.Name())
		return err
	})
	eventually(t, "the topic is terminated", func() bool { return topic.Stats().Terminated })
	c.Flow(10)
	stillWaits(t, "terminate", ended)
	in.mu.Lock()
	if in.ended != 0 {
		t.Error("the end was told though an entry is under way")
	}
	in.mu.Unlock()
	k.store.Release()
	if a := recv(t, sent); a.err != nil {
		t.Fatal(a.err)
	}
	if err := recv(t, ended); err != nil {
		t.Fatal(err)
	}
	in.await(t, 1)
	k.ack(c, in.all()[0].Entry.Position)
	eventually(t, "the end is told", func() bool { in.mu.Lock(); defer in.mu.Unlock(); return in.ended == 1 })
}

func TestATerminationThatFailsDoesNotStick(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("stays")
	k.store.Fail(errors.New("no space"))
	if _, err := k.broker.Terminate(t.Context(), topic.Name()); err == nil {
		t.Fatal("terminated without a durable state")
	}
	k.store.Fail(nil)
	p, _ := k.producer(topic, edge.ProducerOptions{})
	k.publish(p, "a")
}

func TestAnUnloadTellsNobodyThatItIsItsTurn(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("turns")
	var all []*inbox
	for _, name := range []string{"a", "b", "c"} {
		o := subscription("s", edge.Failover)
		o.Consumer, o.Priority = name, len(all)
		_, in := k.subscribe(topic, o)
		all = append(all, in)
	}
	if err := k.broker.Unload(t.Context(), topic.Name()); err != nil {
		t.Fatal(err)
	}
	for i, in := range all {
		if !errors.Is(in.reason(), edge.ErrUnloaded) {
			t.Errorf("consumer %d was told %v", i, in.reason())
		}
		if len(in.active) != 1 {
			t.Errorf("consumer %d was told of %v", i, in.active)
		}
	}
}

// The dispatch goroutine of a subscription that is gone is waited for like any other.
func TestCloseWaitsForTheReadOfAReaderThatLeft(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("reader")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	k.publish(p, "a")
	reading, closing := make(chan struct{}), make(chan struct{})
	var inRead atomic.Bool
	read := func([]edge.Range) error {
		inRead.Store(true)
		defer inRead.Store(false)
		close(reading)
		select {
		case <-closing:
		case <-time.After(briefly):
		}
		return nil
	}
	closed := func(edge.TopicName) {
		if inRead.Load() {
			t.Error("the ledger is closed while it is read")
		}
		close(closing)
	}
	k.broker.DropTail()
	k.hooks.read.Store(&read)
	k.hooks.closed.Store(&closed)
	c, _ := k.subscribe(topic, edge.SubscribeOptions{Name: "r", Start: &edge.Earliest, Epoch: -1})
	c.Flow(1)
	<-reading
	c.Close()
	if err := k.broker.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestAProducerLearnsWhyItWasClosedWhileItBecame(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("becoming")
	k.store.Hold()
	made := outcome(func() error {
		_, err := topic.AddProducer(context.Background(), edge.ProducerOptions{Access: edge.AccessExclusive}, &end{}, &peer{})
		return err
	})
	eventually(t, "the producer is there", func() bool { return len(topic.Stats().Publishers) == 1 })
	unloaded := outcome(func() error { return k.broker.Unload(context.Background(), topic.Name()) })
	eventually(t, "it was closed", func() bool { return len(topic.Stats().Publishers) == 0 })
	k.store.Release()
	if err := recv(t, made); !errors.Is(err, edge.ErrUnloaded) {
		t.Fatalf("the producer got %v", err)
	}
	if err := recv(t, unloaded); err != nil {
		t.Fatal(err)
	}
}

func TestNobodyIsAdmittedToATopicThatWasTerminatedMeanwhile(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("late")
	k.store.Hold()
	made := outcome(func() error {
		_, err := topic.AddProducer(context.Background(), edge.ProducerOptions{InitialSubscription: "s"}, &end{}, &peer{})
		return err
	})
	eventually(t, "the subscription is being made", func() bool { return len(topic.Stats().Subscriptions) == 1 })
	ended := outcome(func() error {
		_, err := k.broker.Terminate(context.Background(), topic.Name())
		return err
	})
	eventually(t, "the topic is terminated", func() bool { return topic.Stats().Terminated })
	k.store.Release()
	if err := recv(t, made); !errors.Is(err, edge.ErrTerminated) {
		t.Fatalf("the producer got %v", err)
	}
	if err := recv(t, ended); err != nil {
		t.Fatal(err)
	}
}

func TestPropertiesThatDoNotFitTheStateAreRefused(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("properties")
	set := func(value string) error {
		return topic.ChangeProperties(t.Context(), func(p map[string]string) { p["k"] = value })
	}
	if err := set("v"); err != nil {
		t.Fatal(err)
	}
	if err := set(strings.Repeat("\x00", 12<<10)); !errors.Is(err, edge.ErrLimit) { // six bytes each in JSON
		t.Fatalf("it got %v", err)
	}
	if got := topic.Properties()["k"]; got != "v" {
		t.Fatalf("the property is %q", got)
	}
	if _, err := topic.AddProducer(t.Context(), edge.ProducerOptions{Access: edge.AccessExclusive}, &end{}, &peer{}); err != nil {
		t.Fatalf("the state cannot be saved any more: %v", err)
	}
}

func TestTheEndIsToldOnceToEachConsumer(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("once")
	if _, err := k.broker.Terminate(t.Context(), topic.Name()); err != nil {
		t.Fatal(err)
	}
	told := func(in *inbox) func() bool {
		return func() bool { in.mu.Lock(); defer in.mu.Unlock(); return in.ended > 0 }
	}
	_, first := k.subscribe(topic, subscription("s", edge.Shared))
	eventually(t, "the first is told", told(first))
	_, second := k.subscribe(topic, subscription("s", edge.Shared))
	eventually(t, "the second is told", told(second))
	if first.ended != 1 {
		t.Fatalf("the first was told %d times", first.ended)
	}
}

// A topic that is in use anyway takes no turn of those that are opened to be trimmed.
func TestQuietTopicsAreOpenedForTrimming(t *testing.T) {
	k := newKit(t, func(o *edge.Options) { o.KeepAcked = 0 })
	for i := range 12 {
		topic := k.topic(fmt.Sprint("t", i))
		p, _ := k.producer(topic, edge.ProducerOptions{})
		k.publishAll(p, messages(20-i, nil)...)
		p.Close(nil)
		if i == 11 {
			if err := k.broker.Unload(t.Context(), topic.Name()); err != nil {
				t.Fatal(err)
			}
		}
	}
	k.broker.Sweep(0)
	if n := len(k.broker.OpenTopics()); n != 12 {
		t.Fatalf("%d topics are open", n)
	}
}

func TestTheHousekeeperComesByItself(t *testing.T) {
	k := newKit(t, func(o *edge.Options) { o.BacklogCheckInterval, o.IdleUnload = time.Millisecond, 0 })
	k.topic("idle")
	eventually(t, "the idle topic is unloaded", func() bool { return len(k.broker.OpenTopics()) == 0 })
}
