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
// whose. So it is believed only when the same happens twice.
func (f *forwarder) banned(b ban, now time.Time) {
	if serverTrouble(b.name) != refused {
		f.fail(unreachable, "the cloud reports "+b.name+": "+b.text, now)
		return
	}
	if b.name != "NotAllowedError" {
		f.fail(refused, wordsOf(b.name), now)
		return
	}
	head := f.line.window.items[f.line.window.head].first
	if f.suspect != head {
		f.suspect, f.strikes = head, 0
	}
	f.strikes++
	f.fail(unreachable, "the cloud does not take a message: "+b.text, now)
	if f.strikes > 1 {
		f.strikes = 0
		f.refused(head, "the cloud does not take it: "+b.text, true)
	}
}
