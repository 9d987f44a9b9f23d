package edge

import (
	"math"
	"runtime"
	"time"
)

// States of a subscription's dispatch.
const (
	dispatchIdle int32 = iota
	dispatchRunning
	dispatchAgain
	dispatchStopped
)

// Bounds of one read for dispatch. The bytes are what a slow link can be given at
// once; a single larger entry still comes alone.
const (
	readEntries = 100
	readBytes   = 128 << 10
	readRanges  = 32
)

// readRetry is the pause after a read that failed.
const readRetry = time.Second

// dispatcher is one of the two families: single and shared. It is called with the
// subscription locked and does nothing but decide.
type dispatcher interface {
	// join admits a consumer, or says why not.
	join(c *Consumer) error
	// leave takes a consumer out and keeps what it held for the others.
	leave(c *Consumer)
	// seated is called after the list of consumers has changed.
	seated(s *Subscription)
	// plan says what to read.
	plan(v *view) readPlan
	// offer gives an entry to a consumer. It returns false when reading has to stop there.
	offer(v *view, p *readPlan, e *Entry, g *Grant) bool
	// pass goes by an entry that is acknowledged in a transaction.
	pass(e *Entry, replay bool)
	// taker picks who is to get a message that nobody keeps, nil if it cannot be taken.
	taker(e *Entry) *Consumer
	// acked is told of an acknowledgement; by may be nil.
	acked(p Position, out AckOutcome, by *Consumer)
	// skipTo lets everything up to p be forgotten: cumulative acks, seeks, lost ranges.
	skipTo(p Position)
	// lost lets entries be forgotten that are gone or damaged.
	lost(r Range)
	// clear forgets everything about delivered entries.
	clear()
	// freed reports whether acknowledgements since the last call may let entries go
	// that had to wait.
	freed() bool
	// fill tells what stats show of it.
	fill(st *SubscriptionStats)
}

// view is what a decision is made on.
type view struct {
	now   time.Time
	wall  int64 // ms since 1970
	ripe  int64 // what is to be delivered at that time may go
	spans Spans
	limit Position // the last position that may be read
	hand  *hand    // who decides, nil for a publisher
}

// readPlan is what a dispatcher wants from the ledger.
type readPlan struct {
	form    *compacted // to be read from instead of the topic, nil for the topic
	ranges  []Range
	entries int
	replay  bool
	deaf    bool      // nobody could take a new entry now
	moved   bool      // set by offer: something came forward
	scan    []int64   // ledgers whose delayed entries have to be found again first
	wakeAt  time.Time // when to look again though nothing happens; zero for never
}

// wake has the subscription dispatched, or makes who does so look again. It never
// blocks and needs no lock of the subscription.
func (s *Subscription) wake() {
	for {
		switch st := s.state.Load(); st {
		case dispatchIdle:
			if s.state.CompareAndSwap(dispatchIdle, dispatchRunning) {
				s.topic.broker.crew.add(s)
				return
			}
		case dispatchRunning:
			if s.state.CompareAndSwap(dispatchRunning, dispatchAgain) {
				return
			}
		default:
			return
		}
	}
}

// run dispatches until nothing is wanted, and returns true where it is time to let
// others have their turn first.
func (s *Subscription) run(h *hand) (more bool) {
	s.working.Lock()
	s.hand = h
	defer func() {
		s.hand = nil // what it has room for goes with it
		s.working.Unlock()
	}()
	for n := 0; ; {
		s.state.Store(dispatchRunning)
		for s.step() {
			if n++; n < maxSteps && len(h.fed) < maxFed {
				continue
			}
			n = 0
			h.send()
			if !h.away {
				return true
			}
		}
		if s.state.CompareAndSwap(dispatchRunning, dispatchIdle) {
			return false
		}
	}
}

// end waits for the dispatch and lets it not start again; letGo came before.
func (s *Subscription) end() {
	for s.state.Load() != dispatchStopped {
		s.working.Lock() // free when it does not run, or is about to
		s.tryEnd()
		s.working.Unlock()
		runtime.Gosched()
	}
}

