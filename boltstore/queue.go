package boltstore

import (
	"sync"
	"time"

	"wayside/edge"
)

// operation is one call in the store's line. The committer runs its steps; those of
// all operations of a group come in call order.
type operation interface {
	// ledger is the open topic that it belongs to, or nil.
	ledger() *ledger
	// size is what it adds to the group's data, bytes.
	size() int
	// admit refuses it, or prepares it, before there is a transaction.
	admit(g *group) error
	// apply changes the transaction. An error fails the whole group.
	apply(g *group) error
	// finish answers the caller, after the commit.
	finish(err error)
}

// dirtyCursor is a cursor that waits to be written.
type dirtyCursor struct {
	ledger *ledger
	name   string
	state  func() edge.CursorState
}

// queue is the line of operations, and the cursors that wait for the save interval.
// It is bounded by the grants of those who append.
type queue struct {
	wake chan struct{} // capacity 1

	mu     sync.Mutex // guards what follows, and the dirty sets of all ledgers
	ops    []operation
	seen   map[*ledger]bool // scratch of prefix
	parts  bool             // operations that the journal takes are not mixed with others
	taken  uint64           // operations taken so far: the order number of ops[0]
	late   []lateLedger
	closed bool
}

// lateLedger is a ledger with dirty cursors and when the first became so.
type lateLedger struct {
	ledger *ledger
	since  time.Time
}

// maxGroupTopics bounds the topics of one group: each costs a few pages of its own,
// however little is appended to it.
const maxGroupTopics = 256

// maxLateCursors bounds the cursors that one group takes because their interval has
// passed, so that ten thousand of them do not become one long commit.
const maxLateCursors = 256

// maxRiders is how many dirty cursors of a topic ride with every commit of it. More wait
// for their interval: with a hundred subscriptions they would be most of what is written.
const maxRiders = 4

func newQueue() *queue {
	return &queue{wake: make(chan struct{}, 1), seen: map[*ledger]bool{}}
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// put appends an operation, or refuses it when the store is closed.
func (q *queue) put(op operation) {
	q.mu.Lock()
	if !q.closed {
		q.putLocked(op)
		q.mu.Unlock()
		q.signal()
		return
	}
	q.mu.Unlock()
	// Not on the caller's goroutine: it may hold what the answer needs.
	go op.finish(edge.ErrClosing)
}

func (q *queue) putLocked(op operation) { q.ops = append(q.ops, op) }

// putDelete appends the deletion of a cursor. It clears the cursor's dirty mark and
// keeps later saves from overtaking it.
func (q *queue) putDelete(op *deleteCursorOp) {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		go op.finish(edge.ErrClosing)
		return
	}
	l := op.l
	delete(l.dirty, op.name)
	if l.deletes == nil {
		l.deletes = map[string]uint64{}
	}
	l.deletes[op.name] = q.taken + uint64(len(q.ops))
	q.putLocked(op)
	q.mu.Unlock()
	q.signal()
}

// markDirty notes a cursor to be written within the save interval.
func (q *queue) markDirty(l *ledger, name string, state func() edge.CursorState) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	if l.dirty == nil {
		l.dirty = map[string]func() edge.CursorState{}
	}
	l.dirty[name] = state
	if !l.late {
		l.late = true
		q.late = append(q.late, lateLedger{l, time.Now()})
		if len(q.late) == 1 {
			q.signal()
		}
	}
}

// take removes the operations of one group from the head of the line, together with
// the dirty cursors of the ledgers they touch and those whose interval has passed.
func (q *queue) take(maxBytes int, interval time.Duration) (ops []operation, saves []dirtyCursor) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := q.prefix(maxBytes)
	ops = q.ops[:n:n]
	q.ops = q.ops[n:]
	if len(q.ops) == 0 {
		q.ops = nil
	}
	q.taken += uint64(n)
	for _, op := range ops {
		last := lastChance(op)
		if l := op.ledger(); l != nil && len(l.dirty) > 0 && (last || !l.heavy && len(l.dirty) <= maxRiders) {
			saves = q.takeDirty(l, saves)
		}
	}
	return ops, q.takeLate(interval, saves)
}

// prefix is the number of operations that make the next group.
func (q *queue) prefix(maxBytes int) int {
	bytes := 0
	var last *ledger
	clear(q.seen)
	for n, op := range q.ops {
		if q.parts && n > 0 && journals(op) != journals(q.ops[0]) {
			return n
		}
		size := op.size()
		if n > 0 && bytes+size > maxBytes && size > 0 {
			return n
		}
		bytes += size
		l := op.ledger()
		if l == nil || l == last {
			continue
		}
		if last = l; !q.seen[l] && len(q.seen) == maxGroupTopics {
			return n
		}
		q.seen[l] = true
	}
	return len(q.ops)
}

// lastChance tells operations that have to take all of a topic's dirty cursors along.
func lastChance(op operation) bool {
	switch op.(type) {
	case *closeOp, *trimOp:
		return true
	}
	return false
}

func (q *queue) takeLate(interval time.Duration, saves []dirtyCursor) []dirtyCursor {
	for len(q.late) > 0 && len(saves) < maxLateCursors {
		l := q.late[0].ledger
		if len(l.dirty) > 0 && !q.closed && time.Since(q.late[0].since) < interval {
			break
		}
		q.late = q.late[1:]
		l.late = false
		saves = q.takeDirty(l, saves)
		if len(l.dirty) > 0 { // held back by a deletion in line
			l.late = true
			q.late = append(q.late, lateLedger{l, time.Now()})
			break
		}
	}
	return saves
}

// takeDirty moves a ledger's dirty cursors to saves, but for those whose deletion is
// still in line.
func (q *queue) takeDirty(l *ledger, saves []dirtyCursor) []dirtyCursor {
	for name, order := range l.deletes {
		if order < q.taken {
			delete(l.deletes, name)
		}
	}
	for name, state := range l.dirty {
		if _, waits := l.deletes[name]; waits {
			continue
		}
		delete(l.dirty, name)
		saves = append(saves, dirtyCursor{l, name, state})
	}
	return saves
}

// putBack makes cursors dirty again whose write failed, unless they have been saved
// or deleted meanwhile.
func (q *queue) putBack(saves []dirtyCursor) {
	for _, d := range saves {
		q.mu.Lock()
		_, newer := d.ledger.dirty[d.name]
		_, deleted := d.ledger.deletes[d.name]
		q.mu.Unlock()
		if !newer && !deleted {
			q.markDirty(d.ledger, d.name, d.state)
		}
	}
}

// weigh notes whether a ledger's cursors are too large to ride with every commit.
func (q *queue) weigh(l *ledger, heavy bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l.heavy = heavy
}

// next tells what the committer has to wait for: nothing (work is there), the time
// of the next save, or a wake.
func (q *queue) next(interval time.Duration) (work bool, save time.Duration, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	save = -1
	if len(q.late) > 0 {
		save = max(0, interval-time.Since(q.late[0].since))
	}
	return len(q.ops) > 0, save, q.closed
}

// close refuses what comes from now on. What is in line will still be taken.
func (q *queue) close() (first bool) {
	q.mu.Lock()
	first = !q.closed
	q.closed = true
	q.mu.Unlock()
	q.signal()
	return first
}
