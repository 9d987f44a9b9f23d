package edge

import (
	"maps"
	"slices"
)

const (
	// maxHoles bounds the runs of acknowledged entries above the mark-delete: the
	// cursor's value in the store then stays within a few pages of the store.
	maxHoles = 10_000
	// maxRests bounds the partly acknowledged batches for the same reason; with
	// batches of 1,000 messages they make 1.3 MiB.
	maxRests = 10_000
	// maxCounts bounds the redelivery counts: the default number of unacknowledged
	// messages that a subscription may have out. Beyond it new ones are not kept.
	maxCounts = 200_000
)

// Cursor is the durable part of a subscription: what is acknowledged and what was
// given back how often. It is a pure value; the subscription's lock guards it.
//
// Everything up to the mark-delete is acknowledged, and so is what lies in a hole
// above it. Holes lie in stored positions only, so that the backlog is arithmetic;
// therefore Follow has to be called when ledgers have gone from the spans. Entries
// that are added, and ledgers that are rolled, need no call.
type Cursor struct {
	mark   Position
	holes  Runs
	rests  ordered[BatchRest]       // of entries that are not acknowledged
	counts ordered[RedeliveryCount] // the same
	props  map[string]string        // replaced as a whole
	plan   []byte                   // replaced as a whole
}

// NewCursor goes on from a state, which it takes over. A mark-delete below what the
// topic still holds is raised to that, one beyond its end is lowered to the end, and
// what the state says of entries that are not stored is dropped.
func NewCursor(state CursorState, s Spans) *Cursor {
	c := &Cursor{mark: Min(state.MarkDelete, s.Open.End()), props: state.Properties, plan: state.Plan}
	for _, run := range state.Holes {
		c.holes.AddRun(run)
	}
	for _, r := range state.Rests {
		if words := trimWords(r.Words); len(words) > 0 {
			c.setRest(r.Position, words)
		}
	}
	for _, n := range state.Counts {
		c.setCount(n.Position, n.Count)
	}
	c.Follow(s)
	return c
}

// State copies the cursor for the store; later changes do not show in it.
func (c *Cursor) State() CursorState {
	return CursorState{
		MarkDelete: c.mark,
		Holes:      c.holes.All(),
		Rests:      c.rests.all(), // words are never changed in place
		Counts:     c.counts.all(),
		Properties: c.props,
		Plan:       c.plan,
	}
}

// MarkDelete is the position up to which everything is acknowledged. It need not
// exist: after a seek it is the one before the sought entry in its own ledger.
func (c *Cursor) MarkDelete() Position { return c.mark }

// Acked reports whether all of the entry at p is acknowledged.
func (c *Cursor) Acked(p Position) bool { return !c.mark.Less(p) || c.holes.Contains(p) }

// Full reports whether a bound of holes or of rests is reached. New entries then
// wait; those that are out already may still be acknowledged.
func (c *Cursor) Full() bool { return c.holes.Count() >= maxHoles || c.rests.n >= maxRests }

// Properties are those that the subscriber gave at creation; shared, do not write.
func (c *Cursor) Properties() map[string]string { return c.props }

// SetProperties replaces them by a copy of p.
func (c *Cursor) SetProperties(p map[string]string) { c.props = maps.Clone(p) }

// Plan is the uplink's own small state; shared, do not write.
func (c *Cursor) Plan() []byte { return c.plan }

// SetPlan replaces it by a copy of p.
func (c *Cursor) SetPlan(p []byte) { c.plan = slices.Clone(p) }

// FirstUnacked returns the first stored entry that is not acknowledged, or false if
// there is none.
func (c *Cursor) FirstUnacked(s Spans) (Position, bool) {
	p, ok := s.After(c.mark)
	if !ok {
		return p, false
	}
	for hole := range c.holes.From(p) {
		if !ok || p.Less(hole.Start()) {
			break
		}
		p, ok = s.After(hole.End())
	}
	return p, ok
}

// Unacked appends to out, which is empty, the ranges of stored entries that are ≥ from
// and not acknowledged, in order and at most maxRanges of them. Both ends of a range are
// stored; it may reach over ledgers.
func (c *Cursor) Unacked(out []Range, s Spans, from Position, maxRanges int) []Range {
	p, ok := s.AtOrAfter(Max(from, c.mark.Next()))
	if !ok {
		return out
	}
	for hole := range c.holes.From(p) {
		if !ok || len(out) >= maxRanges {
			return out
		}
		if start := hole.Start(); p.Less(start) {
			last, _ := s.AtOrBefore(start.Before())
			out = append(out, Range{p, last})
		}
		p, ok = s.After(hole.End())
	}
	if ok && len(out) < maxRanges {
		last, _ := s.Last()
		out = append(out, Range{p, last})
	}
	return out
}

// Backlog counts the stored entries that are not wholly acknowledged.
func (c *Cursor) Backlog(s Spans) int64 {
	return max(0, s.EntriesBetween(c.mark, s.End())-c.holes.Len())
}

// BacklogBytes estimates their bytes, by the average size of the entries behind the
// mark-delete.
func (c *Cursor) BacklogBytes(s Spans) int64 {
	entries := s.EntriesBetween(c.mark, s.End())
	if entries == 0 {
		return 0
	}
	bytes := s.BytesBetween(c.mark, s.End())
	return int64(float64(bytes) * float64(c.Backlog(s)) / float64(entries))
}

// Count is how often the entry at p was given back.
func (c *Cursor) Count(p Position) uint32 {
	if n := c.counts.at(c.countAt(p)); n != nil && n.Position == p {
		return n.Count
	}
	return 0
}

// Raise adds one to the count of an entry and returns the new one; of an
// acknowledged entry it is 0 and stays so.
func (c *Cursor) Raise(p Position) uint32 {
	if c.Acked(p) {
		return 0
	}
	n := c.Count(p) + 1
	c.setCount(p, n)
	return n
}

// ClearCounts forgets all redelivery counts.
func (c *Cursor) ClearCounts() { c.counts = ordered[RedeliveryCount]{} }

func (c *Cursor) countAt(p Position) place {
	return c.counts.search(func(n *RedeliveryCount) bool { return !n.Position.Less(p) })
}

func (c *Cursor) setCount(p Position, count uint32) {
	at := c.countAt(p)
	if n := c.counts.at(at); n != nil && n.Position == p {
		n.Count = count
	} else if c.counts.n < maxCounts {
		c.counts.insert(at, RedeliveryCount{p, count})
	}
}

// Holes are the acknowledged runs above the mark-delete, ascending; a copy.
func (c *Cursor) Holes() []Run { return c.holes.All() }
