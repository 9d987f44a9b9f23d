package edge

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestCursorAckMovesOverBorders(t *testing.T) {
	s := paperOf(2, 2, 2).spans
	c := NewCursor(CursorState{MarkDelete: Position{1, -1}}, s)
	for _, step := range []struct {
		p    Position
		want AckOutcome
		mark Position
	}{
		{Position{1, 1}, AckOutcome{Entry: true, Changed: true, Freed: -1}, Position{1, -1}},
		{Position{1, 1}, AckOutcome{}, Position{1, -1}},
		{Position{2, 0}, AckOutcome{Entry: true, Changed: true, Freed: -1}, Position{1, -1}},
		{Position{1, 0}, AckOutcome{Entry: true, Changed: true, Moved: true, Freed: -1}, Position{2, 0}},
		{Position{1, 0}, AckOutcome{}, Position{2, 0}},
		{Position{2, -1}, AckOutcome{}, Position{2, 0}},
		{Position{2, 2}, AckOutcome{}, Position{2, 0}},
		{Position{9, 0}, AckOutcome{}, Position{2, 0}},
		{Latest, AckOutcome{}, Position{2, 0}},
		{Earliest, AckOutcome{}, Position{2, 0}},
		{Position{2, 1}, AckOutcome{Entry: true, Changed: true, Moved: true, Freed: -1}, Position{2, 1}},
	} {
		if got := c.Ack(s, step.p, nil); got != step.want || c.MarkDelete() != step.mark {
			t.Errorf("Ack(%v) = %+v and mark-delete %v, want %+v and %v", step.p, got, c.MarkDelete(), step.want, step.mark)
		}
	}
	if n := c.Backlog(s); n != 2 {
		t.Errorf("backlog %d, want 2", n)
	}
}

// protocol 6.5: a batch of 10 with messages 0, 1 and 5 acknowledged has 0x3DC left, a
// batch of 70 with only message 69 left has [0, 32].
func TestCursorAckParts(t *testing.T) {
	s := paperOf(3).spans
	p := Position{1, 1}
	c := NewCursor(CursorState{MarkDelete: Position{1, -1}}, s)
	for i, step := range []struct {
		rest []uint64
		want AckOutcome
		left []uint64
	}{
		{[]uint64{0x3FE}, AckOutcome{Changed: true, Freed: -1, Left: 9}, []uint64{0x3FE}},
		{[]uint64{0x3DD}, AckOutcome{Changed: true, Freed: 2, Left: 7}, []uint64{0x3DC}}, // it claims message 0 again
		{[]uint64{0x3FF}, AckOutcome{Freed: 0, Left: 7}, []uint64{0x3DC}},
		{[]uint64{0x3DC, 1}, AckOutcome{Freed: 0, Left: 7}, []uint64{0x3DC}},
		{[]uint64{0x008, 0}, AckOutcome{Changed: true, Freed: 6, Left: 1}, []uint64{0x008}},
		{[]uint64{0x3F7}, AckOutcome{Entry: true, Changed: true, Freed: 1}, nil},
		{[]uint64{0x3F7}, AckOutcome{}, nil},
	} {
		if got := c.Ack(s, p, step.rest); got != step.want || !slices.Equal(c.Rest(p), step.left) {
			t.Errorf("step %d: %+v and rest %x, want %+v and %x", i, got, c.Rest(p), step.want, step.left)
		}
	}
	long := []uint64{0, 32}
	if got := c.Ack(s, Position{1, 2}, long); got.FreedOf(70) != 69 || !slices.Equal(c.Rest(Position{1, 2}), long) {
		t.Errorf("of 70 messages %d were freed, rest %x", got.FreedOf(70), c.Rest(Position{1, 2}))
	}
	long[1] = 0
	if c.Rest(Position{1, 2})[1] != 32 {
		t.Error("the cursor kept the caller's slice")
	}
	if got := c.Ack(s, Position{1, 2}, nil); got.FreedOf(70) != 1 || c.Rest(Position{1, 2}) != nil {
		t.Errorf("the whole entry freed %d, rest %x", got.FreedOf(70), c.Rest(Position{1, 2}))
	}
	if got := c.Ack(s, Position{1, 0}, []uint64{}); !got.Entry || got.FreedOf(10) != 10 || c.MarkDelete() != (Position{1, 2}) {
		t.Errorf("an empty rest: %+v, mark-delete %v", got, c.MarkDelete())
	}
}