// tryEnd lets the dispatch not start again and returns true, if it does not run now.
func (s *Subscription) tryEnd() bool { return s.state.CompareAndSwap(dispatchIdle, dispatchStopped) }

// step does one round of plan, read and assign. It returns false when there is nothing
// to do until the next wake.
func (s *Subscription) step() bool {
	h := s.hand
	v, p := &h.view, &h.plan
	s.mu.Lock()
	s.deaf.Store(false) // before it is looked at what there is
	*v = s.viewLocked(h)
	ok := s.planLocked(v, p)
	s.deaf.Store(p.deaf)
	generation := s.generation
	s.mu.Unlock()
	if len(p.scan) > 0 {
		return s.scanDelayed(p.scan)
	}
	if !ok {
		return false
	}
	var err error
	h.batch, h.grant, err = s.fetch(v, p)
	if p.superseded(err) {
		return true
	}
	if err != nil {
		s.readFailed(err)
		return false
	}
	s.mu.Lock()
	*v = s.viewLocked(h)
	more := s.assignLocked(v, p, &h.batch, generation, &h.grant)
	s.mu.Unlock()
	h.grant.Release()
	h.forget()
	return more
}

func (s *Subscription) viewLocked(h *hand) view {
	v := s.boundsLocked()
	v.hand = h
	v.now, v.wall = time.Now(), s.topic.broker.opts.Clock().UnixMilli()
	v.ripe = v.wall
	if !s.topic.policies.Load().delays() {
		v.ripe = math.MaxInt64
	}
	return v
}

// boundsLocked is a view without the time.
func (s *Subscription) boundsLocked() view {
	v := view{spans: s.topic.ledger.Spans()}
	v.limit = s.topic.readable(v.spans)
	if s.follow != nil {
		v.limit = Min(v.limit, *s.follow.marked.Load())
	}
	return v
}

// planLocked says what to read now, and arms the timer.
func (s *Subscription) planLocked(v *view, p *readPlan) bool {
	if s.closed != nil || s.pause != nil || len(s.consumers) == 0 {
		*p = readPlan{deaf: true}
		return false
	}
	s.paused = ""
	s.tellEndLocked(v)
	*p = s.dispatch.plan(v)
	wants := len(p.ranges) > 0 && p.entries > 0 && s.pacedLocked(v, p)
	s.wakeAtLocked(p.wakeAt, v.now)
	return wants
}

// wakeAtLocked arms the subscription's one timer.
func (s *Subscription) wakeAtLocked(at, now time.Time) {
	switch {
	case at.IsZero() || s.closed != nil:
		return
	case s.timer == nil:
		s.timer = time.AfterFunc(at.Sub(now), s.wake)
	default:
		s.timer.Reset(at.Sub(now))
	}
}

// assignLocked hands a batch out. A batch that was read before a seek or a rewind is
// dropped: what it holds is read again.
func (s *Subscription) assignLocked(v *view, p *readPlan, b *Batch, generation uint64, g *Grant) bool {
	if s.closed != nil || s.pause != nil {
		return false
	}
	if s.generation != generation {
		return true
	}
	if p.form != nil {
		return s.assignCompactedLocked(v, p, b, g)
	}
	if len(b.Lost) > 0 {
		s.loseLocked(v, b.Lost)
		p.moved = true
	}
	for i := range b.Entries {
		e := &b.Entries[i]
		switch {
		case s.cursor.Acked(e.Position): // since it was planned
			s.dispatch.acked(e.Position, AckOutcome{Entry: true}, nil)
			p.moved = true
		case e.Facts.Marker != 0 || e.Facts.InTxn && s.topic.Aborted(e.Position, &e.Facts):
			s.ackLocked(v, nil, e.Position, nil)
			s.changedLocked(nil)
			p.moved = true
		case s.passesLocked(e.Position):
			s.dispatch.pass(e, p.replay)
			p.moved = true
		default:
			s.average += (float64(e.Facts.Messages) - s.average) / 16
			if !s.dispatch.offer(v, p, e, g) {
				return p.moved
			}
		}
	}
	return p.moved // without progress the next wake tells when to look again
}

