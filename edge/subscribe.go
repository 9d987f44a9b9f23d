package edge

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// makeSubscriptionLocked puts a new subscription into the topic, at the place that
// start gives to its cursor, paused until its first state is durable. t.mu is held.
func (t *Topic) makeSubscriptionLocked(o *SubscribeOptions, start func(*Cursor, Spans)) (*Subscription, error) {
	switch {
	case o.Durable && !o.AutoSubscribe:
		return nil, fmt.Errorf("%w: Subscription does not exist", ErrSubscriptionNotFound)
	case len(t.subs) >= lower(t.policies.Load().Subscriptions, t.broker.opts.SubscriptionsPerTopic):
		return nil, fmt.Errorf("%w: Exceed the maximum number of subscriptions of the topic: %s", ErrNotAllowed, t.name)
	}
	spans := t.ledger.Spans()
	c := NewCursor(CursorState{MarkDelete: spans.End()}, spans)
	c.SetProperties(o.Properties)
	start(c, spans)
	s := newSubscription(t, o.Name, o.Durable, c)
	s.below = o.below(t)
	s.pause = make(chan struct{})
	t.subs[o.Name] = s
	t.setWakesLocked()
	return s, nil
}

// start places a new cursor, which stands at the end (protocol 3.12). Of one that is not
// durable the start's own entry is delivered; no start, or one beyond the end, goes by the
// initial position (watched on 4.0.7), but exactly one beyond the last entry is the end.
func (o *SubscribeOptions) start(c *Cursor, s Spans) {
	switch {
	case !o.Durable && o.Start != nil && !s.End().Next().Less(*o.Start):
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
	s.mu.Lock()
	closed := s.closed
	failed := err != nil && closed == nil
	if failed {
		s.letGoLocked(ErrGone, nil)
	}
	s.mu.Unlock()
	if failed {
		s.topic.forget(s)
	}
	s.goOn()
	switch {
	case closed != nil:
		return closed // with the topic: whatever is stored, the next to ask finds it
	case err != nil:
		return fmt.Errorf("%w: create subscription %s: %w", ErrStorage, s.name, err)
	}
	return nil
}

// goOn ends a pause: those who wait look again.
func (s *Subscription) goOn() {
	s.mu.Lock()
	pause := s.pause
	s.pause = nil
	s.mu.Unlock()
	close(pause)
}

func (s *Subscription) rollBack(by time.Duration) error {
	at := s.topic.broker.opts.Clock().Add(-by).UnixMilli()
	p, err := s.target(SeekTarget{ByTime: true, Time: at}, false)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cursor.Reset(s.topic.ledger.Spans(), p, nil)
	return nil
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
	if err := t.checkSubscribe(ctx, &o); err != nil {
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
	t.used = time.Now()
	s, err := t.makeSubscriptionLocked(&o, func(c *Cursor, s Spans) { c.Reset(s, at, nil) })
	t.mu.Unlock()
	if err != nil {
		return err
	}
	return s.firstSave(ctx, &o)
}

// AutoSubscribes reports whether clients may make durable subscriptions by subscribing.
func (t *Topic) AutoSubscribes() bool {
	rule := t.policies.Load().AutoSubscriptions
	return rule == nil || rule.Allow
}

// ensureSubscription makes a durable subscription at the earliest message if it is
// missing, and waits until it is made if somebody else does.
func (t *Topic) ensureSubscription(ctx context.Context, name string) error {
	err := t.CreateSubscription(ctx, name, Earliest)
	if errors.Is(err, ErrExists) {
		_, err = t.subscription(ctx, name)
	}
	return err
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
