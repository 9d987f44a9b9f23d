package edge_test

import (
	"sync/atomic"

	"wayside/edge"
)

// hooks are what a test does between a broker and its store. Each may be set while
// the broker runs; nil does nothing.
type hooks struct {
	read   atomic.Pointer[func([]edge.Range) error] // before each read, whose error it may give
	open   atomic.Pointer[func(edge.TopicName)]     // before a ledger is opened
	closed atomic.Pointer[func(edge.TopicName)]     // before a ledger's Close is handed on
	refuse atomic.Pointer[func(*edge.Message) bool] // appends that the store does not take
	find   atomic.Pointer[func()]                   // before a search by time
	scan   atomic.Pointer[func() error]             // before a scan, whose error it may give
	save   atomic.Pointer[func() error]             // before a save that is waited for, which its error fails
	drop   atomic.Pointer[func(string)]             // before a cursor's deletion is handed on
	stats  atomic.Pointer[func(*edge.StoreStats)]
}

type hookedStore struct {
	edge.Store
	h *hooks
}

func (s hookedStore) OpenLedger(name edge.TopicName, reserved []string) (edge.Ledger, error) {
	if hook := s.h.open.Load(); hook != nil {
		(*hook)(name)
	}
	l, err := s.Store.OpenLedger(name, reserved)
	if err != nil {
		return nil, err
	}
	return hookedLedger{l, name, s.h}, nil
}

func (s hookedStore) Stats() edge.StoreStats {
	st := s.Store.Stats()
	if hook := s.h.stats.Load(); hook != nil {
		(*hook)(&st)
	}
	return st
}

type hookedLedger struct {
	edge.Ledger
	name edge.TopicName
	h    *hooks
}

func (l hookedLedger) Read(want []edge.Range, entries, bytes int) (edge.Batch, error) {
	if hook := l.h.read.Load(); hook != nil {
		if err := (*hook)(want); err != nil {
			return edge.Batch{}, err
		}
	}
	return l.Ledger.Read(want, entries, bytes)
}

func (l hookedLedger) Close(done func(error)) {
	if hook := l.h.closed.Load(); hook != nil {
		(*hook)(l.name)
	}
	l.Ledger.Close(done)
}

func (l hookedLedger) Find(from edge.Position, publish int64) (edge.Position, bool, error) {
	if hook := l.h.find.Load(); hook != nil {
		(*hook)()
	}
	return l.Ledger.Find(from, publish)
}

func (l hookedLedger) DeleteCursor(name string, done func(error)) {
	if hook := l.h.drop.Load(); hook != nil {
		(*hook)(name)
	}
	l.Ledger.DeleteCursor(name, done)
}

func (l hookedLedger) Scan(want edge.Range, visit func(edge.Position, edge.Facts) bool) error {
	if hook := l.h.scan.Load(); hook != nil {
		if err := (*hook)(); err != nil {
			return err
		}
	}
	return l.Ledger.Scan(want, visit)
}

func (l hookedLedger) SaveCursor(name string, state func() edge.CursorState, done func(error)) {
	if hook := l.h.save.Load(); hook != nil && done != nil {
		if err := (*hook)(); err != nil {
			go done(err) // it may be called with locks held
			return
		}
	}
	l.Ledger.SaveCursor(name, state, done)
}

func (l hookedLedger) Append(m edge.Message, done func(edge.Entry, error)) {
	if hook := l.h.refuse.Load(); hook != nil && (*hook)(&m) {
		m.Grant.Release()
		l.Ledger.Barrier(func(error) { done(edge.Entry{}, edge.ErrBadRequest) })
		return
	}
	l.Ledger.Append(m, done)
}
