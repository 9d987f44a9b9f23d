package boltstore

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"wayside/edge"
)

// A cursor's state is one value: a head (mark-delete, properties, plan) and three
// ascending lists. A state above cursorInline is cut into pages, so that a change
// among many holes writes only the page it falls into.
const (
	cursorVersion = 1
	cursorPaged   = 2

	cursorInline = 2 << 10
	pageMin      = 16 << 10
	pageMax      = 64 << 10
)

// Kinds of pages, the first byte of a page's key.
const (
	pageHoles = iota + 1
	pageRests
	pageCounts
)

func appendCursorHead(b []byte, version byte, s *edge.CursorState) []byte {
	b = appendPosition(append(b, version), s.MarkDelete)
	b = binary.AppendUvarint(b, uint64(len(s.Properties)))
	if len(s.Properties) > 0 {
		for _, k := range slices.Sorted(maps.Keys(s.Properties)) {
			b = appendText(appendText(b, k), s.Properties[k])
		}
	}
	return appendText(b, s.Plan)
}

func (d *decoder) cursorHead(s *edge.CursorState) {
	s.MarkDelete = d.position()
	if n := d.count(2); n > 0 {
		s.Properties = make(map[string]string, n)
		for range n {
			k := string(d.text())
			s.Properties[k] = string(d.text())
		}
	}
	if plan := d.text(); len(plan) > 0 {
		s.Plan = slices.Clone(plan)
	}
}

func appendPosition(b []byte, p edge.Position) []byte {
	return binary.AppendVarint(binary.AppendVarint(b, p.Ledger), p.Entry)
}

func (d *decoder) position() edge.Position {
	return edge.Position{Ledger: d.varint(), Entry: d.varint()}
}

// step writes a position as the distance from the one before it.
func step(b []byte, from, to edge.Position) []byte {
	b = binary.AppendVarint(b, to.Ledger-from.Ledger)
	if to.Ledger != from.Ledger {
		from.Entry = 0
	}
	return binary.AppendVarint(b, to.Entry-from.Entry)
}

func (d *decoder) step(from edge.Position) edge.Position {
	to := edge.Position{Ledger: from.Ledger + d.varint()}
	if to.Ledger == from.Ledger {
		to.Entry = from.Entry
	}
	to.Entry += d.varint()
	return to
}

// cursorItems sees the three lists alike: n items, each with a position and a form.
type cursorItems struct {
	kind byte
	n    int
	at   func(i int) edge.Position
	put  func(b []byte, i int) []byte // what belongs to item i beside its position
}

func itemsOf(s *edge.CursorState) [3]cursorItems {
	return [3]cursorItems{
		{pageHoles, len(s.Holes),
			func(i int) edge.Position { return edge.Position{Ledger: s.Holes[i].Ledger, Entry: s.Holes[i].First} },
			func(b []byte, i int) []byte {
				return binary.AppendUvarint(b, uint64(s.Holes[i].Last-s.Holes[i].First))
			}},
		{pageRests, len(s.Rests),
			func(i int) edge.Position { return s.Rests[i].Position },
			func(b []byte, i int) []byte {
				b = binary.AppendUvarint(b, uint64(len(s.Rests[i].Words)))
				for _, w := range s.Rests[i].Words {
					b = binary.LittleEndian.AppendUint64(b, w)
				}
				return b
			}},
		{pageCounts, len(s.Counts),
			func(i int) edge.Position { return s.Counts[i].Position },
			func(b []byte, i int) []byte { return binary.AppendUvarint(b, uint64(s.Counts[i].Count)) }},
	}
}

// appendItems writes items from to to behind their number.
func (c *cursorItems) appendItems(b []byte, from, to int) []byte {
	b = binary.AppendUvarint(b, uint64(to-from))
	var last edge.Position
	for i := from; i < to; i++ {
		p := c.at(i)
		b = c.put(step(b, last, p), i)
		last = p
	}
	return b
}

// minItem is the least that an item takes: two bytes of position and one more.
const minItem = 3

// items reads what appendItems wrote and adds it to the state's list of that kind.
func (d *decoder) items(kind byte, s *edge.CursorState) {
	n := d.count(minItem)
	var p edge.Position
	for range n {
		p = d.step(p)
		switch kind {
		case pageHoles:
			s.Holes = append(s.Holes, edge.Run{Ledger: p.Ledger, First: p.Entry, Last: p.Entry + int64(d.uvarint())})
		case pageRests:
			s.Rests = append(s.Rests, edge.BatchRest{Position: p, Words: d.words()})
		case pageCounts:
			s.Counts = append(s.Counts, edge.RedeliveryCount{Position: p, Count: uint32(d.uvarint())})
		}
		if d.bad {
			return
		}
	}
}

