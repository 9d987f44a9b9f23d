package uplink

import "time"

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
