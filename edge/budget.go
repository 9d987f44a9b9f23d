package edge

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// Share names a part of the memory limit.
type Share int

// The shares of limits.memory. Fixed cost (runtime, code's own data) has no share.
const (
	SharePublish      Share = iota // frames between the socket and the disk
	ShareRead                      // entries read for dispatch, and all outboxes
	ShareSubscription              // pending entries and replay sets, 50 bytes each
	ShareTail                      // entries kept for readers of the tail
	ShareUplink                    // windows of the uplink
	shares
)

// Budget divides the memory limit. A grant is taken before a buffer is made and
// released once by whoever ends the buffer's life.
type Budget struct {
	share [shares]shareState
}

type shareState struct {
	mu      sync.Mutex
	limit   int64
	used    int64
	large   int64     // of used, what large grants hold
	waiting []*waiter // first come, first served; but see admit
}

type waiter struct {
	n     int64
	ready chan struct{}
}

// NewBudget makes a budget of limit bytes: a quarter is fixed cost, the rest is
// divided 4 : 4 : 2 : 1 : 3 between publishes, reads, subscriptions, tail and uplink.
func NewBudget(limit int64) *Budget {
	b := &Budget{}
	rest := limit - limit/4
	for s, part := range [shares]int64{4, 4, 2, 1, 3} {
		b.share[s].limit = rest * part / 14
	}
	return b
}

// Grant is memory that somebody holds. The zero value holds nothing.
type Grant struct {
	share *shareState
	n     int64
	large bool // taken as more than a quarter of the share
}

// Bytes is what the grant holds.
func (g Grant) Bytes() int64 { return g.n }

// Release gives the memory back. It is called once for each grant.
func (g Grant) Release() {
	if g.share != nil && g.n > 0 {
		g.share.give(g.n, g.large)
	}
}

// Split takes n bytes out of the grant, which shrinks by them, into one of their
// own. n may be larger than the grant: the share is then overdrawn by the
// difference until it comes back, at most by one entry per reader.
func (g *Grant) Split(n int64) Grant {
	if g.share == nil {
		return Grant{}
	}
	g.raise(n)
	g.n -= n
	return Grant{g.share, n, g.large}
}

// raise makes the grant as large as what is there already: the share is overdrawn by
// what it lacked.
func (g *Grant) raise(n int64) {
	if g.share == nil || n <= g.n {
		return
	}
	g.share.mu.Lock()
	g.share.add(n-g.n, g.large)
	g.share.mu.Unlock()
	g.n = n
}

// Take waits until n bytes of the share are free and takes them. A wish larger than
// the whole share is granted when the share is unused, so that the largest message
// still passes a small broker. Large ones, of more than a quarter, leave a quarter to
// others, and do not keep those from it that come behind.
func (b *Budget) Take(ctx context.Context, s Share, n int64) (Grant, error) {
	st := &b.share[s]
	st.mu.Lock()
	if st.next(n) {
		defer st.mu.Unlock()
		return st.take(n), nil
	}
	w := &waiter{n: n, ready: make(chan struct{})}
	st.waiting = append(st.waiting, w)
	st.mu.Unlock()
	select {
	case <-w.ready:
		return Grant{st, n, st.isLarge(n)}, nil
	case <-ctx.Done():
		return Grant{}, st.abandon(w, ctx.Err())
	}
}

// TryTake takes n bytes if they are free now and nobody waits for them, as Take sees it.
func (b *Budget) TryTake(s Share, n int64) (Grant, bool) {
	st := &b.share[s]
	st.mu.Lock()
	defer st.mu.Unlock()
	if !st.next(n) {
		return Grant{}, false
	}
	return st.take(n), true
}

// Contended reports whether somebody waits for the share. Whoever holds some of it
// and makes no use of it should give it up.
func (b *Budget) Contended(s Share) bool {
	st := &b.share[s]
	st.mu.Lock()
	defer st.mu.Unlock()
	return len(st.waiting) > 0
}

// Usage returns what is taken of a share and what it has in all, in bytes.
func (b *Budget) Usage(s Share) (used, limit int64) {
	st := &b.share[s]
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.used, st.limit
}

func (st *shareState) isLarge(n int64) bool { return n > st.limit/4 }

func (st *shareState) fits(n int64) bool {
	if st.isLarge(n) && st.used > 0 {
		return st.used+n <= st.limit/4*3
	}
	return st.used+n <= st.limit || st.used == 0
}

// next reports whether a wish is the next to be granted, and fits.
func (st *shareState) next(n int64) bool {
	for _, w := range st.waiting {
		if st.isLarge(n) || !st.passable(w) {
			return false
		}
	}
	return st.fits(n)
}

// passable reports whether small wishes may pass one that waits: a large one while
// another large one is held. Where it is slow to come back, others would wait for
// nothing; when it has, what is large and first in line is waited for.
func (st *shareState) passable(w *waiter) bool { return st.large > 0 && st.isLarge(w.n) }

func (st *shareState) take(n int64) Grant {
	g := Grant{st, n, st.isLarge(n)}
	st.add(n, g.large)
	return g
}

// add counts n bytes more, or less, as taken.
func (st *shareState) add(n int64, large bool) {
	st.used += n
	if large {
		st.large += n
	}
}

func (st *shareState) give(n int64, large bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.add(-n, large)
	st.admit()
}

// admit wakes those first in line that fit, and small ones behind large ones that may be
// passed. The lock is held.
func (st *shareState) admit() {
	passed := 0
	for passed < len(st.waiting) {
		w := st.waiting[passed]
		switch {
		case st.fits(w.n) && (passed == 0 || !st.isLarge(w.n)):
			st.waiting = slices.Delete(st.waiting, passed, passed+1)
			st.take(w.n)
			close(w.ready)
		case st.passable(w):
			passed++
		default:
			return
		}
	}
}

// abandon takes a waiter out of the line; if it was served meanwhile its bytes go back.
func (st *shareState) abandon(w *waiter, cause error) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	for i, v := range st.waiting {
		if v == w {
			st.waiting = append(st.waiting[:i], st.waiting[i+1:]...)
			st.admit()
			return fmt.Errorf("wait for memory: %w", cause)
		}
	}
	st.add(-w.n, st.isLarge(w.n))
	st.admit()
	return fmt.Errorf("wait for memory: %w", cause)
}

// Join adds another grant of the same share to g; o is used up by that.
func (g *Grant) Join(o Grant) {
	if g.share == nil {
		*g = o
		return
	}
	if o.share != nil && g.large != o.large { // together they count as large
		small := g
		if g.large {
			small = &o
		}
		g.share.mu.Lock()
		g.share.large += small.n
		g.share.mu.Unlock()
		g.large = true
	}
	g.n += o.n
}
