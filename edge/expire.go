package edge

import (
	"context"
	"fmt"
)

// fewEntries is the backlog below which a wish to let messages expire is refused where
// consumers are connected and not even the oldest has expired (watched on 4.0.7).
const fewEntries = 1_000

// Expire lets what was received more than so many seconds ago count as acknowledged on a
// subscription; 0 lets nothing expire. It may wait. ErrNothingToExpire if there is no
// backlog, or next to none and nothing of it has expired.
func (t *Topic) Expire(ctx context.Context, name string, seconds int64) error {
	s, err := t.subscription(ctx, name)
	if err != nil {
		return err
	}
	mark, backlog, connected := s.standing()
	spans := t.ledger.Spans()
	upTo, some := Position{}, false
	if seconds != 0 {
		now := t.broker.opts.Clock().UnixMilli()
		upTo, some = t.olderThan(spans, mark, now-min(seconds, now/1000)*1000)
	}
	return s.expireUpTo(ctx, upTo, some, backlog, connected)
}

// ExpireUpTo does so with all up to a position. A place beyond the end is the end.
func (t *Topic) ExpireUpTo(ctx context.Context, name string, p Position) error {
	s, err := t.subscription(ctx, name)
	if err != nil {
		return err
	}
	mark, backlog, connected := s.standing()
	return s.expireUpTo(ctx, p, mark.Less(p), backlog, connected)
}

// standing is the mark-delete, the backlog in entries and whether somebody reads.
func (s *Subscription) standing() (mark Position, backlog int64, connected bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cursor.MarkDelete(), s.cursor.Backlog(s.topic.ledger.Spans()), len(s.consumers) > 0
}

func (s *Subscription) expireUpTo(ctx context.Context, p Position, some bool, backlog int64, connected bool) error {
	switch {
	case backlog == 0 || connected && backlog < fewEntries && !some:
		return fmt.Errorf("%w: subscription %s of topic %s", ErrNothingToExpire, s.name, s.topic.name)
	case !some:
		return nil
	}
	n, err := s.skipUpTo(ctx, p)
	if n > 0 {
		s.expired.Add(n)
		s.lastExpired.Store(s.topic.broker.opts.Clock().UnixMilli())
	}
	return err
}

// Skip acknowledges the next n unacknowledged entries of a subscription, or all that
// there are. It may wait.
func (t *Topic) Skip(ctx context.Context, name string, n int) error {
	s, err := t.subscription(ctx, name)
	if err != nil || n < 1 {
		return err
	}
	p, ok := s.unackedAt(n)
	if !ok {
		p = Latest
	}
	_, err = s.skipUpTo(ctx, p)
	return err
}

// SkipAll acknowledges everything that a subscription has not. It may wait.
func (t *Topic) SkipAll(ctx context.Context, name string) error {
	s, err := t.subscription(ctx, name)
	if err != nil {
		return err
	}
	_, err = s.skipUpTo(ctx, Latest)
	return err
}

// skipUpTo acknowledges all up to a position, or the end, and returns how many entries
// that were. Consumers stay, and are not told.
func (s *Subscription) skipUpTo(ctx context.Context, p Position) (skipped int64, err error) {
	err = wait(ctx, func(done func(error)) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.closed != nil {
			done(s.closed)
			return
		}
		spans := s.topic.ledger.Spans()
		p = Min(p, spans.End())
		skipped = s.cursor.Backlog(spans)
		s.cursor.AckUpTo(spans, p, nil)
		skipped -= s.cursor.Backlog(spans)
		s.dispatch.skipTo(p)
		s.changedLocked(done)
	})
	s.wake()
	return skipped, err
}