// loseLocked lets ranges that are gone or damaged count as acknowledged.
func (s *Subscription) loseLocked(v *view, lost []Range) {
	s.topic.counts.lost.Add(int64(len(lost)))
	s.topic.broker.counts.lost.Add(int64(len(lost)))
	s.topic.broker.opts.Logger.Warn("entries are gone or damaged and are skipped",
		"topic", s.topic.name.String(), "subscription", s.name, "first", lost[0].First.String(),
		"last", lost[len(lost)-1].Last.String())
	s.cursor.Lost(v.spans, lost)
	for _, r := range lost {
		s.dispatch.lost(r)
	}
	s.changedLocked(nil)
}

// wanted is how many entries so many permits are good for.
func (s *Subscription) wanted(permits int) int {
	n := math.Ceil(float64(permits) / max(s.average, 1))
	return int(min(max(n, 1), readEntries))
}

// unreadLocked are the unacknowledged ranges from a position up to the limit.
func (s *Subscription) unreadLocked(v *view, from Position) []Range {
	if v.limit.Less(from) {
		return nil
	}
	ranges := s.cursor.Unacked(v.hand.ranges[:0], v.spans, from, readRanges)
	v.hand.ranges = ranges
	for i := range ranges {
		if v.limit.Less(ranges[i].First) {
			return ranges[:i]
		}
		ranges[i].Last = Min(ranges[i].Last, v.limit)
	}
	return ranges
}

// fullLocked reports whether new entries have to wait because of the bound of holes.
// Of what fills the first of them, one read after the other is let through: the next
// when all of the last is acknowledged.
func (s *Subscription) fullLocked(v *view, read Position) bool {
	if !s.cursor.Full() {
		return false
	}
	p, ok := s.cursor.FirstUnacked(v.spans)
	return !ok || p.Less(read)
}

// deliverLocked hands an entry to a consumer. The caller has recorded what it holds.
func (s *Subscription) deliverLocked(v *view, c *Consumer, e *Entry, rest []uint64, count uint32, g *Grant) {
	s.countLocked(c, unackedOf(e, rest), len(e.Data), count > 0)
	s.chargeLocked(unackedOf(e, rest), len(e.Data))
	c.lastSent.Store(v.wall)
	s.lastSent.Store(v.wall)
	c.recv.Deliver(Delivery{
		Entry: *e, Redelivered: count, Rest: rest, Epoch: c.deliveredEpoch(),
		Grant: g.Split(int64(len(e.Data))),
	})
	if v.hand != nil { // else whoever has called it sends it off
		v.hand.feed(c.recv)
	}
}

// countLocked counts a delivery, or with negative numbers takes one back.
func (s *Subscription) countLocked(c *Consumer, messages, bytes int, again bool) {
	c.take(messages, bytes)
	s.counts.out(int64(messages), int64(bytes))
	s.topic.counts.out(int64(messages), int64(bytes))
	s.topic.broker.counts.out(int64(messages), int64(bytes))
	if again {
		c.redelivered.Add(int64(messages))
		s.redelivers.Add(int64(messages))
	}
}

func (c *Consumer) deliveredEpoch() int64 {
	if c.opts.Kind.shares() {
		return -1
	}
	return c.epoch
}

// unackedOf is the number of messages of an entry that are not acknowledged.
func unackedOf(e *Entry, rest []uint64) int {
	if rest == nil {
		return int(e.Facts.Messages)
	}
	return min(ones(rest), int(e.Facts.Messages))
}

// tellEndLocked tells the consumers of a terminated topic, each once, that all is
// acknowledged.
func (s *Subscription) tellEndLocked(v *view) {
	if !s.topic.terminatedNow.Load() || s.cursor.Backlog(v.spans) > 0 {
		return
	}
	for _, c := range s.consumers {
		if !c.ended {
			c.ended = true
			c.recv.EndReached()
		}
	}
}
