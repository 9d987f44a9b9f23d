package uplink

import (
	"errors"
	"time"

	"wayside/edge"
)

// loop is the forwarder's goroutine. It ends when nothing is held and no producer is
// open; the next entry starts it anew.
func (f *forwarder) loop() {
	for {
		now := time.Now()
		f.looked = now
		f.absorb(now)
		if f.up.ending() {
			if f.finish() {
				return
			}
		} else {
			f.look(now)
			f.work(now)
		}
		f.publish(now)
		gone := f.gone
		if f.resting() && f.inbox.rest() { // from here on everything may be another goroutine's
			f.leave(gone)
			return
		}
		f.sleep(f.pause())
	}
}

// absorb takes in what others have left.
func (f *forwarder) absorb(now time.Time) {
	events, deliveries := f.inbox.take()
	f.packed = append(f.packed, deliveries...)
	for i := range events {
		f.happened(&events[i], now)
	}
	f.progress(now)
	f.settle()
}

// progress notes that receipts came.
func (f *forwarder) progress(now time.Time) {
	if f.fresh == 0 {
		return
	}
	f.watchdog.progress(now, f.fresh)
	f.fresh, f.used = 0, now
	f.back.reset()
	f.up.link.gate.received(now)
}

func (f *forwarder) happened(e *event, now time.Time) {
	switch e.what {
	case attached:
		f.onAttached(e, now)
	case consumerGone:
		f.onConsumerGone(e, now)
	case sessionOpened:
		f.onOpened(e, now)
	case sessionAnswer:
		f.onAnswer(e, now)
	case sessionLost:
		if e.session == f.session {
			f.fail(unreachable, "", now)
		}
	case planSaved:
		f.onSaved(e, now)
	case itemParked:
		f.onParked(e, now)
	}
}

// attachRetry is between tries to subscribe, for example a topic whose followed
// subscription does not exist yet.
const attachRetry = 2 * time.Second

func (f *forwarder) onAttached(e *event, now time.Time) {
	if e.err == nil {
		f.seated(e.consumer)
		f.set(Idle, "") // until there is something to send
		return
	}
	f.attaching = false
	f.attachAt = now.Add(attachRetry)
	if errors.Is(e.err, edge.ErrTopicNotFound) {
		f.gone = true
	}
	if !errors.Is(e.err, edge.ErrUnloaded) && !errors.Is(e.err, edge.ErrClosing) {
		f.set(Waiting, e.err.Error())
	}
}

// onConsumerGone comes when the topic is unloaded or deleted, and when the cursor is
// set to another place.
func (f *forwarder) onConsumerGone(e *event, now time.Time) {
	if e.consumer != f.seat {
		return
	}
	if f.session != nil {
		f.endSession()
	}
	f.parker.leave()
	f.unseated()
	f.gone = !f.up.broker.Exists(f.name)
	f.attachAt = now
}

// saveRetry is the pause after a plan could not be saved.
const saveRetry = time.Second

func (f *forwarder) onSaved(e *event, now time.Time) {
	switch {
	case e.consumer != f.seat:
	case e.err == nil:
		f.line.saved()
	default:
		f.saveAt = now.Add(saveRetry)
		f.set(Waiting, "the plan cannot be saved: "+e.err.Error())
	}
}

// saveAgain tries again to save a plan.
func (f *forwarder) saveAgain(now time.Time) {
	if f.saveAt.IsZero() || now.Before(f.saveAt) {
		return
	}
	f.saveAt = time.Time{}
	f.line.unsaved()
	if f.session != nil {
		f.set(Connected, "")
	}
}

func (f *forwarder) onParked(e *event, now time.Time) {
	f.parker.busy = false
	if e.consumer != f.seat {
		f.parker.leave()
		return
	}
	if e.err == nil {
		f.sayParked(f.line.aside(), now)
		f.line.parked()
		return
	}
	f.line.unparked()
	f.retryAt = now.Add(f.back.next(f.up.o.BackoffMax))
	f.set(Waiting, "a message has to be parked, which fails: "+e.err.Error())
}

// sayParked counts a message that is set aside. Of many in a row the first in a minute
// is logged.
func (f *forwarder) sayParked(it *item, now time.Time) {
	n := f.counts.parked.Add(1)
	if !f.parkSaid.IsZero() && now.Sub(f.parkSaid) < foldSpan {
		return
	}
	f.parkSaid = now
	f.up.o.Logger.Warn("a message cannot go to the cloud and is set aside", "topic", f.name.String(),
		"index", it.first, "reason", it.park, "on", f.parkOn.String(), "so_far", n)
}

// work does what the planner says until it has nothing to say.
func (f *forwarder) work(now time.Time) {
	f.attach(now)
	if f.seat == nil {
		return
	}
	f.saveAgain(now)
	f.unpack(now)
	for {
		f.line.hold = now.Before(f.pace)
		f.line.patient = !f.flushAt.IsZero() && !now.Before(f.flushAt)
		s := f.line.next()
		if s.do == doWait && f.line.starved && f.unpack(now) {
			continue
		}
		if s.do == doWait || !f.do(&s, now) {
			break
		}
		now = time.Now()
		f.looked = now
	}
	f.settle()
	switch {
	case !f.line.linger:
		f.flushAt = time.Time{}
	case f.flushAt.IsZero():
		f.flushAt = now.Add(lingering)
	}
	if f.starved.Swap(f.line.starved) != f.line.starved && f.line.starved {
		f.seat.consumer.Wake()
	}
}

// lingering is how long a full batch at the end of what is there waits for a next one.
const lingering = 20 * time.Millisecond

// settle tells the core what has been settled. It rides along with other commits: after
// a crash it is sent again, and dropped by the cloud.
func (f *forwarder) settle() {
	if f.seat == nil {
		return
	}
	moved := f.line.settle(func(it *item) {
		f.flow += int(it.last - it.first + 1)
		if it.held.left--; it.held.left == 0 {
			f.upTo = &it.held.position
			f.drop(it.held)
		}
	})
	if moved {
		f.seat.consumer.SavePlan(f.encode(), f.upTo, nil)
		f.upTo = nil
	}
	if f.flow > 0 {
		f.seat.consumer.Flow(f.flow)
		f.flow = 0
	}
	if moved && f.full.Swap(false) {
		f.seat.consumer.Wake()
	}
}

// encode is the plan as it is stored.
func (f *forwarder) encode() []byte {
	if f.up.o.fault {
		bare := f.line.plan
		bare.open = nil
		return bare.encode()
	}
	return f.line.plan.encode()
}
