package edge

import (
	"math/bits"
	"slices"
)

// AckOutcome tells what an acknowledgement changed.
type AckOutcome struct {
	Entry   bool // the entry is now wholly acknowledged and was not before
	Changed bool // anything changed at all
	Moved   bool // the mark-delete moved
	// Freed is how many messages were acknowledged by this. The cursor knows it only
	// of entries that were partly acknowledged before: −1 says that it was none, so
	// that all of the entry's messages but Left are freed.
	Freed int
	Left  int // messages of the entry that are still unacknowledged, 0 with Entry
}

// FreedOf is Freed of an entry that has so many messages.
func (o AckOutcome) FreedOf(messages int) int {
	if o.Freed < 0 {
		return max(0, messages-o.Left)
	}
	return o.Freed
}

// Ack acknowledges the entry at p: all of it with a nil rest, or else all but the
// messages whose bits are set in rest and in what was left before. Words missing at
// the end of a rest are zero. Positions that are not stored or acknowledged already
// change nothing. The rest is not kept by reference.
func (c *Cursor) Ack(s Spans, p Position, rest []uint64) AckOutcome {
	if !s.Contains(p) || c.Acked(p) {
		return AckOutcome{}
	}
	old := c.Rest(p)
	left := intersect(old, rest)
	out := AckOutcome{Freed: -1, Left: ones(left), Changed: true}
	if old != nil {
		out.Freed = ones(old) - out.Left
		out.Changed = out.Freed > 0
	}
	if len(left) > 0 {
		if out.Changed {
			c.setRest(p, left)
		}
		return out
	}
	out.Entry, out.Changed = true, true
	if next, _ := s.After(c.mark); next == p {
		c.moveTo(p)
		c.advance(s)
		out.Moved = true
		return out
	}
	c.forget(Range{p, p})
	c.holes.Add(p)
	return out
}

// AckUpTo acknowledges everything up to p, or with a rest everything before p and of
// p all but what the rest leaves. It reports whether that changed anything. It never
// goes backwards. A p beyond the end counts as the end; the caller has to refuse what
// a client cannot have been given. Entry −1 stands before the ledger's first entry.
func (c *Cursor) AckUpTo(s Spans, p Position, rest []uint64) bool {
	whole := len(trimWords(rest)) == 0 || !s.Contains(p)
	upTo := p
	if !whole {
		upTo = p.Before()
	}
	moved := c.raise(s, upTo)
	if whole {
		return moved
	}
	return c.Ack(s, p, rest).Changed || moved
}

// raise moves the mark-delete forward to the last stored entry up to p.
func (c *Cursor) raise(s Spans, p Position) bool {
	p, ok := s.AtOrBefore(p)
	if !ok || !c.mark.Less(p) {
		return false
	}
	c.moveTo(p)
	c.advance(s)
	return true
}

// moveTo sets the mark-delete and forgets what is known of entries up to it.
func (c *Cursor) moveTo(p Position) {
	c.mark = p
	c.holes.RemoveUpTo(p)
	c.rests.removeBefore(c.rests.search(func(r *BatchRest) bool { return p.Less(r.Position) }))
	c.counts.removeBefore(c.counts.search(func(n *RedeliveryCount) bool { return p.Less(n.Position) }))
}

// advance moves the mark-delete over the acknowledged entries that follow it
// without a stored one between, and reports whether it did.
func (c *Cursor) advance(s Spans) bool {
	to := c.mark
	for hole := range c.holes.From(to) {
		if next, ok := s.After(to); !ok || next.Less(hole.Start()) {
			break
		}
		to = hole.End()
	}
	if to == c.mark {
		return false
	}
	c.moveTo(to)
	return true
}