func TestCursorAckUpTo(t *testing.T) {
	for _, c := range []struct {
		name    string
		p       Position
		rest    []uint64
		changed bool
		mark    Position
		left    []uint64
	}{
		{"an entry", Position{1, 3}, nil, true, Position{1, 3}, nil},
		{"up to a hole", Position{1, 4}, nil, true, Position{1, 5}, nil},
		{"a hole itself", Position{1, 5}, nil, true, Position{1, 5}, nil},
		{"at the mark", Position{1, 1}, nil, false, Position{1, 1}, nil},
		{"backwards", Position{1, 0}, nil, false, Position{1, 1}, nil},
		{"before the next ledger", Position{2, -1}, nil, true, Position{1, 9}, nil},
		{"behind a ledger's end", Position{1, 77}, nil, true, Position{1, 9}, nil},
		{"the end", Position{2, 9}, nil, true, Position{2, 9}, nil},
		{"beyond the end", Position{7, 0}, nil, true, Position{2, 9}, nil},
		{"latest", Latest, nil, true, Position{2, 9}, nil},
		{"earliest", Earliest, nil, false, Position{1, 1}, nil},
		{"part of a batch", Position{1, 7}, []uint64{12}, true, Position{1, 6}, []uint64{12}},
		{"part of the next one", Position{1, 2}, []uint64{12}, true, Position{1, 1}, []uint64{12}},
		{"part of a ledger's first", Position{2, 0}, []uint64{12}, true, Position{1, 9}, []uint64{12}},
		{"more of a part", Position{1, 8}, []uint64{6}, true, Position{1, 7}, []uint64{2}},
		{"the last of a part", Position{1, 8}, []uint64{4}, true, Position{1, 8}, nil},
		{"part of an acknowledged one", Position{1, 5}, []uint64{12}, true, Position{1, 5}, nil},
		{"part of one behind", Position{1, 1}, []uint64{12}, false, Position{1, 1}, nil},
		{"nothing of a batch left", Position{1, 7}, []uint64{0, 0}, true, Position{1, 7}, nil},
		{"part of none", Position{7, 0}, []uint64{12}, true, Position{2, 9}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := paperOf(10, 10).spans
			cursor := NewCursor(CursorState{
				MarkDelete: Position{1, 1},
				Holes:      []Run{{1, 5, 5}},
				Rests:      []BatchRest{{Position{1, 8}, []uint64{3}}},
			}, s)
			changed := cursor.AckUpTo(s, c.p, c.rest)
			if changed != c.changed || cursor.MarkDelete() != c.mark {
				t.Errorf("changed %v, mark-delete %v, want %v, %v", changed, cursor.MarkDelete(), c.changed, c.mark)
			}
			if !slices.Equal(cursor.Rest(c.p), c.left) {
				t.Errorf("rest %x, want %x", cursor.Rest(c.p), c.left)
			}
		})
	}
}

func TestCursorReset(t *testing.T) {
	for _, c := range []struct {
		name  string
		next  Position
		rest  []uint64
		mark  Position
		first Position // unacknowledged, zero for none
		left  []uint64
	}{
		{"an entry", Position{1, 3}, nil, Position{1, 2}, Position{1, 3}, nil},
		{"a ledger's first", Position{2, 0}, nil, Position{2, -1}, Position{2, 0}, nil},
		{"earliest", Earliest, nil, Position{1, -1}, Position{1, 0}, nil},
		{"latest", Latest, nil, Position{2, 4}, Position{}, nil},
		{"behind the last", Position{2, 5}, nil, Position{2, 4}, Position{}, nil},
		{"none in its ledger", Position{1, 50}, nil, Position{2, -1}, Position{2, 0}, nil},
		{"into a batch", Position{1, 3}, []uint64{6}, Position{1, 2}, Position{1, 3}, []uint64{6}},
		{"into a batch that is not there", Position{1, 50}, []uint64{6}, Position{2, -1}, Position{2, 0}, nil},
		{"with an empty rest", Position{1, 3}, []uint64{0}, Position{1, 2}, Position{1, 3}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := paperOf(5, 5).spans
			cursor := NewCursor(CursorState{
				MarkDelete: Position{1, 3},
				Holes:      []Run{{2, 1, 1}},
				Rests:      []BatchRest{{Position{2, 2}, []uint64{3}}},
				Counts:     []RedeliveryCount{{Position{2, 3}, 4}},
			}, s)
			cursor.Reset(s, c.next, c.rest)
			first, ok := cursor.FirstUnacked(s)
			if cursor.MarkDelete() != c.mark || first != c.first || ok != (c.first != Position{}) {
				t.Errorf("mark-delete %v, first %v %v", cursor.MarkDelete(), first, ok)
			}
			if !slices.Equal(cursor.Rest(first), c.left) {
				t.Errorf("rest %x, want %x", cursor.Rest(first), c.left)
			}
			state := cursor.State()
			if len(state.Holes) > 0 || len(state.Counts) > 0 || len(state.Rests) != len(c.left) {
				t.Errorf("left over: %+v", state)
			}
		})
	}
}

