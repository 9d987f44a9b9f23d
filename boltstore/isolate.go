package boltstore

import (
	"errors"
)

// isolate keeps one topic whose pages are damaged from failing the others of its
// group, and of all groups to come: its operations are refused from now on, until the
// next start has looked at the file. It reports whether the group can be tried again.
func (g *group) isolate(err error) bool {
	t := g.current
	if t == nil || t.bad != nil || !errors.Is(err, errDamaged) {
		return false
	}
	g.store.giveUp(t, err)
	for i, op := range g.ops {
		if g.errs[i] == nil && concerns(op, t) {
			g.errs[i] = t.bad
			if a, ok := op.(*appendOp); ok {
				a.l.fail(t.bad)
			}
		}
	}
	g.restart(t)
	return true
}

// concerns reports whether an operation is one on a topic.
func concerns(op operation, t *topic) bool {
	switch op := op.(type) {
	case *openOp:
		return op.name == t.name
	case *deleteOp:
		return op.name == t.name
	}
	l := op.ledger()
	return l != nil && l.topic == t
}

// restart forgets what a failed attempt has made of the group, and a topic's cursors.
func (g *group) restart(bad *topic) {
	for _, undo := range g.undo {
		undo()
	}
	g.undo, g.after, g.touched, g.left, g.saved, g.data, g.changed = nil, nil, nil, nil, nil, 0, false
	clear(g.byTopic)
	clear(g.created)
	kept := g.cursors[:0]
	for _, c := range g.cursors {
		if c.led.topic != bad {
			kept = append(kept, c)
		}
	}
	g.cursors = kept
}
