package edge_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"wayside/edge"
	"wayside/edge/edgetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait of a test; a passing one needs a thousandth of it.
const patience = 10 * time.Second

// kit is a broker on a store in memory.
type kit struct {
	*testing.T
	store  *edgetest.MemStore
	hooks  *hooks
	broker *edge.Broker
}

func newKit(t *testing.T, change func(*edge.Options)) *kit {
	t.Helper()
	k := &kit{T: t, store: edgetest.NewMemStore(), hooks: &hooks{}}
	k.start(change)
	t.Cleanup(k.stop)
	return k
}

func (k *kit) start(change func(*edge.Options)) {
	k.Helper()
	o := edge.DefaultOptions()
	o.FailoverDelay = 10 * time.Millisecond
	o.BacklogCheckInterval = time.Hour // rounds are run by hand
	if change != nil {
		change(&o)
	}
	if o.Budget == nil {
		o.Budget = edge.NewBudget(32 << 20)
	}
	var err error
	if k.broker, err = edge.NewBroker(hookedStore{k.store, k.hooks}, o); err != nil {
		k.Fatal(err)
	}
}

// stop ends broker and store, and fails if memory did not come back.
func (k *kit) stop() {
	k.Helper()
	k.hooks.read.Store(nil)
	k.store.Release()
	if err := k.broker.Close(context.Background()); err != nil {
		k.Error(err)
	}
	if err := k.store.Close(); err != nil {
		k.Error(err)
	}
	for _, s := range []edge.Share{edge.SharePublish, edge.ShareRead, edge.ShareSubscription, edge.ShareTail} {
		if used, _ := k.broker.Budget().Usage(s); used != 0 {
			k.Errorf("%d bytes of share %d did not come back", used, s)
		}
	}
}

// restart goes on with another broker on what the store holds.
func (k *kit) restart(change func(*edge.Options)) {
	k.Helper()
	k.stop()
	k.store = k.store.Reopen()
	k.start(change)
}

func (k *kit) name(name string) edge.TopicName {
	k.Helper()
	n, err := edge.ParseTopicName(name)
	if err != nil {
		k.Fatal(err)
	}
	return n
}

func (k *kit) topic(name string) *edge.Topic {
	k.Helper()
	t, err := k.broker.Open(k.Context(), k.name(name), true)
	if err != nil {
		k.Fatal(err)
	}
	return t
}

// peer is a connection that is alive as long as it says so.
type peer struct{ dead bool }

func (p *peer) Alive(context.Context) bool { return !p.dead }
func (p *peer) Address() string            { return "127.0.0.1:1" }
func (p *peer) Principal() string          { return "" }
func (p *peer) Version() string            { return "test" }

// end records what a producer is told.
type end struct {
	mu     sync.Mutex
	ready  []int64
	closed error
}

func (e *end) Ready(epoch int64) { e.mu.Lock(); e.ready = append(e.ready, epoch); e.mu.Unlock() }
func (e *end) Closed(err error)  { e.mu.Lock(); e.closed = err; e.mu.Unlock() }
func (e *end) reason() error     { e.mu.Lock(); defer e.mu.Unlock(); return e.closed }
func (e *end) turns() []int64    { e.mu.Lock(); defer e.mu.Unlock(); return e.ready }

func (k *kit) producer(t *edge.Topic, o edge.ProducerOptions) (*edge.Producer, *end) {
	k.Helper()
	e := &end{}
	p, err := t.AddProducer(k.Context(), o, e, &peer{})
	if err != nil {
		k.Fatal(err)
	}
	return p, e
}

func message(body string) edge.Message {
	return edge.Message{Data: []byte(body), Facts: edge.Facts{Messages: 1, Publish: time.Now().UnixMilli()}}
}

type answer struct {
	edge.Receipt
	err error
}

// send publishes and returns where the answer will come.
func send(p *edge.Producer, m edge.Message) <-chan answer {
	ch := make(chan answer, 1)
	p.Publish(m, func(r edge.Receipt, err error) { ch <- answer{r, err} })
	return ch
}