// storage decision 14: what a state says of entries that are gone is dropped.
func TestNewCursorFitsTheSpans(t *testing.T) {
	topic := paperOf(5, 5, 5, 5)
	topic.lose(2)
	topic.lose(0)
	rest := []uint64{3}
	state := CursorState{
		MarkDelete: Position{1, 2},
		Holes:      []Run{{1, 4, 4}, {2, 0, 1}, {2, 3, 9}, {3, 1, 2}, {4, 2, 3}, {4, 7, 9}, {5, 0, 0}},
		Rests:      []BatchRest{{Position{1, 3}, rest}, {Position{2, 1}, rest}, {Position{2, 2}, rest}, {Position{3, 0}, rest}, {Position{4, 0}, []uint64{0}}, {Position{9, 0}, rest}},
		Counts:     []RedeliveryCount{{Position{1, 3}, 1}, {Position{2, 2}, 2}, {Position{3, 0}, 3}, {Position{9, 0}, 4}},
		Properties: map[string]string{"a": "b"},
		Plan:       []byte("plan"),
	}
	want := CursorState{
		MarkDelete: Position{2, 1},
		Holes:      []Run{{2, 3, 4}, {4, 2, 3}},
		Rests:      []BatchRest{{Position{2, 2}, rest}},
		Counts:     []RedeliveryCount{{Position{2, 2}, 2}},
		Properties: map[string]string{"a": "b"},
		Plan:       []byte("plan"),
	}
	if got := NewCursor(state, topic.spans).State(); !reflect.DeepEqual(got, want) {
		t.Errorf("state %+v, want %+v", got, want)
	}
	beyond := NewCursor(CursorState{MarkDelete: Position{8, 3}}, topic.spans)
	if beyond.MarkDelete() != topic.spans.End() {
		t.Errorf("mark-delete %v beyond the end %v", beyond.MarkDelete(), topic.spans.End())
	}
	topic.roll()
	open := NewCursor(CursorState{MarkDelete: Position{5, -1}}, topic.spans)
	if open.MarkDelete() != (Position{5, -1}) {
		t.Errorf("mark-delete %v moved back from the start of an empty ledger", open.MarkDelete())
	}
}

func TestCursorStateIsACopy(t *testing.T) {
	s := paperOf(10).spans
	c := NewCursor(CursorState{MarkDelete: Position{1, -1}}, s)
	c.SetProperties(map[string]string{"k": "v"})
	c.SetPlan([]byte("one"))
	c.Ack(s, Position{1, 2}, nil)
	c.Ack(s, Position{1, 4}, []uint64{7})
	c.Raise(Position{1, 5})
	before := c.State()
	want := CursorState{
		MarkDelete: Position{1, -1},
		Holes:      []Run{{1, 2, 2}},
		Rests:      []BatchRest{{Position{1, 4}, []uint64{7}}},
		Counts:     []RedeliveryCount{{Position{1, 5}, 1}},
		Properties: map[string]string{"k": "v"},
		Plan:       []byte("one"),
	}
	c.Ack(s, Position{1, 3}, nil)
	c.Ack(s, Position{1, 4}, []uint64{3})
	c.Raise(Position{1, 5})
	c.SetPlan([]byte("two"))
	c.SetProperties(map[string]string{"k": "w"})
	c.AckUpTo(s, Position{1, 4}, nil)
	if !reflect.DeepEqual(before, want) {
		t.Errorf("state became %+v, want %+v", before, want)
	}
	if string(c.Plan()) != "two" || c.Properties()["k"] != "w" {
		t.Errorf("plan %q, properties %v", c.Plan(), c.Properties())
	}
}

