package edge

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// Consumer is one receiver of a subscription, with its permits and what it has not
// acknowledged yet.
type Consumer struct {
	sub    *Subscription
	opts   SubscribeOptions
	recv   Receiver
	peer   Peer
	since  time.Time
	joined uint64 // order of joining
	ring   ringPlace

	// guarded by sub.mu
	permits int   // messages welcome; below zero after a batch that was larger
	aside   int   // permits that came while blocked
	unacked int   // messages delivered and not acknowledged, kinds that share
	blocked bool  // at the unacked limit
	short   bool  // was not ready for an entry with a key
	told    bool  // has been told whether it is the active one
	ended   bool  // has been told of the topic's end
	gone    bool  // has left
	epoch   int64 // consumer epoch, −1 if it has none

	msgOut, bytesOut, redelivered atomic.Int64
	lastAck, lastSent, lastFlow   atomic.Int64 // ms since 1970
	rate                          rate
}

// Initial is where a new durable subscription begins.
type Initial int

// Initial positions, numbered as on the wire.
const (
	InitialLatest Initial = iota
	InitialEarliest
)

// SubscribeOptions is what a client asks for (protocol 2.9).
type SubscribeOptions struct {
	ID            uint64 // the client's id, for stats
	Name          string // of the subscription
	Kind          SubKind
	Durable       bool
	Consumer      string // name of the consumer, may be empty or taken
	Priority      int    // 0 is the best
	Initial       Initial
	Start         *Position // where a new non-durable subscription begins, that entry included
	Rollback      time.Duration
	ReadCompacted bool
	Metadata      map[string]string
	Properties    map[string]string // of the subscription, set when it is made
	Sticky        bool              // Key_Shared with ranges of its own
	Ranges        []SlotRange
	OutOfOrder    bool  // Key_Shared may reorder a key when it moves
	Epoch         int64 // consumer epoch, −1 for none
	Schema        *Schema
	AnySchema     bool   // takes whatever schema the topic has
	AutoSubscribe bool   // a missing durable subscription may be made
	Own           bool   // the broker's: whatever types of subscriptions are enabled
	Follow        string // reads only what this other subscription has acknowledged
}

// Subscribe adds a consumer to a subscription, which it makes if need be. It may wait.
// *InUseError says that a living peer may hold the seat; ErrUnloaded that the broker
// has to be asked for the topic again.
func (t *Topic) Subscribe(ctx context.Context, o SubscribeOptions, r Receiver, peer Peer) (*Consumer, error) {
	if err := t.checkSubscribe(ctx, &o); err != nil {
		return nil, err
	}
	if err := t.policies.Load().enables(t.name, &o); err != nil {
		return nil, err
	}
	c := &Consumer{
		opts: o, recv: r, peer: peer, epoch: o.Epoch,
		since: t.broker.opts.Clock(), joined: t.broker.joins.Add(1),
	}
	for {
		wait, err := t.trySubscribe(ctx, c)
		switch {
		case err != nil:
			return nil, err
		case wait == nil:
			return c, nil
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, fmt.Errorf("subscribe %s: %w", o.Name, ctx.Err())
		}
	}
}

func (t *Topic) checkSubscribe(ctx context.Context, o *SubscribeOptions) error {
	switch {
	case o.Name == "":
		return fmt.Errorf("%w: Empty subscription name", ErrNotAllowed)
	case len(o.Name) > 1024:
		return fmt.Errorf("%w: subscription name of %d bytes", ErrNotAllowed, len(o.Name))
	case !o.Kind.valid():
		return fmt.Errorf("%w: unknown subscription type %d", ErrBadRequest, int(o.Kind))
	case o.ReadCompacted && !t.name.IsPersistent():
		return fmt.Errorf("%w: readCompacted only valid on persistent topics", ErrNotAllowed)
	case o.ReadCompacted && o.Kind.shares():
		return fmt.Errorf("%w: readCompacted only allowed on failover or exclusive subscriptions", ErrNotAllowed)
	case o.Kind == KeyShared && o.Sticky && len(o.Ranges) == 0:
		return fmt.Errorf("%w: Ranges for KeyShared policy must not be empty", ErrSticky)
	}
	return t.consumerSchema(ctx, o.Schema)
}

// trySubscribe joins, or returns a channel that closes when another try is worthwhile.
func (t *Topic) trySubscribe(ctx context.Context, c *Consumer) (<-chan struct{}, error) {
	s, made, wait, err := t.findSubscription(&c.opts)
	if s == nil {
		return wait, err
	}
	if made {
		if err := s.firstSave(ctx, &c.opts); err != nil {
			return nil, err
		}
	}
	return s.seat(c)
}

