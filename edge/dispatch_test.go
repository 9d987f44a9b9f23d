package edge_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"wayside/edge"
)

// publishAll stores messages without waiting for each, and returns their positions.
func (k *kit) publishAll(p *edge.Producer, all ...edge.Message) []edge.Position {
	k.Helper()
	answers := make(chan answer, len(all))
	for _, m := range all {
		p.Publish(m, func(r edge.Receipt, err error) { answers <- answer{r, err} })
	}
	var at []edge.Position
	for range all {
		a := recv(k.T, answers)
		if a.err != nil {
			k.Fatal(a.err)
		}
		at = append(at, a.Position)
	}
	return at
}

func messages(n int, change func(i int, m *edge.Message)) []edge.Message {
	all := make([]edge.Message, n)
	for i := range all {
		all[i] = message(fmt.Sprint(i))
		if change != nil {
			change(i, &all[i])
		}
	}
	return all
}

// from are the positions of what came, the first n left out.
func (b *inbox) from(n int) []edge.Position {
	b.mu.Lock()
	defer b.mu.Unlock()
	var at []edge.Position
	for _, d := range b.got[n:] {
		at = append(at, d.Entry.Position)
	}
	return at
}

func TestAnEntryThatIsDamagedWhenItComesBackIsSkippedOnce(t *testing.T) {
	for _, kind := range []edge.SubKind{edge.Shared, edge.KeyShared} {
		t.Run(kind.String(), func(t *testing.T) {
			k := newKit(t, nil)
			topic := k.topic("damage")
			p, _ := k.producer(topic, edge.ProducerOptions{})
			at := k.publish(p, numbers(0, 3)...)
			c, in := k.subscribe(topic, subscription("s", kind))
			c.Flow(100)
			in.await(t, 3)
			k.store.Damage(topic.Name(), at[1])
			var reads atomic.Int32
			read := func([]edge.Range) error { reads.Add(1); return nil }
			k.broker.DropTail()
			k.hooks.read.Store(&read)
			c.Redeliver(at, -1)
			if got := in.await(t, 5)[3:]; !slices.Equal(got, []string{"0", "2"}) {
				t.Fatalf("came again: %v", got)
			}
			<-time.After(briefly)
			if n := reads.Load(); n > 3 {
				t.Fatalf("%d reads for three entries", n)
			}
			st := topic.Stats().Subscriptions["s"]
			if st.Backlog != 2 || st.Replay != 0 {
				t.Fatalf("backlog %d, still to be replayed %d", st.Backlog, st.Replay)
			}
		})
	}
}

// A subscription at its bound of holes still gives out what fills them, whoever comes.
func TestHolesAtTheirBoundDoNotStopASubscription(t *testing.T) {
	for _, kind := range []edge.SubKind{edge.Exclusive, edge.Shared} {
		t.Run(kind.String(), func(t *testing.T) {
			k := newKit(t, nil)
			topic := k.topic("holes")
			p, _ := k.producer(topic, edge.ProducerOptions{})
			c, _ := k.subscribe(topic, subscription("s", kind))
			at := k.publishAll(p, messages(20_050, nil)...)
			var even []edge.Position
			for i := 1; i < 20_004; i += 2 {
				even = append(even, at[i])
			}
			k.ack(c, even...)
			c.Close()
			c, in := k.subscribe(topic, subscription("s", kind))
			c.Flow(20_000)
			seen := 0
			for want := len(at) - len(even); seen < want; {
				eventually(t, "more comes", func() bool { return in.count() > seen })
				next := in.from(seen)
				seen += len(next)
				k.ack(c, next...)
			}
			if n := topic.Stats().Subscriptions["s"].Backlog; n != 0 {
				t.Fatalf("backlog %d", n)
			}
		})
	}
}

func TestIdleConsumersTakeNoMemory(t *testing.T) {
	budget := edge.NewBudget(1 << 20) // 2,300 entries in all may be unacknowledged
	k := newKit(t, func(o *edge.Options) { o.Budget = budget })
	for i := range 50 {
		topic := k.topic(fmt.Sprint("idle", i))
		c, in := k.subscribe(topic, subscription("s", edge.Shared))
		c.Flow(10)
		p, _ := k.producer(topic, edge.ProducerOptions{})
		at := k.publish(p, "a")
		in.await(t, 1)
		k.ack(c, at...)
	}
	eventually(t, "no memory is taken", func() bool {
		used, _ := budget.Usage(edge.ShareSubscription)
		return used == 0
	})
}

