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
	chunks  map[string]*Consumer
	unacked int  // messages held by all consumers
	blocked bool // at the subscription's unacked limit
	opened  bool // a consumer, a key or the subscription was freed since freed was asked
	turn    int  // index of the consumer whose turn it is
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
	chunkOwners   = 1_000  // chunked messages that are under way (protocol 3.7)
	lookAhead     = 20_000 // entries in replay, beyond which nothing new is read (protocol 3.8)
	lookAheadEach = 2_000  // the same for each consumer
	pendBytes     = 50     // memory of a pending entry, as the budget counts it
	pendStep      = 64     // entries that the budget is asked for at once
)

func newShared(s *Subscription) *shared {
	d := &shared{s: s, pending: map[Position]pend{}, chunks: map[string]*Consumer{}}
	if s.kind == KeyShared {
		d.keys = newKeyOrder(s.sticky, s.outOfOrder)
		d.slots = map[Position]uint16{}
	}
	d.rewind()
	return d
}

func (d *shared) join(c *Consumer) error {
	if d.keys == nil {
		return nil
	}
	return d.keys.join(c)
}

func (d *shared) leave(c *Consumer) {
	for p, h := range d.pending {
		if h.c == c {
			d.release(p, h)
			d.requeue(p, h.slot)
		}
	}
	for id, owner := range d.chunks {
		if owner == c {
			delete(d.chunks, id)
		}
	}
	if d.keys != nil {
		d.keys.leave(c)
	}
	d.unblock()
}

// seated begins the turns anew with the first consumer.
func (d *shared) seated(s *Subscription) { d.turn, d.left = max(len(s.consumers)-1, 0), 0 }

// requeue puts an entry among those that are served first. With keys it makes a
// running read stale, or later entries of its key would overtake it.
func (d *shared) requeue(p Position, slot uint16) {
	if d.replay.Add(p) && d.keys != nil {
		d.keys.wait(p, slot)
		d.s.generation++
	}
}

// unqueue takes an entry out of them.
func (d *shared) unqueue(p Position) {
	if d.replay.Remove(p) && d.keys != nil {
		d.keys.unwait(p)
	}
}

// release forgets that a consumer holds an entry.
func (d *shared) release(p Position, h pend) {
	delete(d.pending, p)
	d.settle(h.c, int(h.messages))
	if d.keys != nil {
		d.keys.free(h.slot)
	}
}

// settle lowers the counts of what is unacknowledged.
func (d *shared) settle(c *Consumer, messages int) {
	d.unacked -= messages
	c.unacked -= messages
	if limit := d.s.topic.broker.opts.UnackedPerConsumer; c.blocked && c.unacked <= limit/2 {
		d.open(c)
	}
}

// open lets a blocked consumer go on with the permits that came meanwhile.
func (d *shared) open(c *Consumer) {
	c.blocked, d.opened = false, true
	c.permits = addPermits(c.permits, c.aside)
	c.aside = 0
}

func (d *shared) unblock() {
	if d.blocked && d.unacked < d.s.topic.broker.opts.UnackedPerSubscription/2 {
		d.blocked, d.opened = false, true
	}
}

func (d *shared) freed() bool {
	was := d.opened || d.keys != nil
	d.opened = false
	return was
}

func (d *shared) plan(v *view) readPlan {
	d.shrink()
	d.left = 0 // every read begins with the next consumer, as in the reference
	permits := 0
	for _, c := range d.s.consumers {
		if c.ready() {
			permits = addPermits(permits, c.permits)
		}
	}
	d.takeDue(v)
	p := readPlan{scan: d.delayed.Refill(), wakeAt: d.nextDue(v)}
	if permits == 0 || len(p.scan) > 0 {
		return p
	}
	p.entries = d.s.wanted(permits)
	if p.ranges = d.replayable(p.entries); len(p.ranges) > 0 {
		p.replay = true
		return p
	}
	if d.s.paused = d.whyNoneNew(); d.s.paused == "" {
		p.ranges = d.s.unreadLocked(v, d.read)
	}
	return p
}

