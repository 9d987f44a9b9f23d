package edgetest

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"

	"wayside/edge"
)

func testRollTrim(t *testing.T, b *bench) {
	l := b.open("roll")
	first := l.Spans().Open.Ledger
	b.do(l.Roll)
	if got := l.Spans(); got.Len() != 1 || got.Open.Ledger != first {
		t.Fatalf("an empty ledger was rolled: %+v", got)
	}
	n := 3*b.h.RollAfter + 1
	e := b.fill(l, 0, n)
	s := l.Spans()
	if s.Len() != 4 || s.Open.Entries() != 1 {
		t.Fatalf("%d entries in %d ledgers, the last with %d", n, s.Len(), s.Open.Entries())
	}
	for i := range s.Len() - 1 {
		if !s.At(i).End().Less(s.At(i + 1).End()) {
			t.Fatalf("ledgers out of order: %+v", s)
		}
	}
	trim := func(p edge.Position) { b.do(func(done func(error)) { l.Trim(p, done) }) }
	trim(e[b.h.RollAfter-1].Position) // its own last entry stays
	if got := l.Spans().Len(); got != 4 {
		t.Fatalf("%d ledgers after a trim inside the first", got)
	}
	trim(e[2*b.h.RollAfter].Position)
	if got := l.Spans(); got.Len() != 2 || got.At(0).End() != e[3*b.h.RollAfter-1].Position {
		t.Fatalf("after trim %+v", got)
	}
	trim(edge.Latest)
	if got := l.Spans(); got.Len() != 1 || got.Open != s.Open {
		t.Fatalf("the open ledger was touched: %+v, was %+v", got.Open, s.Open)
	}
	b.do(l.Roll)
	trim(edge.Latest)
	empty := l.Spans()
	if empty.Len() != 1 || empty.Open.Entries() != 0 || !s.Open.End().Less(empty.Open.Start()) {
		t.Fatalf("after all was trimmed %+v", empty)
	}
	b.reopen()
	l = b.open("roll")
	if got := l.Spans(); !reflect.DeepEqual(got.Open, empty.Open) {
		t.Fatalf("after reopening %+v, was %+v", got.Open, empty.Open)
	}
	last := e[n-1]
	if next := b.fill(l, n, 1)[0]; next.Index != last.LastIndex()+1 || !last.Position.Less(next.Position) {
		t.Fatalf("entry after %v with index %d is %v with %d", last.Position, last.Index, next.Position, next.Index)
	}
}

func testSpans(t *testing.T, b *bench) {
	l := b.open("spans")
	n := b.h.RollAfter + b.h.RollAfter/2
	e := b.fill(l, 0, n)
	for range 2 {
		s := l.Spans()
		var messages, size int64
		for i := range e {
			messages += int64(e[i].Facts.Messages)
			size += int64(len(e[i].Data))
		}
		if entries, m, bytes := s.Totals(); entries != int64(n) || m != messages || bytes != size {
			t.Fatalf("totals %d %d %d, want %d %d %d", entries, m, bytes, n, messages, size)
		}
		if s.End() != e[n-1].Position || s.Open.LastTime != e[n-1].Facts.Publish || s.Closed[0].LastTime != e[b.h.RollAfter-1].Facts.Publish {
			t.Fatalf("ends %+v", s)
		}
		if got := s.EntriesBetween(e[10].Position, e[n-1].Position); got != int64(n-11) {
			t.Fatalf("%d entries behind number 10, want %d", got, n-11)
		}
		b.reopen()
		l = b.open("spans")
	}
}

func testSequences(t *testing.T, b *bench) {
	l := b.open("sequences")
	send := func(f edge.Facts, sequenced, generated bool) {
		b.appendAll(l, edge.Message{Facts: f, Data: []byte("x"), Sequenced: sequenced, Generated: generated})
	}
	send(edge.Facts{Producer: "a", Sequence: 5, Highest: 9, Messages: 5}, true, false)
	send(edge.Facts{Producer: "a", Sequence: 7, Highest: 7, Messages: 1}, true, false)
	send(edge.Facts{Producer: "unheard", Sequence: 5, Highest: 5, Messages: 1}, false, false)
	send(edge.Facts{Producer: "", Sequence: 5, Highest: 5, Messages: 1}, true, false)
	send(edge.Facts{Producer: "gen", Sequence: 0, Highest: 0, Messages: 1}, true, true)
	send(edge.Facts{Producer: "chunks", Sequence: 3, Highest: 3, Messages: 1}, true, false)
	send(edge.Facts{Producer: "chunks", Sequence: 4, Highest: 4, Messages: 1, Chunk: edge.Chunk{UUID: "u", ID: 0, Of: 3}}, true, false)
	send(edge.Facts{Producer: "chunks", Sequence: 4, Highest: 4, Messages: 1, Chunk: edge.Chunk{UUID: "u", ID: 1, Of: 3}}, true, false)
	send(edge.Facts{Producer: "done", Sequence: 4, Highest: 4, Messages: 1, Chunk: edge.Chunk{UUID: "u", ID: 2, Of: 3}}, true, false)
	want := map[string]edge.SequenceState{
		"a": {Highest: 9}, "gen": {Highest: 0, Generated: true},
		"chunks": {Highest: 3, ChunkUUID: "u", ChunkID: 1}, "done": {Highest: 4},
	}
	expect := func() {
		t.Helper()
		got, err := l.Sequences()
		b.check(err)
		for name, s := range got {
			s.Idle = 0
			got[name] = s
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("sequences %+v, want %+v", got, want)
		}
	}
	expect()
	b.do(l.Roll)
	b.do(func(done func(error)) { l.Trim(edge.Latest, done) })
	b.reopen()
	l = b.open("sequences")
	expect()
	b.do(func(done func(error)) { l.DropSequences([]string{"a", "nobody"}, done) })
	delete(want, "a")
	expect()
	b.do(func(done func(error)) { l.DropSequences(nil, done) })
	clear(want)
	expect()
	send(edge.Facts{Producer: "a", Sequence: 1, Highest: 1, Messages: 1}, true, false)
	want["a"] = edge.SequenceState{Highest: 1}
	expect()
}

