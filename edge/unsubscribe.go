package edge

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// DeleteSubscription removes a subscription and its cursor; with consumers only if
// force, which tells them. It may wait.
func (t *Topic) DeleteSubscription(ctx context.Context, name string, force bool) error {
	s, err := t.subscription(ctx, name)
	if err != nil {
		return err
	}
	return t.remove(ctx, s, nil, force)
}

// Unsubscribe removes the subscription for its consumer, which leaves with it. Without
// force it has to be the only one. It may wait.
func (c *Consumer) Unsubscribe(ctx context.Context, force bool) error {
	if !c.sub.durable {
		c.Close()
		return nil
	}
	return c.sub.topic.remove(ctx, c.sub, c, force)
}

// remove deletes a subscription. by, if not nil, is the one consumer that may be
// connected without force; it is not told.
func (t *Topic) remove(ctx context.Context, s *Subscription, by *Consumer, force bool) error {
	err := wait(ctx, func(done func(error)) { t.removeNow(s, by, force, done) })
	if err != nil {
		return fmt.Errorf("delete subscription %s: %w", s.name, err)
	}
	if s.name == CompactionSubscription {
		t.dropCompacted()
	}
	return nil
}

// removeNow takes the subscription out and has its cursor deleted in one step, so that
// one of the same name that is made next is saved behind that.
func (t *Topic) removeNow(s *Subscription, by *Consumer, force bool, done func(error)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.mu.Lock()
	err := s.mayRemoveLocked(by, force)
	if err == nil {
		s.letGoLocked(ErrGone, by)
		s.followLocked(nil)
	}
	s.mu.Unlock()
	if err != nil {
		done(err)
		return
	}
	t.dropLocked(s)
	if !s.durable {
		done(nil)
		return
	}
	t.ledger.DeleteCursor(s.name, func(err error) {
		if err != nil {
			err = fmt.Errorf("%w: %w", ErrStorage, err)
		}
		done(err)
	})
}

// mayRemoveLocked says why a subscription is not removed.
func (s *Subscription) mayRemoveLocked(by *Consumer, force bool) error {
	others := len(s.consumers)
	if by != nil {
		others--
	}
	switch {
	case s.closed != nil:
		return s.closed
	case by != nil && by.gone:
		return ErrConsumerNotFound
	case others > 0 && !force:
		return fmt.Errorf("%w: Subscription has active connected consumers", ErrTopicInUse)
	}
	return nil
}

// dropLocked takes a subscription that is closed out of the topic, which still waits
// for its dispatch goroutine. Whoever follows it has to look for another one. t.mu is held.
func (t *Topic) dropLocked(s *Subscription) {
	if t.subs[s.name] != s {
		return
	}
	delete(t.subs, s.name)
	t.setWakesLocked()
	t.ending = slices.DeleteFunc(append(t.ending, s), (*Subscription).tryEnd)
	s.dropped.Store(true)
	if list := s.followers.Load(); list != nil {
		for _, f := range *list {
			f.sendAway(ErrUnloaded)
		}
	}
}

// sendAway lets all consumers go, who may come again.
func (s *Subscription) sendAway(reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range slices.Clone(s.consumers) {
		s.leaveLocked(c)
		c.recv.Closed(reason)
	}
}

// forget takes back a subscription whose making failed.
func (t *Topic) forget(s *Subscription) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.subs[s.name] != s {
		return
	}
	t.dropLocked(s)
	s.mu.Lock()
	s.followLocked(nil)
	s.mu.Unlock()
	if s.durable {
		t.ledger.DeleteCursor(s.name, func(error) {})
	}
}

// removeIfDone drops a non-durable subscription that nobody reads any more.
func (t *Topic) removeIfDone(s *Subscription, now time.Time) {
	if s.durable {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s.mu.Lock()
	done := len(s.consumers) == 0 && s.pause == nil && !now.Before(s.keptUntil) && s.closed == nil
	if done {
		s.letGoLocked(ErrGone, nil)
		s.followLocked(nil)
	}
	s.mu.Unlock()
	if done {
		t.dropLocked(s)
	}
}
