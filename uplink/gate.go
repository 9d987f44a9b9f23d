package uplink

import (
	"sync"
	"time"
)

// gate lets forwarders connect. While the cloud cannot be reached one at a time may
// try, so that a dead link costs the same however many topics wait for it; the first
// receipt opens it for all.
type gate struct {
	most        time.Duration // bound of pauses while unreachable
	mostRefused time.Duration // while the credentials are refused

	mu       sync.Mutex
	back     pauses
	ration   ration // of connection attempts while there is trouble
	shut     bool
	probing  bool
	until    time.Time // no try before
	shutAt   time.Time
	reason   string
	refused  bool          // the cloud answered, and does not accept who we are
	changed  chan struct{} // closed when waiting forwarders shall ask again
	progress time.Time     // of the last receipt
}

func newGate(o *Options) *gate {
	return &gate{
		most: o.BackoffMax, mostRefused: o.RefusedMax,
		back:    pauses{min: o.BackoffMin},
		ration:  ration{limit: o.ReconnectsPerMinute, span: o.ReconnectSpan},
		shut:    true, // the first topic tries for all
		changed: make(chan struct{}),
	}
}

// enter asks to connect. If that may not be now, it says how long to wait at most,
// and gives a channel that closes when it is worth asking before. Who was let in
// tells the outcome by failed or passed.
func (g *gate) enter(now time.Time) (ok bool, pause time.Duration, changed <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case !g.shut:
		return true, 0, nil
	case g.probing:
		return false, g.most, g.changed
	case now.Before(g.until):
		return false, g.until.Sub(now), g.changed
	}
	g.probing = true
	g.ration.spend(now)
	return true, 0, nil
}

// failed tells that the cloud could not be reached, by a try or a connection that
// began at since. Many topics lose one connection: only the first of them counts.
func (g *gate) failed(now, since time.Time, refused bool, reason string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut && !g.probing && since.Before(g.shutAt) {
		return
	}
	if !g.shut {
		g.ration.spend(now)
	}
	most := g.most
	if refused {
		most = g.mostRefused
	}
	g.shut, g.probing, g.shutAt, g.reason, g.refused = true, false, now, reason, refused
	g.until = now.Add(max(g.back.next(most), g.ration.pause(now)))
	g.wakeLocked()
}

// passed tells that a producer was created. The pauses stay long until a receipt
// comes: a cloud that accepts and then closes is no progress.
func (g *gate) passed() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		g.shut, g.probing = false, false
		g.wakeLocked()
	}
}

// left tells that a try ended without a word about the link: the topic was refused, or
// the uplink stops.
func (g *gate) left() { g.passed() }

// received tells of a receipt.
func (g *gate) received(now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.back.reset()
	g.progress = now
	g.reason = ""
	if g.shut {
		g.shut, g.probing = false, false
		g.wakeLocked()
	}
}

// quietSince reports whether no receipt has come on any topic since then.
func (g *gate) quietSince(t time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.progress.Before(t)
}

// trouble tells why nobody may pass, "" when that is not so or not known, and when the
// next try is due.
func (g *gate) trouble() (reason string, refused bool, until time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.shut {
		return "", false, time.Time{}
	}
	return g.reason, g.refused, g.until
}

func (g *gate) wakeLocked() {
	close(g.changed)
	g.changed = make(chan struct{})
}
