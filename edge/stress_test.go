package edge_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"wayside/edge"
)

var (
	stressFirst  = flag.Uint64("stress.seed", 1, "first seed of the stress runs")
	stressSeeds  = flag.Uint64("stress.seeds", 2, "number of seeds")
	stressRounds = flag.Int("stress.rounds", 150, "what each client does in a stress run")
)

// Many clients do everything at once on few topics, over a store that stands still and
// fails now and then. Whatever happens:
//
//  1. What was receipted is stored where the receipt says.
//  2. Positions of a topic's name only go up, whether it is unloaded or deleted.
//  3. A consumer is given something only while it has permits, and nothing once it is closed.
//  4. When the weather is fine again, each backlog drains.
//  5. At the end no memory is taken, and no goroutine runs.
func TestManyClientsInBadWeather(t *testing.T) {
	for seed := *stressFirst; seed < *stressFirst+*stressSeeds; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { newStress(t, seed).run() })
	}
}

type stress struct {
	*kit
	rnd   *rand.Rand
	names []edge.TopicName
	subs  []edge.SubscribeOptions

	mu       sync.Mutex
	last     map[edge.TopicName]edge.Position
	receipts map[edge.TopicName]map[edge.Position]string
}

func newStress(t *testing.T, seed uint64) *stress {
	s := &stress{
		rnd:      rand.New(rand.NewPCG(seed, 0)),
		last:     map[edge.TopicName]edge.Position{},
		receipts: map[edge.TopicName]map[edge.Position]string{},
	}
	s.kit = newKit(t, func(o *edge.Options) {
		o.Deduplication = seed%2 == 0
		o.UnackedPerConsumer, o.UnackedPerSubscription = 40, 100
		o.KeepAcked = 1 << 10
		o.Budget = edge.NewBudget(1 << 20)
		o.FailoverDelay = time.Millisecond
	})
	for _, name := range []string{"kept", "mortal"} {
		s.names = append(s.names, s.name(name))
	}
	for kind := edge.Exclusive; kind <= edge.KeyShared; kind++ {
		s.subs = append(s.subs, subscription(kind.String(), kind))
	}
	reader := edge.SubscribeOptions{Name: "reader", Kind: edge.Exclusive, Start: &edge.Earliest, Epoch: -1}
	follower := subscription("follower", edge.Exclusive)
	follower.Follow = edge.Shared.String()
	s.subs = append(s.subs, reader, follower)
	return s
}

func (s *stress) run() {
	ctx, cancel := context.WithTimeout(s.Context(), 6*patience)
	defer cancel()
	fine := make(chan struct{})
	var weather, clients sync.WaitGroup
	weather.Go(func() { s.weather(fine) })
	for range 3 {
		clients.Go(s.client(ctx, (*stressClient).produce))
	}
	for range 8 {
		clients.Go(s.client(ctx, (*stressClient).consume))
	}
	clients.Go(s.client(ctx, (*stressClient).administrate))
	clients.Wait()
	close(fine)
	weather.Wait()
	if ctx.Err() != nil {
		s.Fatal("something hangs")
	}
	for _, name := range s.names {
		s.drain(name)
		s.compare(name)
	}
}

// weather lets the store stand still and fail for moments, until all is to be fine.
func (s *stress) weather(fine <-chan struct{}) {
	for i := 0; ; i++ {
		switch i % 6 {
		case 1, 3:
			s.store.Hold()
		case 5:
			s.store.Fail(errors.New("no space"))
		default:
			s.store.Fail(nil)
			s.store.Release()
		}
		select {
		case <-time.After(3 * time.Millisecond):
		case <-fine:
			s.store.Fail(nil)
			s.store.Release()
			return
		}
	}
}

// client gives somebody with a random source of its own something to do.
func (s *stress) client(ctx context.Context, do func(*stressClient)) func() {
	c := &stressClient{stress: s, ctx: ctx, rnd: rand.New(rand.NewPCG(s.rnd.Uint64(), 0))}
	return func() {
		for range *stressRounds {
			if ctx.Err() != nil {
				return
			}
			do(c)
		}
		c.leave()
	}
}

type stressClient struct {
	*stress
	ctx      context.Context
	rnd      *rand.Rand
	producer *edge.Producer
	onto     edge.TopicName // the topic that it publishes on
	sequence int64
	consumer *edge.Consumer
	in       *stressInbox
}

func (c *stressClient) anyTopic() (*edge.Topic, error) {
	return c.broker.Open(c.ctx, c.names[c.rnd.IntN(len(c.names))], true)
}

func (c *stressClient) leave() {
	if c.producer != nil {
		c.producer.Close(nil)
	}
	if c.consumer != nil {
		c.consumer.Close()
		c.in.drop() // nothing comes any more
	}
	c.producer, c.consumer = nil, nil
}