// Reset is a seek: next becomes the next entry, or the first one stored behind it;
// beyond the end it is the next to come. All that was known of single entries is
// forgotten. A rest tells which messages of next are still wanted; one without a
// bit, or for an entry that is not stored, is ignored.
func (c *Cursor) Reset(s Spans, next Position, rest []uint64) {
	c.holes.Clear()
	c.rests = ordered[BatchRest]{}
	c.ClearCounts()
	p, ok := s.AtOrAfter(next)
	if !ok {
		c.mark = s.End()
		return
	}
	c.mark = s.MarkBefore(p)
	if words := trimWords(rest); p == next && len(words) > 0 {
		c.setRest(p, slices.Clone(words))
	}
}

// Follow adapts the cursor to spans from which ledgers have gone: what is gone
// counts as acknowledged.
func (c *Cursor) Follow(s Spans) {
	c.moveTo(Max(c.mark, s.Start()))
	for i := 0; i+1 < s.Len(); i++ {
		c.prune(s, Range{s.At(i).End(), s.At(i + 1).Start()})
	}
	c.prune(s, Range{s.Open.End(), Latest})
	c.advance(s)
}

// prune forgets what lies behind gap.First up to gap.Last, where nothing is stored.
func (c *Cursor) prune(s Spans, gap Range) {
	gap.First = gap.First.Next()
	c.forget(gap)
	c.holes.RemoveRange(gap)
}

// Lost counts entries as acknowledged that cannot be read any more.
func (c *Cursor) Lost(s Spans, lost []Range) {
	for _, r := range lost {
		r.First = Max(r.First, c.mark.Next())
		if r.Empty() {
			continue
		}
		c.forget(r)
		for i := s.search(r.First.Ledger); i < s.Len(); i++ {
			span := s.At(i)
			first := Max(r.First, Position{span.Ledger, span.First})
			last := Min(r.Last, span.End())
			if first.Ledger == span.Ledger && last.Ledger == span.Ledger {
				c.holes.AddRun(Run{span.Ledger, first.Entry, last.Entry})
			}
		}
	}
	c.advance(s)
}

// Rest returns which messages of a partly acknowledged batch are left, bit i for
// message i, least significant first; nil if the entry is untouched or acknowledged.
// It is shared: do not write.
func (c *Cursor) Rest(p Position) []uint64 {
	if r := c.rests.at(c.restAt(p)); r != nil && r.Position == p {
		return r.Words
	}
	return nil
}

func (c *Cursor) restAt(p Position) place {
	return c.rests.search(func(r *BatchRest) bool { return !r.Position.Less(p) })
}

// setRest keeps words, which must have a bit set and not change any more.
func (c *Cursor) setRest(p Position, words []uint64) {
	at := c.restAt(p)
	if r := c.rests.at(at); r != nil && r.Position == p {
		r.Words = words
		return
	}
	c.rests.insert(at, BatchRest{p, words})
}

// forget drops rests and counts of the entries in r.
func (c *Cursor) forget(r Range) {
	for at := c.restAt(r.First); ; at = c.restAt(r.First) {
		if rest := c.rests.at(at); rest == nil || r.Last.Less(rest.Position) {
			break
		}
		c.rests.remove(at)
	}
	for at := c.countAt(r.First); ; at = c.countAt(r.First) {
		if n := c.counts.at(at); n == nil || r.Last.Less(n.Position) {
			break
		}
		c.counts.remove(at)
	}
}

// intersect returns a fresh AND of two rests without zero words at the end; a nil
// old is one with all bits set.
func intersect(old, rest []uint64) []uint64 {
	if old == nil {
		return slices.Clone(trimWords(rest))
	}
	left := slices.Clone(rest[:min(len(rest), len(old))])
	for i := range left {
		left[i] &= old[i]
	}
	return trimWords(left)
}

func trimWords(words []uint64) []uint64 {
	for len(words) > 0 && words[len(words)-1] == 0 {
		words = words[:len(words)-1]
	}
	return words
}

func ones(words []uint64) int {
	n := 0
	for _, w := range words {
		n += bits.OnesCount64(w)
	}
	return n
}
