package edge_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"wayside/edge"
	"wayside/edge/edgetest"
)

// benchBroker is a broker on a store in memory.
func benchBroker(b testing.TB, store edge.Store) *edge.Broker {
	o := edge.DefaultOptions()
	o.Budget = edge.NewBudget(256 << 20)
	broker, err := edge.NewBroker(store, o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := broker.Close(context.Background()); err != nil {
			b.Error(err)
		}
		if err := store.Close(); err != nil {
			b.Error(err)
		}
	})
	return broker
}

func benchTopic(b testing.TB, broker *edge.Broker, local string) *edge.Topic {
	t, err := broker.Open(context.Background(), edge.TopicName{Domain: edge.Persistent, Tenant: "public", Namespace: "default", Local: local}, true)
	if err != nil {
		b.Fatal(err)
	}
	return t
}

// eater acknowledges what it is given, some at a time, and asks for as many more.
type eater struct {
	c     *edge.Consumer
	left  *atomic.Int64
	done  chan struct{}
	group int
	parts []edge.AckPart
	full  chan []edge.AckPart
	free  chan []edge.AckPart
}

// eat subscribes. done closes when left is down to 0.
func eat(b testing.TB, t *edge.Topic, o edge.SubscribeOptions, group int, left *atomic.Int64, done chan struct{}) (stop func()) {
	e := &eater{
		left: left, done: done, group: group,
		parts: make([]edge.AckPart, 0, group),
		full:  make(chan []edge.AckPart, 2000/group+2), free: make(chan []edge.AckPart, 2000/group+2),
	}
	var err error
	if e.c, err = t.Subscribe(context.Background(), o, e, &peer{}); err != nil {
		b.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for parts := range e.full {
			e.c.Ack(parts, false, nil)
			e.c.Flow(len(parts))
			e.free <- parts[:0]
		}
	})
	e.c.Flow(1000)
	return func() {
		close(e.full)
		wg.Wait()
		e.c.Close()
	}
}

func (e *eater) Room() int { return 1 << 20 }

func (*eater) Flush() {}

func (e *eater) Deliver(d edge.Delivery) {
	d.Grant.Release()
	e.parts = append(e.parts, edge.AckPart{Position: d.Entry.Position})
	left := e.left.Add(-1)
	if len(e.parts) == e.group || left == 0 {
		e.full <- e.parts
		select {
		case e.parts = <-e.free:
		default:
			e.parts = make([]edge.AckPart, 0, e.group)
		}
	}
	if left == 0 {
		close(e.done)
	}
}

func (e *eater) ActiveChanged(bool) {}
func (e *eater) EndReached()        {}
func (e *eater) Closed(error)       {}

// publishN publishes n messages with at most so many under way.
func publishN(p *edge.Producer, n, window int) {
	slots := make(chan struct{}, window)
	data := make([]byte, 128)
	for i := range n {
		slots <- struct{}{}
		m := edge.Message{Data: data, Facts: edge.Facts{Producer: p.Name(), Sequence: int64(i), Messages: 1, Slot: uint16(i%100 + 1)}}
		p.Publish(m, func(edge.Receipt, error) { <-slots })
	}
	for range window {
		slots <- struct{}{}
	}
}

// One message goes in, out and is acknowledged.
func BenchmarkMessage(b *testing.B) {
	for kind := edge.Exclusive; kind <= edge.KeyShared; kind++ {
		b.Run(kind.String(), func(b *testing.B) {
			topic := benchTopic(b, benchBroker(b, edgetest.NewMemStore()), "bench")
			p, err := topic.AddProducer(context.Background(), edge.ProducerOptions{}, &end{}, &peer{})
			if err != nil {
				b.Fatal(err)
			}
			var left atomic.Int64
			left.Store(int64(b.N))
			done := make(chan struct{})
			stop := eat(b, topic, subscription("s", kind), 100, &left, done)
			b.ReportAllocs()
			b.ResetTimer()
			publishN(p, b.N, 1000)
			<-done
			b.StopTimer()
			stop()
		})
	}
}

