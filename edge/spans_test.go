package edge

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestPositionSteps(t *testing.T) {
	for _, c := range []struct{ p, next, before Position }{
		{Position{3, 0}, Position{3, 1}, Position{3, -1}},
		{Position{3, -1}, Position{3, 0}, Position{3, -1}},
		{Position{3, 7}, Position{3, 8}, Position{3, 6}},
		{Latest, Latest, Position{math.MaxInt64, math.MaxInt64 - 1}},
		{Position{3, math.MaxInt64}, Position{3, math.MaxInt64}, Position{3, math.MaxInt64 - 1}},
	} {
		if got := c.p.Next(); got != c.next {
			t.Errorf("%v.Next() = %v, want %v", c.p, got, c.next)
		}
		if got := c.p.Before(); got != c.before {
			t.Errorf("%v.Before() = %v, want %v", c.p, got, c.before)
		}
	}
}

func TestPositionOrder(t *testing.T) {
	ascending := []Position{Earliest, {0, 0}, {1, -1}, {1, 0}, {1, 9}, {2, -1}, {2, 3}, Latest}
	for i, p := range ascending {
		for j, q := range ascending {
			if p.Less(q) != (i < j) || (p.Compare(q) == 0) != (i == j) {
				t.Errorf("%v and %v compare as %d", p, q, p.Compare(q))
			}
			if Max(p, q) != ascending[max(i, j)] || Min(p, q) != ascending[min(i, j)] {
				t.Errorf("Max and Min of %v and %v are %v and %v", p, q, Max(p, q), Min(p, q))
			}
		}
	}
	if s := (Position{12, -1}).String(); s != "12:-1" {
		t.Errorf("String() = %q", s)
	}
}

func TestRange(t *testing.T) {
	r := Range{Position{1, 5}, Position{2, 1}}
	for p, want := range map[Position]bool{{1, 4}: false, {1, 5}: true, {1, 99}: true, {2, 1}: true, {2, 2}: false} {
		if r.Contains(p) != want {
			t.Errorf("%v contains %v: %v", r, p, !want)
		}
	}
	if r.Empty() || !(Range{Position{1, 5}, Position{1, 4}}).Empty() {
		t.Error("Empty is wrong")
	}
}

func TestSpansEnds(t *testing.T) {
	rolled := paperOf(3, 2)
	rolled.roll()
	trimmed := paperOf(3, 0)
	trimmed.lose(0)
	beheaded := paperOf(3, 2, 0)
	beheaded.behead(0, 2)
	for _, c := range []struct {
		name       string
		topic      *paper
		start, end Position
		any        bool
	}{
		{"never written", paperOf(0), Position{1, -1}, Position{1, -1}, false},
		{"one ledger", paperOf(3), Position{1, -1}, Position{1, 2}, true},
		{"rolled", rolled, Position{1, -1}, Position{2, 1}, true},
		{"all trimmed", trimmed, Position{2, -1}, Position{2, -1}, false},
		{"head lost", beheaded, Position{1, 1}, Position{2, 1}, true},
	} {
		s := c.topic.spans
		last, ok := s.Last()
		if s.Start() != c.start || s.End() != c.end || last != c.end || ok != c.any {
			t.Errorf("%s: start %v, end %v, last %v %v", c.name, s.Start(), s.End(), last, ok)
		}
	}
}

func TestMarkBefore(t *testing.T) {
	s := paperOf(3, 2).spans
	for p, want := range map[Position]Position{{1, 0}: {1, -1}, {1, 2}: {1, 1}, {2, 0}: {2, -1}} {
		if got := s.MarkBefore(p); got != want {
			t.Errorf("MarkBefore(%v) = %v, want %v", p, got, want)
		}
	}
}

// Every question to Spans is answered as the plain list of positions would.
func TestSpansAgainstList(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		topic := newPaper(1)
		for range rapid.IntRange(0, 12).Draw(r, "changes") {
			topic.change(r)
		}
		s := topic.spans
		for range 20 {
			checkSpansAt(r, topic, topic.anywhere(r))
		}
		p, q := topic.anywhere(r), topic.anywhere(r)
		want := 0
		for _, stored := range topic.stored {
			if p.Less(stored) && !q.Less(stored) {
				want++
			}
		}
		if got := s.EntriesBetween(p, q); got != int64(want) {
			r.Fatalf("EntriesBetween(%v, %v) = %d, want %d", p, q, got, want)
		}
		if got := s.BytesBetween(p, q); got != 10*int64(want) {
			r.Fatalf("BytesBetween(%v, %v) = %d, want %d", p, q, got, 10*want)
		}
		n := int64(len(topic.stored))
		if entries, messages, bytes := s.Totals(); entries != n || messages != n || bytes != 10*n {
			r.Fatalf("Totals() = %d, %d, %d of %d", entries, messages, bytes, n)
		}
	})
}

func checkSpansAt(r *rapid.T, topic *paper, p Position) {
	s := topic.spans
	i, found := slices.BinarySearchFunc(topic.stored, p, Position.Compare)
	if s.Contains(p) != found {
		r.Fatalf("Contains(%v) = %v", p, !found)
	}
	if got, ok := s.AtOrAfter(p); ok != (i < len(topic.stored)) || ok && got != topic.stored[i] {
		r.Fatalf("AtOrAfter(%v) = %v, %v", p, got, ok)
	}
	after := i
	if found {
		after++
	}
	if got, ok := s.After(p); ok != (after < len(topic.stored)) || ok && got != topic.stored[after] {
		r.Fatalf("After(%v) = %v, %v", p, got, ok)
	}
	if got, ok := s.AtOrBefore(p); ok != (after > 0) || ok && got != topic.stored[after-1] {
		r.Fatalf("AtOrBefore(%v) = %v, %v", p, got, ok)
	}
}

// Counts since the topic's birth include what is gone.
func TestSpansCountsUpTo(t *testing.T) {
	topic := paperOf(4, 3, 2)
	topic.lose(0)
	for _, c := range []struct {
		p       Position
		entries int64
	}{
		{Earliest, 4},
		{Position{1, 2}, 4},
		{Position{2, -1}, 4},
		{Position{2, 0}, 5},
		{Position{2, 99}, 7},
		{Position{3, 1}, 9},
		{Latest, 9},
	} {
		if got := topic.spans.EntriesUpTo(c.p); got != c.entries {
			t.Errorf("EntriesUpTo(%v) = %d, want %d", c.p, got, c.entries)
		}
		if got := topic.spans.BytesUpTo(c.p); got != 10*c.entries {
			t.Errorf("BytesUpTo(%v) = %d, want %d", c.p, got, 10*c.entries)
		}
	}
}
