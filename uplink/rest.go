package uplink

import (
	"time"

	"wayside/edge"
)

// shareOfWindows is the part of the memory limit that windows take from.
const shareOfWindows = edge.ShareUplink

// memoryRetry is when to look again for memory that others hold.
const memoryRetry = 200 * time.Millisecond

// unacked is what the core took permits for.
func unacked(d *edge.Delivery) int {
	if d.Rest == nil {
		return int(d.Entry.Facts.Messages)
	}
	n := 0
	for i := range int(d.Entry.Facts.Messages) {
		if i/64 < len(d.Rest) && d.Rest[i/64]&(1<<(i%64)) != 0 {
			n++
		}
	}
	return n
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// quiet reports whether nothing is in the line and nothing under way.
func (f *forwarder) quiet() bool {
	return f.line.window.empty() && len(f.packed) == 0 && !f.opening && !f.attaching && !f.parker.busy && !f.line.saving
}

// resting reports whether the goroutine may end. The seat stays: the next delivery, or
// the loss of the seat, starts it anew.
func (f *forwarder) resting() bool {
	if f.gone {
		return f.quiet() && f.session == nil
	}
	return f.seat != nil && f.quiet() && f.session == nil
}

// look does what is due by time: the watchdog, and the end of an idle producer.
func (f *forwarder) look(now time.Time) {
	if f.session == nil {
		return
	}
	if f.line.window.unanswered > 0 && !f.line.parking && !now.Before(f.watchdog.due(f.line.headBytes())) {
		f.alarm(now)
		return
	}
	if f.quiet() && !now.Before(f.used.Add(f.up.o.IdleClose)) {
		f.endSession()
		f.parker.leave()
		f.set(Idle, "")
	}
}

// alarm gives up a producer that has gone silent. The client's log may tell why: a
// send error that it does not pass on.
func (f *forwarder) alarm(now time.Time) {
	since := f.watchdog.since
	f.watchdog.alarm()
	if b, ok := f.up.link.banSince(since); ok {
		f.banned(b, now)
		return
	}
	f.up.link.silent(since)
	f.fail(unreachable, "no receipt for "+now.Sub(since).Round(time.Second).String(), now)
}

// banned deals with a send error, which may be another topic's: the log does not say
// whose. A batch becomes singles on the first suspicion, which harms nobody; a message
// is parked only when the same happens to it twice.
func (f *forwarder) banned(b ban, now time.Time) {
	head := f.line.window.items[f.line.window.head].first
	if serverTrouble(b.name) != refused {
		f.fail(unreachable, "the cloud reports "+b.name+": "+b.text, now)
		return
	}
	if b.name != "NotAllowedError" {
		f.fail(refused, wordsOf(b.name), now)
		return
	}
	if f.suspect != head {
		f.suspect, f.strikes = head, 0
	}
	f.strikes++
	s := f.line.plan.find(head)
	f.fail(unreachable, "the cloud does not take a message: "+b.text, now)
	if f.strikes > 1 || s != nil && s.batch {
		f.line.refused(head, "the cloud does not take it: "+b.text)
		f.strikes = 0
	}
}

// pause is how long there is nothing to do unless something happens; 0 for ever.
func (f *forwarder) pause(now time.Time) time.Duration {
	var next time.Time
	consider := func(t time.Time, when bool) {
		if when && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	waiting := f.seat != nil && !f.line.window.empty() && !f.opening
	consider(f.attachAt, f.seat == nil && !f.attaching && !f.gone)
	consider(f.retryAt, waiting && f.session == nil && now.Before(f.retryAt))
	consider(f.gateAt, waiting && f.session == nil && f.gateWake != nil && !now.Before(f.retryAt))
	consider(f.retryAt, waiting && f.session != nil && now.Before(f.retryAt))
	consider(f.pace, waiting && now.Before(f.pace))
	consider(f.flushAt, !f.flushAt.IsZero())
	consider(f.thirsty, len(f.packed) > 0 && now.Before(f.thirsty))
	if f.session != nil {
		consider(f.watchdog.due(f.line.headBytes()), f.line.window.unanswered > 0 && !f.line.parking)
		consider(f.used.Add(f.up.o.IdleClose), f.quiet())
	}
	if next.IsZero() {
		return 0
	}
	return max(next.Sub(now), time.Millisecond)
}

// sleep waits for something to happen, at most for a pause, 0 for ever.
func (f *forwarder) sleep(pause time.Duration) {
	var timer <-chan time.Time
	if pause > 0 {
		t := time.NewTimer(pause)
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-f.inbox.wake:
	case <-timer:
	case <-f.gateWake:
		f.gateWake = nil
	case <-f.stop:
		f.stop = nil
	case <-f.cut:
		f.cut = nil
	}
}

// finish ends the forwarder with its uplink: what is in flight is waited for as long
// as there is time, then the last plan goes to the core. It returns true at the end.
func (f *forwarder) finish() bool {
	if f.seat != nil && f.session != nil && !f.up.late() {
		f.line.hold = true
		for s := f.line.next(); s.do == doSave || s.do == doFlush; s = f.line.next() {
			f.do(&s, time.Now())
		}
		if f.line.window.unanswered > 0 {
			return false
		}
	}
	if f.opening || f.attaching || f.parker.busy {
		return false
	}
	if f.session != nil {
		f.endSession()
	}
	f.parker.leave()
	if f.seat != nil {
		f.seat.consumer.SavePlan(f.encode(), f.upTo, nil)
		f.seat.consumer.Close()
		f.unseated()
	}
	return true
}
