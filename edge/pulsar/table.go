package pulsar

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"wayside/edge"
)

// States of a table entry. Whoever moves it on does so by one compare-and-set, so that
// completion, closing from either side and the end of the connection cannot both win.
const (
	creating int32 = iota // its request is being worked on
	ready
	closing // its client closes it, what is owed is still being answered
	gone
)

// place is what the table entries of producers and consumers have in common. The
// session's reader alone looks entries up; the rest may be done by anyone.
type place struct {
	id    uint64
	state atomic.Int32
	// forgotten says that the id may be used as if it had never been. An entry that is
	// gone and not forgotten was closed by the broker: what its client had sent before
	// it knew is ignored.
	forgotten atomic.Bool
	texts     int64         // bytes of what its client said of it, counted as long as it is in the table
	goneAt    time.Time     // set before the state is gone, unless forgotten
	done      chan struct{} // closed when it has been made, or what was made of it undone
	// settled closes done, cancel ends the request that makes it. Both go when it is made.
	settled func()
	cancel  context.CancelFunc
	// known says that the client knows of it: pushed frames may follow. It is set with
	// the outbox locked.
	known atomic.Bool

	// guarded by the outbox's lock
	told   bool        // its creation was answered
	timer  *time.Timer // makes it known
	listed bool        // among those with something to tell
}

// getsKnown is how long after the answer to its creation a client surely knows of a
// producer or consumer. The Go client does so only a moment after it has read the
// answer, and loses what is pushed before: so that waits for the client's first
// command about it, or for this long.
const getsKnown = 200 * time.Millisecond

// tellLocked lists an entry that has something to tell, as soon as its client knows of it.
func (p *place) tellLocked(o *outbox, who pusher) {
	switch {
	case !p.told || p.listed || !who.pending():
	case p.known.Load():
		p.listed = true
		o.pushLocked(who)
	case p.timer == nil:
		p.timer = time.AfterFunc(getsKnown, func() { p.touch(o, who) })
	}
}

// touch notes that the client knows of the entry.
func (p *place) touch(o *outbox, who pusher) {
	if p.known.Load() {
		return
	}
	o.mu.Lock()
	p.known.Store(true)
	p.hushLocked()
	p.tellLocked(o, who)
	o.mu.Unlock()
	o.poke()
}

// hush stops the entry's timer.
func (p *place) hush(o *outbox) {
	o.mu.Lock()
	defer o.mu.Unlock()
	p.hushLocked()
}

func (p *place) hushLocked() {
	if p.timer != nil {
		p.timer.Stop()
	}
}

func (p *place) open(id uint64, cancel context.CancelFunc) {
	done := make(chan struct{})
	p.id, p.cancel, p.done = id, cancel, done
	p.settled = sync.OnceFunc(func() { close(done) })
}

// made ends the making of an entry that has become ready. Whoever else would use what
// is dropped here has lost to that.
func (p *place) made() {
	p.settled()
	p.settled, p.cancel = nil, nil
}

func (p *place) move(from, to int32) bool { return p.state.CompareAndSwap(from, to) }

// forget moves an entry away for good. It returns false if somebody was quicker.
func (p *place) forget(from int32) bool {
	if !p.move(from, gone) {
		return false
	}
	p.forgotten.Store(true)
	return true
}

// stale reports whether the entry may be taken out of its table.
func (p *place) stale(now time.Time) bool {
	return p.state.Load() == gone && (p.forgotten.Load() || now.Sub(p.goneAt) >= keepGone)
}

// placed is a table entry.
type placed interface{ at() *place }

func (p *place) at() *place { return p }

// table holds the producers or the consumers of a connection by their ids. It belongs
// to the session's reader.
type table[E placed] struct {
	entries map[uint64]E
	limit   int
	texts   *texts // of all connections
	sweepAt int    // number of entries at which to look for stale ones
}

func newTable[E placed](limit int, all *texts) table[E] {
	return table[E]{entries: map[uint64]E{}, limit: limit, texts: all, sweepAt: 16}
}

// find returns an entry that still counts.
func (t *table[E]) find(id uint64) (e E, ok bool) {
	e, ok = t.entries[id]
	return e, ok && (e.at().state.Load() != gone || !e.at().stale(time.Now()))
}

// prior is closed when the last entry of an id has been made or undone. It is nil if
// there was none.
func (t *table[E]) prior(id uint64) <-chan struct{} {
	if e, ok := t.entries[id]; ok {
		return e.at().done
	}
	return nil
}

// admit says why there is no room for one entry more with so many bytes of texts, after
// taking stale ones out. The texts it admits belong to the entry that is put next.
func (t *table[E]) admit(what string, texts int64) error {
	if len(t.entries) >= t.sweepAt || len(t.entries) >= t.limit || !t.texts.fit(texts) {
		t.sweep()
	}
	switch {
	case len(t.entries) >= t.limit:
		return fmt.Errorf("%w: one connection may have %d %s", edge.ErrLimit, t.limit, what)
	case !t.texts.take(texts):
		return fmt.Errorf("%w: names and metadata of all clients together are too long", edge.ErrLimit)
	}
	return nil
}

func (t *table[E]) sweep() {
	now := time.Now()
	for id, e := range t.entries {
		select {
		case <-e.at().done:
			if e.at().stale(now) {
				t.remove(id)
			}
		default:
		}
	}
	t.sweepAt = max(16, 2*len(t.entries))
}

// put adds or replaces an entry.
func (t *table[E]) put(e E) {
	t.remove(e.at().id)
	t.entries[e.at().id] = e
}

func (t *table[E]) remove(id uint64) {
	if e, ok := t.entries[id]; ok {
		t.texts.take(-e.at().texts)
		delete(t.entries, id)
	}
}

// clear takes all out.
func (t *table[E]) clear() {
	for id := range t.entries {
		t.remove(id)
	}
}

// texts bound what clients may say of their producers and consumers: names and metadata,
// which are kept as long as these are there.
type texts struct {
	limit int64
	used  atomic.Int64
}

// freeTexts is what each may have without being counted, in bytes: official clients say
// less.
const freeTexts = 256

// textBytes is what counts of names and metadata.
func textBytes(metadata map[string]string, names ...string) int64 {
	n := int64(-freeTexts)
	for _, name := range names {
		n += int64(len(name))
	}
	for k, v := range metadata {
		n += int64(len(k) + len(v))
	}
	return max(n, 0)
}

func (t *texts) fit(n int64) bool { return n <= 0 || t.used.Load()+n <= t.limit }

// take takes n bytes, or gives them back if n is negative, which always succeeds.
func (t *texts) take(n int64) bool {
	if t.used.Add(n) > t.limit && n > 0 {
		t.used.Add(-n)
		return false
	}
	return true
}
