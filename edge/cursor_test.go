package edge

import (
	"reflect"
	"slices"
	"testing"
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
		if got := c.Unacked(nil, topic.spans, Earliest, 9); !slices.Equal(got, []Range{want}) {
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
