package edge_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"wayside/edge"
)

// Cases that people met with other brokers, by the numbers that they have among ours:
// what several consumers of a subscription share.

// worker is a client that acknowledges what it is given and gives its permits back, one
// for each message, unless it rests.
type worker struct {
	*edge.Consumer
	mu   sync.Mutex
	in   *inbox
	done int // of in, worked on
	rest bool
}

func (w *worker) work() (messages int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rest {
		return 0
	}
	for _, d := range w.in.all()[w.done:] {
		w.Ack(parts(d.Entry.Position), false, nil)
		w.Flow(int(d.Entry.Facts.Messages))
		messages += int(d.Entry.Facts.Messages)
		w.done++
	}
	return messages
}

// SH-01: permits go negative with batches and the subscription stalls.
func TestFieldSH01PermitsBelowZeroComeBack(t *testing.T) {
	const batches, size, queue = 1000, 100, 10
	k := newKit(t, nil)
	topic := k.topic("sh01")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	var workers []*worker
	for range 3 {
		c, in := k.subscribe(topic, subscription("s", edge.Shared))
		workers = append(workers, &worker{Consumer: c, in: in})
	}
	k.publishAll(p, messages(batches, func(_ int, m *edge.Message) { m.Facts.Messages, m.Facts.Batch = size, true })...)
	for _, w := range workers {
		w.Flow(queue)
	}
	sleeper, got := workers[0], 0
	eventually(t, "all is delivered", func() bool {
		// It rests twice, each time until the others have taken a fifth of all.
		sleeper.rest = got > batches*size/5 && got < batches*size*2/5 || got > batches*size*3/5 && got < batches*size*4/5
		for _, w := range workers {
			got += w.work()
			if permits := w.Stats().Permits; permits > queue || permits <= queue-size-1 {
				t.Fatalf("a consumer with a queue of %d has %d permits", queue, permits)
			}
		}
		return got == batches*size
	})
	eventually(t, "nothing is left", func() bool { return topic.Stats().Subscriptions["s"].Backlog == 0 })
	for i, w := range workers {
		if st := w.Stats(); st.Permits != queue || st.Unacked != 0 || w.done == 0 {
			t.Errorf("consumer %d ends with %d permits, %d unacknowledged, after %d batches", i, st.Permits, st.Unacked, w.done)
		}
	}
}

// SH-03: adding a Key_Shared consumer freezes delivery until all are disconnected.
func TestFieldSH03ANewcomerGetsKeysThatNobodyHolds(t *testing.T) {
	const keys, held, more = 100, 500, 500
	for round := range 20 {
		k := newKit(t, nil)
		topic := k.topic("sh03")
		p, _ := k.producer(topic, edge.ProducerOptions{})
		slot := func(i int) uint16 { return uint16(1 + i%keys*650) }
		all := messages(held+more, func(i int, m *edge.Message) { m.Facts.Slot = slot(i) })
		c1, in1 := k.subscribe(topic, subscription("s", edge.KeyShared))
		c1.Flow(1000)
		k.publishAll(p, all[:held]...)
		in1.await(t, held)
		c2, in2 := k.subscribe(topic, subscription("s", edge.KeyShared))
		c2.Flow(10_000)
		k.publishAll(p, all[held:]...)
		acked := map[uint16]int{} // of each key, at the first consumer
		for i := range round * 25 {
			k.ack(c1, in1.from(i)[0])
			acked[slot(i)]++
		}
		for _, n := range acked {
			if n == held/keys { // of this key nobody holds anything
				in2.await(t, 1)
			}
		}
		for _, d := range in2.all() {
			if s := d.Entry.Facts.Slot; acked[s] < held/keys {
				t.Fatalf("round %d: the newcomer got %s while the old one holds some of its key", round, d.Entry.Data)
			}
		}
		c1.Close()
		in2.await(t, held+more-round*25) // all that is not acknowledged
		inKeyOrder(t, in2)
		k.stop()
	}
}

// inKeyOrder wants the messages of each key in the order of their numbers, each once.
func inKeyOrder(t *testing.T, in *inbox) {
	t.Helper()
	last := map[uint16]edge.Position{}
	for _, d := range in.all() {
		s := d.Entry.Facts.Slot
		if before, ok := last[s]; ok && !before.Less(d.Entry.Position) {
			t.Fatalf("of slot %d came %v behind %v", s, d.Entry.Position, before)
		}
		last[s] = d.Entry.Position
	}
}

