package edge

import (
	"slices"
	"time"
)

// shared dispatches entries one by one to several consumers: Shared and Key_Shared.
// It knows who holds what, and serves what comes back before anything new.
type shared struct {
	s       *Subscription
	read    Position // the next new entry to read
	pending map[Position]pend
	replay  Runs // entries that came back or wait for their key's owner
	delayed Delayed
	slots   map[Position]uint16 // of delayed entries, with keys only
	keys    *keyOrder           // of Key_Shared, nil for Shared
	chunks  chunkOwners
	unacked int  // messages held by all consumers
	blocked bool // at the subscription's unacked limit
	opened  bool // a consumer, a key or the subscription was freed since freed was asked
	turn    int  // index of the consumer whose turn it is or was last, −1 at first
	left    int  // messages left of its turn
	memory  Grant
	reserve int // entries that memory is good for
}

// pend is an entry that a consumer holds.
type pend struct {
	c        *Consumer
	messages int32 // unacknowledged ones
	slot     uint16
}

// Bounds of what a subscription that shares may remember.
const (
	turnMessages  = 20     // messages to one consumer before the next gets some (protocol 3.7)
	lookAhead     = 20_000 // entries in replay, beyond which nothing new is read (protocol 3.8)
	lookAheadEach = 2_000  // the same for each consumer
	pendBytes     = 50     // memory of a pending entry, as the budget counts it
	pendStep      = 64     // entries that the budget is asked for at once
)

func newShared(s *Subscription) *shared {
	d := &shared{s: s, pending: map[Position]pend{}, read: s.cursor.MarkDelete(), turn: -1}
	if s.kind == KeyShared {
		d.keys = newKeyOrder(s.sticky, s.outOfOrder)
		d.slots = map[Position]uint16{}
	}
	return d
}

func (d *shared) join(c *Consumer) error {
	if d.keys == nil {
		return nil
	}
	return d.keys.join(c)
}

// seated ends a turn. The next one is of whoever stands behind the last place served: of
// a newcomer, if only those before it were served (watched on 4.0.7).
func (d *shared) seated(*Subscription) { d.left = 0 }

func (d *shared) freed() bool {
	was := d.opened
	d.opened = false
	if d.keys != nil && d.keys.opened {
		d.keys.opened, was = false, true
	}
	return was
}

func (d *shared) plan(v *view) readPlan {
	d.shrink()
	d.left = 0 // every read begins with the next consumer, as in the reference
	permits := 0
	for _, c := range d.s.consumers {
		if c.ready() {
			permits = addPermits(permits, c.permits)
			d.welcome(c)
		}
	}
	d.takeDue(v)
	p := readPlan{scan: d.delayed.Refill(), wakeAt: d.nextDue(v), deaf: permits == 0}
	if permits == 0 || len(p.scan) > 0 {
		return p
	}
	p.entries = d.s.wanted(permits)
	if p.ranges = d.replayable(p.entries); len(p.ranges) > 0 {
		p.replay = true
		return p
	}
	if d.s.paused = d.whyNoneNew(v); d.s.paused == "" {
		p.ranges = d.s.unreadLocked(v, d.read)
	}
	if len(p.ranges) > 0 {
		d.fit(v, &p)
	}
	return p
}

// memoryRetry is when to look again for memory that other subscriptions hold.
const memoryRetry = time.Second

// fit lowers the number of entries to what there is memory for.
func (d *shared) fit(v *view, p *readPlan) {
	if p.entries = min(p.entries, d.grow(p.entries)); p.entries > 0 {
		return
	}
	d.s.paused = "memory for unacknowledged entries is used up"
	if at := v.now.Add(memoryRetry); p.wakeAt.IsZero() || at.Before(p.wakeAt) {
		p.wakeAt = at
	}
}

// welcome lets what waited for a consumer be tried again, which is ready now.
func (d *shared) welcome(c *Consumer) {
	if c.short {
		c.short = false
		d.keys.idle = false
	}
	d.chunks.unpark(c, func(p Position) { d.requeue(p, 0) })
}

// replayable are entries of the replay set that somebody could take now.
func (d *shared) replayable(n int) []Range {
	if d.keys != nil {
		return d.keys.pick(&d.replay, n)
	}
	return d.replay.Pick(n)
}

// whyNoneNew says why new entries have to wait, "" if they need not.
func (d *shared) whyNoneNew(v *view) string {
	waiting := int(d.replay.Len()) + d.chunks.waiting()
	switch {
	case d.blocked:
		return "unacknowledged messages of the subscription are at their limit"
	case d.s.fullLocked(v, d.read):
		return "too many acknowledged holes"
	case waiting >= lookAhead || waiting >= lookAheadEach*len(d.s.consumers):
		return "too many entries wait for the consumer that has to get them"
	}
	return ""
}

