package uplink

// planner decides what leaves next and how. It is pure: the forwarder does what it
// says and tells it what happened. It keeps the rules on which exactly-once rests:
//
//   - A batch leaves only when its bounds are synced, and always with the same ones.
//   - A single leaves only below a synced mark, and what may have left singly always
//     goes singly again.
//   - Batches and singles change places only when nothing is unanswered.
//   - The client closes a batch when it is full and the next message comes, or by a
//     flush. So batches of exactly the full count may follow each other; a shorter
//     one is flushed, and behind a flush nothing is sent until all is answered.
type planner struct {
	set    sizes
	name   func(epoch uint64) string // producer name of an epoch
	plan   plan
	window window

	session *identity // of the open producer, nil without one
	family  string    // primitive schema that the session has used
	batches bool      // what is unanswered are batches, not singles
	open    int       // messages in a full batch that waits for the next message
	closing bool      // flushed
	parking bool      // the head is on its way to the parking topic
	hold    bool      // nothing new is sent
	linger  bool      // an open batch is all that is left: more may come that closes it
	patient bool      // it was waited for long enough
	starved bool      // a planned batch waits for messages of which the core has more
	dirty   bool      // the plan has to be synced
	saving  bool      // a sync is under way
}

// sizes are the bounds of sends.
type sizes struct {
	count      int    // messages of a batch at most
	batchBytes int    // aim of a batch
	hardBytes  int    // what no batch exceeds
	singles    int    // singles unanswered at most
	flying     int    // messages unanswered at most
	step       uint64 // how far the mark of singles is raised ahead
}

type verb int

const (
	doWait  verb = iota // nothing to do until something happens
	doOpen              // open a producer of step.by, ending the present one
	doSave              // sync the plan
	doSend              // hand the next step.n messages to the producer
	doFlush             // close the open batch
	doPark              // park the next item
)

// step is what the forwarder is to do.
type step struct {
	do    verb
	n     int
	batch bool     // of send: one batch of n; else n singles
	flush bool     // of send: close the batch behind it
	by    identity // of open
}

// next decides. A step counts as done, except that save waits for saved, open for
// opened, and park for parked.
func (p *planner) next() step {
	p.starved, p.linger = false, false
	if p.dirty && !p.saving && p.session != nil {
		return p.startSave()
	}
	switch rest := p.window.unsent(); {
	case p.closing || p.parking:
		return step{}
	case len(rest) == 0 || p.hold:
		return p.drain()
	case rest[0].park != "":
		return p.parkNext()
	default:
		return p.forward(&rest[0])
	}
}

func (p *planner) startSave() step {
	p.dirty, p.saving = false, true
	for i := range p.plan.open {
		p.plan.open[i].saving = p.plan.open[i].last + 1
	}
	return step{do: doSave}
}

// drain waits until nothing is unanswered. A full batch that is all that is left has
// to be flushed, after which nothing may follow until its receipt; so it is given a
// moment in which the next batch may come and close it.
func (p *planner) drain() step {
	switch {
	case p.open == 0 || p.window.unanswered > p.open:
		return step{}
	case p.hold || p.patient:
		p.open, p.closing = 0, true
		return step{do: doFlush}
	case !p.saving && !p.dirty:
		p.linger = true
	}
	return step{}
}

func (p *planner) parkNext() step {
	if p.window.unanswered > 0 {
		return p.drain()
	}
	p.window.send(1)
	p.parking = true
	return step{do: doPark}
}

// forward deals with a message that goes to the cloud.
func (p *planner) forward(it *item) step {
	s := p.plan.find(it.first)
	if s != nil && !s.batch && it.first >= s.left && p.backlog() && s.by.producer == p.current() {
		if p.window.unanswered > 0 {
			return p.drain()
		}
		p.plan.cut(it.first)
		s = nil
	}
	switch {
	case s == nil:
		return p.plot(it)
	case !p.fits(s, it):
		return p.reopen(s.by)
	case s.batch:
		return p.sendBatch(s)
	default:
		return p.sendSingles(s)
	}
}

// current is the producer name that new segments have.
func (p *planner) current() string { return p.name(p.plan.epoch) }