// takeDue moves delayed entries whose time has come to those that are served first.
func (d *shared) takeDue(v *view) {
	for _, p := range d.delayed.Due(v.wall, readEntries) {
		if !d.s.cursor.Acked(p) {
			d.requeue(p, d.slots[p])
		}
		delete(d.slots, p)
	}
}

// delay keeps an entry until its time.
func (d *shared) delay(p Position, slot uint16, due int64) {
	d.delayed.Add(p, due)
	if d.keys != nil {
		d.slots[p] = slot
	}
}

// nextDue is when the next delayed entry wants to go.
func (d *shared) nextDue(v *view) time.Time {
	due, ok := d.delayed.Next()
	if !ok {
		return time.Time{}
	}
	return v.now.Add(time.Duration(max(due-v.wall, 1)) * time.Millisecond)
}

// replayable are entries of the replay set that somebody could take now.
func (d *shared) replayable(n int) []Range {
	if d.keys != nil {
		return d.keys.pick(&d.replay, n)
	}
	return d.replay.Pick(n)
}

// whyNoneNew says why new entries have to wait, "" if they need not.
func (d *shared) whyNoneNew() string {
	waiting := int(d.replay.Len())
	switch {
	case d.blocked:
		return "unacknowledged messages of the subscription are at their limit"
	case d.s.cursor.Full():
		return "too many acknowledged holes"
	case waiting >= lookAhead || waiting >= lookAheadEach*len(d.s.consumers):
		return "too many entries wait for the owner of their key"
	case !d.grow():
		return "memory for unacknowledged entries is used up"
	}
	return ""
}

// grow reserves memory for what a read may add to the pending entries.
func (d *shared) grow() bool {
	need := len(d.pending) + int(d.replay.Len()) + readEntries
	for need > d.reserve {
		g, ok := d.s.topic.broker.budget.TryTake(ShareSubscription, pendStep*pendBytes)
		if !ok {
			return false
		}
		d.memory.Join(g)
		d.reserve += pendStep
	}
	return true
}

// shrink gives memory back that is not needed any more.
func (d *shared) shrink() {
	need := len(d.pending) + int(d.replay.Len()) + readEntries + pendStep
	if steps := (d.reserve - need) / pendStep; steps > 1 {
		d.memory.Split(int64(steps * pendStep * pendBytes)).Release()
		d.reserve -= steps * pendStep
	}
}

func (d *shared) offer(v *view, p *readPlan, e *Entry, g *Grant) bool {
	at := e.Position
	if p.replay && !d.replay.Contains(at) {
		return true // acknowledged or taken meanwhile
	}
	if due := e.Facts.DeliverAt; due > v.wall && !p.replay {
		p.moved, d.read = true, at.Next()
		d.delay(at, e.Facts.Slot, due)
		return true
	}
	c := d.choose(e, p.replay)
	if c == nil {
		return d.postpone(p, e)
	}
	p.moved = true
	if p.replay {
		d.unqueue(at)
	} else {
		d.read = at.Next()
	}
	d.hand(c, e, g)
	return true
}

// postpone keeps an entry that nobody can take now. Shared waits with it in its place;
// with keys the others go on behind it.
func (d *shared) postpone(p *readPlan, e *Entry) bool {
	if d.keys == nil {
		return false
	}
	if !p.replay {
		p.moved, d.read = true, e.Position.Next()
		d.requeue(e.Position, e.Facts.Slot)
	}
	return true
}

// hand gives an entry to a consumer and remembers that it holds it.
func (d *shared) hand(c *Consumer, e *Entry, g *Grant) {
	rest := d.s.cursor.Rest(e.Position)
	messages := unackedOf(e, rest)
	d.pending[e.Position] = pend{c, int32(messages), e.Facts.Slot}
	if d.keys != nil {
		d.keys.hold(e.Facts.Slot, c)
	}
	d.unacked += messages
	c.unacked += messages
	d.s.deliverLocked(c, e, rest, d.s.cursor.Count(e.Position), g)
	o := &d.s.topic.broker.opts
	if d.s.durable && o.UnackedPerConsumer > 0 && c.unacked >= o.UnackedPerConsumer {
		c.blocked = true
	}
	if d.s.durable && o.UnackedPerSubscription > 0 && d.unacked >= o.UnackedPerSubscription {
		d.blocked = true
	}
}