func TestCursorCounts(t *testing.T) {
	s := paperOf(10).spans
	c := NewCursor(CursorState{MarkDelete: Position{1, 1}, Holes: []Run{{1, 8, 8}}}, s)
	p := Position{1, 5}
	if c.Count(p) != 0 || c.Raise(p) != 1 || c.Raise(p) != 2 || c.Count(p) != 2 {
		t.Errorf("count of %v is %d after two", p, c.Count(p))
	}
	for _, acked := range []Position{{1, 0}, {1, 1}, {1, 8}} {
		if n := c.Raise(acked); n != 0 || c.Count(acked) != 0 {
			t.Errorf("acknowledged %v was raised to %d", acked, n)
		}
	}
	c.Ack(s, p, nil)
	c.Raise(Position{1, 3})
	c.Raise(Position{1, 6})
	c.AckUpTo(s, Position{1, 4}, nil)
	if want := []RedeliveryCount{{Position{1, 6}, 1}}; !slices.Equal(c.State().Counts, want) {
		t.Errorf("counts %v, want %v", c.State().Counts, want)
	}
	c.ClearCounts()
	if c.Count(Position{1, 6}) != 0 {
		t.Error("counts are left")
	}
}

func TestCursorLost(t *testing.T) {
	topic := paperOf(5, 5, 5)
	c := NewCursor(CursorState{MarkDelete: Position{1, 0}, Rests: []BatchRest{{Position{2, 1}, []uint64{1}}}}, topic.spans)
	c.Raise(Position{3, 0})
	c.Lost(topic.spans, []Range{{Position{3, 0}, Position{3, 1}}, {Position{1, 3}, Position{2, 2}}, {Earliest, Position{1, 0}}, {Position{8, 0}, Latest}})
	want := CursorState{MarkDelete: Position{1, 0}, Holes: []Run{{1, 3, 4}, {2, 0, 2}, {3, 0, 1}}}
	if got := c.State(); !reflect.DeepEqual(got, want) {
		t.Errorf("state %+v, want %+v", got, want)
	}
	c.Lost(topic.spans, []Range{{Earliest, Position{1, 2}}})
	if c.MarkDelete() != (Position{2, 2}) {
		t.Errorf("mark-delete %v, want 2:2", c.MarkDelete())
	}
	c.Lost(topic.spans, []Range{{Earliest, Latest}})
	if c.MarkDelete() != topic.spans.End() || c.Backlog(topic.spans) != 0 {
		t.Errorf("with all lost, mark-delete %v and backlog %d", c.MarkDelete(), c.Backlog(topic.spans))
	}
}

// Questions may come between a loss and Follow.
func TestCursorBeforeFollow(t *testing.T) {
	topic := paperOf(5, 5, 5)
	c := NewCursor(CursorState{MarkDelete: Position{1, 4}, Holes: []Run{{2, 2, 2}, {3, 0, 1}}}, topic.spans)
	topic.lose(1)
	want := Range{Position{3, 2}, Position{3, 4}}
	for _, when := range []string{"before", "after"} {
		if p, ok := c.FirstUnacked(topic.spans); p != want.First || !ok {
			t.Errorf("%s Follow the first is %v, %v", when, p, ok)
		}
		if got := c.Unacked(topic.spans, Earliest, 9); !slices.Equal(got, []Range{want}) {
			t.Errorf("%s Follow the ranges are %v", when, got)
		}
		c.Follow(topic.spans)
	}
	if c.MarkDelete() != (Position{3, 1}) || c.Backlog(topic.spans) != 3 {
		t.Errorf("mark-delete %v, backlog %d", c.MarkDelete(), c.Backlog(topic.spans))
	}
}

func TestCursorFull(t *testing.T) {
	s := paperOf(2*maxHoles + 2).spans
	holes := NewCursor(CursorState{MarkDelete: Position{1, -1}}, s)
	rests := NewCursor(CursorState{MarkDelete: Position{1, -1}}, s)
	for i := range int64(maxHoles) {
		if holes.Full() || rests.Full() {
			t.Fatalf("full at %d", i)
		}
		holes.Ack(s, Position{1, 2*i + 1}, nil)
		rests.Ack(s, Position{1, i}, []uint64{1})
	}
	if !holes.Full() || !rests.Full() {
		t.Fatal("not full at the bound")
	}
	// Neither bound keeps an acknowledgement out.
	if !holes.Ack(s, Position{1, 2*maxHoles + 1}, nil).Entry || !rests.Ack(s, Position{1, maxRests}, []uint64{1}).Changed {
		t.Error("an acknowledgement is refused")
	}
	holes.AckUpTo(s, Position{1, 5}, nil)
	rests.AckUpTo(s, Position{1, 5}, nil)
	if holes.Full() || rests.Full() {
		t.Error("still full after an acknowledgement")
	}
}

