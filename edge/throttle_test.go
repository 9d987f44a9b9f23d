package edge_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"wayside/edge"
)

// throttled is a topic with a publish rate, in a bubble of false time.
type throttled struct {
	*kit
	topic *edge.Topic
}

func throttling(t *testing.T, rate edge.PublishRate, story func(k throttled)) {
	synctest.Test(t, func(t *testing.T) {
		k := throttled{kit: newKit(t, nil)}
		k.topic = k.kit.topic("slow")
		k.set(&rate)
		story(k)
		k.stop()
	})
}

func (k throttled) set(r *edge.PublishRate) {
	k.Helper()
	k.rule(own, func(p *edge.Policies) { p.PublishRate = r })
	synctest.Wait()
}

// answers collects what a producer's sends are answered.
type answers struct {
	stored, gone, refused atomic.Int64
	disorder              atomic.Bool
	last                  atomic.Int64
}

func (a *answers) to(n int64) func(edge.Receipt, error) {
	return func(_ edge.Receipt, err error) {
		switch {
		case err == nil:
			a.stored.Add(1)
		case errors.Is(err, edge.ErrGone):
			a.gone.Add(1)
		default:
			a.refused.Add(1)
		}
		if a.last.Swap(n) != n-1 {
			a.disorder.Store(true)
		}
	}
}

// send publishes so many messages with memory of their own, numbered from `from`.
func (k throttled) send(p *edge.Producer, a *answers, from, n int, body string) {
	k.Helper()
	for i := range n {
		m := message(body)
		var ok bool
		if m.Grant, ok = k.broker.Budget().TryTake(edge.SharePublish, int64(len(m.Data))); !ok {
			k.Fatal("no memory")
		}
		m.Facts.Producer, m.Facts.Sequence, m.Facts.Highest = p.Name(), int64(from+i), int64(from+i)
		p.Publish(m, a.to(int64(from+i)))
	}
	synctest.Wait()
}

func (k throttled) stored(a *answers, want int64, when string) {
	k.Helper()
	if n := a.stored.Load(); n != want || a.disorder.Load() {
		k.Fatalf("%d are stored %s, want %d; out of order: %t", n, when, want, a.disorder.Load())
	}
}

func pass(d time.Duration) { time.Sleep(d); synctest.Wait() }

func TestPublishersAreHeldToTheirRate(t *testing.T) {
	for _, x := range []struct {
		name  string
		rate  edge.PublishRate
		body  string
		after map[time.Duration]int64 // stored by then, of 500 at once
	}{
		{"messages", edge.PublishRate{Messages: 20, Bytes: -1}, "m",
			map[time.Duration]int64{0: 20, time.Second: 40, 10 * time.Second: 220}},
		{"bytes", edge.PublishRate{Messages: 0, Bytes: 1000}, strings.Repeat("b", 100),
			map[time.Duration]int64{0: 10, time.Second: 20, 10 * time.Second: 110}},
		{"both", edge.PublishRate{Messages: 20, Bytes: 1000}, strings.Repeat("b", 100),
			map[time.Duration]int64{0: 10, 10 * time.Second: 110}},
		{"larger than a second's worth", edge.PublishRate{Bytes: 100}, strings.Repeat("b", 500),
			map[time.Duration]int64{0: 1, 3900 * time.Millisecond: 1, 4100 * time.Millisecond: 2, 10 * time.Second: 3}},
		{"many", edge.PublishRate{Messages: 400}, "m", map[time.Duration]int64{0: 400, 125 * time.Millisecond: 450, time.Second: 500}},
		{"none", edge.PublishRate{Messages: -1, Bytes: 0}, "m", map[time.Duration]int64{0: 500}},
	} {
		for when, want := range x.after {
			t.Run(fmt.Sprint(x.name, " after ", when), func(t *testing.T) {
				throttling(t, x.rate, func(k throttled) {
					p, _ := k.producer(k.topic, edge.ProducerOptions{})
					a := &answers{}
					k.send(p, a, 1, 500, x.body)
					pass(when)
					if n := a.stored.Load(); n < want-want/100 || n > want+want/100+1 || a.disorder.Load() {
						t.Errorf("%d are stored, want %d; out of order: %t", n, want, a.disorder.Load())
					}
				})
			})
		}
	}
}

