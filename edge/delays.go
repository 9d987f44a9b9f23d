package edge

import (
	"math"
	"time"
)

// How a subscription that shares deals with delayed entries (protocol 3.17). Which they
// are is Delayed's matter.

// takeDue moves delayed entries whose time has come to those that are served first.
func (d *shared) takeDue(v *view) {
	for _, p := range d.delayed.Due(v.ripe, readEntries) {
		if !d.s.cursor.Acked(p) {
			d.requeue(p, d.slots[p])
		}
		delete(d.slots, p)
	}
}

// delay keeps an entry until its time.
func (d *shared) delay(p Position, slot uint16, due int64) {
	if d.keys != nil {
		d.slots[p] = slot
	}
	if out, full := d.delayed.Add(p, due); full {
		delete(d.slots, out)
	}
}

// longestWait is after how long dispatch looks for delayed entries at the latest.
const longestWait = time.Minute

// nextDue is when the next delayed entry wants to go.
func (d *shared) nextDue(v *view) time.Time {
	due, ok := d.delayed.Next()
	if !ok {
		return time.Time{}
	}
	wait := min(max(due-v.ripe, 1), longestWait.Milliseconds()) // the wall clock may be set, too
	return v.now.Add(time.Duration(wait) * time.Millisecond)
}

// found takes a delayed entry in again that a scan came upon.
func (d *shared) found(p Position, f *Facts) {
	if _, held := d.pending[p]; held || d.replay.Contains(p) || !p.Less(d.read) || d.s.cursor.Acked(p) {
		return
	}
	d.delay(p, f.Slot, f.DeliverAt)
}

// scanDelayed finds the delayed entries of ledgers anew, of which too many were
// delayed to keep them all in memory. Those that are due by now are among them.
func (s *Subscription) scanDelayed(ledgers []int64) bool {
	for _, l := range ledgers {
		all := Range{Position{l, 0}, Position{l, math.MaxInt64}}
		err := s.reading(func() error { return s.topic.ledger.Scan(all, s.foundDelayed) })
		if err != nil {
			s.noteDelayed(ledgers)
			s.readFailed(err)
			return false
		}
	}
	return true
}

// foundDelayed takes in what a scan comes upon.
func (s *Subscription) foundDelayed(p Position, f Facts) bool {
	if f.DeliverAt == 0 {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	d, ok := s.dispatch.(*shared)
	if ok {
		d.found(p, &f)
	}
	return ok && s.closed == nil
}

// noteDelayed lets ledgers be scanned again that could not be.
func (s *Subscription) noteDelayed(ledgers []int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d, ok := s.dispatch.(*shared); ok {
		for _, l := range ledgers {
			d.delayed.Note(l, s.topic.broker.opts.Clock().UnixMilli())
		}
	}
}
