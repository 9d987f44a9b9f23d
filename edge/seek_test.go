package edge_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"wayside/edge"
)

func TestSeekSendsTheConsumerAwayAndGoesOnAtTheEntry(t *testing.T) {
	for _, kind := range []edge.SubKind{edge.Exclusive, edge.Shared} {
		t.Run(kind.String(), func(t *testing.T) {
			k := newKit(t, nil)
			topic := k.topic("seek")
			p, _ := k.producer(topic, edge.ProducerOptions{})
			at := k.publish(p, numbers(0, 6)...)
			c, in := k.subscribe(topic, subscription("s", kind))
			c.Flow(100)
			in.await(t, 6)
			k.ack(c, at...)
			if err := c.Seek(t.Context(), edge.SeekTarget{Position: at[4]}); err != nil {
				t.Fatal(err)
			}
			if in.reason() == nil {
				t.Fatal("the consumer was not sent away")
			}
			c, in = k.subscribe(topic, subscription("s", kind))
			if got := c.LastID().MarkDelete; got != at[3] {
				t.Fatalf("mark-delete is %v, want %v", got, at[3])
			}
			c.Flow(100)
			if got := in.await(t, 2); !slices.Equal(got, numbers(4, 2)) {
				t.Fatalf("got %v", got)
			}
		})
	}
}

func TestReaderKeepsASoughtPosition(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("reader")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	at := k.publish(p, numbers(0, 6)...)
	o := edge.SubscribeOptions{Name: "r", Kind: edge.Exclusive, Start: &edge.Earliest, Epoch: -1}
	c, in := k.subscribe(topic, o)
	c.Flow(100)
	in.await(t, 6)
	if err := c.Seek(t.Context(), edge.SeekTarget{Position: at[5]}); err != nil {
		t.Fatal(err)
	}
	c.Close() // as a front end does whose client goes
	c, in = k.subscribe(topic, o)
	c.Flow(100)
	if got := in.await(t, 1); !slices.Equal(got, []string{"5"}) {
		t.Fatalf("got %v", got)
	}
	c.Close()
	c, in = k.subscribe(topic, o)
	c.Flow(100)
	if got := in.await(t, 6); !slices.Equal(got, numbers(0, 6)) {
		t.Fatalf("without a seek got %v", got)
	}
}

func TestLastIDOfEveryState(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("last")
	c, _ := k.subscribe(topic, subscription("s", edge.Exclusive))
	if id := c.LastID(); id.Last != edge.Earliest || id.MarkDelete.Entry != -1 {
		t.Fatalf("empty topic: %+v", id)
	}
	p, _ := k.producer(topic, edge.ProducerOptions{})
	m := message("batch")
	m.Facts.Messages, m.Facts.Batch = 4, true
	at := recv(t, send(p, m)).Position
	if id := c.LastID(); id.Last != at || id.Messages != 4 || !id.Batch {
		t.Fatalf("a batch: %+v", id)
	}
}

func TestPeekFindsTheNthUnacked(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("peek")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	at := k.publish(p, numbers(0, 6)...)
	c, in := k.subscribe(topic, subscription("s", edge.Shared))
	c.Flow(10)
	in.await(t, 6)
	k.ack(c, at[0], at[2])
	for n, want := range map[int]string{1: "1", 2: "3", 4: "5"} {
		if e, err := topic.Peek(t.Context(), "s", n); err != nil || string(e.Data) != want {
			t.Errorf("peek %d: %q, %v; want %s", n, e.Data, err, want)
		}
	}
	for _, n := range []int{5, 0, -1} {
		if _, err := topic.Peek(t.Context(), "s", n); !errors.Is(err, edge.ErrMessageNotFound) {
			t.Errorf("peek %d: %v", n, err)
		}
	}
	if e, err := topic.Entry(t.Context(), at[2]); err != nil || string(e.Data) != "2" {
		t.Errorf("entry: %q, %v", e.Data, err)
	}
}

func TestASeekByTimeGoesToTheFirstPublishedThenOrLater(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("time")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	at := k.publishAll(p, messages(5, func(i int, m *edge.Message) { m.Facts.Publish = int64(100 + 10*i) })...)
	for time, next := range map[int64]int{0: 0, 100: 0, 101: 1, 125: 3, 140: 4, 141: 5} {
		if err := topic.CreateSubscription(t.Context(), "s", edge.Latest); err != nil {
			t.Fatal(err)
		}
		if err := topic.ResetSubscription(t.Context(), "s", edge.SeekTarget{ByTime: true, Time: time}); err != nil {
			t.Fatal(err)
		}
		want := edge.Position{Ledger: at[0].Ledger, Entry: at[0].Entry + int64(next) - 1}
		if got := topic.Stats().Subscriptions["s"].MarkDelete; got != want {
			t.Errorf("time %d: mark-delete is %v, want %v", time, got, want)
		}
		if err := topic.DeleteSubscription(t.Context(), "s", false); err != nil {
			t.Fatal(err)
		}
	}
}

func TestARollbackBeginsInThePast(t *testing.T) {
	k := newKit(t, func(o *edge.Options) { o.Clock = func() time.Time { return time.UnixMilli(10_000) } })
	topic := k.topic("rollback")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	k.publishAll(p, messages(5, func(i int, m *edge.Message) { m.Facts.Publish = int64(6_000 + 1_000*i) })...)
	o := subscription("s", edge.Exclusive)
	o.Initial, o.Rollback = edge.InitialLatest, 2*time.Second
	c, in := k.subscribe(topic, o)
	c.Flow(10)
	if got := in.await(t, 3); !slices.Equal(got, numbers(2, 3)) {
		t.Fatalf("got %v", got)
	}
}

func TestWhereANonDurableSubscriptionBegins(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("start")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	at := k.publish(p, numbers(0, 4)...)
	next, beyond := at[3].Next(), at[3].Next().Next()
	cases := []struct {
		name    string
		start   *edge.Position
		initial edge.Initial
		want    []string
	}{
		{"nothing said", nil, edge.InitialLatest, []string{"4"}},
		{"earliest without a start", nil, edge.InitialEarliest, numbers(0, 5)},
		{"a start", &at[2], edge.InitialEarliest, numbers(2, 3)},
		{"just beyond the end", &next, edge.InitialEarliest, []string{"4"}},
		{"beyond the end", &beyond, edge.InitialLatest, []string{"4"}},
		{"beyond the end, earliest", &beyond, edge.InitialEarliest, numbers(0, 5)},
	}
	ins := make([]*inbox, len(cases))
	for i, c := range cases {
		r, in := k.subscribe(topic, edge.SubscribeOptions{Name: c.name, Start: c.start, Initial: c.initial, Epoch: -1})
		r.Flow(100)
		ins[i] = in
	}
	k.publish(p, "4")
	for i, c := range cases {
		if got := ins[i].await(t, len(c.want)); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}
