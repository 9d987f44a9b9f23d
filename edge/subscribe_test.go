package edge_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"wayside/edge"
)

func TestASubscriptionMadeAgainOutlivesTheDeletionOfTheOldOne(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("again")
	k.subscribe(topic, subscription("s", edge.Shared))
	var made <-chan error
	hook := func(string) {
		made = outcome(func() error {
			_, err := topic.Subscribe(context.Background(), subscription("s", edge.Shared), &inbox{}, &peer{})
			return err
		})
		ready := time.After(briefly)
		for len(made) == 0 {
			select {
			case <-ready:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}
	k.hooks.drop.Store(&hook)
	if err := topic.DeleteSubscription(t.Context(), "s", true); err != nil {
		t.Fatal(err)
	}
	if err := recv(t, made); err != nil {
		t.Fatal(err)
	}
	k.hooks.drop.Store(nil)
	if err := k.broker.Unload(t.Context(), topic.Name()); err != nil {
		t.Fatal(err)
	}
	if got := k.topic("again").Subscriptions(); !slices.Equal(got, []string{"s"}) {
		t.Fatalf("subscriptions after the reload: %v", got)
	}
}

func TestNothingBringsARemovedSubscriptionBack(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("ghost")
	o := subscription("s", edge.Failover)
	o.Consumer = "a"
	a, _ := k.subscribe(topic, o)
	o.Consumer, o.Priority = "b", 1
	b, _ := k.subscribe(topic, o)
	hook := func() {
		if err := b.Unsubscribe(context.Background(), true); err != nil {
			t.Errorf("unsubscribe: %v", err)
		}
	}
	k.hooks.find.Store(&hook)
	if err := a.Seek(t.Context(), edge.SeekTarget{ByTime: true, Time: 1}); !errors.Is(err, edge.ErrGone) {
		t.Fatalf("the seek of a removed subscription: %v", err)
	}
	if err := topic.SkipAll(t.Context(), "s"); !errors.Is(err, edge.ErrSubscriptionNotFound) {
		t.Fatalf("skipping on it: %v", err)
	}
	if err := k.broker.Unload(t.Context(), topic.Name()); err != nil {
		t.Fatal(err)
	}
	if got := k.topic("ghost").Subscriptions(); len(got) != 0 {
		t.Fatalf("subscriptions after the reload: %v", got)
	}
}

func TestAConsumerThatIsGoneCannotUnsubscribe(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("gone")
	c, _ := k.subscribe(topic, subscription("s", edge.Exclusive))
	if err := c.Seek(t.Context(), edge.SeekTarget{Position: edge.Earliest}); err != nil {
		t.Fatal(err)
	}
	if err := c.Unsubscribe(t.Context(), false); !errors.Is(err, edge.ErrConsumerNotFound) {
		t.Fatalf("it got %v", err)
	}
	if got := topic.Subscriptions(); len(got) != 1 {
		t.Fatalf("subscriptions %v", got)
	}
}

func TestSubscribeSaysThatTheTopicWasUnloaded(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("unloading")
	k.store.Hold()
	made := outcome(func() error {
		_, err := topic.Subscribe(context.Background(), subscription("s", edge.Shared), &inbox{}, &peer{})
		return err
	})
	eventually(t, "the subscription is being made", func() bool { return len(topic.Stats().Subscriptions) == 1 })
	unloaded := outcome(func() error { return k.broker.Unload(context.Background(), topic.Name()) })
	eventually(t, "the unload is under way", func() bool { return len(k.broker.OpenTopics()) == 0 })
	k.store.Release()
	if err := recv(t, unloaded); err != nil {
		t.Fatal(err)
	}
	if err := recv(t, made); !errors.Is(err, edge.ErrUnloaded) {
		t.Fatalf("the subscriber got %v", err)
	}
}

func TestAFollowerLearnsThatItsLeaderIsGone(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("follow")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	at := k.publish(p, numbers(0, 3)...)
	lead, _ := k.subscribe(topic, subscription("lead", edge.Shared))
	o := subscription("tail", edge.Exclusive)
	o.Follow = "lead"
	_, in := k.subscribe(topic, o)
	if err := lead.Unsubscribe(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if err := in.reason(); !errors.Is(err, edge.ErrUnloaded) {
		t.Fatalf("the follower was told %v", err)
	}
	if _, err := topic.Subscribe(t.Context(), o, &inbox{}, &peer{}); !errors.Is(err, edge.ErrSubscriptionNotFound) {
		t.Fatalf("following nobody: %v", err)
	}
	lead, _ = k.subscribe(topic, subscription("lead", edge.Shared))
	c, in := k.subscribe(topic, o)
	c.Flow(10)
	k.ack(lead, at[0])
	if got := in.await(t, 1); !slices.Equal(got, []string{"0"}) {
		t.Fatalf("behind the new leader came %v", got)
	}
}

func TestACumulativeAckBeyondTheEndIsIgnored(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("beyond")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	at := k.publish(p, "a", "b")
	c, _ := k.subscribe(topic, subscription("s", edge.Exclusive))
	for _, beyond := range []edge.Position{{Ledger: at[1].Ledger, Entry: at[1].Entry + 1}, {Ledger: at[1].Ledger + 1}, edge.Latest} {
		done := make(chan error, 1)
		c.Ack(parts(beyond), true, func(err error) { done <- err })
		if err := recv(t, done); err != nil {
			t.Fatal(err)
		}
		if n := topic.Stats().Subscriptions["s"].Backlog; n != 2 {
			t.Fatalf("after acknowledging %v the backlog is %d", beyond, n)
		}
	}
}

func TestRedeliveryCountsOutliveACleanStop(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("stop")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	at := k.publish(p, "a")
	c, in := k.subscribe(topic, subscription("s", edge.Shared))
	c.Flow(10)
	in.await(t, 1)
	c.Redeliver(at, -1)
	in.await(t, 2)
	k.broker.Stopping()
	c.Close() // as its front end ends
	if err := k.broker.Unload(t.Context(), topic.Name()); err != nil {
		t.Fatal(err)
	}
	c, in = k.subscribe(k.topic("stop"), subscription("s", edge.Shared))
	c.Flow(10)
	in.await(t, 1)
	if d := in.all()[0]; d.Redelivered != 1 {
		t.Fatalf("the count is %d", d.Redelivered)
	}
}

// A producer's initial subscription is durable before the producer is there, also if
// somebody else is just making it.
func TestAnInitialSubscriptionThatIsBeingMadeIsWaitedFor(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("initial")
	k.store.Hold()
	made := outcome(func() error { return topic.CreateSubscription(context.Background(), "s", edge.Earliest) })
	eventually(t, "it is being made", func() bool { return len(topic.Stats().Subscriptions) == 1 })
	added := outcome(func() error {
		_, err := topic.AddProducer(context.Background(), edge.ProducerOptions{InitialSubscription: "s"}, &end{}, &peer{})
		return err
	})
	stillWaits(t, "the producer", added)
	k.store.Release()
	for _, ch := range []<-chan error{made, added} {
		if err := recv(t, ch); err != nil {
			t.Fatal(err)
		}
	}
}

// An acknowledgement whose write failed is written later: memory and disk do not part.
func TestAnAckThatFailedIsSavedLater(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("later")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	at := k.publish(p, "a", "b")
	c, _ := k.subscribe(topic, subscription("s", edge.Exclusive))
	save := func() error { return errors.New("no space") }
	k.hooks.save.Store(&save)
	done := make(chan error, 1)
	c.Ack(parts(at[0]), false, func(err error) { done <- err })
	if err := recv(t, done); err == nil {
		t.Fatal("a failed write was confirmed")
	}
	k.hooks.save.Store(nil)
	if err := k.broker.Unload(t.Context(), topic.Name()); err != nil {
		t.Fatal(err)
	}
	if n := k.topic("later").Stats().Subscriptions["s"].Backlog; n != 1 {
		t.Fatalf("after the reload the backlog is %d", n)
	}
}

func TestWhoFollowsNoLongerIsLeftAlone(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("alone")
	lead, _ := k.subscribe(topic, subscription("lead", edge.Shared))
	o := subscription("tail", edge.Exclusive)
	o.Follow = "lead"
	c, _ := k.subscribe(topic, o)
	c.Close()
	_, in := k.subscribe(topic, subscription("tail", edge.Exclusive))
	if err := lead.Unsubscribe(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if err := in.reason(); err != nil {
		t.Fatalf("it was told %v", err)
	}
	p, _ := k.producer(topic, edge.ProducerOptions{})
	k.publish(p, "a")
}
