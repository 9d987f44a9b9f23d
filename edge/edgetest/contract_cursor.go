package edgetest

import (
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"wayside/edge"
)

func (b *bench) cursors(l edge.Ledger) map[string]edge.CursorState {
	b.Helper()
	c, err := l.Cursors()
	b.check(err)
	return c
}

func (b *bench) save(l edge.Ledger, name string, s edge.CursorState) {
	b.Helper()
	b.do(func(done func(error)) { l.SaveCursor(name, func() edge.CursorState { return s }, done) })
}

func fullCursor(p edge.Position) edge.CursorState {
	return edge.CursorState{
		MarkDelete: p,
		Holes:      []edge.Run{{Ledger: p.Ledger, First: p.Entry + 2, Last: p.Entry + 2}, {Ledger: p.Ledger, First: p.Entry + 5, Last: p.Entry + 90}, {Ledger: p.Ledger + 4, First: 0, Last: 3}},
		Rests:      []edge.BatchRest{{Position: p.Next(), Words: []uint64{1 << 63, 5}}, {Position: edge.Position{Ledger: p.Ledger + 9, Entry: 1}, Words: []uint64{1}}},
		Counts:     []edge.RedeliveryCount{{Position: p.Next(), Count: 7}},
		Properties: map[string]string{"a": "b", "": "x"},
		Plan:       []byte("plan"),
	}
}

func testCursors(t *testing.T, b *bench) {
	l := b.open("cursors", "reserved", "other")
	start := edge.CursorState{MarkDelete: l.Spans().Start()}
	want := map[string]edge.CursorState{"reserved": start, "other": start}
	expect := func() {
		t.Helper()
		if got := b.cursors(l); !reflect.DeepEqual(got, want) {
			t.Fatalf("cursors %+v\nwant %+v", got, want)
		}
	}
	expect()
	e := b.fill(l, 0, 10)
	want["full"] = fullCursor(e[3].Position)
	want["bare"] = edge.CursorState{MarkDelete: e[9].Position}
	want[""] = edge.CursorState{MarkDelete: e[1].Position}
	for name, s := range want {
		b.save(l, name, s)
	}
	expect()
	b.do(func(done func(error)) { l.DeleteCursor("other", done) })
	b.do(func(done func(error)) { l.DeleteCursor("unknown", done) })
	delete(want, "other")
	expect()
	b.reopen()
	l = b.open("cursors")
	expect()
}

func testCursorOrder(t *testing.T, b *bench) {
	l := b.open("order")
	at := func(i int64) func() edge.CursorState {
		return func() edge.CursorState { return edge.CursorState{MarkDelete: edge.Position{Ledger: 1 << 40, Entry: i}} }
	}
	// Large appends in between cut the line into several commits.
	big := edge.Message{Facts: edge.Facts{Messages: 1}, Data: make([]byte, 700<<10)}
	push := func() { l.Append(big, func(edge.Entry, error) {}) }
	none := func(error) {}
	for round := range 20 {
		l.SaveCursor("deleted", at(1), nil)
		push()
		l.DeleteCursor("deleted", none)
		push()
		l.DeleteCursor("saved", none)
		l.SaveCursor("saved", at(2), nil)
		push()
		l.SaveCursor("twice", at(3), none)
		l.DeleteCursor("twice", none)
		l.SaveCursor("twice", at(4), none)
		l.SaveCursor("gone", at(5), none)
		l.SaveCursor("gone", at(5), nil)
		push()
		l.DeleteCursor("gone", none)
		b.do(l.Barrier)
		b.save(l, "last", at(6)())
		// saved has no done of its own: it is there with one of the next commits.
		waitFor(t, func() bool { return b.cursors(l)["saved"].MarkDelete.Entry == 2 })
		got := b.cursors(l)
		if len(got) != 3 || got["twice"].MarkDelete.Entry != 4 || got["last"].MarkDelete.Entry != 6 {
			t.Fatalf("round %d: %+v", round, got)
		}
		b.do(l.Roll)
		b.do(func(done func(error)) { l.Trim(edge.Latest, done) })
	}
}

// waitFor waits until a condition holds that comes true without a further call.
func waitFor(t *testing.T, holds func() bool) {
	t.Helper()
	deadline := time.After(answerTime)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("it does not come true")
		}
	}
}

func testCursorLate(t *testing.T, b *bench) {
	l := b.open("late")
	var now atomic.Int64
	state := func() edge.CursorState {
		b.cursors(l) // no lock is held that reading needs
		return edge.CursorState{MarkDelete: edge.Position{Ledger: 1, Entry: now.Load()}}
	}
	for i := range int64(100) {
		now.Store(i)
		l.SaveCursor("c", state, nil)
	}
	waitFor(t, func() bool { return b.cursors(l)["c"].MarkDelete.Entry == 99 })
	now.Store(200)
	l.SaveCursor("c", state, nil)
	b.do(l.Close)
	l = b.open("late")
	if got := b.cursors(l)["c"].MarkDelete.Entry; got != 200 {
		t.Fatalf("closing wrote %d", got)
	}
}

func testLargeCursor(t *testing.T, b *bench) {
	l := b.open("large")
	e := b.fill(l, 0, 1)
	s := edge.CursorState{MarkDelete: e[0].Position, Properties: map[string]string{"a": "b"}, Plan: make([]byte, 3000)}
	for i := range int64(40_000) {
		s.Holes = append(s.Holes, edge.Run{Ledger: 10 + i/10_000, First: i % 10_000 * 3, Last: i%10_000*3 + i%2})
		if i%4 == 0 {
			s.Rests = append(s.Rests, edge.BatchRest{Position: edge.Position{Ledger: 20, Entry: i}, Words: []uint64{uint64(i) + 1}})
			s.Counts = append(s.Counts, edge.RedeliveryCount{Position: edge.Position{Ledger: 20, Entry: i}, Count: uint32(i)})
		}
	}
	expect := func() {
		t.Helper()
		if got := b.cursors(l)["c"]; !reflect.DeepEqual(got, s) {
			t.Fatalf("a state of %d holes came back with %d", len(s.Holes), len(got.Holes))
		}
	}
	b.save(l, "c", s)
	expect()
	s.Holes = append(append([]edge.Run(nil), s.Holes[:20_000]...), s.Holes[20_001:]...)
	s.Rests = s.Rests[1:]
	b.save(l, "c", s)
	expect()
	b.reopen()
	l = b.open("large")
	expect()
	s.Holes, s.Rests, s.Counts, s.Plan = s.Holes[:3], nil, nil, nil
	b.save(l, "c", s)
	expect()
	s.Plan = make([]byte, 10_000)
	b.save(l, "c", s)
	expect()
	b.do(func(done func(error)) { l.DeleteCursor("c", done) })
	if got := b.cursors(l); len(got) != 0 {
		t.Fatalf("%d cursors are left", len(got))
	}
}
