package edge_test

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"wayside/edge"
)

// twinClient is a consumer with what its client has. Deliveries are unseen until they
// have left the outbox, so to speak.
type twinClient struct {
	r       *twinRun
	name    string
	c       *edge.Consumer
	stalled atomic.Bool
	closed  atomic.Bool

	mu     sync.Mutex
	unseen []edge.Delivery
	seen   []edge.Delivery
}

func (c *twinClient) Room() int {
	if c.stalled.Load() {
		return 0
	}
	return 1 << 20
}

func (*twinClient) Flush() {}

func (c *twinClient) Deliver(d edge.Delivery) {
	c.r.twin.Delivered(c.name, &d, time.Now())
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unseen = append(c.unseen, d)
}

func (c *twinClient) ActiveChanged(active bool) { c.r.twin.ActiveChanged(c.name, active) }

func (c *twinClient) EndReached() { c.r.t.Error("the topic was not terminated") }

func (c *twinClient) Closed(error) {
	c.r.twin.Left(c.name, c.r.restarting.Load())
	c.closed.Store(true)
}

// see lets the client have what was delivered.
func (c *twinClient) see() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range c.unseen {
		d.Grant.Release()
	}
	c.seen = append(c.seen, c.unseen...)
	c.seen = c.seen[max(0, len(c.seen)-100):]
	c.unseen = nil
}

func (c *twinClient) known() []edge.Delivery {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]edge.Delivery{}, c.seen...)
}

func (c *twinClient) flow(n int) {
	c.r.note("flow %s %d", c.name, n)
	c.r.twin.Flowed(c.name, n)
	c.c.Flow(n)
}

func (c *twinClient) stall(on bool) {
	c.r.note("stall %s %v", c.name, on)
	c.r.twin.Stalled(c.name, on)
	c.stalled.Store(on)
	if !on {
		c.c.Wake()
	}
}

// ack acknowledges some of what the client has, by parts or whole, now and then
// what is acknowledged already or does not exist.
func (c *twinClient) ack() {
	rnd := c.r.rnd
	seen := c.known()
	if len(seen) == 0 {
		return
	}
	var parts []edge.AckPart
	cumulative := rnd.IntN(4) == 0
	for range 1 + rnd.IntN(5) {
		d := seen[rnd.IntN(len(seen))]
		part := edge.AckPart{Position: d.Entry.Position}
		if d.Entry.Facts.Batch && rnd.IntN(2) == 0 {
			part.Rest = c.r.someOf(&d)
		}
		if !cumulative && rnd.IntN(20) == 0 {
			part.Position.Ledger += 100
		}
		parts = append(parts, part)
		if cumulative {
			break
		}
	}
	c.ackParts(parts, cumulative)
}

func (c *twinClient) ackParts(parts []edge.AckPart, cumulative bool) {
	c.r.note("ack %s %v %v", c.name, parts, cumulative)
	for _, part := range parts { // one by one: a part may come twice
		c.r.twin.Acked([]edge.AckPart{part}, cumulative, func() { c.c.Ack([]edge.AckPart{part}, cumulative, nil) })
	}
}

func (c *twinClient) nack() {
	var ids []edge.Position
	if seen := c.known(); c.r.rnd.IntN(4) > 0 && len(seen) > 0 {
		ids = []edge.Position{}
		for range 1 + c.r.rnd.IntN(4) {
			ids = append(ids, seen[c.r.rnd.IntN(len(seen))].Entry.Position)
		}
	}
	c.r.note("nack %s %v", c.name, ids)
	c.r.twin.Nacked(c.name, ids)
	c.c.Redeliver(ids, -1)
}

// giveBack returns the newest deliveries that have not reached the client.
func (c *twinClient) giveBack() {
	c.mu.Lock()
	from := 0
	if len(c.unseen) > 0 {
		from = c.r.rnd.IntN(len(c.unseen))
	}
	back := c.unseen[from:]
	c.unseen = c.unseen[:from:from]
	c.mu.Unlock()
	c.r.note("give back %s %d", c.name, len(back))
	c.r.twin.GaveBack(c.name, back)
	c.c.GiveBack(back)
}

func (c *twinClient) leave() {
	c.r.note("leave %s", c.name)
	c.r.twin.Left(c.name, false)
	c.c.Close()
	c.closed.Store(true)
	c.r.dropClosed()
}

type twinPeer struct{}

func (twinPeer) Alive(context.Context) bool { return true }
func (twinPeer) Address() string            { return "127.0.0.1:1" }
func (twinPeer) Principal() string          { return "" }
func (twinPeer) Version() string            { return "twin" }

type twinEnd struct{}

func (twinEnd) Ready(int64)  {}
func (twinEnd) Closed(error) {}

// slowStore is a store whose reads take their time, so that a test's doings fall
// between the plan of a read and its outcome.
type slowStore struct {
	edge.Store
	slow *slowReads
}

type slowReads struct {
	takes atomic.Int64 // ns
	reads atomic.Int64 // so far
}

func (s slowStore) OpenLedger(name edge.TopicName, reserved []string) (edge.Ledger, error) {
	l, err := s.Store.OpenLedger(name, reserved)
	return slowLedger{l, s.slow}, err
}

type slowLedger struct {
	edge.Ledger
	slow *slowReads
}

func (l slowLedger) Read(want []edge.Range, entries, bytes int) (edge.Batch, error) {
	l.slow.reads.Add(1)
	half := time.Duration(l.slow.takes.Load() / 2)
	time.Sleep(half)
	defer time.Sleep(half)
	return l.Ledger.Read(want, entries, bytes)
}
