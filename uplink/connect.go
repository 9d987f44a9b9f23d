package uplink

import (
	"fmt"
	"strings"
	"time"
)

// do does one step. It returns false when the rest has to wait.
func (f *forwarder) do(s *step, now time.Time) bool {
	switch s.do {
	case doOpen:
		return f.connect(s.by, now)
	case doSave:
		seat := f.seat
		seat.consumer.SavePlan(f.encode(), f.upTo, func(err error) {
			f.post(event{what: planSaved, consumer: seat, err: err})
		})
		f.upTo = nil
	case doSend:
		return f.send(s, now)
	case doFlush:
		f.session.flush()
	case doPark:
		if f.parker.busy || now.Before(f.retryAt) {
			f.line.unparked()
			return false
		}
		f.parker.park(f.line.aside())
	}
	return true
}

// connect creates a producer in the background, if it may be tried now.
func (f *forwarder) connect(by identity, now time.Time) bool {
	if f.session != nil {
		f.endSession() // another identity's turn
	}
	if f.opening || now.Before(f.retryAt) {
		return false
	}
	ok, pause, changed := f.up.link.gate.enter(now)
	if !ok {
		f.gateWake, f.gateAt = changed, now.Add(pause)
		f.setGated()
		return false
	}
	f.gateWake, f.opening = nil, true
	f.set(Connecting, "")
	before := f.earlier
	pending := max(f.up.o.WindowMessages, f.line.widest())
	f.up.wg.Go(func() {
		before.awaitClose(f.up.o.OperationTimeout)
		s, err := openSession(f.up.link, by, f.route.Compression, pending, f.post)
		if s == nil {
			s = &session{opened: now}
		}
		f.post(event{what: sessionOpened, session: s, err: err})
	})
	return false
}

func (f *forwarder) onOpened(e *event, now time.Time) {
	f.opening = false
	s := e.session
	if e.err != nil {
		f.openFailed(e.err, s.opened, now)
		return
	}
	f.up.link.gate.passed()
	if n := partitions(s.p); n > 1 {
		s.close(f.up.wg)
		f.wait(now, f.up.o.RefusedMax, Refused, fmt.Sprintf("the cloud topic has %d partitions: name one of them, -partition-0 and so on", n))
		return
	}
	if f.seat == nil || f.up.ending() {
		s.close(f.up.wg)
		return
	}
	f.session, f.used = s, now
	f.watchdog.start(now)
	f.line.opened(s.by)
	f.open.Store(true)
	f.seat.consumer.Wake()
	f.pace = now.Add(lingering) // until the window shows whether there is a backlog
	f.set(Connected, "")
	if s.lost.Load() {
		f.fail(unreachable, "", now)
	}
}

func partitions(p any) uint32 {
	if n, ok := p.(interface{ NumPartitions() uint32 }); ok {
		return n.NumPartitions()
	}
	return 1
}

// openFailed sorts out why no producer could be created. What the cloud itself says
// concerns this topic; all else concerns the link.
func (f *forwarder) openFailed(err error, since, now time.Time) {
	link := f.up.link
	hint, denied := link.hintSince(since)
	reason := plainWords(err, hint)
	name, _ := serverError(err.Error())
	kind := classify(err)
	switch {
	case denied && name == "":
		reason = wordsOf("AuthenticationError") + " (" + hint + ")"
		fallthrough
	case kind == credentials:
		link.gate.failed(now, since, true, reason)
		f.wait(now, 0, Refused, reason)
	case kind == refused || kind == poison:
		link.gate.left()
		f.wait(now, f.up.o.RefusedMax, Refused, reason)
	case name != "" || strings.Contains(err.Error(), "server error"):
		link.gate.left()
		f.wait(now, f.up.o.BackoffMax, BackingOff, reason)
	default:
		if strings.Contains(err.Error(), "timed out") {
			link.silent(since)
		}
		link.gate.failed(now, since, false, reason)
		f.wait(now, 0, BackingOff, reason)
	}
}

// wait keeps the topic from trying for a pause that grows up to most; for 0 the gate
// alone decides.
func (f *forwarder) wait(now time.Time, most time.Duration, state State, reason string) {
	if most > 0 {
		f.retryAt = now.Add(f.back.next(most))
	}
	f.set(state, reason)
}

// endSession lets the producer go. Everything that is unanswered has ended so.
func (f *forwarder) endSession() {
	f.settle()
	f.open.Store(false)
	f.session.close(f.up.wg)
	f.earlier, f.session = f.session, nil
	f.line.lost()
}

// fail ends the session after trouble and decides about the pause: a session that
// brought receipts is replaced soon, one that did not counts against the link unless
// other topics fare better.
func (f *forwarder) fail(kind trouble, reason string, now time.Time) {
	if f.session == nil {
		return
	}
	s := f.session
	f.endSession()
	if reason == "" {
		reason, _ = f.up.link.hintSince(s.opened)
	}
	if reason == "" {
		reason = "the connection has ended"
	}
	most := f.up.o.BackoffMax
	state := BackingOff
	if kind == refused || kind == credentials {
		most, state = f.up.o.RefusedMax, Refused
	}
	if kind == unreachable && f.up.link.gate.quietSince(s.opened) {
		f.up.link.gate.failed(now, s.opened, false, reason)
	}
	f.counts.reconnects.Add(1)
	f.ration.spend(now)
	f.wait(now, most, state, reason)
	f.retryAt = later(f.retryAt, now.Add(f.ration.pause(now)))
}
