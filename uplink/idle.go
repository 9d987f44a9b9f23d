package uplink

import "time"

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

// pause is how long there is nothing to do unless something happens; 0 for ever. What
// was not due when it was last looked at counts, though it may be due by now.
func (f *forwarder) pause() time.Duration {
	now := f.looked
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
	consider(f.saveAt, !f.saveAt.IsZero())
	consider(f.flushAt, !f.flushAt.IsZero())
	consider(f.thirsty, !f.thirsty.IsZero())
	if f.session != nil {
		consider(f.watchdog.due(f.line.headBytes()), f.line.window.unanswered > 0 && !f.line.parking)
		consider(f.used.Add(f.up.o.IdleClose), f.quiet())
	}
	if next.IsZero() {
		return 0
	}
	return max(time.Until(next), time.Millisecond)
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