// One message goes to 100 subscriptions; ns are per message, not per delivery.
func BenchmarkFanOut(b *testing.B) {
	const subs = 100
	topic := benchTopic(b, benchBroker(b, edgetest.NewMemStore()), "bench")
	p, err := topic.AddProducer(context.Background(), edge.ProducerOptions{}, &end{}, &peer{})
	if err != nil {
		b.Fatal(err)
	}
	var left atomic.Int64
	left.Store(int64(b.N) * subs)
	done := make(chan struct{})
	for i := range subs {
		defer eat(b, topic, subscription(fmt.Sprint("s", i), edge.Exclusive), 100, &left, done)()
	}
	b.ReportAllocs()
	b.ResetTimer()
	publishN(p, b.N, 1000)
	<-done
	b.StopTimer()
}

// A message on a topic with 100 subscriptions that nobody reads.
func BenchmarkPublishUnread(b *testing.B) {
	topic := benchTopic(b, benchBroker(b, edgetest.NewMemStore()), "bench")
	for i := range 100 {
		if err := topic.CreateSubscription(context.Background(), fmt.Sprint("s", i), edge.Earliest); err != nil {
			b.Fatal(err)
		}
	}
	p, err := topic.AddProducer(context.Background(), edge.ProducerOptions{}, &end{}, &peer{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	publishN(p, b.N, 1000)
	b.StopTimer()
}

// A client acknowledges 1000 messages in one command.
func BenchmarkAck1000(b *testing.B) {
	const n = 1000
	for _, kind := range []edge.SubKind{edge.Exclusive, edge.Shared} {
		for _, order := range []string{"in order", "backwards"} {
			b.Run(kind.String()+" "+order, func(b *testing.B) {
				topic := benchTopic(b, benchBroker(b, edgetest.NewMemStore()), "bench")
				p, err := topic.AddProducer(context.Background(), edge.ProducerOptions{}, &end{}, &peer{})
				if err != nil {
					b.Fatal(err)
				}
				in := &inbox{room: -1}
				c, err := topic.Subscribe(context.Background(), subscription("s", kind), in, &peer{})
				if err != nil {
					b.Fatal(err)
				}
				c.Flow(1 << 29)
				b.ReportAllocs()
				b.ResetTimer()
				for range b.N {
					b.StopTimer()
					in.mu.Lock()
					in.got = nil
					in.mu.Unlock()
					publishN(p, n, n)
					for in.count() < n {
						runtime.Gosched()
					}
					all := parts(in.from(0)...)
					if order == "backwards" {
						for i, j := 0, n-1; i < j; i, j = i+1, j-1 {
							all[i], all[j] = all[j], all[i]
						}
					}
					b.StartTimer()
					c.Ack(all, false, nil)
				}
			})
		}
	}
}

// bytesPerTopic is the memory of the core for an idle topic with a subscription and a
// consumer, without what the store and the front end keep.
func bytesPerTopic(t testing.TB, kind edge.SubKind, n int) int {
	broker := benchBroker(t, nullStore{})
	before := heap()
	for i := range n {
		topic := benchTopic(t, broker, fmt.Sprint("topic", i))
		c, err := topic.Subscribe(context.Background(), subscription("sub", kind), nobody{}, nobody{})
		if err != nil {
			t.Fatal(err)
		}
		c.Flow(1000)
	}
	bytes := int(heap()-before) / n
	runtime.KeepAlive(broker)
	return bytes
}

func heap() uint64 {
	runtime.GC()
	runtime.GC() // the first one's finalizers
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func BenchmarkIdleTopic(b *testing.B) {
	for kind := edge.Exclusive; kind <= edge.KeyShared; kind++ {
		b.Run(kind.String(), func(b *testing.B) {
			for range b.N {
				b.ReportMetric(float64(bytesPerTopic(b, kind, 2_000)), "B/topic")
			}
		})
	}
}

func TestAnIdleTopicTakesLittleMemoryAndNoGoroutine(t *testing.T) {
	before := runtime.NumGoroutine()
	for kind := edge.Exclusive; kind <= edge.KeyShared; kind++ {
		if got := bytesPerTopic(t, kind, 500); got > 6<<10 {
			t.Errorf("%v takes %d bytes", kind, got)
		}
	}
	each := 1 + runtime.GOMAXPROCS(0) // a broker's housekeeper and its resting hands
	eventually(t, "no goroutine is left but those of four brokers", func() bool { return runtime.NumGoroutine() <= before+4*each })
}

// nobody is a receiver and a peer that takes no memory.
type nobody struct{}

func (nobody) Room() int { return 1 << 20 }
func (nobody) Flush()    {}

func (nobody) Deliver(edge.Delivery)      {}
func (nobody) ActiveChanged(bool)         {}
func (nobody) EndReached()                {}
func (nobody) Closed(error)               {}
func (nobody) Alive(context.Context) bool { return true }
func (nobody) Address() string            { return "127.0.0.1:1" }
func (nobody) Principal() string          { return "" }
func (nobody) Version() string            { return "test" }

// nullStore keeps nothing, so that what is measured on it is the core alone.
type nullStore struct{}

func (nullStore) Records() []edge.TopicRecord { return nil }
func (nullStore) OpenLedger(edge.TopicName, []string) (edge.Ledger, error) {
	return nullLedger{}, nil
}
func (nullStore) DeleteLedger(_ edge.TopicName, done func(error))    { done(nil) }
func (nullStore) ScanValues(string, func(string, []byte) bool) error { return nil }
func (nullStore) PutValue(_ string, _ []byte, done func(error))      { done(nil) }
func (nullStore) Stats() edge.StoreStats                             { return edge.StoreStats{} }
func (nullStore) Close() error                                       { return nil }

type nullLedger struct{}

func (nullLedger) Append(_ edge.Message, done func(edge.Entry, error))         { go done(edge.Entry{}, nil) }
func (nullLedger) Barrier(done func(error))                                    { go done(nil) }
func (nullLedger) Recover(done func(error))                                    { go done(nil) }
func (nullLedger) Read([]edge.Range, int, int) (edge.Batch, error)             { return edge.Batch{}, nil }
func (nullLedger) Scan(edge.Range, func(edge.Position, edge.Facts) bool) error { return nil }
func (nullLedger) Find(edge.Position, int64) (edge.Position, bool, error) {
	return edge.Position{}, false, nil
}
func (nullLedger) Spans() edge.Spans {
	return edge.Spans{Open: edge.Span{Ledger: 1, Last: -1}}
}
func (nullLedger) BirthID() string                                   { return "" }
func (nullLedger) Trim(_ edge.Position, done func(error))            { go done(nil) }
func (nullLedger) Roll(done func(error))                             { go done(nil) }
func (nullLedger) Sequences() (map[string]edge.SequenceState, error) { return nil, nil }
func (nullLedger) DropSequences(_ []string, done func(error))        { go done(nil) }
func (nullLedger) Properties() ([]byte, error)                       { return nil, nil }
func (nullLedger) SetProperties(_ []byte, done func(error))          { go done(nil) }
func (nullLedger) Cursors() (map[string]edge.CursorState, error)     { return nil, nil }
func (nullLedger) SaveCursor(_ string, _ func() edge.CursorState, done func(error)) {
	if done != nil {
		go done(nil)
	}
}
func (nullLedger) DeleteCursor(_ string, done func(error)) { go done(nil) }
func (nullLedger) Close(done func(error))                  { go done(nil) }

// A message to one consumer of Key_Shared while another, who takes nothing, has as many
// entries waiting as there may be.
func BenchmarkBesideAStalledOwner(b *testing.B) {
	topic := benchTopic(b, benchBroker(b, edgetest.NewMemStore()), "bench")
	p, err := topic.AddProducer(context.Background(), edge.ProducerOptions{}, &end{}, &peer{})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := topic.Subscribe(context.Background(), subscription("s", edge.KeyShared), nobody{}, nobody{}); err != nil {
		b.Fatal(err) // owns the upper half, and gives no permits
	}
	const waiting = 3_900
	var left atomic.Int64
	left.Store(int64(b.N))
	done := make(chan struct{})
	stop := eat(b, topic, subscription("s", edge.KeyShared), 100, &left, done)
	publish := func(n int, slot uint16) {
		for range n {
			answer := make(chan struct{})
			m := edge.Message{Data: make([]byte, 128), Facts: edge.Facts{Messages: 1, Slot: slot}}
			p.Publish(m, func(edge.Receipt, error) { close(answer) })
			<-answer
		}
	}
	publish(waiting, 60_000)
	b.ReportAllocs()
	b.ResetTimer()
	publish(b.N, 1)
	<-done
	b.StopTimer()
	stop()
}
