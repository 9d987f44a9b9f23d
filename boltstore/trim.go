package boltstore

import (
	"wayside/edge"
)

// trimOp crosses off closed ledgers that lie before a position.
type trimOp struct {
	l      *ledger
	before edge.Position
	done   func(error)
}

// Trim implements edge.Ledger.
func (l *ledger) Trim(before edge.Position, done func(error)) {
	l.store.queue.put(&trimOp{l, before, done})
}

func (op *trimOp) ledger() *ledger  { return op.l }
func (op *trimOp) size() int        { return pageSize }
func (op *trimOp) finish(err error) { answer(op.done, err) }

func (op *trimOp) admit(g *group) error {
	g.needs = true
	return op.l.usable("trim")
}

// apply takes the ledgers out of the topic's list. Their pages are given back later,
// in small steps.
func (op *trimOp) apply(g *group) error {
	w := g.byTopic[op.l.topic]
	if w == nil {
		if v := op.l.view.Load(); len(v.where) == 0 || !v.spans.Closed[0].End().Less(op.before) {
			return nil
		}
		w = g.touch(op.l.topic)
	}
	list := w.closedPlaces()
	n := 0
	for n < len(list) && list[n].span.End().Less(op.before) {
		n++
	}
	if n == 0 {
		return nil
	}
	for i := range list[:n] {
		if err := g.drop(w, &list[i]); err != nil {
			return err
		}
	}
	w.rec.floor = list[n-1].span.End()
	w.rec.filed = edge.Max(w.rec.filed, w.rec.floor.Next())
	for w.tight = 0; w.tight < len(w.topic.loose) && !w.rec.floor.Less(w.topic.loose[w.tight].last()); {
		w.tight++
	}
	w.setClosed(list[n:])
	return nil
}

// drop takes one closed ledger out of a topic's bucket.
func (g *group) drop(w *touch, p *place) error {
	b, err := g.bucket(w.topic)
	if err != nil {
		return err
	}
	if err := b.Delete(placeKey(p.span.Ledger)); err != nil {
		return err
	}
	if p.file != g.store.main.number {
		if err := g.leaveVolume(p); err != nil {
			return err
		}
		if b.Bucket(ledgerKey(p.span.Ledger)) == nil {
			return nil
		} // or else it was on its way out of the volume
	}
	return g.bury(append(topicKey(w.topic.key), ledgerKey(p.span.Ledger)...))
}

// rollOp closes the open ledger.
type rollOp struct {
	l    *ledger
	done func(error)
}

// Roll implements edge.Ledger.
func (l *ledger) Roll(done func(error)) { l.store.queue.put(&rollOp{l, done}) }

func (op *rollOp) ledger() *ledger  { return op.l }
func (op *rollOp) size() int        { return pageSize }
func (op *rollOp) finish(err error) { answer(op.done, err) }

func (op *rollOp) admit(g *group) error {
	g.needs = true
	return op.l.usable("roll")
}

func (op *rollOp) apply(g *group) error {
	w := g.byTopic[op.l.topic]
	if w == nil {
		if op.l.topic.rec.open.span.Entries() == 0 {
			return nil
		}
		w = g.touch(op.l.topic)
	}
	if w.rec.open.span.Entries() == 0 {
		return nil
	}
	return g.roll(w)
}
