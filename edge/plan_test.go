package edge_test

import (
	"errors"
	"slices"
	"testing"

	"wayside/edge"
)

func TestAPlanIsKeptWithWhatItAcknowledges(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("plan")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	at := k.publish(p, numbers(0, 4)...)
	c, in := k.subscribe(topic, subscription("s", edge.Exclusive))
	c.Flow(10)
	in.await(t, 4)
	if c.Plan() != nil || c.Topic() != topic || c.Subscription().Name() != "s" {
		t.Fatalf("plan %q of %v on %s", c.Plan(), c.Topic().Name(), c.Subscription().Name())
	}
	done := make(chan error, 1)
	beyond := edge.Position{Ledger: at[3].Ledger + 1}
	for i, upTo := range []*edge.Position{&at[1], nil, &beyond} {
		plan := []byte{byte(i)}
		c.SavePlan(plan, upTo, func(err error) { done <- err })
		if err := recv(t, done); err != nil {
			t.Fatal(err)
		}
		plan[0] = 99 // the caller's own
		if got := c.Plan(); !slices.Equal(got, []byte{byte(i)}) {
			t.Fatalf("plan %v", got)
		}
		if n, want := topic.Stats().Subscriptions["s"].Backlog, []int64{2, 2, 0}[i]; n != want {
			t.Fatalf("backlog %d, want %d", n, want)
		}
	}
	k.restart(nil)
	topic = k.topic("plan")
	c, _ = k.subscribe(topic, subscription("s", edge.Exclusive))
	if got := c.Plan(); !slices.Equal(got, []byte{2}) {
		t.Fatalf("after the restart the plan is %v", got)
	}
	c.Close()
	c.SavePlan(nil, nil, func(err error) { done <- err })
	if err := recv(t, done); !errors.Is(err, edge.ErrGone) {
		t.Fatalf("a consumer that is gone saved: %v", err)
	}
	c.Ack(parts(at[0]), false, func(err error) { done <- err })
	if err := recv(t, done); !errors.Is(err, edge.ErrGone) {
		t.Fatalf("a consumer that is gone acknowledged: %v", err)
	}
}

func TestWhatSubscribeRefuses(t *testing.T) {
	k := newKit(t, func(o *edge.Options) { o.ConsumersPerSubscription, o.SubscriptionsPerTopic = 2, 6 })
	topic := k.topic("refuse")
	sticky := func(r ...edge.SlotRange) edge.SubscribeOptions {
		o := subscription("sticky", edge.KeyShared)
		o.Sticky, o.Ranges = true, r
		return o
	}
	k.subscribe(topic, sticky(edge.SlotRange{First: 0, Last: 9}))
	k.subscribe(topic, subscription("shared", edge.Shared))
	k.subscribe(topic, subscription("shared", edge.Shared))
	k.subscribe(topic, subscription("keys", edge.KeyShared))
	compacted := subscription("new", edge.Shared)
	compacted.ReadCompacted = true
	missing := subscription("missing", edge.Shared)
	missing.AutoSubscribe = false
	volatile := subscription("shared", edge.Shared)
	volatile.Durable = false
	unordered := subscription("keys", edge.KeyShared)
	unordered.OutOfOrder = true
	follows := subscription("new", edge.Exclusive)
	follows.Follow = "nobody"
	for what, c := range map[string]struct {
		o    edge.SubscribeOptions
		want error
	}{
		"no name":          {subscription("", edge.Shared), edge.ErrNotAllowed},
		"a long name":      {subscription(string(make([]byte, 1025)), edge.Shared), edge.ErrNotAllowed},
		"an unknown kind":  {subscription("new", 4), edge.ErrBadRequest},
		"compacted":        {compacted, edge.ErrNotAllowed},
		"no ranges":        {sticky(), edge.ErrSticky},
		"a turned range":   {sticky(edge.SlotRange{First: 20, Last: 10}), edge.ErrSticky},
		"a taken range":    {sticky(edge.SlotRange{First: 5, Last: 15}), edge.ErrSticky},
		"missing":          {missing, edge.ErrSubscriptionNotFound},
		"not durable":      {volatile, edge.ErrNotAllowed},
		"one too many":     {subscription("shared", edge.Shared), edge.ErrConsumerBusy},
		"another key mode": {unordered, edge.ErrTypeMismatch},
		"follows nobody":   {follows, edge.ErrSubscriptionNotFound},
	} {
		in := &inbox{}
		if _, err := topic.Subscribe(t.Context(), c.o, in, &peer{}); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
	}
	k.subscribe(topic, subscription("a", edge.Shared))
	k.subscribe(topic, subscription("b", edge.Shared))
	k.subscribe(topic, subscription("c", edge.Shared))
	if _, err := topic.Subscribe(t.Context(), subscription("d", edge.Shared), &inbox{}, &peer{}); !errors.Is(err, edge.ErrNotAllowed) {
		t.Errorf("a subscription too many: %v", err)
	}
	if err := topic.CreateSubscription(t.Context(), "a", edge.Latest); !errors.Is(err, edge.ErrExists) {
		t.Errorf("the same again: %v", err)
	}
}

func TestARefusalStandsInLine(t *testing.T) {
	k := newKit(t, nil)
	p, _ := k.producer(k.topic("line"), edge.ProducerOptions{})
	k.store.Hold()
	answers := make(chan string, 2)
	p.Publish(message("a"), func(edge.Receipt, error) { answers <- "stored" })
	grant, _ := k.broker.Budget().TryTake(edge.SharePublish, 100)
	p.Refuse(edge.Message{Grant: grant}, edge.ErrChecksum, func(_ edge.Receipt, err error) { answers <- err.Error() })
	k.store.Release()
	for _, want := range []string{"stored", edge.ErrChecksum.Error()} {
		if got := recv(t, answers); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