// SH-07: receive stops at a silent unacked limit; the user sees a hang.
func TestFieldSH07TheUnackedLimitIsTold(t *testing.T) {
	var log bytes.Buffer
	const limit = 50
	k := newKit(t, func(o *edge.Options) {
		o.UnackedPerConsumer = limit
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})
	topic := k.topic("sh07")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	k.publishAll(p, messages(4*limit, nil)...)
	for round := range 3 { // what a disconnect leaves counts for nobody
		c, in := k.subscribe(topic, subscription("s", edge.Shared))
		c.Flow(10 * limit)
		in.await(t, limit)
		if st := c.Stats(); !st.Blocked || st.Unacked != limit || in.count() != limit {
			t.Fatalf("round %d: blocked %t with %d unacknowledged of %d", round, st.Blocked, st.Unacked, in.count())
		}
		k.ack(c, in.from(0)[:limit/2]...)
		in.await(t, limit+limit/2)
		c.Close()
	}
	k.stop()
	if n := strings.Count(log.String(), "gets no more until it acknowledges"); n != 1 {
		t.Errorf("the log says it %d times:\n%s", n, log.String())
	}
}

// SH-09: consumers come and go a lot; the dispatcher believes a read is pending and never
// reads again.
func TestFieldSH09DispatchGoesOnAfterMuchComingAndGoing(t *testing.T) {
	k := newKit(t, nil)
	k.rule(own, func(p *edge.Policies) { p.TTL = new(int64(5)) })
	topic := k.topic("sh09")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	var clients sync.WaitGroup
	const lives, each = 50, 20
	for i := range lives {
		clients.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(i), 0))
			for range each {
				in := &inbox{room: -1}
				c, err := topic.Subscribe(t.Context(), subscription("s", edge.Shared), in, &peer{})
				if err != nil {
					t.Error(err)
					return
				}
				c.Flow(1 + rnd.IntN(20))
				for range rnd.IntN(3) {
					p.Publish(message("x"), func(edge.Receipt, error) {})
				}
				if got := in.all(); len(got) > 0 && rnd.IntN(2) == 0 {
					c.Ack(parts(got[0].Entry.Position), false, nil)
				}
				if i == 0 {
					k.broker.Sweep(0) // lets messages expire
				}
				c.Close()
			}
		})
	}
	clients.Wait()
	k.publish(p, "last")
	stay := []*worker{{}, {}}
	for _, w := range stay {
		w.Consumer, w.in = k.subscribe(topic, subscription("s", edge.Shared))
		w.Flow(10)
	}
	eventually(t, "nothing is left", func() bool {
		for _, w := range stay {
			w.work()
		}
		return topic.Stats().Subscriptions["s"].Backlog == 0
	})
	// From now on nothing but the message itself, or the permit for it, wakes anybody.
	for _, w := range stay {
		w.Close()
	}
	c, in := k.subscribe(topic, subscription("s", edge.Shared))
	for n := range 1000 {
		published := send(p, message("x"))
		c.Flow(1)
		recv(t, published)
		in.await(t, n+1)
	}
}

// SH-11: the redelivery count stays 0 when the consumer dies, so that a poisonous message
// kills consumer after consumer. Here, as in the reference, nacks alone raise the count;
// what has been counted outlives consumers that die and a restart of the broker, and it
// is of the message that was refused alone.
func TestFieldSH11CountsAreOfTheRefusedMessageAloneAndStay(t *testing.T) {
	k := newKit(t, nil)
	counts := func(in *inbox, want map[string]uint32) {
		t.Helper()
		for _, d := range in.all()[in.count()-4:] {
			if d.Redelivered != want[string(d.Entry.Data)] {
				t.Errorf("%s has the count %d, want %d", d.Entry.Data, d.Redelivered, want[string(d.Entry.Data)])
			}
		}
	}
	topic := k.topic("sh11")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	at := k.publish(p, "a", "poison", "b", "c")
	c, in := k.subscribe(topic, subscription("s", edge.Shared))
	c.Flow(100)
	in.await(t, 4)
	counts(in, nil)
	for round := uint32(1); round <= 3; round++ {
		c.Redeliver([]edge.Position{at[1]}, -1)
		eventually(t, "it comes again", func() bool { all := in.all(); return all[len(all)-1].Redelivered == round })
		heir, its := k.subscribe(k.topic("sh11"), subscription("s", edge.Shared))
		heir.Flow(100)
		c.Close() // it dies with the message
		its.await(t, 4)
		counts(its, map[string]uint32{"poison": round})
		c, in = heir, its
		if round == 2 {
			k.restart(nil)
			c, in = k.subscribe(k.topic("sh11"), subscription("s", edge.Shared))
			c.Flow(100)
			in.await(t, 4)
			counts(in, map[string]uint32{"poison": round})
		}
	}
	if got := in.bodies(); !slices.Contains(got, "poison") {
		t.Error(fmt.Sprint(got))
	}
}