func TestMemoryThatComesBackLetsOthersGoOn(t *testing.T) {
	k := newKit(t, func(o *edge.Options) { o.Budget = edge.NewBudget(1 << 20) })
	greedy, modest := k.topic("greedy"), k.topic("modest")
	p, _ := k.producer(greedy, edge.ProducerOptions{})
	k.publishAll(p, messages(3_000, nil)...)
	c, in := k.subscribe(greedy, subscription("s", edge.Shared))
	c.Flow(10_000)
	full := func(topic *edge.Topic) func() bool {
		return func() bool { return strings.Contains(topic.Stats().Subscriptions["s"].Paused, "memory") }
	}
	eventually(t, "memory is used up", full(greedy))
	q, _ := k.producer(modest, edge.ProducerOptions{})
	k.publish(q, "a")
	d, inD := k.subscribe(modest, subscription("s", edge.Shared))
	d.Flow(10)
	eventually(t, "the other waits for memory", full(modest))
	c.Ack(parts(in.from(0)...), false, nil) // no event on the other
	start := time.Now()
	inD.await(t, 1)
	if took := time.Since(start); took > patience/2 {
		t.Fatalf("it took %v", took)
	}
}

// wallClock is a wall clock that a test sets.
type wallClock struct {
	ms    atomic.Int64
	reads atomic.Int64
}

func (w *wallClock) now() time.Time {
	w.reads.Add(1)
	return time.UnixMilli(w.ms.Load())
}

func TestMoreDelayedEntriesThanFitMemoryAllCome(t *testing.T) {
	for _, kind := range []edge.SubKind{edge.Shared, edge.KeyShared} {
		for _, apart := range []int64{0, 1} {
			t.Run(fmt.Sprint(kind, " ", apart, " ms apart"), func(t *testing.T) {
				clock := &wallClock{}
				clock.ms.Store(1_000)
				k := newKit(t, func(o *edge.Options) { o.Clock = clock.now })
				topic := k.topic("delayed")
				p, _ := k.producer(topic, edge.ProducerOptions{})
				const n = 12_000 // 10,000 are kept one by one
				k.publishAll(p, messages(n, func(i int, m *edge.Message) {
					m.Facts.DeliverAt = 1_000_000 + int64(n-i)*apart // the latest first
					m.Facts.Slot = uint16(1 + i%100)
				})...)
				c, in := k.subscribe(topic, subscription("s", kind))
				c.Flow(n)
				eventually(t, "all are delayed", func() bool {
					st := topic.Stats().Subscriptions["s"]
					return st.Delayed == 10_000 && st.Read == topic.Spans().End().Next()
				})
				clock.ms.Store(1_000_000 + n*apart)
				c.Wake()
				eventually(t, "all came", func() bool { return in.count() == n })
			})
		}
	}
}

func TestAScanOfDelayedEntriesThatFailsIsTriedAgain(t *testing.T) {
	clock := &wallClock{}
	k := newKit(t, func(o *edge.Options) { o.Clock = clock.now })
	topic := k.topic("scan")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	const n = 10_100
	k.publishAll(p, messages(n, func(i int, m *edge.Message) { m.Facts.DeliverAt = 1_000_000 })...)
	var failed atomic.Int32
	scan := func() error {
		if failed.Add(1) == 1 {
			return errors.New("not now")
		}
		return nil
	}
	k.hooks.scan.Store(&scan)
	c, in := k.subscribe(topic, subscription("s", edge.Shared))
	c.Flow(n)
	eventually(t, "all are delayed", func() bool {
		return topic.Stats().Subscriptions["s"].Read == topic.Spans().End().Next()
	})
	clock.ms.Store(1_000_000)
	c.Wake()
	eventually(t, "all came", func() bool { return in.count() == n })
	if failed.Load() < 2 {
		t.Fatal("nothing was scanned twice")
	}
}

func TestADelayOfAgesCostsNothing(t *testing.T) {
	clock := &wallClock{}
	clock.ms.Store(1_000_000)
	k := newKit(t, func(o *edge.Options) { o.Clock = clock.now })
	topic := k.topic("ages")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	m := message("much later")
	m.Facts.DeliverAt = math.MaxInt64
	recv(t, send(p, m))
	c, _ := k.subscribe(topic, subscription("s", edge.Shared))
	c.Flow(10)
	eventually(t, "it is delayed", func() bool { return topic.Stats().Subscriptions["s"].Delayed == 1 })
	before := clock.reads.Load()
	<-time.After(briefly)
	if n := clock.reads.Load() - before; n > 5 {
		t.Fatalf("dispatch looked at the clock %d times while nothing happened", n)
	}
}

