package edgetest

import (
	"reflect"
	"testing"

	"wayside/edge"
)

func (b *bench) read(l edge.Ledger, maxEntries, maxBytes int, want ...edge.Range) edge.Batch {
	b.Helper()
	batch, err := l.Read(want, maxEntries, maxBytes)
	b.check(err)
	return batch
}

func positions(entries []edge.Entry) (list []edge.Position) {
	for _, e := range entries {
		list = append(list, e.Position)
	}
	return list
}

func between(p, q edge.Position) edge.Range { return edge.Range{First: p, Last: q} }

func testRead(t *testing.T, b *bench) {
	l := b.open("read")
	e := b.fill(l, 0, 20)
	b.do(l.Roll)
	e = append(e, b.fill(l, 20, 20)...)
	b.do(l.Roll)
	e = append(e, b.fill(l, 40, 5)...)
	at := func(i int) edge.Position { return e[i].Position }
	for _, c := range []struct {
		name string
		want []edge.Range
		ids  []int
	}{
		{"one", []edge.Range{between(at(3), at(3))}, []int{3}},
		{"ranges in the order given", []edge.Range{between(at(30), at(31)), between(at(2), at(3))}, []int{30, 31, 2, 3}},
		{"over ledgers", []edge.Range{between(at(18), at(21))}, []int{18, 19, 20, 21}},
		{"over two rolls", []edge.Range{between(at(39), edge.Latest)}, []int{39, 40, 41, 42, 43, 44}},
		{"from earliest", []edge.Range{between(edge.Earliest, at(1))}, []int{0, 1}},
		{"beyond the end", []edge.Range{between(at(44).Next(), edge.Latest)}, nil},
		{"from beyond a ledger's end", []edge.Range{between(edge.Position{Ledger: at(19).Ledger, Entry: 500}, at(20))}, []int{20}},
		{"empty", []edge.Range{between(at(5), at(4))}, nil},
		{"none", nil, nil},
		{"twice", []edge.Range{between(at(7), at(7)), between(at(7), at(7))}, []int{7, 7}},
	} {
		batch := b.read(l, 100, 1<<20, c.want...)
		var want []edge.Entry
		for _, i := range c.ids {
			want = append(want, e[i])
		}
		if !reflect.DeepEqual(batch.Entries, want) || len(batch.Lost) > 0 {
			t.Errorf("%s: read %v, lost %v, want %v", c.name, positions(batch.Entries), batch.Lost, positions(want))
		}
	}
}

func testReadBounds(t *testing.T, b *bench) {
	l := b.open("bounds")
	e := b.fill(l, 0, 30)
	if got := b.read(l, 7, 1<<20, all).Entries; len(got) != 7 {
		t.Errorf("%d entries, at most 7 were wanted", len(got))
	}
	if got := b.read(l, 7, 1<<20, between(e[0].Position, e[2].Position), between(e[10].Position, edge.Latest)).Entries; len(got) != 7 || got[3].Position != e[10].Position {
		t.Errorf("bound over ranges: %v", positions(got))
	}
	if got := b.read(l, 0, 1<<20, all).Entries; len(got) != 0 {
		t.Errorf("%d entries, none was wanted", len(got))
	}
	if got := b.read(l, 30, 1, all).Entries; len(got) != 1 {
		t.Errorf("%d entries, one was wanted whatever its size", len(got))
	}
	size := len(e[0].Data) + len(e[1].Data)
	if got := b.read(l, 30, size, all).Entries; len(got) != 2 {
		t.Errorf("%d entries, two reach %d bytes", len(got), size)
	}
}

func testReadLost(t *testing.T, b *bench) {
	l := b.open("lost")
	e := b.fill(l, 0, 10)
	b.do(l.Roll)
	e = append(e, b.fill(l, 10, 10)...)
	b.do(l.Roll)
	e = append(e, b.fill(l, 20, 3)...)
	b.do(func(done func(error)) { l.Trim(e[10].Position, done) })
	at := func(i int) edge.Position { return e[i].Position }
	closed := edge.Position{Ledger: at(10).Ledger, Entry: 10}
	for _, c := range []struct {
		name string
		want edge.Range
		ids  []int
		lost []edge.Range
	}{
		{"trimmed", between(at(2), at(3)), nil, []edge.Range{between(at(2), at(3))}},
		{"trimmed head", between(at(8), at(11)), []int{10, 11}, []edge.Range{between(at(8), at(9))}},
		{"nothing was there", between(at(9).Next(), at(10)), []int{10}, nil},
		{"from earliest", between(edge.Earliest, at(10)), []int{10}, nil},
		{"beyond a closed ledger", between(closed, closed), nil, []edge.Range{between(closed, closed)}},
		{"beyond the end", between(at(22).Next(), at(22).Next()), nil, nil},
	} {
		for round := range 2 {
			batch := b.read(l, 100, 1<<20, c.want)
			var want []edge.Entry
			for _, i := range c.ids {
				want = append(want, e[i])
			}
			if !reflect.DeepEqual(batch.Entries, want) || !reflect.DeepEqual(batch.Lost, c.lost) {
				t.Errorf("%s, round %d: read %v, lost %v, want %v, %v", c.name, round, positions(batch.Entries), batch.Lost, positions(want), c.lost)
			}
		}
	}
}

func testScan(t *testing.T, b *bench) {
	l := b.open("scan")
	e := b.fill(l, 0, 15)
	b.do(l.Roll)
	e = append(e, b.fill(l, 15, 1500)...)
	var got []edge.Entry
	b.check(l.Scan(between(e[3].Position, e[1400].Position), func(p edge.Position, f edge.Facts) bool {
		b.read(l, 1, 1, all) // a visitor may use the ledger
		got = append(got, edge.Entry{Position: p, Facts: f})
		return p != e[1300].Position
	}))
	if len(got) != 1298 {
		t.Fatalf("visited %d entries, want 1298", len(got))
	}
	for i := range got {
		if want := e[3+i]; got[i].Position != want.Position || !reflect.DeepEqual(got[i].Facts, want.Facts) {
			t.Fatalf("visited %v with %+v, want %+v", got[i].Position, got[i].Facts, want)
		}
	}
	for _, c := range []struct {
		from    edge.Position
		publish int64
		want    int // index, −1 for none
	}{
		{edge.Earliest, 0, 0}, {edge.Earliest, 1000, 0}, {edge.Earliest, 1001, 1}, {edge.Earliest, 1015, 15},
		{edge.Earliest, 2514, 1514}, {edge.Earliest, 2515, -1}, {e[20].Position, 1001, 20}, {edge.Latest, 0, -1},
	} {
		p, ok, err := l.Find(c.from, c.publish)
		b.check(err)
		if ok != (c.want >= 0) || ok && p != e[c.want].Position {
			t.Errorf("find from %v at %d: %v %v, want entry %d", c.from, c.publish, p, ok, c.want)
		}
	}
}
