package uplink

import "time"

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
