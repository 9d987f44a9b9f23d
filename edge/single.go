package edge

import "time"

// single dispatches to one consumer at a time: Exclusive, and Failover, of which
// Exclusive is the case with one seat. It keeps no pending entries: redelivery is
// reading anew, and the order is the topic's.
type single struct {
	s        *Subscription
	read     Position // the next entry to read
	active   *Consumer
	next     *Consumer // takes over at switchAt
	switchAt time.Time
}

func newSingle(s *Subscription) *single { return &single{s: s} }

func (d *single) join(c *Consumer) error { return nil }

func (d *single) leave(c *Consumer) {
	if d.active == c {
		d.active = nil
	}
	if d.next == c {
		d.next = nil
	}
}

// seated chooses the active consumer anew. A living one is replaced after the
// failover delay, so that what it is just acknowledging does not come twice; a seat
// that is empty is filled at once (4.0.7 waits for the delay there too), unless a seek
// has emptied it: who was sent away comes back, and a standby would be given for
// nothing what is then read anew. It waits for the delay (4.0.7: until somebody joins).
//
// A newcomer that will take over is told when it does, not that it is not active yet.
func (d *single) seated(s *Subscription) {
	best := d.choose()
	switch {
	case best == nil:
		d.active, d.next = nil, nil
	case d.active == nil && s.pause == nil:
		d.next = nil
		d.activate(best)
	case best == d.active:
		d.next = nil
	case best != d.next:
		d.next = best
		d.switchAt = time.Now().Add(s.topic.broker.opts.FailoverDelay)
		s.wakeAtLocked(d.switchAt, time.Now())
	}
	for _, c := range s.consumers {
		if c.opts.Kind == Failover && !c.told && c != d.next {
			c.told = true
			c.recv.ActiveChanged(c == d.active)
		}
	}
}

func (d *single) choose() *Consumer {
	s := d.s
	if len(s.consumers) == 0 {
		return nil
	}
	if s.kind == Exclusive {
		return s.consumers[0]
	}
	seats := make([]seat, len(s.consumers))
	current := -1
	for i, c := range s.consumers {
		seats[i] = seat{c.opts.Priority, c.opts.Consumer, c.joined, &c.ring}
		if c == d.active {
			current = i
		}
	}
	i := chooseActive(s.topic.name.String(), s.topic.partition, seats, current)
	if i < 0 {
		return nil
	}
	return s.consumers[i]
}

// activate gives a consumer the turn and tells all of the subscription.
func (d *single) activate(c *Consumer) {
	d.active, d.next = c, nil
	d.rewind()
	for _, o := range d.s.consumers {
		if o.opts.Kind == Failover {
			o.told = true
			o.recv.ActiveChanged(o == c)
		}
	}
}

func (d *single) plan(v *view) readPlan {
	if d.next != nil {
		if v.now.Before(d.switchAt) {
			return readPlan{wakeAt: d.switchAt, deaf: true}
		}
		d.activate(d.next)
	}
	c := d.active
	if c == nil || !c.ready() {
		return readPlan{deaf: true}
	}
	if form := d.s.compactedFor(c, d.read); form != nil {
		return readPlan{form: form, ranges: []Range{{d.read, form.state.Horizon}}, entries: d.s.wanted(c.permits)}
	}
	if d.s.fullLocked(v, d.read) {
		d.s.paused = "too many acknowledged holes"
		return readPlan{}
	}
	return readPlan{ranges: d.s.unreadLocked(v, d.read), entries: d.s.wanted(c.permits)}
}

func (d *single) offer(v *view, p *readPlan, e *Entry, g *Grant) bool {
	c := d.active
	if c == nil || !c.ready() {
		return false
	}
	p.moved, d.read = true, e.Position.Next()
	rest, _ := d.s.leftLocked(e.Position)
	d.s.deliverLocked(v, c, e, rest, 0, g)
	return true
}

func (d *single) acked(Position, AckOutcome, *Consumer) {}

func (d *single) skipTo(Position) {}

func (d *single) lost(Range) {}

func (d *single) freed() bool { return false }

// rewind reads from the first unacknowledged entry again. What a running read brings
// is stale from now on.
func (d *single) rewind() {
	d.read = d.s.restartLocked()
	d.s.generation++
}

func (d *single) clear() { d.read = d.s.restartLocked() }

// back takes undelivered entries back: they are read again.
func (d *single) back(p Position) {
	if p.Less(d.read) {
		d.read = p
		d.s.generation++
	}
}
