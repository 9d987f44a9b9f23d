package edgetest

import (
	"fmt"
	"maps"
	"slices"

	"wayside/edge"
)

// memLedger is an open topic of a MemStore.
type memLedger struct {
	store  *MemStore
	topic  *memTopic
	failed error // why appends are refused up to Recover
	closed bool
}

// change puts an op on the topic in line; apply runs with the store locked.
func (l *memLedger) change(done func(error), apply func() error) {
	s := l.store
	s.submit(true, func() func() {
		switch {
		case l.closed:
			return answer(done, edge.ErrGone)
		case s.fail != nil:
			return answer(done, s.fail)
		}
		return answer(done, apply())
	}, done)
}

// close makes later calls fail. The store is locked.
func (l *memLedger) close() {
	l.closed = true
	delete(l.store.ledgers, l.topic.name)
}

// state returns the error that stands in the line now. The store is locked.
func (l *memLedger) state() error {
	if l.closed {
		return edge.ErrGone
	}
	return l.failed
}

// Append implements edge.Ledger.
func (l *memLedger) Append(m edge.Message, done func(edge.Entry, error)) {
	s := l.store
	refuse := func(err error) {
		m.Grant.Release()
		done(edge.Entry{}, err)
	}
	s.submit(true, func() func() {
		err := l.state()
		if err == nil && s.fail != nil {
			err = fmt.Errorf("append to %s: %w", l.topic.name, s.fail)
			l.failed = fmt.Errorf("%w: %w", edge.ErrLedgerFailed, s.fail)
		}
		if err != nil {
			return func() { refuse(err) }
		}
		e := l.topic.append(m, s.disk)
		s.stats.WrittenData += int64(len(m.Data))
		return func() {
			m.Grant.Release()
			done(e, nil)
		}
	}, refuse)
}

// Barrier implements edge.Ledger.
func (l *memLedger) Barrier(done func(error)) {
	l.store.submit(true, func() func() { return answer(done, l.state()) }, done)
}

// Recover implements edge.Ledger.
func (l *memLedger) Recover(done func(error)) {
	l.store.submit(true, func() func() {
		l.failed = nil
		return answer(done, l.state())
	}, done)
}

// Read implements edge.Ledger.
func (l *memLedger) Read(want []edge.Range, maxEntries, maxBytes int) (edge.Batch, error) {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	var b edge.Batch
	bytes := 0
	for _, r := range want {
		for p := range l.topic.walk(r, &b.Lost) {
			if len(b.Entries) >= maxEntries || len(b.Entries) > 0 && bytes >= maxBytes {
				return b, nil
			}
			e, ok := l.topic.entry(p)
			if !ok {
				b.Lost = addLost(b.Lost, edge.Range{First: p, Last: p})
				continue
			}
			b.Entries = append(b.Entries, e)
			bytes += len(e.Data)
		}
	}
	return b, nil
}

// Scan implements edge.Ledger.
func (l *memLedger) Scan(want edge.Range, visit func(edge.Position, edge.Facts) bool) error {
	l.store.mu.Lock()
	var found []edge.Entry
	for p := range l.topic.walk(want, nil) {
		if e, ok := l.topic.entry(p); ok {
			found = append(found, e)
		}
	}
	l.store.mu.Unlock()
	for _, e := range found {
		if !visit(e.Position, e.Facts) {
			break
		}
	}
	return nil
}

// Find implements edge.Ledger.
func (l *memLedger) Find(from edge.Position, publish int64) (edge.Position, bool, error) {
	found, ok := edge.Position{}, false
	err := l.Scan(edge.Range{First: from, Last: edge.Latest}, func(p edge.Position, f edge.Facts) bool {
		found, ok = p, f.Publish >= publish
		return !ok
	})
	if !ok {
		return edge.Position{}, false, err
	}
	return found, true, err
}

// Spans implements edge.Ledger.
func (l *memLedger) Spans() edge.Spans {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	return l.topic.spans()
}

// BirthID implements edge.Ledger.
func (l *memLedger) BirthID() string { return l.topic.birth }

// Trim implements edge.Ledger.
func (l *memLedger) Trim(before edge.Position, done func(error)) {
	l.change(done, func() error {
		l.topic.trim(before)
		return nil
	})
}

// Roll implements edge.Ledger.
func (l *memLedger) Roll(done func(error)) {
	l.change(done, func() error {
		l.topic.roll(l.store.disk)
		return nil
	})
}

// Sequences implements edge.Ledger.
func (l *memLedger) Sequences() (map[string]edge.SequenceState, error) {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	return maps.Clone(l.topic.sequences), nil
}

// DropSequences implements edge.Ledger.
func (l *memLedger) DropSequences(names []string, done func(error)) {
	names = slices.Clone(names)
	l.change(done, func() error {
		if names == nil {
			clear(l.topic.sequences)
		}
		for _, name := range names {
			delete(l.topic.sequences, name)
		}
		return nil
	})
}

// Properties implements edge.Ledger.
func (l *memLedger) Properties() ([]byte, error) {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	return slices.Clone(l.topic.properties), nil
}

// SetProperties implements edge.Ledger.
func (l *memLedger) SetProperties(value []byte, done func(error)) {
	value = slices.Clone(value)
	l.change(done, func() error {
		if len(value) > edge.MaxProperties {
			return fmt.Errorf("%w: properties of %d bytes, at most %d", edge.ErrBadRequest, len(value), edge.MaxProperties)
		}
		l.topic.properties = value
		return nil
	})
}

// Cursors implements edge.Ledger.
func (l *memLedger) Cursors() (map[string]edge.CursorState, error) {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	states := make(map[string]edge.CursorState, len(l.topic.cursors))
	for name, s := range l.topic.cursors {
		states[name] = s.Raised(l.topic.floor)
	}
	return states, nil
}

// SaveCursor implements edge.Ledger.
func (l *memLedger) SaveCursor(name string, state func() edge.CursorState, done func(error)) {
	s := l.store
	s.submit(done != nil, func() func() {
		if l.closed {
			return answer(done, edge.ErrGone)
		}
		s.dirty[memCursor{l.topic, name}] = state
		return answer(done, s.fail)
	}, done)
}

// DeleteCursor implements edge.Ledger.
func (l *memLedger) DeleteCursor(name string, done func(error)) {
	l.change(done, func() error {
		delete(l.store.dirty, memCursor{l.topic, name})
		delete(l.topic.cursors, name)
		return nil
	})
}

// Close implements edge.Ledger.
func (l *memLedger) Close(done func(error)) {
	l.store.submit(true, func() func() {
		if l.closed {
			return answer(done, nil)
		}
		l.close()
		return answer(done, l.store.fail)
	}, done)
}
