package edge

import (
	"context"
	"fmt"
	"time"
)

// makeSubscriptionLocked puts a new subscription into the topic, paused until its
// first state is durable. t.mu is held.
func (t *Topic) makeSubscriptionLocked(o *SubscribeOptions) (*Subscription, error) {
	switch {
	case o.Durable && !o.AutoSubscribe:
		return nil, fmt.Errorf("%w: Subscription does not exist", ErrSubscriptionNotFound)
	case len(t.subs) >= t.broker.opts.SubscriptionsPerTopic:
		return nil, fmt.Errorf("%w: Exceed the maximum number of subscriptions of the topic: %s", ErrNotAllowed, t.name)
	}
	spans := t.ledger.Spans()
	c := NewCursor(CursorState{MarkDelete: spans.End()}, spans)
	c.SetProperties(o.Properties)
	if o.Durable {
		if o.Initial == InitialEarliest {
			c.Reset(spans, Earliest, nil)
		}
	} else {
		startAt(c, spans, o)
	}
	s := newSubscription(t, o.Name, o.Durable, c)
	s.pause = make(chan struct{})
	t.subs[o.Name] = s
	t.setWakesLocked()
	return s, nil
}

// startAt places a non-durable cursor (protocol 3.12): the start's own entry is
// delivered; a start beyond the end goes by the initial position, but exactly one
// beyond the last entry is the end.
func startAt(c *Cursor, s Spans, o *SubscribeOptions) {
	switch {
	case o.Start == nil:
	case !s.End().Next().Less(*o.Start):
		c.Reset(s, *o.Start, nil)
	case o.Initial == InitialEarliest:
		c.Reset(s, Earliest, nil)
	}
}

// firstSave makes a new subscription durable, at the place where a rollback wants it,
// and lets others come. What fails leaves no trace.
func (s *Subscription) firstSave(ctx context.Context, o *SubscribeOptions) error {
	var err error
	if o.Rollback > 0 {
		err = s.rollBack(o.Rollback)
	}
	if err == nil && s.durable {
		err = wait(ctx, func(done func(error)) { s.topic.ledger.SaveCursor(s.name, s.save, done) })
	}
	if err != nil {
		s.topic.forget(s)
	}
	s.mu.Lock()
	pause := s.pause
	s.pause = nil
	if err != nil {
		s.closed = ErrGone
	}
	s.mu.Unlock()
	close(pause)
	if err != nil {
		return fmt.Errorf("%w: create subscription %s: %w", ErrStorage, s.name, err)
	}
	return nil
}

func (s *Subscription) rollBack(by time.Duration) error {
	at := s.topic.broker.opts.Clock().Add(-by).UnixMilli()
	p, err := s.target(SeekTarget{ByTime: true, Time: at})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cursor.Reset(s.topic.ledger.Spans(), p, nil)
	return nil
}

// forget takes a subscription out of the topic.
func (t *Topic) forget(s *Subscription) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.subs[s.name] != s {
		return
	}
	delete(t.subs, s.name)
	t.setWakesLocked()
	s.mu.Lock()
	s.followLocked(nil)
	s.mu.Unlock()
	if s.durable {
		t.ledger.DeleteCursor(s.name, func(error) {})
	}
}

// Subscriptions lists the durable subscriptions, sorted.
func (t *Topic) Subscriptions() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	durable := map[string]struct{}{}
	for name, s := range t.subs {
		if s.durable {
			durable[name] = struct{}{}
		}
	}
	return sortedKeys(durable)
}

// CreateSubscription makes a durable subscription whose next entry is the one at the
// position, Earliest and Latest understood. It may wait. ErrExists if it is there.
func (t *Topic) CreateSubscription(ctx context.Context, name string, at Position) error {
	o := SubscribeOptions{Name: name, Durable: true, AutoSubscribe: true}
	if err := t.checkSubscribe(&o); err != nil {
		return err
	}
	t.mu.Lock()
	if t.closed != nil {
		defer t.mu.Unlock()
		return t.closed
	}
	if t.subs[name] != nil {
		defer t.mu.Unlock()
		return fmt.Errorf("%w: Subscription already exists for topic", ErrExists)
	}
	s, err := t.makeSubscriptionLocked(&o)
	if err == nil {
		s.cursor.Reset(t.ledger.Spans(), at, nil)
	}
	t.mu.Unlock()
	if err != nil {
		return err
	}
	return s.firstSave(ctx, &o)
}

