package edge_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"wayside/edge"
)

// Nobody reads past the first entry of an open transaction, whatever is behind it; the
// newest message is the one before.
func TestOpenTransactionHoldsBack(t *testing.T) {
	for _, commit := range []bool{true, false} {
		k := newKit(t, nil)
		top := k.topic("t")
		p, _ := k.producer(top, edge.ProducerOptions{Name: "p"})
		c, in := k.subscribe(top, subscription("s", edge.Shared))
		c.Flow(100)
		x, y := k.begin(time.Minute, []string{"t"}), k.begin(time.Minute, []string{"t"})
		a := k.publish(p, "a")
		k.publishIn(p, x, "x1")
		b := k.publish(p, "b")
		k.publishIn(p, y, "y1")
		k.publishIn(p, x, "x2")
		k.publish(p, "c")
		in.await(t, 1)
		if last := c.LastID().Last; last != a[0] || top.Readable() != a[0] {
			t.Errorf("newest %v, readable %v, want %v", last, top.Readable(), a[0])
		}
		k.mustEnd(x, commit)
		want := []string{"a", "x1", "b"}
		if !commit {
			want = []string{"a", "b"}
		}
		if got := in.await(t, len(want)); !slices.Equal(got, want) {
			t.Errorf("commit %t: %q, want %q", commit, got, want)
		}
		if last := c.LastID().Last; last != b[0] {
			t.Errorf("newest %v, want %v", last, b[0])
		}
		k.mustEnd(y, commit)
		want = []string{"a", "x1", "b", "y1", "x2", "c"}
		if !commit {
			want = []string{"a", "b", "c"}
		}
		k.onlyThen(top, p, in, want...)
		if err := k.end(x, commit); !errors.Is(err, edge.ErrTxnNotFound) {
			t.Errorf("ended again: %v", err)
		}
	}
}

// What is behind the last entry of a user, aborted entries and markers, is not the newest
// message, now and after a restart.
func TestAbortedAndMarkersAreNotTheNewest(t *testing.T) {
	k := newKit(t, nil)
	newest := func() edge.Position { return k.topic("t").LastID().Last }
	p, _ := k.producer(k.topic("t"), edge.ProducerOptions{Name: "p"})
	a := k.publish(p, "a")[0]
	x, y := k.begin(time.Minute, []string{"t"}), k.begin(time.Minute, []string{"t"})
	k.publishIn(p, x, "x1")
	k.publishIn(p, y, "y1")
	k.publishIn(p, x, "x2")
	k.mustEnd(x, false)
	if got := newest(); got != a {
		t.Errorf("newest %v, want %v", got, a)
	}
	k.mustEnd(y, false)
	if got := newest(); got != a {
		t.Errorf("newest %v, want %v", got, a)
	}
	k.restart(nil)
	if got := newest(); got != a {
		t.Errorf("after a restart %v, want %v", got, a)
	}
	c, in := k.subscribe(k.topic("t"), subscription("s", edge.Exclusive))
	c.Flow(10)
	p, _ = k.producer(k.topic("t"), edge.ProducerOptions{Name: "p"})
	k.onlyThen(k.topic("t"), p, in, "a")
}

// Acknowledgements in a transaction count when it is committed, on every kind.
func TestAcksOfACommit(t *testing.T) {
	for _, kind := range []edge.SubKind{edge.Exclusive, edge.Shared, edge.Failover, edge.KeyShared} {
		k := newKit(t, nil)
		top := k.topic("t")
		p, _ := k.producer(top, edge.ProducerOptions{Name: "p"})
		at := k.publish(p, "a", "b", "c")
		c, in := k.subscribe(top, subscription("s", kind))
		c.Flow(100)
		in.await(t, 3)
		x := k.begin(time.Minute, nil, edge.TxnSubscription{Topic: "t", Subscription: "s"})
		k.mustAckIn(c, x, at[0], at[2])
		if err := recv(t, ackIn(c, x, false, at[1], at[0])); !errors.Is(err, edge.ErrTxnConflict) {
			t.Errorf("%v: %v", kind, err)
		}
		if c.LastID().MarkDelete == at[0] {
			t.Errorf("%v: acknowledged before the commit", kind)
		}
		k.mustEnd(x, true)
		if got := c.LastID().MarkDelete; got != at[0] {
			t.Errorf("%v: mark-delete %v, want %v", kind, got, at[0])
		}
		if n := c.Stats().Unacked; kind.String() == "Shared" && n != 1 {
			t.Errorf("%v: %d unacknowledged", kind, n)
		}
		k.restart(nil)
		c, in = k.subscribe(k.topic("t"), subscription("s", kind))
		c.Flow(100)
		p, _ = k.producer(k.topic("t"), edge.ProducerOptions{Name: "p"})
		k.onlyThen(k.topic("t"), p, in, "b")
	}
}