// produce comes, publishes some, or goes.
func (c *stressClient) produce() {
	if c.producer == nil {
		topic, err := c.anyTopic()
		if err != nil {
			return
		}
		o := edge.ProducerOptions{Access: []edge.AccessMode{0, 0, 0, edge.AccessWait, edge.AccessFence}[c.rnd.IntN(5)]}
		if c.producer, err = topic.AddProducer(c.ctx, o, &end{}, &peer{}); err != nil {
			c.producer = nil
			return
		}
		c.onto, c.sequence = topic.Name(), 0
	}
	for range 1 + c.rnd.IntN(20) {
		c.publish()
	}
	if c.rnd.IntN(4) == 0 {
		c.leave()
	}
}

func (c *stressClient) publish() {
	m := message(fmt.Sprintf("%p %s %d", c, c.producer.Name(), c.sequence))
	m.Facts.Producer, m.Facts.Sequence, m.Facts.Highest = c.producer.Name(), c.sequence, c.sequence
	m.Facts.Slot = uint16(c.rnd.IntN(5) * 13_000)
	switch c.rnd.IntN(8) {
	case 0:
		m.Facts.Batch, m.Facts.Messages = true, int32(1+c.rnd.IntN(20))
	case 1:
		m.Facts.DeliverAt = time.Now().UnixMilli() + c.rnd.Int64N(20)
	case 2:
		m.Facts.Chunk = edge.Chunk{UUID: fmt.Sprint(c.sequence / 3), ID: int32(c.sequence % 3), Of: 3}
	}
	c.sequence++
	m.Grant, _ = c.broker.Budget().TryTake(edge.SharePublish, int64(len(m.Data)))
	name, body := c.onto, string(m.Data)
	c.producer.Publish(m, func(r edge.Receipt, err error) {
		if err == nil && !r.Duplicate {
			c.receipted(name, r.Position, body)
		}
	})
}

func (s *stress) receipted(name edge.TopicName, at edge.Position, body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.last[name].Less(at) {
		s.Errorf("%v of %s came behind %v", at, name, s.last[name])
	}
	s.last[name] = at
	if s.receipts[name] == nil {
		s.receipts[name] = map[edge.Position]string{}
	}
	s.receipts[name][at] = body
}

// consume comes, or does one of the things that consumers do.
func (c *stressClient) consume() {
	if c.consumer == nil || c.in.closed.Load() {
		c.join()
		return
	}
	switch n := c.rnd.IntN(100); {
	case n < 30:
		c.in.flow(c.consumer, 1+c.rnd.IntN(30))
	case n < 70:
		c.ack()
	case n < 80:
		c.nack()
	case n < 85:
		c.in.stalled.Store(!c.in.stalled.Load())
		c.consumer.Wake()
	case n < 89:
		c.in.giveBack(c.consumer)
	case n < 92:
		_ = c.consumer.Seek(c.ctx, edge.SeekTarget{Position: edge.Earliest})
	case n < 94:
		_ = c.consumer.Seek(c.ctx, edge.SeekTarget{ByTime: true, Time: time.Now().UnixMilli() - c.rnd.Int64N(50)})
	case n < 96:
		_ = c.consumer.Unsubscribe(c.ctx, c.rnd.IntN(2) == 0)
	case n < 98:
		c.consumer.LastID()
		c.consumer.Stats()
	default:
		c.leave()
	}
}

func (c *stressClient) join() {
	c.leave()
	topic, err := c.anyTopic()
	if err != nil {
		return
	}
	o := c.subs[c.rnd.IntN(len(c.subs))]
	o.Consumer, o.Priority = fmt.Sprint(c.rnd.IntN(5)), c.rnd.IntN(2)
	c.in = &stressInbox{s: c.stress}
	if c.consumer, err = topic.Subscribe(c.ctx, o, c.in, &peer{}); err != nil {
		c.consumer = nil
		if errors.Is(err, edge.ErrGone) {
			c.Errorf("subscribe: %v", err)
		}
	}
}

func (c *stressClient) ack() {
	at := c.in.take(1 + c.rnd.IntN(20))
	if len(at) == 0 {
		return
	}
	cumulative := c.rnd.IntN(4) == 0
	if cumulative {
		at = at[len(at)-1:]
	}
	all := parts(at...)
	if c.rnd.IntN(5) == 0 {
		all[0].Rest = []uint64{c.rnd.Uint64()}
	}
	if c.rnd.IntN(3) > 0 {
		c.consumer.Ack(all, cumulative, nil)
		return
	}
	done := make(chan error, 1)
	c.consumer.Ack(all, cumulative, func(err error) { done <- err })
	select {
	case <-done:
	case <-c.ctx.Done():
	}
}

func (c *stressClient) nack() {
	if c.rnd.IntN(4) == 0 {
		c.consumer.Redeliver(nil, c.rnd.Int64N(5))
	} else {
		c.consumer.Redeliver(c.in.take(5), -1)
	}
}