func testSequenceBound(t *testing.T, b *bench) {
	l := b.open("many")
	n := edge.MaxSequences + 500
	messages := make([]edge.Message, n)
	for i := range messages {
		messages[i] = edge.Message{
			Facts: edge.Facts{Producer: fmt.Sprint("p", i), Messages: 1}, Data: []byte("x"),
			Sequenced: true, Generated: i < 1000,
		}
	}
	for len(messages) > 0 {
		step := min(700, len(messages))
		b.appendAll(l, messages[:step]...)
		messages = messages[step:]
	}
	got, err := l.Sequences()
	b.check(err)
	if len(got) > edge.MaxSequences || len(got) < edge.MaxSequences-500 {
		t.Fatalf("%d names are kept", len(got))
	}
	named := 0
	for _, s := range got {
		if !s.Generated {
			named++
		}
	}
	if named != n-1000 {
		t.Fatalf("%d given names are kept of %d, though generated ones could have gone", named, n-1000)
	}
}

func testSmallState(t *testing.T, b *bench) {
	l := b.open("small")
	if p, err := l.Properties(); err != nil || len(p) != 0 {
		t.Fatalf("a new topic has properties %q, %v", p, err)
	}
	big := bytes.Repeat([]byte("p"), edge.MaxProperties)
	b.do(func(done func(error)) { l.SetProperties([]byte("one"), done) })
	b.do(func(done func(error)) { l.SetProperties(big, done) })
	b.want(await(func(done func(error)) { l.SetProperties(append(big, 'x'), done) }), edge.ErrBadRequest)
	put := func(key string, value []byte) error {
		return await(func(done func(error)) { b.store.PutValue(key, value, done) })
	}
	b.check(put("a/1", []byte("x")))
	b.check(put("a/2", []byte{}))
	b.check(put("a/3", bytes.Repeat([]byte("v"), edge.MaxValue)))
	b.check(put("b/1", []byte("y")))
	b.check(put("b/2", []byte("gone")))
	b.check(put("b/2", nil))
	b.check(put("nobody", nil))
	b.want(put("", []byte("x")), edge.ErrBadRequest)
	b.want(put("k", make([]byte, edge.MaxValue+1)), edge.ErrBadRequest)
	b.want(put(string(make([]byte, edge.MaxValueKey+1)), nil), edge.ErrBadRequest)
	for range 2 {
		var got []string
		b.check(b.store.ScanValues("", func(k string, v []byte) bool {
			got = append(got, fmt.Sprintf("%s=%d", k, len(v)))
			return true
		}))
		if want := []string{"a/1=1", "a/2=0", "a/3=1048576", "b/1=1"}; !reflect.DeepEqual(got, want) {
			t.Fatalf("values %v, want %v", got, want)
		}
		got = nil
		b.check(b.store.ScanValues("a/", func(k string, _ []byte) bool {
			got = append(got, k)
			return len(got) < 2
		}))
		if want := []string{"a/1", "a/2"}; !reflect.DeepEqual(got, want) {
			t.Fatalf("values %v, want %v", got, want)
		}
		if p, err := l.Properties(); err != nil || !bytes.Equal(p, big) {
			t.Fatalf("properties of %d bytes, %v", len(p), err)
		}
		b.reopen()
		l = b.open("small")
	}
}