// Until the end they are not delivered, whoever comes; when it is aborted they come back,
// with their count raised where counts are.
func TestAcksOfAnAbort(t *testing.T) {
	for _, kind := range []edge.SubKind{edge.Exclusive, edge.Shared, edge.Failover, edge.KeyShared} {
		for _, again := range []string{"", "redeliver", "leave", "restart"} {
			k := newKit(t, nil)
			top := k.topic("t")
			p, _ := k.producer(top, edge.ProducerOptions{Name: "p"})
			at := k.publish(p, "a", "b", "c")
			c, in := k.subscribe(top, subscription("s", kind))
			c.Flow(100)
			in.await(t, 3)
			x := k.begin(time.Minute, nil, edge.TxnSubscription{Topic: "t", Subscription: "s"})
			k.mustAckIn(c, x, at[1])
			name := fmt.Sprintf("%v, %s", kind, again)
			want := []string{"a", "b", "c"}
			switch again {
			case "redeliver":
				c.Redeliver(nil, -1)
				want = append(want, "a", "c")
			case "restart", "leave":
				if again == "leave" {
					c.Close()
				} else {
					k.restart(nil)
					top = k.topic("t")
				}
				c, in = k.subscribe(top, subscription("s", kind))
				c.Flow(100)
				want = []string{"a", "c"}
			}
			if got := in.await(t, len(want)); !slices.Equal(got, want) {
				t.Errorf("%s: before the end came %q, want %q", name, got, want)
			}
			before := len(want)
			k.mustEnd(x, false)
			want = append(want, "b")
			if kind == edge.Exclusive || kind == edge.Failover {
				want = append(want[:before:before], "a", "b", "c")
			}
			if got := in.await(t, len(want)); !slices.Equal(got, want) {
				t.Errorf("%s: came %q, want %q", name, got, want)
			}
			if b := in.all()[before]; (kind == edge.Shared || kind == edge.KeyShared) && b.Redelivered != 1 {
				t.Errorf("%s: came back with count %d", name, b.Redelivered)
			}
		}
	}
}

// A cumulative one that is aborted brings nothing back until the consumer asks.
func TestCumulativeAbortIsSilent(t *testing.T) {
	k := newKit(t, nil)
	top := k.topic("t")
	p, _ := k.producer(top, edge.ProducerOptions{Name: "p"})
	at := k.publish(p, "a", "b", "c")
	c, in := k.subscribe(top, subscription("s", edge.Exclusive))
	c.Flow(100)
	in.await(t, 3)
	x := k.begin(time.Minute, nil, edge.TxnSubscription{Topic: "t", Subscription: "s"})
	if err := recv(t, ackIn(c, x, true, at[1])); err != nil {
		t.Fatal(err)
	}
	k.mustEnd(x, false)
	k.onlyThen(top, p, in, "a", "b", "c")
	c.Redeliver(nil, -1)
	if got := in.await(t, 8); !slices.Equal(got[4:], []string{"a", "b", "c", "then"}) {
		t.Errorf("came again %q", got[4:])
	}
}

// A part of a batch in a transaction leaves the others to be delivered and acknowledged.
func TestBatchInTransactions(t *testing.T) {
	k := newKit(t, nil)
	top := k.topic("t")
	p, _ := k.producer(top, edge.ProducerOptions{Name: "p"})
	m := message("batch")
	m.Facts.Messages, m.Facts.Batch = 4, true
	at := recv(t, send(p, m)).Position
	c, in := k.subscribe(top, subscription("s", edge.Shared))
	c.Flow(100)
	in.await(t, 1)
	sub := edge.TxnSubscription{Topic: "t", Subscription: "s"}
	x, y := k.begin(time.Minute, nil, sub), k.begin(time.Minute, nil, sub)
	part := func(id edge.TxnID, rest uint64) error {
		done := make(chan error, 1)
		c.AckIn(id, []edge.AckPart{{Position: at, Rest: []uint64{rest}, Size: 4}}, false, func(err error) { done <- err })
		return recv(t, done)
	}
	if err := errors.Join(part(x, 0b1110), part(y, 0b1101)); err != nil {
		t.Fatal(err)
	}
	unacked := func(want int64) {
		t.Helper()
		if n := c.Stats().Unacked; n != want {
			t.Errorf("%d unacknowledged, want %d", n, want)
		}
	}
	unacked(2)
	c.Redeliver(nil, -1)
	in.await(t, 2)
	c.Ack([]edge.AckPart{{Position: at, Rest: []uint64{0b1011}}}, false, nil)
	unacked(1)
	k.mustEnd(y, false)
	in.await(t, 3)
	unacked(2)
	k.mustEnd(x, true)
	unacked(2)
	var rests [][]uint64
	for _, d := range in.all() {
		rests = append(rests, d.Rest)
	}
	if fmt.Sprint(rests) != "[[] [12] [10]]" {
		t.Errorf("delivered %v", rests)
	}
	if err := part(k.begin(time.Minute, nil, sub), 0b0101); err != nil {
		t.Error(err)
	}
	unacked(0)
}