func (d *decoder) words() []uint64 {
	words := make([]uint64, d.count(8))
	for i := range words {
		words[i] = d.uint64()
	}
	return words
}

// encodeCursor writes a state as one value, unless it is too large for that.
func encodeCursor(s *edge.CursorState) (value []byte, fits bool) {
	b := appendCursorHead(make([]byte, 0, 128), cursorVersion, s)
	if len(s.Holes)+len(s.Rests)+len(s.Counts) == 0 { // as most are
		return seal(append(b, 0, 0, 0)), len(b) <= cursorInline
	}
	for _, c := range itemsOf(s) {
		if c.n > cursorInline || len(b) > cursorInline {
			return nil, false
		}
		b = c.appendItems(b, 0, c.n)
	}
	return seal(b), len(b) <= cursorInline
}

func decodeCursor(v []byte) (edge.CursorState, error) {
	var s edge.CursorState
	b, err := unseal(v)
	if err != nil || len(b) == 0 || b[0] != cursorVersion {
		return s, fmt.Errorf("cursor: %w", errDamaged)
	}
	d := decoder{b: b[1:]}
	d.cursorHead(&s)
	for kind := byte(pageHoles); kind <= pageCounts; kind++ {
		d.items(kind, &s)
	}
	if err := d.err(); err != nil {
		return edge.CursorState{}, fmt.Errorf("cursor: %w", err)
	}
	return s, nil
}

// cursorPage is one page of a large state. Its key is its kind and first position.
type cursorPage struct {
	key   []byte
	value []byte
}

// encodePages cuts the lists into pages. A page ends behind an item whose position
// says so, hence a change in one page leaves the cuts of the others where they were.
func encodePages(s *edge.CursorState) (pages []cursorPage) {
	for _, c := range itemsOf(s) {
		for from := 0; from < c.n; {
			to, size := from, 0
			for to < c.n && size < pageMax {
				size += c.weigh(to)
				to++
				if size >= pageMin && cutBehind(c.at(to-1)) {
					break
				}
			}
			p := c.at(from)
			key := binary.BigEndian.AppendUint64([]byte{c.kind}, uint64(p.Ledger))
			key = binary.BigEndian.AppendUint64(key, uint64(p.Entry))
			pages = append(pages, cursorPage{key, seal(c.appendItems(nil, from, to))})
			from = to
		}
	}
	return pages
}

// weigh is about what an item takes in a page.
func (c *cursorItems) weigh(i int) int {
	var buf [64]byte
	return 3 + len(c.put(buf[:0], i))
}

// cutBehind is true for one position in 512, always the same ones.
func cutBehind(p edge.Position) bool {
	return (uint64(p.Ledger)*31+uint64(p.Entry))*0x9e3779b97f4a7c15>>55 == 0
}

// encodeHead writes the head of a paged state, which proves that all pages are there.
func encodeHead(s *edge.CursorState, pages []cursorPage) []byte {
	b := appendCursorHead(make([]byte, 0, 128), cursorPaged, s)
	b = binary.AppendUvarint(b, uint64(len(pages)))
	return seal(binary.LittleEndian.AppendUint64(b, sumPages(pages)))
}

func sumPages(pages []cursorPage) (sum uint64) {
	for _, p := range pages {
		sum += uint64(binary.LittleEndian.Uint32(p.value[len(p.value)-4:]))
	}
	return sum
}

// decodePaged puts a paged state together. Pages come in the order of their keys.
func decodePaged(head []byte, pages []cursorPage) (edge.CursorState, error) {
	var s edge.CursorState
	b, err := unseal(head)
	if err != nil || len(b) == 0 || b[0] != cursorPaged {
		return s, fmt.Errorf("cursor: %w", errDamaged)
	}
	d := decoder{b: b[1:]}
	d.cursorHead(&s)
	n, sum := d.uvarint(), d.uint64()
	if d.err() != nil || n != uint64(len(pages)) {
		return edge.CursorState{}, fmt.Errorf("cursor: %w", errDamaged)
	}
	for _, p := range pages {
		v, err := unseal(p.value)
		if err != nil || len(p.key) == 0 {
			return edge.CursorState{}, fmt.Errorf("cursor page: %w", errDamaged)
		}
		d := decoder{b: v}
		d.items(p.key[0], &s)
		if d.err() != nil {
			return edge.CursorState{}, fmt.Errorf("cursor page: %w", errDamaged)
		}
	}
	if sum != sumPages(pages) {
		return edge.CursorState{}, fmt.Errorf("cursor pages: %w", errDamaged)
	}
	return s, nil
}