func TestAFreeSecondIsNotSavedUp(t *testing.T) {
	throttling(t, edge.PublishRate{Messages: 10}, func(k throttled) {
		pass(90 * time.Second)
		p, _ := k.producer(k.topic, edge.ProducerOptions{})
		a := &answers{}
		k.send(p, a, 1, 100, "m")
		k.stored(a, 10, "after a long pause")
		if n := k.topic.Stats().RateLimited; n != 1 {
			t.Errorf("limited %d times", n)
		}
	})
}

// The rate is the topic's: producers share it in the order of their sends.
func TestProducersShareTheRate(t *testing.T) {
	throttling(t, edge.PublishRate{Messages: 10}, func(k throttled) {
		p, _ := k.producer(k.topic, edge.ProducerOptions{})
		q, _ := k.producer(k.topic, edge.ProducerOptions{})
		a, b := &answers{}, &answers{}
		k.send(p, a, 1, 20, "m")
		k.send(q, b, 1, 20, "m")
		k.stored(a, 10, "at once")
		k.stored(b, 0, "at once")
		pass(1500 * time.Millisecond)
		k.stored(a, 20, "later")
		k.stored(b, 5, "later")
	})
}

func TestARateThatChangesHoldsAtOnce(t *testing.T) {
	for name, x := range map[string]struct {
		rate           *edge.PublishRate
		now, afterward int64
	}{
		"removed":  {nil, 100, 100},
		"set to 0": {&edge.PublishRate{}, 100, 100},
		"raised":   {&edge.PublishRate{Messages: 50}, 10, 60},
		"lowered":  {&edge.PublishRate{Messages: 5}, 10, 15},
		"of bytes": {&edge.PublishRate{Bytes: 20}, 30, 50},
	} {
		t.Run(name, func(t *testing.T) {
			throttling(t, edge.PublishRate{Messages: 10}, func(k throttled) {
				p, _ := k.producer(k.topic, edge.ProducerOptions{})
				a := &answers{}
				k.send(p, a, 1, 100, "m")
				k.stored(a, 10, "at once")
				k.set(x.rate)
				k.stored(a, x.now, "after the change")
				pass(1010 * time.Millisecond)
				k.stored(a, x.afterward, "a second later")
			})
		})
	}
}

func TestWhatIsHeldBackWhenSomethingEnds(t *testing.T) {
	for name, x := range map[string]struct {
		end          func(k throttled, p *edge.Producer)
		stored, gone int64
		closed       error
	}{
		"the connection": {end: func(_ throttled, p *edge.Producer) { p.Close(nil) }, stored: 10, gone: 20},
		"the topic, by force": {func(k throttled, _ *edge.Producer) {
			if err := k.broker.Delete(k.Context(), k.topic.Name(), true); err != nil {
				k.Fatal(err)
			}
		}, 10, 20, edge.ErrUnloaded},
		"an unload": {func(k throttled, _ *edge.Producer) {
			if err := k.broker.Unload(k.Context(), k.topic.Name()); err != nil {
				k.Fatal(err)
			}
		}, 10, 20, edge.ErrUnloaded},
		"a write that fails": {func(k throttled, _ *edge.Producer) {
			k.store.Fail(errors.New("no space"))
			pass(100 * time.Millisecond)
			k.store.Fail(nil)
		}, 10, 19, edge.ErrStorage},
		"termination": {func(k throttled, _ *edge.Producer) {
			if _, err := k.broker.Terminate(k.Context(), k.topic.Name()); err != nil {
				k.Fatal(err)
			}
		}, 10, 20, edge.ErrTerminated},
		"the broker": {end: func(k throttled, _ *edge.Producer) { k.broker.Stopping() }, stored: 30},
		"its fencing": {func(k throttled, _ *edge.Producer) {
			k.producer(k.topic, edge.ProducerOptions{Access: edge.AccessFence})
		}, 10, 20, edge.ErrFenced},
	} {
		t.Run(name, func(t *testing.T) {
			throttling(t, edge.PublishRate{Messages: 10}, func(k throttled) {
				p, e := k.producer(k.topic, edge.ProducerOptions{Name: "it"})
				a := &answers{}
				k.send(p, a, 1, 30, "m")
				x.end(k, p)
				synctest.Wait()
				k.stored(a, x.stored, "at the end")
				if n := a.gone.Load(); n != x.gone || !errors.Is(e.reason(), x.closed) {
					t.Errorf("%d are dropped, the producer is told %v", n, e.reason())
				}
				pass(time.Minute)
				k.stored(a, x.stored, "long after the end")
			})
		})
	}
}

