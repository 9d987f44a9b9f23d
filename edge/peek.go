package edge

import (
	"context"
	"fmt"
)

// Entry reads one stored entry for a person who looks; nothing is acknowledged or
// counted by that. It may wait. ErrMessageNotFound if nothing is stored there.
func (t *Topic) Entry(ctx context.Context, p Position) (Entry, error) {
	if !t.ledger.Spans().Contains(p) {
		return Entry{}, fmt.Errorf("%w: %v of topic %s", ErrMessageNotFound, p, t.name)
	}
	grant, err := t.broker.budget.Take(ctx, ShareRead, readBytes)
	if err != nil {
		return Entry{}, err
	}
	defer grant.Release()
	batch, err := t.ledger.Read([]Range{{p, p}}, 1, readBytes)
	if err != nil {
		return Entry{}, fmt.Errorf("%w: read %v of topic %s: %w", ErrStorage, p, t.name, err)
	}
	if len(batch.Entries) == 0 {
		return Entry{}, fmt.Errorf("%w: %v of topic %s is damaged", ErrMessageNotFound, p, t.name)
	}
	return batch.Entries[0], nil
}

// Peek reads the n-th unacknowledged entry of a subscription, counted from 1, as
// Entry does.
func (t *Topic) Peek(ctx context.Context, name string, n int) (Entry, error) {
	s, err := t.subscription(ctx, name)
	if err != nil {
		return Entry{}, err
	}
	p, ok := s.unackedAt(n)
	if !ok {
		return Entry{}, fmt.Errorf("%w: subscription %s has fewer than %d", ErrMessageNotFound, name, n)
	}
	return t.Entry(ctx, p)
}

// unackedAt is the place of the n-th unacknowledged entry, counted from 1.
func (s *Subscription) unackedAt(n int) (Position, bool) {
	if n < 1 {
		return Position{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	spans := s.topic.ledger.Spans()
	from, left := s.cursor.MarkDelete(), int64(n)
	for {
		ranges := s.cursor.Unacked(nil, spans, from, readRanges)
		if len(ranges) == 0 {
			return Position{}, false
		}
		for _, r := range ranges {
			count := spans.EntriesBetween(Position{r.First.Ledger, r.First.Entry - 1}, r.Last)
			if left <= count {
				return spans.nth(r.First, left)
			}
			left -= count
		}
		from = ranges[len(ranges)-1].Last.Next()
	}
}