// publish stores messages one by one and returns their positions.
func (k *kit) publish(p *edge.Producer, bodies ...string) []edge.Position {
	k.Helper()
	var at []edge.Position
	for i, b := range bodies {
		m := message(b)
		m.Facts.Producer, m.Facts.Sequence, m.Facts.Highest = p.Name(), int64(i), int64(i)
		a := recv(k.T, send(p, m))
		if a.err != nil {
			k.Fatal(a.err)
		}
		at = append(at, a.Position)
	}
	return at
}

func recv[V any](t *testing.T, ch <-chan V) V {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

// eventually waits until ok, and fails with what if it never is.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		wake := time.NewTimer(time.Millisecond)
		<-wake.C
	}
}

// inbox is a receiver that keeps all it is given. What was not sent off nobody sees.
type inbox struct {
	mu     sync.Mutex
	fresh  []edge.Delivery // not sent off
	got    []edge.Delivery
	active []bool
	ended  int
	closed error
	room   int // bytes it still welcomes; below zero it always does
}

func (b *inbox) Room() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.room < 0 {
		return 1 << 20
	}
	return b.room
}

func (b *inbox) Flush() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.got, b.fresh = append(b.got, b.fresh...), nil
}

func (b *inbox) Deliver(d edge.Delivery) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.room >= 0 {
		b.room -= len(d.Entry.Data)
	}
	d.Grant.Release()
	d.Grant = edge.Grant{}
	b.fresh = append(b.fresh, d)
}

func (b *inbox) ActiveChanged(a bool) { b.mu.Lock(); b.active = append(b.active, a); b.mu.Unlock() }
func (b *inbox) EndReached()          { b.mu.Lock(); b.ended++; b.mu.Unlock() }
func (b *inbox) Closed(err error)     { b.mu.Lock(); b.closed = err; b.mu.Unlock() }

func (b *inbox) all() []edge.Delivery {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]edge.Delivery(nil), b.got...)
}

func (b *inbox) count() int { b.mu.Lock(); defer b.mu.Unlock(); return len(b.got) }

func (b *inbox) bodies() []string { return bodiesOf(b.all()) }

func bodiesOf(all []edge.Delivery) []string {
	var s []string
	for _, d := range all {
		s = append(s, string(d.Entry.Data))
	}
	return s
}

func (b *inbox) reason() error { b.mu.Lock(); defer b.mu.Unlock(); return b.closed }

// await waits for n deliveries in all and returns their bodies.
func (b *inbox) await(t *testing.T, n int) []string {
	t.Helper()
	eventually(t, fmt.Sprintf("%d deliveries", n), func() bool { return b.count() >= n })
	return b.bodies()
}

func subscription(name string, kind edge.SubKind) edge.SubscribeOptions {
	return edge.SubscribeOptions{
		Name: name, Kind: kind, Durable: true, AutoSubscribe: true, Epoch: -1, Initial: edge.InitialEarliest,
	}
}

func (k *kit) subscribe(t *edge.Topic, o edge.SubscribeOptions) (*edge.Consumer, *inbox) {
	k.Helper()
	in := &inbox{room: -1}
	c, err := t.Subscribe(k.Context(), o, in, &peer{})
	if err != nil {
		k.Fatal(err)
	}
	return c, in
}

func parts(at ...edge.Position) []edge.AckPart {
	var ps []edge.AckPart
	for _, p := range at {
		ps = append(ps, edge.AckPart{Position: p})
	}
	return ps
}

// ack acknowledges and waits until that is durable.
func (k *kit) ack(c *edge.Consumer, at ...edge.Position) {
	k.Helper()
	done := make(chan error, 1)
	c.Ack(parts(at...), false, func(err error) { done <- err })
	if err := recv(k.T, done); err != nil {
		k.Fatal(err)
	}
}

func numbers(from, n int) []string {
	s := make([]string, n)
	for i := range s {
		s[i] = fmt.Sprint(from + i)
	}
	return s
}