func TestAChunkThatWaitsForItsOwnerHoldsNobodyUp(t *testing.T) {
	chunk := func(id int32) edge.Message {
		m := message(fmt.Sprint("chunk", id))
		m.Facts.Chunk = edge.Chunk{UUID: "u", ID: id, Of: 3}
		return m
	}
	setUp := func(t *testing.T) (k *kit, a, b *edge.Consumer, inA, inB *inbox) {
		k = newKit(t, nil)
		topic := k.topic("chunks")
		p, _ := k.producer(topic, edge.ProducerOptions{})
		a, inA = k.subscribe(topic, subscription("s", edge.Shared))
		b, inB = k.subscribe(topic, subscription("s", edge.Shared))
		a.Flow(1)
		recv(t, send(p, chunk(0)))
		inA.await(t, 1)
		b.Flow(100)
		recv(t, send(p, chunk(1)))
		k.publish(p, "x", "y")
		if got := inB.await(t, 2); !slices.Equal(got, []string{"x", "y"}) {
			t.Fatalf("beside the chunk came %v", got)
		}
		return k, a, b, inA, inB
	}
	t.Run("owner goes on", func(t *testing.T) {
		_, a, _, inA, inB := setUp(t)
		a.Flow(1)
		if got := inA.await(t, 2); got[1] != "chunk1" || len(inB.all()) != 2 {
			t.Fatalf("the owner got %v, the other %v", got, inB.bodies())
		}
	})
	t.Run("owner leaves", func(t *testing.T) {
		_, a, _, _, inB := setUp(t)
		a.Close()
		if got := inB.await(t, 4)[2:]; !slices.Equal(got, []string{"chunk0", "chunk1"}) {
			t.Fatalf("the other got %v", got)
		}
	})
	t.Run("acknowledged meanwhile", func(t *testing.T) {
		k, a, b, inA, _ := setUp(t)
		at := inA.all()[0].Entry.Position
		k.ack(b, at.Next())
		a.Flow(1)
		k.ack(a, at)
		st := k.topic("chunks").Stats().Subscriptions["s"]
		if st.Backlog != 2 || st.Replay != 0 || len(inA.all()) != 1 {
			t.Fatalf("%+v", st)
		}
	})
}

func TestAnEntryDoesNotOvertakeOneOfItsKeyThatIsJustGivenBack(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("overtake")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	other, _ := k.subscribe(topic, subscription("s", edge.KeyShared)) // owns 32769 on
	c, in := k.subscribe(topic, subscription("s", edge.KeyShared))
	other.Flow(100)
	c.Flow(1)
	at := k.publishAll(p, messages(2, func(_ int, m *edge.Message) { m.Facts.Slot = 7 })...)
	in.await(t, 1)
	eventually(t, "the second one waits", func() bool { return topic.Stats().Subscriptions["s"].Replay == 1 })
	once := false
	read := func([]edge.Range) error {
		if !once {
			once = true
			c.Redeliver(at[:1], -1)
		}
		return nil
	}
	k.broker.DropTail()
	k.hooks.read.Store(&read)
	c.Flow(2)
	if got := in.await(t, 3)[1:]; !slices.Equal(got, []string{"0", "1"}) {
		t.Fatalf("then came %v", got)
	}
}

func TestATurnIsCountedInMessages(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("turns")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	k.publishAll(p, messages(8, func(_ int, m *edge.Message) { m.Facts.Messages, m.Facts.Batch = 10, true })...)
	a, inA := k.subscribe(topic, subscription("s", edge.Shared))
	in := &inbox{room: -1}
	b, err := topic.Subscribe(t.Context(), subscription("s", edge.Shared), in, &peer{})
	if err != nil {
		t.Fatal(err)
	}
	var reads atomic.Int32
	gate := make(chan struct{})
	read := func([]edge.Range) error { reads.Add(1); <-gate; return nil }
	k.broker.DropTail()
	k.hooks.read.Store(&read)
	a.Flow(80)
	b.Flow(80)
	close(gate)
	eventually(t, "all came", func() bool { return len(inA.all())+len(in.all()) == 8 })
	if len(inA.all()) != 4 || reads.Load() != 1 {
		t.Fatalf("in %d reads one got %d batches of 8", reads.Load(), len(inA.all()))
	}
}

func TestWhatIsGivenBackIsNotCountedAsSent(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("counts")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	k.publish(p, "abc")
	c, in := k.subscribe(topic, subscription("s", edge.Shared))
	c.Flow(1)
	in.await(t, 1)
	c.GiveBack(in.all())
	in.await(t, 2)
	st := topic.Stats()
	if st.MsgOut != 1 || st.BytesOut != 3 || st.Subscriptions["s"].MsgOut != 1 || k.broker.Stats().MsgOut != 1 {
		t.Fatalf("topic %d messages, %d bytes; subscription %d; broker %d",
			st.MsgOut, st.BytesOut, st.Subscriptions["s"].MsgOut, k.broker.Stats().MsgOut)
	}
}

func TestTheSmallestSubscriptionLimitOpensAgain(t *testing.T) {
	k := newKit(t, func(o *edge.Options) { o.UnackedPerSubscription = 1 })
	topic := k.topic("one")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	k.publish(p, numbers(0, 3)...)
	c, in := k.subscribe(topic, subscription("s", edge.Shared))
	c.Flow(1)
	for n := range 3 {
		in.await(t, n+1)
		k.ack(c, in.from(n)...)
		c.Flow(1)
	}
}
