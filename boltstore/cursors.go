package boltstore

import (
	"wayside/edge"
)

// cursorWrite is what a group does to one cursor in the end: a new state, or none.
type cursorWrite struct {
	led   *ledger
	name  string
	ask   func() edge.CursorState
	state *edge.CursorState
	value []byte // the state as the journal takes it; nil for one that is too large
}

// noteSave lets the group write a cursor; only its last fate in the group counts.
func (g *group) noteSave(l *ledger, name string, ask func() edge.CursorState) {
	g.noteCursor(cursorWrite{led: l, name: name, ask: ask})
}

func (g *group) noteCursor(c cursorWrite) {
	id := cursorID{c.led, c.name}
	if i, ok := g.cursorAt[id]; ok {
		g.cursors[i] = c
		return
	}
	if g.cursorAt == nil {
		g.cursorAt = map[cursorID]int{}
	}
	g.cursorAt[id] = len(g.cursors)
	g.cursors = append(g.cursors, c)
}

type cursorID struct {
	led  *ledger
	name string
}

// askCursors asks every cursor once for its state. No lock and no transaction is held.
func (g *group) askCursors() {
	for i := range g.cursors {
		if c := &g.cursors[i]; c.ask != nil {
			s := c.ask()
			c.state = &s
		}
	}
}

// cursorWeight counts for a cursor's save in its group.
const cursorWeight = 256

// saveCursorOp is a save whose caller waits for it.
type saveCursorOp struct {
	l     *ledger
	name  string
	state func() edge.CursorState
	done  func(error)
}

// SaveCursor implements edge.Ledger.
func (l *ledger) SaveCursor(name string, state func() edge.CursorState, done func(error)) {
	if done == nil {
		l.store.queue.markDirty(l, name, state)
		return
	}
	l.store.queue.put(&saveCursorOp{l, name, state, done})
}

func (op *saveCursorOp) ledger() *ledger    { return op.l }
func (op *saveCursorOp) size() int          { return cursorWeight }
func (op *saveCursorOp) apply(*group) error { return nil }
func (op *saveCursorOp) finish(err error)   { answer(op.done, err) }

func (op *saveCursorOp) admit(g *group) error {
	if err := op.l.usable("save cursor"); err != nil {
		return err
	}
	g.noteSave(op.l, op.name, op.state)
	return nil
}

// deleteCursorOp removes a cursor.
type deleteCursorOp struct {
	l    *ledger
	name string
	done func(error)
}

// DeleteCursor implements edge.Ledger.
func (l *ledger) DeleteCursor(name string, done func(error)) {
	l.store.queue.putDelete(&deleteCursorOp{l, name, done})
}

func (op *deleteCursorOp) ledger() *ledger    { return op.l }
func (op *deleteCursorOp) size() int          { return cursorWeight }
func (op *deleteCursorOp) apply(*group) error { return nil }
func (op *deleteCursorOp) finish(err error)   { answer(op.done, err) }

func (op *deleteCursorOp) admit(g *group) error {
	if err := op.l.usable("delete cursor"); err != nil {
		return err
	}
	g.noteCursor(cursorWrite{led: op.l, name: op.name})
	return nil
}