// choose picks the consumer for an entry, nil if it has to wait.
func (d *shared) choose(e *Entry, replay bool) *Consumer {
	if d.keys != nil {
		return d.keys.choose(e.Position, e.Facts.Slot, replay)
	}
	if e.Facts.Chunk.IsChunk() {
		return d.chooseForChunk(&e.Facts.Chunk)
	}
	return d.chooseInTurn()
}

// chooseForChunk keeps the chunks of a message together with one consumer.
func (d *shared) chooseForChunk(chunk *Chunk) *Consumer {
	c, ok := d.chunks[chunk.UUID]
	if !ok {
		if c = d.chooseInTurn(); c == nil || len(d.chunks) >= chunkOwners {
			return c
		}
		d.chunks[chunk.UUID] = c
	}
	if !c.ready() {
		return nil
	}
	if chunk.Last() {
		delete(d.chunks, chunk.UUID)
	}
	return c
}

// chooseInTurn goes round the consumers of the best priority that has one ready.
func (d *shared) chooseInTurn() *Consumer {
	list := d.s.consumers
	first := slices.IndexFunc(list, (*Consumer).ready)
	if first < 0 {
		return nil
	}
	level := list[first].opts.Priority
	if d.left > 0 && d.turn < len(list) && list[d.turn].opts.Priority == level && list[d.turn].ready() {
		d.left--
		return list[d.turn]
	}
	for i := 1; i <= len(list); i++ {
		at := (d.turn + i) % len(list)
		if c := list[at]; c.opts.Priority == level && c.ready() {
			d.turn, d.left = at, turnMessages-1
			return c
		}
	}
	return nil
}

func (d *shared) acked(p Position, out AckOutcome, by *Consumer) {
	h, held := d.pending[p]
	switch {
	case held && out.Entry:
		d.release(p, h)
	case held:
		freed := out.FreedOf(int(h.messages))
		h.messages -= int32(freed)
		d.pending[p] = h
		d.settle(h.c, freed)
	case out.Entry:
		d.unqueue(p)
		d.delayed.Remove(p)
		delete(d.slots, p)
	}
	d.unblock()
}

func (d *shared) skipTo(p Position) {
	for at, h := range d.pending {
		if !p.Less(at) {
			d.release(at, h)
		}
	}
	d.replay.RemoveUpTo(p)
	if d.keys != nil {
		d.keys.unwaitIn(Range{Position{}, p})
	}
	d.unblock()
}

func (d *shared) lost(r Range) {
	for p, h := range d.pending {
		if r.Contains(p) {
			d.release(p, h)
		}
	}
	d.replay.RemoveRange(r)
	if d.keys != nil {
		d.keys.unwaitIn(r)
	}
	d.unblock()
}

// found takes a delayed entry in again that a scan came upon.
func (d *shared) found(p Position, f *Facts) {
	if _, held := d.pending[p]; held || d.replay.Contains(p) || !p.Less(d.read) || d.s.cursor.Acked(p) {
		return
	}
	d.delay(p, f.Slot, f.DeliverAt)
}

func (d *shared) rewind() {
	d.clear()
	d.s.generation++
}

// clear forgets all deliveries; only without consumers, or when they are told to
// come back.
func (d *shared) clear() {
	for p, h := range d.pending {
		d.release(p, h)
	}
	d.replay.Clear()
	d.delayed.Clear()
	clear(d.slots)
	clear(d.chunks)
	if d.keys != nil {
		d.keys.clear()
	}
	d.unacked, d.blocked = 0, false
	d.read = d.s.cursor.MarkDelete()
	d.memory.Release()
	d.memory, d.reserve = Grant{}, 0
}