// A client that closes is answered behind its sends, and so is one that was refused.
func TestOthersWaitBehindWhatIsHeldBack(t *testing.T) {
	throttling(t, edge.PublishRate{Messages: 10}, func(k throttled) {
		p, _ := k.producer(k.topic, edge.ProducerOptions{Name: "it"})
		a := &answers{}
		k.send(p, a, 1, 15, "m")
		p.Refuse(message("bad"), edge.ErrBadMessage, a.to(16))
		var left atomic.Bool
		p.Close(func() { left.Store(true) })
		p.Publish(message("late"), func(edge.Receipt, error) {})
		pass(400 * time.Millisecond)
		if a.refused.Load() != 0 || left.Load() {
			t.Error("something overtook")
		}
		_, err := k.topic.AddProducer(k.Context(), edge.ProducerOptions{Name: "it"}, &end{}, &peer{})
		wants(t, "its name meanwhile", err, edge.ErrProducerBusy)
		pass(time.Second)
		k.stored(a, 15, "at last")
		if a.refused.Load() != 1 || !left.Load() {
			t.Error("an answer is missing")
		}
		q, _ := k.producer(k.topic, edge.ProducerOptions{Name: "it"})
		k.send(q, a, 17, 30, "m")
		q.Close(func() { left.Store(false) })
		q.Close(nil) // and then its connection drops
		synctest.Wait()
		if left.Load() {
			t.Error("its end was forgotten")
		}
	})
}

// What is held back leaves most of the publish memory to others.
func TestWhatIsHeldBackIsBounded(t *testing.T) {
	throttling(t, edge.PublishRate{Messages: 1}, func(k throttled) {
		p, _ := k.producer(k.topic, edge.ProducerOptions{})
		if err := k.broker.Catalog().CreateNamespace(k.Context(), "public/other", nil); err != nil {
			k.Fatal(err)
		}
		other, _ := k.producer(k.kit.topic("persistent://public/other/free"), edge.ProducerOptions{})
		a := &answers{}
		n := 0
		for p.TryRoom() {
			n++
			k.send(p, a, n, 1, strings.Repeat("m", 100_000))
		}
		used, limit := k.broker.Budget().Usage(edge.SharePublish)
		if used < limit/5 || used > limit/4+100_000 || !other.TryRoom() {
			t.Fatalf("%d of %d bytes are held, others may go on: %t", used, limit, other.TryRoom())
		}
		var free atomic.Bool
		go func() {
			err := p.Room(k.Context())
			free.Store(err == nil)
		}()
		pass(900 * time.Millisecond)
		if free.Load() {
			t.Fatal("there was no room yet")
		}
		pass(200 * time.Millisecond)
		if !free.Load() {
			t.Fatal("there is room, and nobody was told")
		}
		p.Close(nil)
	})
}
