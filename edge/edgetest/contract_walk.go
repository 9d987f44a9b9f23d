package edgetest

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"wayside/edge"
)

// walkTopic is what the random walk expects of one topic. Its entries are all that
// were ever stored; trimmed ones lie at or before floor.
type walkTopic struct {
	ledger  edge.Ledger
	entries []edge.Entry
	floor   edge.Position
	cursors map[string]edge.CursorState
	seen    map[edge.Position]bool
}

// testRandomWalk does at random what callers do and compares with a plain list:
//
//  1. What was confirmed is read back, in order and unchanged, until it is trimmed.
//  2. Positions rise and none is used twice, whatever happens in between.
//  3. Indexes count messages without gaps for the life of a birth id.
//  4. Cursors are what was saved last.
func testRandomWalk(t *testing.T, b *bench) {
	r := rand.New(rand.NewPCG(1, 2))
	topics := map[string]*walkTopic{}
	names := []string{"a", "b", "c"}
	steps := 400
	if testing.Short() {
		steps = 100
	}
	for step := range steps {
		name := names[r.IntN(len(names))]
		w := topics[name]
		if w == nil {
			w = &walkTopic{cursors: map[string]edge.CursorState{}, seen: map[edge.Position]bool{}}
			topics[name] = w
		}
		if w.ledger == nil {
			w.ledger = b.open(name)
		}
		b.walk(r, name, w, topics)
		if step%20 == 0 {
			for _, w := range topics {
				b.compare(w)
			}
		}
	}
}

// walk does one random step.
func (b *bench) walk(r *rand.Rand, name string, w *walkTopic, topics map[string]*walkTopic) {
	b.Helper()
	switch r.IntN(12) {
	case 0, 1, 2, 3, 4:
		b.walkAppend(w, r.IntN(120))
	case 5:
		b.do(w.ledger.Roll)
	case 6:
		if len(w.entries) > 0 {
			b.walkTrim(w, w.entries[r.IntN(len(w.entries))].Position)
		}
	case 7, 8:
		if len(w.entries) > 0 {
			s := fullCursor(w.entries[len(w.entries)-1].Position)
			cursor := string(rune('x' + r.IntN(3)))
			b.save(w.ledger, cursor, s)
			w.cursors[cursor] = s
		}
	case 9:
		b.do(w.ledger.Close)
		w.ledger = nil
	case 10:
		b.reopen()
		for _, w := range topics {
			w.ledger = nil
		}
	case 11:
		if r.IntN(3) == 0 {
			b.do(func(done func(error)) { b.store.DeleteLedger(topicName(name), done) })
			w.ledger, w.entries, w.floor = nil, nil, edge.Position{}
			clear(w.cursors)
		}
	}
}

func (b *bench) walkAppend(w *walkTopic, n int) {
	b.Helper()
	next := uint64(0)
	if len(w.entries) > 0 {
		next = w.entries[len(w.entries)-1].LastIndex() + 1
	}
	for _, e := range b.fill(w.ledger, len(w.entries), n) {
		if w.seen[e.Position] || len(w.entries) > 0 && !w.entries[len(w.entries)-1].Position.Less(e.Position) {
			b.Fatalf("position %v again", e.Position)
		}
		if e.Index != next {
			b.Fatalf("index %d at %v, want %d", e.Index, e.Position, next)
		}
		next = e.LastIndex() + 1
		w.seen[e.Position] = true
		w.entries = append(w.entries, e)
	}
}

func (b *bench) walkTrim(w *walkTopic, before edge.Position) {
	b.Helper()
	for _, s := range w.ledger.Spans().Closed {
		if s.End().Less(before) {
			w.floor = s.End()
		}
	}
	b.do(func(done func(error)) { w.ledger.Trim(before, done) })
}

func (b *bench) compare(w *walkTopic) {
	b.Helper()
	if w.ledger == nil {
		return
	}
	kept := slices.Clone(w.entries)
	kept = slices.DeleteFunc(kept, func(e edge.Entry) bool { return !w.floor.Less(e.Position) })
	if got := b.readAll(w.ledger); len(got) != len(kept) || len(kept) > 0 && !reflect.DeepEqual(got, kept) {
		b.Fatalf("read %d entries, want %d", len(got), len(kept))
	}
	for name, s := range w.cursors {
		w.cursors[name] = s.Raised(w.floor)
	}
	if got := b.cursors(w.ledger); !reflect.DeepEqual(tidy(got), tidy(w.cursors)) {
		b.Fatalf("cursors %+v, want %+v", got, w.cursors)
	}
}

// tidy makes states comparable: an empty list is no list.
func tidy(states map[string]edge.CursorState) map[string]edge.CursorState {
	out := make(map[string]edge.CursorState, len(states))
	for name, s := range states {
		s.Holes, s.Rests, s.Counts = slices.Clip(s.Holes), slices.Clip(s.Rests), slices.Clip(s.Counts)
		if len(s.Holes) == 0 {
			s.Holes = nil
		}
		if len(s.Rests) == 0 {
			s.Rests = nil
		}
		if len(s.Counts) == 0 {
			s.Counts = nil
		}
		out[name] = s
	}
	return out
}