// findSubscription finds the subscription that a consumer wants, or puts a new one
// there, for which made is set.
func (t *Topic) findSubscription(o *SubscribeOptions) (s *Subscription, made bool, wait <-chan struct{}, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed != nil {
		return nil, false, nil, t.closed
	}
	t.used = time.Now()
	if most := t.policies.Load().Consumers; most != nil && *most > 0 && t.consumersLocked() >= int(*most) {
		return nil, false, nil, fmt.Errorf("%w: Topic reached max consumers limit", ErrConsumerBusy)
	}
	other, err := t.followedLocked(o.Follow)
	if err != nil {
		return nil, false, nil, err
	}
	if s = t.subs[o.Name]; s == nil {
		if s, err = t.makeSubscriptionLocked(o, o.start); err != nil {
			return nil, false, nil, err
		}
		made = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pause != nil && !made {
		return nil, false, s.pause, nil
	}
	if err := s.mayJoinLocked(o); err != nil {
		return nil, false, nil, err
	}
	s.followLocked(other)
	return s, made, nil, nil
}

// seat lets a consumer join. Others may have been quicker since it was looked at.
func (s *Subscription) seat(c *Consumer) (wait <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed == ErrGone || s.follow != nil && s.follow.dropped.Load():
		again := make(chan struct{})
		close(again)
		return again, nil
	case s.closed != nil:
		return nil, s.closed
	case s.pause != nil:
		return s.pause, nil
	}
	if err := s.mayJoinLocked(&c.opts); err != nil {
		return nil, err
	}
	c.sub = s
	if err := s.joinLocked(c); err != nil {
		return nil, err
	}
	s.wake()
	return nil, nil
}

func (t *Topic) followedLocked(name string) (*Subscription, error) {
	if name == "" {
		return nil, nil
	}
	if s := t.subs[name]; s != nil && s.durable {
		return s, nil
	}
	return nil, fmt.Errorf("%w: %s, whose acknowledgements were to be followed", ErrSubscriptionNotFound, name)
}

// Subscription is what the consumer reads.
func (c *Consumer) Subscription() *Subscription { return c.sub }

// Topic is the topic that the consumer reads.
func (c *Consumer) Topic() *Topic { return c.sub.topic }

// Flow adds permits, in messages.
func (c *Consumer) Flow(permits int) {
	s := c.sub
	s.mu.Lock()
	if c.gone || permits <= 0 {
		s.mu.Unlock()
		return
	}
	had := c.permits
	if c.blocked {
		c.aside = addPermits(c.aside, permits)
	} else {
		c.permits = addPermits(c.permits, permits)
	}
	now := c.permits
	s.mu.Unlock()
	s.noteTime(&c.lastFlow, &s.lastFlow)
	if had <= 0 && now > 0 { // or else nothing waits for permits
		s.wake()
	}
}

// maxPermits bounds the permits of a consumer, so that a client cannot make them wrap.
const maxPermits = 1 << 30

func addPermits(have, more int) int { return min(have+min(more, maxPermits), maxPermits) }

func (s *Subscription) noteTime(of ...*atomic.Int64) {
	now := s.topic.broker.opts.Clock().UnixMilli()
	for _, a := range of {
		a.Store(now)
	}
}

// Wake tells that there is room again after Receiver.Room had said none.
func (c *Consumer) Wake() { c.sub.wake() }

// Close takes the consumer out for its client; Receiver.Closed is not called.
func (c *Consumer) Close() {
	s := c.sub
	s.topic.touch()
	s.mu.Lock()
	s.leaveLocked(c)
	last := len(s.consumers) == 0
	s.mu.Unlock()
	if last {
		s.topic.removeIfDone(s, time.Now())
	}
	s.wake()
}

func (t *Topic) touch() {
	t.mu.Lock()
	t.used = time.Now()
	t.mu.Unlock()
}

// ready reports whether the consumer can be given an entry now. sub.mu is held.
func (c *Consumer) ready() bool {
	if c.permits <= 0 || c.blocked || c.gone {
		return false
	}
	return c.recv.Room() > 0
}

// take counts a delivery of so many messages against the consumer.
func (c *Consumer) take(messages, bytes int) {
	c.permits -= messages
	c.msgOut.Add(int64(messages))
	c.bytesOut.Add(int64(bytes))
}
