package edge_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"wayside/edge"
)

// stressClient is one that comes and goes, publishes or consumes.
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

func (*stressInbox) Flush() {}

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
