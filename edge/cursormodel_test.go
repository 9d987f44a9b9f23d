package edge

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

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
	ranges := c.Unacked(nil, topic.spans, from, limit)
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