// naive is a cursor that lists what is acknowledged.
type naive struct {
	acked  map[Position]bool
	rests  map[Position]uint64
	counts map[Position]uint32
}

func (n *naive) ack(p Position) {
	n.acked[p] = true
	delete(n.rests, p)
	delete(n.counts, p)
}

func (n *naive) unacked(topic *paper, from Position) []Position {
	var out []Position
	for _, p := range topic.stored {
		if !p.Less(from) && !n.acked[p] {
			out = append(out, p)
		}
	}
	return out
}

// ackPart takes the batches as of up to 64 messages, so that a rest is one word.
func (n *naive) ackPart(p Position, rest uint64) {
	if n.acked[p] {
		return
	}
	if old, ok := n.rests[p]; ok {
		rest &= old
	}
	if rest == 0 {
		n.ack(p)
		return
	}
	n.rests[p] = rest
}

// Against the naive cursor, with ledgers growing, rolling and vanishing below it:
//
//  1. an entry is acknowledged in both or in neither, and so are rests and counts;
//  2. backlog, first unacknowledged and unacknowledged ranges are the naive list's;
//  3. the mark-delete never retreats but by a reset, never passes an unacknowledged
//     entry, and the entry behind it is unacknowledged;
//  4. what State gives makes the same cursor again.
func TestCursorAgainstList(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		topic := newPaper(1)
		topic.append(rapid.IntRange(0, 20).Draw(r, "entries"))
		c := NewCursor(CursorState{MarkDelete: topic.spans.Start()}, topic.spans)
		n := &naive{map[Position]bool{}, map[Position]uint64{}, map[Position]uint32{}}
		mark := c.MarkDelete()
		word := func(r *rapid.T) uint64 { return rapid.Uint64Range(0, 15).Draw(r, "rest") }
		r.Repeat(map[string]func(*rapid.T){
			"change ledgers": func(r *rapid.T) {
				if topic.change(r) {
					c.Follow(topic.spans)
				}
			},
			"ack": func(r *rapid.T) {
				p := topic.anywhere(r)
				was := n.acked[p] || !topic.spans.Contains(p)
				if out := c.Ack(topic.spans, p, nil); out.Entry == was || out.Changed == was {
					r.Fatalf("Ack(%v) = %+v", p, out)
				}
				if !was {
					n.ack(p)
				}
			},
			"ack part": func(r *rapid.T) {
				p, rest := topic.anywhere(r), word(r)
				c.Ack(topic.spans, p, []uint64{rest})
				if topic.spans.Contains(p) {
					n.ackPart(p, rest)
				}
			},
			"ack up to": func(r *rapid.T) {
				p := topic.anywhere(r)
				c.AckUpTo(topic.spans, p, nil)
				n.ackUpTo(topic, p)
			},
			"ack up to part": func(r *rapid.T) {
				p, rest := topic.anywhere(r), word(r)
				c.AckUpTo(topic.spans, p, []uint64{rest})
				n.ackUpTo(topic, p.Before())
				if topic.spans.Contains(p) {
					n.ackPart(p, rest)
				} else {
					n.ackUpTo(topic, p)
				}
			},
			"reset": func(r *rapid.T) {
				p := topic.anywhere(r)
				c.Reset(topic.spans, p, nil)
				*n = naive{map[Position]bool{}, map[Position]uint64{}, map[Position]uint32{}}
				n.ackBelow(topic, p)
				mark = c.MarkDelete()
			},
			"lost": func(r *rapid.T) {
				lost := Range{topic.anywhere(r), topic.anywhere(r)}
				c.Lost(topic.spans, []Range{lost})
				for _, p := range topic.stored {
					if lost.Contains(p) {
						n.ack(p)
					}
				}
			},
			"raise": func(r *rapid.T) {
				if len(topic.stored) == 0 {
					return
				}
				p := rapid.SampledFrom(topic.stored).Draw(r, "position")
				if got := c.Raise(p); n.acked[p] && got != 0 || !n.acked[p] && got != n.counts[p]+1 {
					r.Fatalf("Raise(%v) = %d of %d", p, got, n.counts[p])
				}
				if !n.acked[p] {
					n.counts[p]++
				}
			},
			"restart": func(r *rapid.T) {
				state := c.State()
				c = NewCursor(state, topic.spans)
				if again := c.State(); !reflect.DeepEqual(state, again) {
					r.Fatalf("state %+v became %+v", state, again)
				}
			},
			"": func(r *rapid.T) {
				checkCursor(r, topic, c, n)
				if c.MarkDelete().Less(mark) {
					r.Fatalf("mark-delete went from %v to %v", mark, c.MarkDelete())
				}
				mark = c.MarkDelete()
			},
		})
	})
}