// subscription finds one, once it is made and not being sought.
func (t *Topic) subscription(ctx context.Context, name string) (*Subscription, error) {
	for {
		t.mu.Lock()
		s := t.subs[name]
		t.mu.Unlock()
		if s == nil {
			return nil, fmt.Errorf("%w: Subscription %s not found for topic %s", ErrSubscriptionNotFound, name, t.name)
		}
		s.mu.Lock()
		pause := s.pause
		s.mu.Unlock()
		if pause == nil {
			return s, nil
		}
		select {
		case <-pause:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// DeleteSubscription removes a subscription and its cursor; with consumers only if
// force, which tells them. It may wait.
func (t *Topic) DeleteSubscription(ctx context.Context, name string, force bool) error {
	s, err := t.subscription(ctx, name)
	if err != nil {
		return err
	}
	return t.remove(ctx, s, nil, force)
}

// remove deletes a subscription. by, if not nil, is the one consumer that may be
// connected without force; it is not told.
func (t *Topic) remove(ctx context.Context, s *Subscription, by *Consumer, force bool) error {
	s.mu.Lock()
	others := len(s.consumers)
	if by != nil && !by.gone {
		others--
	}
	switch {
	case s.closed != nil:
		defer s.mu.Unlock()
		return s.closed
	case others > 0 && !force:
		defer s.mu.Unlock()
		return fmt.Errorf("%w: Subscription has active connected consumers", ErrTopicInUse)
	}
	if by != nil {
		s.leaveLocked(by)
	}
	s.mu.Unlock()
	s.letGo(ErrGone)
	t.forgetQuietly(s)
	s.end()
	t.trimDue.Store(true)
	if !s.durable {
		return nil
	}
	if err := wait(ctx, func(done func(error)) { t.ledger.DeleteCursor(s.name, done) }); err != nil {
		return fmt.Errorf("%w: delete subscription %s: %w", ErrStorage, s.name, err)
	}
	return nil
}

// forgetQuietly takes a subscription out of the topic and leaves its cursor to the caller.
func (t *Topic) forgetQuietly(s *Subscription) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.subs[s.name] == s {
		delete(t.subs, s.name)
		t.setWakesLocked()
	}
	s.mu.Lock()
	s.followLocked(nil)
	s.mu.Unlock()
}

// Unsubscribe removes the subscription for its consumer, which leaves with it. Without
// force it has to be the only one. It may wait.
func (c *Consumer) Unsubscribe(ctx context.Context, force bool) error {
	if !c.sub.durable {
		c.Close()
		return nil
	}
	if err := c.sub.topic.remove(ctx, c.sub, c, force); err != nil {
		return err
	}
	return nil
}

// ResetSubscription seeks a subscription on behalf of an administrator. It may wait.
func (t *Topic) ResetSubscription(ctx context.Context, name string, to SeekTarget) error {
	s, err := t.subscription(ctx, name)
	if err != nil {
		return err
	}
	return s.seek(ctx, to, nil)
}

// SkipAll acknowledges everything that a subscription has not. It may wait.
func (t *Topic) SkipAll(ctx context.Context, name string) error {
	s, err := t.subscription(ctx, name)
	if err != nil {
		return err
	}
	err = wait(ctx, func(done func(error)) {
		s.mu.Lock()
		defer s.mu.Unlock()
		spans := t.ledger.Spans()
		s.cursor.AckUpTo(spans, spans.End(), nil)
		s.dispatch.skipTo(spans.End())
		s.changedLocked(done)
	})
	t.trimDue.Store(true)
	s.wake()
	return err
}

// Plan is the small state that an uplink keeps with its cursor; nil at first.
func (c *Consumer) Plan() []byte {
	c.sub.mu.Lock()
	defer c.sub.mu.Unlock()
	return c.sub.cursor.Plan()
}

// SavePlan replaces that state and, with upTo, acknowledges everything up to there, in
// one durable write. done runs behind it; without done the write rides with the next commit.
func (c *Consumer) SavePlan(plan []byte, upTo *Position, done func(error)) {
	s := c.sub
	s.mu.Lock()
	if s.closed != nil || s.pause != nil || c.gone {
		s.mu.Unlock()
		if done != nil {
			done(ErrGone)
		}
		return
	}
	s.cursor.SetPlan(plan)
	v := s.viewLocked()
	if upTo != nil && s.cursor.AckUpTo(v.spans, Min(*upTo, v.limit), nil) {
		s.topic.trimDue.Store(true)
	}
	s.changedLocked(done)
	s.mu.Unlock()
}