func (d *shared) offer(v *view, p *readPlan, e *Entry, g *Grant) bool {
	at := e.Position
	if p.replay && !d.replay.Contains(at) {
		return true // acknowledged or taken meanwhile
	}
	if due := e.Facts.DeliverAt; due > v.ripe && !p.replay {
		p.moved, d.read = true, at.Next()
		d.delay(at, e.Facts.Slot, due)
		return true
	}
	if d.blocked && !p.replay {
		return false // since it was planned: the limit holds for each entry
	}
	c, owner := d.choose(e, p.replay)
	if c == nil {
		return d.postpone(p, e, owner)
	}
	p.moved = true
	if p.replay {
		d.unqueue(at)
	} else {
		d.read = at.Next()
	}
	d.hand(v, c, e, g)
	return true
}

// postpone keeps an entry that nobody can take now. Shared waits with it in its place,
// unless it is a chunk that waits for its owner; with keys it goes on behind it.
func (d *shared) postpone(p *readPlan, e *Entry, owner *Consumer) bool {
	switch {
	case owner != nil:
		d.unqueue(e.Position)
		d.chunks.park(owner, e.Position)
		p.moved = true
	case d.keys == nil:
		return false
	case !p.replay:
		p.moved = true
		d.replay.Add(e.Position)
		d.keys.wait(e.Position, e.Facts.Slot)
	}
	if !p.replay {
		d.read = e.Position.Next()
	}
	return true
}

// hand gives an entry to a consumer and remembers that it holds it.
func (d *shared) hand(v *view, c *Consumer, e *Entry, g *Grant) {
	rest, _ := d.s.leftLocked(e.Position)
	messages := unackedOf(e, rest)
	d.pending[e.Position] = pend{c, int32(messages), e.Facts.Slot}
	if d.keys != nil {
		d.keys.hold(e.Facts.Slot, c)
	}
	d.unacked += messages
	c.unacked += messages
	d.s.deliverLocked(v, c, e, rest, d.s.cursor.Count(e.Position), g)
	each, all := d.limits()
	if each > 0 && c.unacked >= each {
		c.blocked = true
		d.tellLimit(c)
	}
	if all > 0 && d.unacked >= all {
		d.blocked = true
		d.tellLimit(c)
	}
}

// tellLimit says once in the log why nothing more comes: to whoever waits it looks as if
// the broker hung. Statistics tell it as long as it lasts.
func (d *shared) tellLimit(c *Consumer) {
	if d.s.limitTold {
		return
	}
	d.s.limitTold = true
	d.s.topic.broker.opts.Logger.Warn("a consumer gets no more until it acknowledges",
		"topic", d.s.topic.name.String(), "subscription", d.s.name, "consumer", c.opts.Consumer,
		"peer", c.peer.Address(), "unacknowledged", c.unacked, "of all", d.unacked)
}

// choose picks the consumer for an entry, nil if it has to wait: for owner, if that is
// not nil.
func (d *shared) choose(e *Entry, replay bool) (c, owner *Consumer) {
	switch {
	case d.keys != nil:
		return d.keys.choose(e.Position, e.Facts.Slot, replay), nil
	case e.Facts.Chunk.IsChunk():
		return d.chooseForChunk(&e.Facts.Chunk)
	}
	return d.chooseInTurn(int(e.Facts.Messages)), nil
}

// chooseForChunk keeps the chunks of a message together with one consumer.
func (d *shared) chooseForChunk(chunk *Chunk) (c, owner *Consumer) {
	c, ok := d.chunks.owners[chunk.UUID]
	switch {
	case !ok:
		if c = d.chooseInTurn(1); c == nil {
			return nil, nil
		}
		d.chunks.own(chunk.UUID, c)
	case !c.ready():
		return nil, c
	}
	if chunk.Last() {
		delete(d.chunks.owners, chunk.UUID)
	}
	return c, nil
}

// chooseInTurn goes round the consumers of the best priority that has one ready. The
// turn is charged with so many messages.
func (d *shared) chooseInTurn(messages int) *Consumer {
	list := d.s.consumers
	first := slices.IndexFunc(list, (*Consumer).ready)
	if first < 0 {
		return nil
	}
	level := list[first].opts.Priority
	if d.left > 0 && d.turn >= 0 && d.turn < len(list) && list[d.turn].opts.Priority == level && list[d.turn].ready() {
		d.left -= messages
		return list[d.turn]
	}
	next := d.turn + 1
	if next >= len(list) {
		next = 0
	}
	for i := range list {
		at := (next + i) % len(list)
		if c := list[at]; c.opts.Priority == level && c.ready() {
			d.turn, d.left = at, turnMessages-messages
			return c
		}
	}
	return nil
}