func (n *naive) ackUpTo(topic *paper, p Position) {
	for _, q := range topic.stored {
		if !p.Less(q) {
			n.ack(q)
		}
	}
}

func (n *naive) ackBelow(topic *paper, p Position) {
	for _, q := range topic.stored {
		if q.Less(p) {
			n.ack(q)
		}
	}
}

func checkCursor(r *rapid.T, topic *paper, c *Cursor, n *naive) {
	s := topic.spans
	for _, p := range topic.stored {
		if c.Acked(p) != n.acked[p] {
			r.Fatalf("Acked(%v) = %v", p, c.Acked(p))
		}
		if rest := c.Rest(p); n.rests[p] == 0 && rest != nil || n.rests[p] != 0 && !slices.Equal(rest, []uint64{n.rests[p]}) {
			r.Fatalf("Rest(%v) = %x, want %x", p, rest, n.rests[p])
		}
		if c.Count(p) != n.counts[p] {
			r.Fatalf("Count(%v) = %d, want %d", p, c.Count(p), n.counts[p])
		}
	}
	unacked := n.unacked(topic, Earliest)
	if got := c.Backlog(s); got != int64(len(unacked)) {
		r.Fatalf("Backlog() = %d, want %d", got, len(unacked))
	}
	if got := c.BacklogBytes(s); got != 10*int64(len(unacked)) {
		r.Fatalf("BacklogBytes() = %d, want %d", got, 10*len(unacked))
	}
	first, ok := c.FirstUnacked(s)
	if ok != (len(unacked) > 0) || ok && first != unacked[0] {
		r.Fatalf("FirstUnacked() = %v, %v of %v", first, ok, unacked)
	}
	if next, ok := s.After(c.MarkDelete()); ok && next != first {
		r.Fatalf("mark-delete %v, but first unacknowledged is %v", c.MarkDelete(), first)
	}
	checkUnacked(r, topic, c, n)
}

// checkUnacked lists the ranges' stored positions. Ranges are as long as can be.
func checkUnacked(r *rapid.T, topic *paper, c *Cursor, n *naive) {
	from := topic.anywhere(r)
	limit := rapid.IntRange(0, 6).Draw(r, "ranges")
	ranges := c.Unacked(topic.spans, from, limit)
	var got []Position
	for i, g := range ranges {
		if !topic.spans.Contains(g.First) || !topic.spans.Contains(g.Last) {
			r.Fatalf("range %v does not end in stored entries", g)
		}
		if i > 0 {
			if next, _ := topic.spans.After(ranges[i-1].Last); next == g.First {
				r.Fatalf("ranges %v and %v are one", ranges[i-1], g)
			}
		}
		for _, p := range topic.stored {
			if g.Contains(p) {
				got = append(got, p)
			}
		}
	}
	want := n.unacked(topic, from)
	if len(ranges) == limit && len(got) < len(want) {
		want = want[:len(got)]
	}
	if len(ranges) > limit || !slices.Equal(got, want) {
		r.Fatalf("Unacked(%v, %d) = %v, want %v", from, limit, ranges, want)
	}
}

func BenchmarkCursorAckInOrder(b *testing.B) {
	s := paperOf(1).spans
	s.Open.Last = int64(b.N)
	c := NewCursor(CursorState{MarkDelete: s.Start()}, s)
	for i := range int64(b.N) {
		c.Ack(s, Position{1, i}, nil)
	}
}

// Acknowledgements come in random order within windows of 20,000.
func BenchmarkCursorAckShuffled(b *testing.B) {
	const window = 20_000
	order := rand.New(rand.NewPCG(1, 2)).Perm(window)
	s := paperOf(1).spans
	s.Open.Last = int64(b.N) + window
	c := NewCursor(CursorState{MarkDelete: s.Start()}, s)
	for i := range b.N {
		c.Ack(s, Position{1, int64(i/window*window + order[i%window])}, nil)
	}
}