func testRebirth(t *testing.T, b *bench) {
	l := b.open("reborn")
	seen := map[string]bool{l.BirthID(): true}
	b.fill(l, 0, 5)
	last := l.Spans().Open
	for round := range 4 {
		b.do(func(done func(error)) { b.store.DeleteLedger(topicName("reborn"), done) })
		b.want(await(l.Barrier), edge.ErrGone)
		b.want(await(func(done func(error)) { l.Append(message(1), func(_ edge.Entry, err error) { done(err) }) }), edge.ErrGone)
		if n := len(b.store.Records()); n != 0 {
			t.Fatalf("%d records after the deletion", n)
		}
		if round%2 == 1 {
			b.reopen()
		}
		l = b.open("reborn")
		if seen[l.BirthID()] || l.BirthID() == "" {
			t.Fatalf("birth id %q again", l.BirthID())
		}
		seen[l.BirthID()] = true
		if now := l.Spans().Open; now.Ledger <= last.Ledger || now.Entries() != 0 || now.MessagesBefore != 0 {
			t.Fatalf("reborn as %+v after %+v", now, last)
		}
		last = l.Spans().Open
		if c, err := l.Cursors(); err != nil || len(c) != 0 {
			t.Fatalf("cursors %v, %v", c, err)
		}
		b.fill(l, 0, 2)
	}
	b.check(await(func(done func(error)) { b.store.DeleteLedger(topicName("unknown"), done) }))
}

func testLedgerClose(t *testing.T, b *bench) {
	l := b.open("close")
	_, err := b.store.OpenLedger(topicName("close"), nil)
	b.want(err, edge.ErrExists)
	e := b.fill(l, 0, 5)
	birth := l.BirthID()
	l.SaveCursor("c", func() edge.CursorState { return edge.CursorState{MarkDelete: e[2].Position} }, nil)
	b.do(l.Close)
	b.want(await(l.Barrier), edge.ErrGone)
	b.want(await(l.Roll), edge.ErrGone)
	b.check(await(l.Close))
	l = b.open("close", "ignored")
	if l.BirthID() != birth {
		t.Fatalf("birth id %q, was %q", l.BirthID(), birth)
	}
	c, err := l.Cursors()
	b.check(err)
	if len(c) != 1 || c["c"].MarkDelete != e[2].Position {
		t.Fatalf("cursors %v", c)
	}
	if got := b.readAll(l); !reflect.DeepEqual(got, e) {
		t.Fatalf("read %v", positions(got))
	}
}

func testStoreClose(t *testing.T, b *bench) {
	l := b.open("drain")
	const n = 200
	answers := make(chan error, n)
	for i := range n {
		l.Append(message(i), func(_ edge.Entry, err error) { answers <- err })
	}
	l.SaveCursor("c", func() edge.CursorState { return edge.CursorState{MarkDelete: edge.Position{Ledger: 1, Entry: 7}} }, nil)
	b.check(b.store.Close())
	for range n {
		b.check(<-answers)
	}
	b.want(await(l.Barrier), edge.ErrClosing)
	b.want(await(func(done func(error)) { b.store.DeleteLedger(topicName("drain"), done) }), edge.ErrClosing)
	_, err := b.store.OpenLedger(topicName("x"), nil)
	b.want(err, edge.ErrClosing)
	b.check(b.store.Close())
	b.store = b.h.Reopen(t, b.store)
	l = b.open("drain")
	if got := len(b.readAll(l)); got != n {
		t.Fatalf("%d entries of %d", got, n)
	}
	c, err := l.Cursors()
	b.check(err)
	if c["c"].MarkDelete.Entry != 7 {
		t.Fatalf("cursors %v", c)
	}
}

func testRecords(t *testing.T, b *bench) {
	l, _ := b.open("b"), b.open("a", "reserved")
	e := b.fill(l, 0, 10)
	b.do(func(done func(error)) {
		l.SaveCursor("slow", func() edge.CursorState { return edge.CursorState{MarkDelete: e[1].Position} }, done)
	})
	b.do(func(done func(error)) {
		l.SaveCursor("fast", func() edge.CursorState { return edge.CursorState{MarkDelete: e[9].Position} }, done)
	})
	for round := range 2 {
		r := b.store.Records()
		if len(r) != 2 || r[0].Name.Local != "a" || r[1].Name.Local != "b" {
			t.Fatalf("round %d: records %+v", round, r)
		}
		if r[0].Subscriptions != 1 || r[0].Entries != 0 || r[0].LiveBytes != 0 {
			t.Fatalf("record of the empty topic %+v", r[0])
		}
		got := r[1]
		if got.Entries != 10 || got.End != e[9].Position || got.NextIndex != e[9].LastIndex()+1 || got.Subscriptions != 2 ||
			got.Slowest != e[1].Position || got.BirthID == "" || got.LastAppend == 0 {
			t.Fatalf("record %+v", got)
		}
		if got.LiveBytes <= 0 || got.LiveBytes >= got.Bytes || b.store.Stats().LiveBytes != got.LiveBytes {
			t.Fatalf("%d live of %d bytes, in all %d", got.LiveBytes, got.Bytes, b.store.Stats().LiveBytes)
		}
		b.reopen()
	}
	l = b.open("b")
	b.do(func(done func(error)) { l.DeleteCursor("slow", done) })
	if r := b.store.Records()[1]; r.LiveBytes != 0 || r.Slowest != e[9].Position {
		t.Fatalf("record %+v", r)
	}
	b.do(func(done func(error)) { l.DeleteCursor("fast", done) })
	if r := b.store.Records()[1]; r.LiveBytes != 0 || r.Slowest != e[9].Position || r.Subscriptions != 0 {
		t.Fatalf("record %+v", r)
	}
}
