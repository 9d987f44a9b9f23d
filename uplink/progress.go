package uplink

// What happens to a plan: here the planner is told.

// load takes over a stored plan and says who sends from now on. Everything that was
// open may have left. The epoch rises when the old names would mislead: another
// device or another target.
func (p *planner) load(stored plan, edgeID, target string) {
	p.plan = stored
	if stored.edge != edgeID || stored.target != target {
		if stored.edge != "" {
			p.plan.epoch++
		}
		p.plan.edge, p.plan.target = edgeID, target
	}
}

// begin is told the first message that the core has, before it is added. It reports
// whether the cursor was set back, so that names have to change: what is sent again
// would be dropped as a duplicate.
func (p *planner) begin(entryFirst, entryLast uint64) (setBack bool) {
	if entryLast < p.plan.next {
		p.renew()
		p.plan.next = entryFirst
		return true
	}
	p.plan.settle(max(entryFirst, p.plan.next))
	if len(p.plan.open) == 0 {
		return false
	}
	if s := &p.plan.open[0]; s.batch && s.first < p.plan.next {
		p.loosen(s) // its head is gone: as a whole it can go no more
		s.first = p.plan.next
	}
	return false
}

// renew begins a new epoch: everything that is not settled is planned anew and goes
// under another name.
func (p *planner) renew() {
	p.plan.epoch++
	p.plan.open = nil
	for i := range p.window.items {
		p.window.items[i].tried = false
	}
}

// loosen makes singles of a batch, which have to go singly from now on. They may not
// leave before that is synced.
func (p *planner) loosen(s *segment) {
	s.batch, s.durable, s.saving, s.left = false, s.first, 0, s.last+1
	p.dirty = true
}

// opened is told that a producer is there.
func (p *planner) opened(by identity) {
	p.session, p.family = &by, ""
}

// lost is told that the producer is gone, whatever the reason. All that was unanswered
// has ended so.
func (p *planner) lost() {
	p.session = nil
	if p.parking {
		return
	}
	p.window.lost()
	p.open, p.closing = 0, false
}

// saved is told that the plan has been synced.
func (p *planner) saved() {
	p.saving = false
	for i := range p.plan.open {
		s := &p.plan.open[i]
		s.durable, s.saving = max(s.durable, s.saving), 0
	}
}

// unsaved is told that a sync has failed.
func (p *planner) unsaved() {
	p.saving, p.dirty = false, true
	for i := range p.plan.open {
		p.plan.open[i].saving = 0
	}
}

// verdict is what a receipt means.
type verdict int

const (
	stored    verdict = iota // it is in the cloud now
	duplicate                // it was there already, from a try that had ended unanswered
	conflict                 // the cloud says duplicate of what was never sent before
	unknown                  // nothing waits for it
)

// answered is told of a receipt.
func (p *planner) answered(index uint64, dup bool) verdict {
	it := p.window.at(index)
	if it == nil || it.answered {
		return unknown
	}
	if dup && !it.tried && !p.mayHaveLeft(it.first) {
		return conflict
	}
	p.window.answer(it)
	p.quiet()
	if dup {
		return duplicate
	}
	return stored
}

// mayHaveLeft reports whether an earlier life of this program may have sent an index.
func (p *planner) mayHaveLeft(index uint64) bool {
	s := p.plan.find(index)
	return s != nil && s.inherited && index < s.left
}

// aside is the item that is being parked: the last one that was taken up.
func (p *planner) aside() *item { return &p.window.items[p.window.sent-1] }

// parked is told that it is durable on the parking topic.
func (p *planner) parked() {
	p.parking = false
	p.window.answer(p.aside())
	p.quiet()
}

// unparked is told that parking has failed; it is tried again.
func (p *planner) unparked() {
	p.parking = false
	p.window.sent--
	p.window.unanswered--
}

// quiet lifts what held only as long as something was unanswered.
func (p *planner) quiet() {
	if p.window.unanswered == 0 {
		p.open, p.closing = 0, false
	}
}

// refused is told that the cloud will never take a message, or the batch that it is
// in. A single is parked. A batch becomes singles, so that the one at fault shows, if
// nothing can have been sent behind it. If something can (late), its messages could
// only come behind that, where their ids would pass for duplicates: then everything
// unsettled goes under a new name, in smaller batches, and refused returns true. The
// producer is gone; lost comes as well.
func (p *planner) refused(index uint64, reason string, late bool) (renewed bool) {
	s := p.plan.find(index)
	switch {
	case s != nil && s.batch && late:
		p.shrink(s)
		p.renew()
		return true
	case s != nil && s.batch:
		p.loosen(s)
		return false
	}
	for i := p.window.head; i < len(p.window.items); i++ {
		if it := &p.window.items[i]; it.first == index {
			it.park = reason
			break
		}
	}
	return false
}

// shrink makes batches smaller than one that was refused.
func (p *planner) shrink(s *segment) {
	bytes := 0
	for _, it := range p.window.items[p.window.head:] {
		if s.has(it.first) {
			bytes += it.size
		}
	}
	p.set.hardBytes = max(min(p.set.hardBytes, bytes/2), 1)
	p.set.batchBytes = min(p.set.batchBytes, p.set.hardBytes)
}

// settle lets the head of the line leave as far as it is answered, a batch only as a
// whole, and hands each item to gone.
func (p *planner) settle(gone func(*item)) (moved bool) {
	for p.window.head < p.window.sent {
		n := p.settled()
		if n == 0 {
			break
		}
		for range n {
			it := p.window.pop()
			p.plan.next = it.last + 1
			gone(&it)
		}
		moved = true
	}
	p.plan.settle(p.plan.next)
	return moved
}

// settled counts the items that leave together next: one single, or all of a batch.
func (p *planner) settled() int {
	flying := p.window.items[p.window.head:p.window.sent]
	if !flying[0].answered {
		return 0
	}
	s := p.plan.find(flying[0].first)
	if s == nil || !s.batch {
		return 1
	}
	n := 0
	for n < len(flying) && flying[n].first <= s.last {
		if !flying[n].answered {
			return 0
		}
		n++
	}
	return n
}

// widest is the longest open segment, in messages: the window must hold it whole.
func (p *planner) widest() int {
	n := uint64(0)
	for _, s := range p.plan.open {
		if s.batch {
			n = max(n, s.last-s.first+1)
		}
	}
	return int(n)
}

// headBytes is what has to reach the cloud before the next receipt can come.
func (p *planner) headBytes() int {
	w := &p.window
	bytes := 0
	var s *segment
	for i := w.head; i < w.sent; i++ {
		it := &w.items[i]
		if it.answered {
			continue
		}
		if s == nil {
			if s = p.plan.find(it.first); s == nil || !s.batch {
				return it.size
			}
		}
		if it.first > s.last {
			break
		}
		bytes += it.size
	}
	return bytes
}
