package boltstore

import (
	"fmt"

	"wayside/edge"
)

// barrierOp keeps a place in line; as a recovery it ends the failed state there.
type barrierOp struct {
	l       *ledger
	recover bool
	done    func(error)
}

// Barrier implements edge.Ledger.
func (l *ledger) Barrier(done func(error)) {
	l.store.queue.put(&barrierOp{l: l, done: done})
}

// Recover implements edge.Ledger.
func (l *ledger) Recover(done func(error)) {
	l.store.queue.put(&barrierOp{l: l, recover: true, done: done})
}

func (op *barrierOp) ledger() *ledger    { return op.l }
func (op *barrierOp) size() int          { return 0 }
func (op *barrierOp) admit(*group) error { return op.l.usable("barrier") }
func (op *barrierOp) apply(*group) error { return nil }
func (op *barrierOp) finish(err error)   { answer(op.done, err) }

// usable is ErrGone for a ledger that was closed, or says why its topic is unusable.
func (l *ledger) usable(step string) error {
	if l.closed {
		return fmt.Errorf("%s on %s: %w", step, l.topic.name, edge.ErrGone)
	}
	return l.topic.bad
}

func answer(done func(error), err error) {
	if done != nil {
		done(err)
	}
}
