package edge

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// How a consumer with ReadCompacted reads a topic that is compacted: up to the horizon
// the compacted form, behind it the topic itself. What is compacted away counts as
// acknowledged once the reading has passed it.
//
// A deliberate difference: on 4.0.7 that counts only for a cumulative acknowledgement.
// One by one they leave a backlog that never goes, and are delivered again, all of them,
// by the next redelivery (watched). And its readers find what only the compacted form
// still holds with their very first read alone; here it is read anew as all else.

// compactedFor is the compacted form that a consumer reads from a position on, nil if
// there is none or it reads the topic.
func (s *Subscription) compactedFor(c *Consumer, from Position) *compacted {
	if !c.opts.ReadCompacted {
		return nil
	}
	form := s.topic.compacted.Load()
	if form == nil || form.state.Horizon.Less(from) {
		return nil
	}
	return form
}

// bring reads what is planned from where it stands.
func (s *Subscription) bring(p *readPlan) (b Batch, err error) {
	if p.form == nil {
		return s.topic.ledger.Read(p.ranges, p.entries, readBytes)
	}
	b.Entries, b.passed, err = p.form.read(p.ranges[0].First, &s.place, p.entries, readBytes)
	return b, err
}

// superseded reports whether a read failed because its compacted form has gone.
func (p *readPlan) superseded(err error) bool {
	return p.form != nil && (errors.Is(err, ErrGone) || errors.Is(err, errCompactedGone))
}

// assignCompactedLocked hands out a batch from a compacted form.
func (s *Subscription) assignCompactedLocked(v *view, p *readPlan, b *Batch, g *Grant) bool {
	d, ok := s.dispatch.(*single)
	if !ok {
		return true
	}
	defer s.changedLocked(nil)
	for i := range b.Entries {
		e := &b.Entries[i]
		s.passLocked(v, d.read, e.Position)
		switch {
		case s.ackedCompactedLocked(v, e.Position):
			d.read, p.moved = e.Position.Next(), true
		case !s.dispatch.offer(v, p, e, g):
			return p.moved
		case s.below != nil:
			s.below.delivered(e.Position)
		}
	}
	next := b.passed.Next()
	s.passLocked(v, d.read, next)
	d.read = Max(d.read, next)
	s.endBelowLocked(v)
	return true
}

// passLocked lets what is stored from one position up to before another count as
// acknowledged: it is compacted away. Where nobody acknowledges what lies between, the
// holes stay below their bound; the rest is backlog until a cumulative acknowledgement.
func (s *Subscription) passLocked(v *view, from, to Position) {
	if gap := (Range{from, to.Before()}); !gap.Empty() && s.cursor.holes.Count() < maxHoles/2 {
		s.cursor.Lost(v.spans, []Range{gap})
	}
}

// ackedCompactedLocked reports whether an entry of the compacted form is acknowledged.
func (s *Subscription) ackedCompactedLocked(v *view, p Position) bool {
	if s.below != nil && !v.spans.Start().Less(p) {
		return s.below.acked(p)
	}
	return s.cursor.Acked(p)
}

// below is where a subscription stands among the entries that only the compacted form
// still holds: the cursor knows stored positions alone.
type below struct {
	mark  Position   // acknowledged up to here
	upTo  Position   // delivered up to here
	out   []Position // delivered and not acknowledged, ascending, at most maxBelow
	loses bool       // there were more: what is acknowledged one by one is not known
}

// maxBelow bounds what is known of single entries.
const maxBelow = 10_000

func newBelow(mark Position) *below { return &below{mark: mark, upTo: mark} }

// belowFor is where a subscription stands whose next entry is to be the one given, nil
// if it wants only what the topic itself holds.
func (t *Topic) belowFor(next Position) *below {
	form := t.compacted.Load()
	if form == nil || form.state.Entries == 0 || t.ledger.Spans().Start().Less(next) {
		return nil
	}
	if next != Earliest {
		next = next.Before()
	}
	return newBelow(next)
}