// administrate does what upsets the others.
func (c *stressClient) administrate() {
	topic, err := c.anyTopic()
	if err != nil {
		return
	}
	name := topic.Name()
	sub := c.subs[c.rnd.IntN(len(c.subs))].Name
	switch n := c.rnd.IntN(100); {
	case n < 20:
		_ = c.broker.Unload(c.ctx, name)
	case n < 25 && name == c.names[1]:
		_ = c.broker.Delete(c.ctx, name, c.rnd.IntN(2) == 0)
	case n < 35:
		_ = topic.ResetSubscription(c.ctx, sub, edge.SeekTarget{Position: edge.Latest})
	case n < 40:
		_ = topic.SkipAll(c.ctx, sub)
	case n < 50:
		_ = topic.DeleteSubscription(c.ctx, sub, true)
	case n < 60:
		_ = topic.CreateSubscription(c.ctx, sub, edge.Earliest)
	case n < 64:
		c.broker.Sweep(time.Duration(c.rnd.IntN(2)) * time.Hour)
	default:
		topic.Stats()
		c.broker.Stats()
		_, _ = topic.Peek(c.ctx, sub, 1+c.rnd.IntN(5))
	}
}

// stressInbox is a receiver that watches its permits.
type stressInbox struct {
	s       *stress
	stalled atomic.Bool
	closed  atomic.Bool

	mu      sync.Mutex
	permits int
	got     []edge.Delivery
}

func (b *stressInbox) Room() int {
	if b.stalled.Load() {
		return 0
	}
	return 1 << 20
}

func (b *stressInbox) Deliver(d edge.Delivery) {
	if b.closed.Load() {
		b.s.Errorf("%v came to a closed consumer", d.Entry.Position)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.permits <= 0 {
		b.s.Errorf("%v came with %d permits", d.Entry.Position, b.permits)
	}
	b.permits -= unacked(&d)
	b.got = append(b.got, d)
}

func unacked(d *edge.Delivery) int {
	if d.Rest == nil {
		return int(d.Entry.Facts.Messages)
	}
	n := 0
	for _, w := range d.Rest {
		for ; w != 0; w &= w - 1 {
			n++
		}
	}
	return min(n, int(d.Entry.Facts.Messages))
}

func (b *stressInbox) ActiveChanged(bool) {}
func (b *stressInbox) EndReached()        {}
func (b *stressInbox) Closed(error)       { b.closed.Store(true); b.drop() }

func (b *stressInbox) flow(c *edge.Consumer, n int) {
	b.mu.Lock()
	b.permits += n
	b.mu.Unlock()
	c.Flow(n)
}

// take lets the client have what came first.
func (b *stressInbox) take(n int) []edge.Position {
	b.mu.Lock()
	defer b.mu.Unlock()
	var at []edge.Position
	for _, d := range b.got[:min(n, len(b.got))] {
		d.Grant.Release()
		at = append(at, d.Entry.Position)
	}
	b.got = b.got[len(at):]
	return at
}

// giveBack returns what came last.
func (b *stressInbox) giveBack(c *edge.Consumer) {
	b.mu.Lock()
	half := len(b.got) / 2
	back := b.got[half:]
	b.got = b.got[:half:half]
	for i := range back {
		b.permits += unacked(&back[i])
	}
	b.mu.Unlock()
	c.GiveBack(back)
}

// drop forgets what the client will never have.
func (b *stressInbox) drop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, d := range b.got {
		d.Grant.Release()
	}
	b.got = nil
}

// drain acknowledges every backlog of a topic, all of which has to come.
func (s *stress) drain(name edge.TopicName) {
	topic, err := s.broker.Open(s.Context(), name, true)
	if err != nil {
		s.Fatal(err)
	}
	kinds := map[string]edge.SubKind{}
	for _, o := range s.subs {
		kinds[o.Name] = o.Kind
	}
	for _, sub := range topic.Subscriptions() {
		in := &stressInbox{s: s}
		c, err := topic.Subscribe(s.Context(), subscription(sub, kinds[sub]), in, &peer{})
		if err != nil {
			s.Fatal(err)
		}
		in.flow(c, 1<<20)
		eventually(s.T, fmt.Sprintf("%s of %s drains", sub, name), func() bool {
			if at := in.take(100); len(at) > 0 {
				c.Ack(parts(at...), false, nil)
			}
			return topic.Stats().Subscriptions[sub].Backlog == 0
		})
		if st := topic.Stats().Subscriptions[sub]; st.Unacked != 0 || st.Replay != 0 {
			s.Errorf("%s of %s: %d unacknowledged, %d to be replayed", sub, name, st.Unacked, st.Replay)
		}
		c.Close()
		in.drop()
	}
}

// compare looks up all that was receipted and is not trimmed.
func (s *stress) compare(name edge.TopicName) {
	topic, err := s.broker.Open(s.Context(), name, true)
	if err != nil {
		s.Fatal(err)
	}
	spans, seen := topic.Spans(), 0
	s.mu.Lock()
	receipts := s.receipts[name]
	s.mu.Unlock()
	for at, body := range receipts {
		if !spans.Start().Less(at) {
			continue
		}
		seen++
		e, err := topic.Entry(s.Context(), at)
		if err != nil || string(e.Data) != body {
			s.Fatalf("%v of %s holds %q, %v; its receipt was for %q", at, name, e.Data, err, body)
		}
	}
	s.Logf("%s: %d receipts, %d entries looked up", name, len(receipts), seen)
}
