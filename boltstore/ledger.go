package boltstore

import (
	"slices"
	"sync/atomic"

	"wayside/edge"
)

// ledger is an open topic; it implements edge.Ledger.
type ledger struct {
	store *Store
	topic *topic
	view  atomic.Pointer[view]

	// Guarded by the queue's lock.
	dirty   map[string]func() edge.CursorState
	deletes map[string]uint64 // order numbers of deletions in line
	late    bool              // is in the queue's list of late ledgers
	heavy   bool              // its cursors are too large to ride with every commit

	// The committer's.
	marks  []mark // mark-delete of every cursor, by name
	failed error  // why appends are refused up to Recover
	closed bool
}

// view is what readers see of a ledger: durable entries only. It is immutable and
// replaced when a commit is durable.
type view struct {
	spans edge.Spans
	where []where // of the closed ledgers, as in spans.Closed
	open  where
	floor edge.Position // last position that was trimmed
	filed edge.Position // entries before it lie in the files, the others in the journal
	loose []looseChunk
}

// place is closed ledger i.
func (v *view) place(i int) place { return place{v.spans.Closed[i], v.where[i]} }

// mark is where a cursor stands durably.
type mark struct {
	name  string
	at    edge.Position
	large bool // its state is paged
}

// Spans implements edge.Ledger.
func (l *ledger) Spans() edge.Spans { return l.view.Load().spans }

// BirthID implements edge.Ledger.
func (l *ledger) BirthID() string {
	l.store.topicsMu.RLock()
	defer l.store.topicsMu.RUnlock()
	return l.topic.rec.birthID()
}

// setView builds the view for a list of closed ledgers and the record.
func (l *ledger) setView(closed []place, rec *record) {
	v := &view{
		spans: edge.Spans{Closed: make([]edge.Span, len(closed)), Open: rec.open.span},
		where: make([]where, len(closed)), open: rec.open.where, floor: rec.floor,
		filed: rec.filed, loose: l.topic.loose,
	}
	for i := range closed {
		v.spans.Closed[i], v.where[i] = closed[i].span, closed[i].where
	}
	l.view.Store(v)
}

// advanceView replaces what appending changes.
func (l *ledger) advanceView(rec *record) {
	v := *l.view.Load()
	v.spans.Open, v.open = rec.open.span, rec.open.where
	v.filed, v.loose = rec.filed, l.topic.loose
	l.view.Store(&v)
}

func findMark(marks []mark, name string) (int, bool) {
	return slices.BinarySearchFunc(marks, name, func(m mark, name string) int {
		switch {
		case m.name < name:
			return -1
		case m.name > name:
			return 1
		}
		return 0
	})
}

// slowest is the least mark-delete.
func slowest(marks []mark) (p edge.Position) {
	for i := range marks {
		if i == 0 || marks[i].at.Less(p) {
			p = marks[i].at
		}
	}
	return p
}