// Everything up to a place, on one consumer.
func TestCumulativeInTransaction(t *testing.T) {
	for _, commit := range []bool{true, false} {
		k := newKit(t, nil)
		top := k.topic("t")
		p, _ := k.producer(top, edge.ProducerOptions{Name: "p"})
		at := k.publish(p, "a", "b", "c")
		c, in := k.subscribe(top, subscription("s", edge.Exclusive))
		c.Flow(100)
		in.await(t, 3)
		x := k.begin(time.Minute, nil, edge.TxnSubscription{Topic: "t", Subscription: "s"})
		if err := recv(t, ackIn(c, x, true, at[1])); err != nil {
			t.Fatal(err)
		}
		k.restart(nil)
		k.mustEnd(x, commit)
		want := []string{"c"}
		if !commit {
			want = []string{"a", "b", "c"}
		}
		c, in = k.subscribe(k.topic("t"), subscription("s", edge.Exclusive))
		c.Flow(100)
		if got := in.await(t, len(want)); !slices.Equal(got, want) {
			t.Errorf("commit %t: %q, want %q", commit, got, want)
		}
	}
}

// Who takes no part is refused, and so is everybody once it is decided.
func TestWhoTakesNoPart(t *testing.T) {
	k := newKit(t, nil)
	top, other := k.topic("t"), k.topic("other")
	p, _ := k.producer(top, edge.ProducerOptions{Name: "p"})
	q, _ := k.producer(other, edge.ProducerOptions{Name: "q"})
	at := k.publish(p, "a")
	c, in := k.subscribe(top, subscription("s", edge.Shared))
	c.Flow(10)
	in.await(t, 1)
	x := k.begin(time.Minute, []string{"t"})
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, edge.ErrNotAllowed) {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("another topic", recv(t, sendIn(q, x, "x")).err)
	refused("a subscription", recv(t, ackIn(c, x, false, at...)))
	refused("another coordinator's", recv(t, sendIn(p, edge.TxnID{Most: 1, Least: x.Least}, "x")).err)
	k.store.Hold()
	ended := make(chan error, 1)
	k.broker.Coordinator().End(x, true, func(err error) { ended <- err })
	late := sendIn(p, x, "late")
	opposite := make(chan error, 1)
	k.broker.Coordinator().End(x, false, func(err error) { opposite <- err })
	if err := recv(t, opposite); !errors.Is(err, edge.ErrTxnStatus) {
		t.Errorf("the opposite: %v", err)
	}
	k.store.Release()
	refused("late", recv(t, late).err)
	if err := recv(t, ended); err != nil {
		t.Error(err)
	}
	k.publish(q, "x") // nothing holds back the other topic
	if other.Readable() != other.Spans().End() {
		t.Error("the other topic is held back")
	}
}

// A transaction whose time is over is aborted.
func TestTransactionExpires(t *testing.T) {
	k := newKit(t, nil)
	top := k.topic("t")
	p, _ := k.producer(top, edge.ProducerOptions{Name: "p"})
	c, in := k.subscribe(top, subscription("s", edge.Shared))
	c.Flow(10)
	var x edge.TxnID
	for ttl := 100 * time.Millisecond; ; ttl *= 2 { // until a slow machine has published in time
		x = k.begin(ttl, []string{"t"})
		if a := recv(t, sendIn(p, x, "x")); a.err == nil {
			break
		} else if ttl > 3*time.Second {
			t.Fatal(a.err)
		}
	}
	k.onlyThen(top, p, in)
	if err := k.end(x, true); !errors.Is(err, edge.ErrTxnNotFound) && !errors.Is(err, edge.ErrTxnStatus) { // ABORTING, for a moment still
		t.Error(err)
	}
}

// An open transaction survives restarts and unloading and can be ended then.
func TestOpenTransactionSurvives(t *testing.T) {
	for _, commit := range []bool{true, false} {
		k := newKit(t, nil)
		p, _ := k.producer(k.topic("t"), edge.ProducerOptions{Name: "p"})
		k.publish(p, "a")
		x := k.begin(time.Minute, []string{"t"})
		y := k.begin(time.Minute, []string{"t"})
		k.publishIn(p, x, "x1")
		k.publishIn(p, y, "y1")
		k.publish(p, "b")
		k.restart(nil)
		if err := k.broker.Unload(t.Context(), k.name("t")); err != nil {
			t.Fatal(err)
		}
		c, in := k.subscribe(k.topic("t"), subscription("s", edge.Shared))
		c.Flow(10)
		in.await(t, 1)
		p, _ = k.producer(k.topic("t"), edge.ProducerOptions{Name: "p"})
		k.publishIn(p, x, "x2")
		k.mustEnd(x, commit)
		k.mustEnd(y, true)
		want := []string{"a", "x1", "y1", "b", "x2"}
		if !commit {
			want = []string{"a", "y1", "b"}
		}
		k.onlyThen(k.topic("t"), p, in, want...)
		if z := k.begin(time.Minute, nil); z.Least <= y.Least {
			t.Errorf("id %v is given again", z)
		}
	}
}