// fits reports whether the session can send a segment.
func (p *planner) fits(s *segment, it *item) bool {
	return p.session != nil && p.session.producer == s.by.producer && p.session.target == s.by.target &&
		(!s.batch || s.by.count <= p.session.count || s.last-s.first < uint64(p.session.count)) &&
		(it.family == "" || p.family == "" || it.family == p.family)
}

// reopen asks for another producer once nothing is unanswered.
func (p *planner) reopen(by identity) step {
	if p.window.unanswered > 0 {
		return p.drain()
	}
	return step{do: doOpen, by: by}
}

// sendBatch sends a planned batch. Its messages may not all be there yet after a
// restart; then there is nothing to do until they are.
func (p *planner) sendBatch(s *segment) step {
	if s.durable <= s.last {
		return step{} // its save is under way; a full batch before it stays open
	}
	if p.window.unanswered > 0 && !p.batches {
		return step{}
	}
	n, complete := p.members(s)
	if !complete {
		p.starved = p.window.unanswered == 0
		return p.drain()
	}
	if p.window.unanswered > 0 && p.window.unanswered+n > p.set.flying {
		return p.drain()
	}
	short := n < p.session.count
	p.window.send(n)
	p.batches, p.closing, p.open, p.patient = true, short, n, false
	if short {
		p.open = 0
	}
	p.family = p.window.items[p.window.sent-1].family
	return step{do: doSend, n: n, batch: true, flush: short}
}

// members counts the unsent messages of a segment, and reports whether its end is there.
func (p *planner) members(s *segment) (n int, complete bool) {
	rest := p.window.unsent()
	for n < len(rest) && rest[n].first <= s.last {
		n++
	}
	return n, n < len(rest) || n > 0 && rest[n-1].last == s.last
}

// sendSingles sends what lies below the synced mark.
func (p *planner) sendSingles(s *segment) step {
	if p.window.unanswered > 0 && p.batches {
		return p.drain()
	}
	n := p.loose(s)
	if n == 0 {
		return step{}
	}
	last := &p.window.unsent()[n-1]
	s.left = max(s.left, last.last+1)
	if s == &p.plan.open[len(p.plan.open)-1] && s.by.producer == p.current() && s.last-last.last < p.set.step/2 {
		s.last += p.set.step
		p.dirty = true
	}
	p.window.send(n)
	p.batches = false
	p.family = last.family
	// A message with a schema needs a batch of one, or its version is lost; then the
	// batch has to be closed.
	p.closing = last.schema
	return step{do: doSend, n: n, flush: p.closing}
}

// loose counts the singles that may be sent now: below the mark, within the bound, and
// of those with a schema one, alone.
func (p *planner) loose(s *segment) int {
	n := 0
	for _, it := range p.window.unsent() {
		if it.first >= s.durable || it.park != "" || p.window.unanswered+n >= p.set.singles {
			break
		}
		if it.schema {
			if n == 0 {
				n = 1
			}
			break
		}
		n++
	}
	return n
}

// plot lays out segments for messages that have none yet.
func (p *planner) plot(it *item) step {
	by := identity{p.current(), p.plan.target, p.fullCount()}
	if p.session == nil || p.session.producer != by.producer || p.session.target != by.target {
		return p.reopen(by)
	}
	if p.backlog() && (p.window.unanswered == 0 || p.batches) {
		if p.window.unanswered == 0 && !near(p.session.count, by.count) {
			return p.reopen(by)
		}
		if segments := p.batchUp(*p.session); len(segments) > 0 {
			p.plan.open = append(p.plan.open, segments...)
			return p.saveNow()
		}
	}
	if p.window.unanswered > 0 && p.batches {
		return p.drain()
	}
	p.mark(it.first, *p.session)
	return p.saveNow()
}

func (p *planner) saveNow() step {
	p.dirty = true
	if p.saving {
		return step{} // it follows
	}
	return p.startSave()
}

// mark lets singles leave from an index on, once it is synced.
func (p *planner) mark(first uint64, by identity) {
	last := first + p.set.step - 1
	if n := len(p.plan.open); n > 0 {
		if s := &p.plan.open[n-1]; !s.batch && s.by == by {
			s.last = last
			return
		}
	}
	p.plan.open = append(p.plan.open, segment{first: first, last: last, by: by, left: first})
}