// below is where a new subscription stands.
func (o *SubscribeOptions) below(t *Topic) *below {
	switch {
	case !o.ReadCompacted || o.Rollback > 0:
		return nil
	case !o.Durable && o.Start != nil:
		return t.belowFor(*o.Start)
	case o.Initial == InitialEarliest:
		return t.belowFor(Earliest)
	}
	return nil
}

// belowPlan goes before a position in a cursor's plan.
const belowPlan = "below "

func (b *below) encode() []byte {
	return fmt.Appendf(nil, "%s%d %d", belowPlan, b.mark.Ledger, b.mark.Entry)
}

// loadBelow takes over what a cursor's plan tells of it.
func (s *Subscription) loadBelow() {
	text, ok := strings.CutPrefix(string(s.cursor.Plan()), belowPlan)
	if !ok {
		return
	}
	s.cursor.SetPlan(nil)
	var p Position
	if n, err := fmt.Sscanf(text, "%d %d", &p.Ledger, &p.Entry); n == 2 && err == nil {
		s.below = newBelow(p)
	}
}

func (b *below) acked(p Position) bool {
	if !b.mark.Less(p) {
		return true
	}
	_, waits := slices.BinarySearchFunc(b.out, p, Position.Compare)
	return !b.loses && !b.upTo.Less(p) && !waits
}

func (b *below) delivered(p Position) {
	if !b.upTo.Less(p) {
		return
	}
	b.upTo = p
	if b.loses = b.loses || len(b.out) >= maxBelow; !b.loses {
		b.out = append(b.out, p)
	}
}

// ack acknowledges one entry, or all up to it.
func (b *below) ack(p Position, cumulative bool) {
	i, found := slices.BinarySearchFunc(b.out, p, Position.Compare)
	switch {
	case cumulative:
		if found {
			i++
		}
		b.out = slices.Delete(b.out, 0, i)
		b.mark, b.upTo = Max(b.mark, p), Max(b.upTo, p)
		b.loses = b.loses && p.Less(b.upTo)
	case found:
		b.out = slices.Delete(b.out, i, i+1)
	}
	switch {
	case b.loses:
	case len(b.out) > 0:
		b.mark = Max(b.mark, b.out[0].Before())
	default:
		b.mark = b.upTo
	}
}

// ackBelowLocked takes acknowledgements of what only the compacted form still holds, and
// reports whether there were some.
func (s *Subscription) ackBelowLocked(v *view, parts []AckPart, cumulative bool) (any bool) {
	if s.below == nil {
		return false
	}
	for i := range parts {
		p := parts[i].Position
		if p.Ledger >= 0 && (cumulative || !v.spans.Start().Less(p) && parts[i].Rest == nil) {
			s.below.ack(p, cumulative)
			any = true
		}
	}
	s.endBelowLocked(v)
	return any
}

// endBelowLocked forgets what is known of them once nothing more is to come.
func (s *Subscription) endBelowLocked(v *view) {
	if b := s.below; b != nil && !b.loses && len(b.out) == 0 && v.spans.Start().Less(s.readLocked()) {
		s.below = nil
	}
}

// readLocked is the next position to be read; kinds that share have none here.
func (s *Subscription) readLocked() Position {
	if d, ok := s.dispatch.(*single); ok {
		return d.read
	}
	return Earliest
}

// restartLocked is where reading begins anew.
func (s *Subscription) restartLocked() Position {
	if s.below != nil {
		return s.below.mark.Next()
	}
	return s.cursor.MarkDelete()
}

// compactedLastLocked corrects the last id for who reads the compacted form: it is the
// last message that a compaction has left, if nothing came behind it (watched on 4.0.7).
func (s *Subscription) compactedLastLocked(id *LastID) {
	form := s.topic.compacted.Load()
	if form == nil {
		return
	}
	st := &form.state
	if id.Last == Earliest || !st.Horizon.Less(id.Last) {
		*id = LastID{Last: Earliest, MarkDelete: id.MarkDelete}
		if st.Entries > 0 {
			id.Last, id.Batch, id.Messages = st.Last, st.LastIndex >= 0, int32(st.LastIndex)+1
		}
	}
	if s.below != nil {
		if id.MarkDelete = s.below.mark; id.MarkDelete == Earliest {
			id.MarkDelete = st.First.Before()
		}
	}
}
