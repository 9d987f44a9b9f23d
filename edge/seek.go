package edge

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// SeekTarget is where a subscription is to go on.
type SeekTarget struct {
	Position Position // this entry comes next; Earliest and Latest are understood
	Rest     []uint64 // of a batch: the messages that are still wanted
	Time     int64    // ms since 1970, with ByTime
	ByTime   bool     // the first entry published at Time or later comes next
}

// Seek moves the subscription (protocol 3.13). Those of its consumers that have to come
// back are told by Receiver.Closed before it returns: the active one of the single
// kinds, all of the others. It may wait.
func (c *Consumer) Seek(ctx context.Context, to SeekTarget) error {
	return c.sub.seek(ctx, to, c)
}

func (s *Subscription) seek(ctx context.Context, to SeekTarget, by *Consumer) error {
	s.mu.Lock()
	switch {
	case s.closed != nil:
		defer s.mu.Unlock()
		return s.closed
	case s.pause != nil:
		defer s.mu.Unlock()
		return fmt.Errorf("%w: subscription %s is being reset", ErrBadRequest, s.name)
	case by != nil && by.gone:
		defer s.mu.Unlock()
		return ErrConsumerNotFound
	case !s.topic.name.IsPersistent(): // nothing to go to (watched on 4.0.7: SUCCESS)
		defer s.mu.Unlock()
		return nil
	}
	s.pause = make(chan struct{})
	for _, c := range s.seekersLocked() {
		s.leaveLocked(c)
		c.recv.Closed(ErrUnloaded)
	}
	s.mu.Unlock()

	next, err := s.target(to, by != nil && by.opts.ReadCompacted)
	if err == nil {
		err = wait(ctx, func(done func(error)) { s.reset(next, to.Rest, done) })
	}
	s.goOn()
	s.wake()
	if err != nil {
		return fmt.Errorf("seek subscription %s: %w", s.name, err)
	}
	return nil
}

// seekersLocked are the consumers that a seek sends away.
func (s *Subscription) seekersLocked() []*Consumer {
	if d, ok := s.dispatch.(*single); ok {
		if d.active == nil {
			return nil
		}
		return []*Consumer{d.active}
	}
	return slices.Clone(s.consumers)
}

// target finds the position of a seek by time, for who reads the compacted form also
// among what only that still holds; it reads.
func (s *Subscription) target(to SeekTarget, readCompacted bool) (Position, error) {
	if !to.ByTime {
		return to.Position, nil
	}
	spans := s.topic.ledger.Spans()
	if form := s.topic.compacted.Load(); form != nil && readCompacted {
		p, ok, err := form.find(to.Time)
		if err == nil && ok && !spans.Start().Less(p) {
			return p, nil
		}
	}
	p, ok, err := s.topic.ledger.Find(spans.Start(), to.Time)
	if err != nil {
		return Position{}, fmt.Errorf("find time: %w", err)
	}
	if !ok {
		return Latest, nil
	}
	return p, nil
}

// reset puts the cursor to its new place and makes that durable.
func (s *Subscription) reset(next Position, rest []uint64, done func(error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed != nil {
		done(s.closed)
		return
	}
	s.cursor.Reset(s.topic.ledger.Spans(), next, rest)
	s.below = s.topic.belowFor(next)
	s.dispatch.clear()
	s.generation++
	for _, c := range s.consumers {
		c.ended = false
	}
	if !s.durable {
		s.keptUntil = time.Now().Add(keptSeek)
	}
	s.changedLocked(done)
}

// LastID is the answer to GET_LAST_MESSAGE_ID.
type LastID struct {
	Last       Position // Earliest if the topic holds nothing
	Messages   int32    // of the last entry
	Batch      bool     // the last entry is a batch
	MarkDelete Position // of the subscription
}

// LastID tells the topic's last entry and where the subscription stands.
func (c *Consumer) LastID() LastID {
	s := c.sub
	s.mu.Lock()
	defer s.mu.Unlock()
	id := LastID{Last: Earliest, MarkDelete: s.cursor.MarkDelete()}
	if last, ok := s.topic.lastStored(); ok {
		id.Last, id.Messages, id.Batch = last.position, last.messages, last.batch
	}
	if c.opts.ReadCompacted {
		s.compactedLastLocked(&id)
	}
	return id
}

// ResetSubscription seeks a subscription on behalf of an administrator. It may wait.
func (t *Topic) ResetSubscription(ctx context.Context, name string, to SeekTarget) error {
	s, err := t.subscription(ctx, name)
	if err != nil {
		return err
	}
	return s.seek(ctx, to, nil)
}
