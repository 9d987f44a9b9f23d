package edge

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// SubKind is how the consumers of a subscription share its messages.
type SubKind int

// The kinds, numbered as on the wire.
const (
	Exclusive SubKind = iota
	Shared
	Failover
	KeyShared
)

// String is the name that stats and errors show.
func (k SubKind) String() string {
	return [...]string{"Exclusive", "Shared", "Failover", "Key_Shared"}[k]
}

func (k SubKind) valid() bool { return k >= Exclusive && k <= KeyShared }

// shares reports whether several consumers get different entries, so that what each
// of them holds has to be known.
func (k SubKind) shares() bool { return k == Shared || k == KeyShared }

// Subscription is a named reader of a topic. What it decides stands in dispatch.go,
// ack.go, redeliver.go and seek.go; here is who may join, and what happens when they leave.
type Subscription struct {
	topic   *Topic
	name    string
	durable bool
	counts  counters
	// marked is the mark-delete for those who follow it without the lock.
	marked atomic.Pointer[Position]
	// followers read only up to marked; replaced as a whole under the topic's lock.
	followers atomic.Pointer[[]*Subscription]
	dropped   atomic.Bool   // no longer the topic's: nobody may begin to follow it
	state     atomic.Int32  // of the dispatch: idle, running, again, stopped
	deaf      atomic.Bool   // new entries change nothing until something else wakes it
	working   sync.Mutex    // held as long as the dispatch runs
	hand      *hand         // who runs it; guarded by working
	behind    *Subscription // the next in the crew's line; guarded by its lock
	save      func() CursorState
	place     compactedPlace // where reading goes on; guarded by working

	mu         sync.Mutex
	closed     error         // why nothing works any more
	pause      chan struct{} // open while being created or sought; waiters look again when it closes
	cursor     *Cursor
	txns       *txnAcks // nil as long as no transaction has acknowledged anything
	kind       SubKind
	typed      bool // kind is meant: a consumer came since the load
	sticky     bool
	outOfOrder bool
	consumers  []*Consumer // by priority, then as they came
	dispatch   dispatcher
	generation uint64 // raised by everything that makes a running read stale
	timer      *time.Timer
	pace       *pace         // nil until a rate is looked at
	follow     *Subscription // only up to its mark-delete, nil for all
	paused     string        // why new entries are not dispatched, for stats
	limitTold  bool          // the log has said that too much is unacknowledged
	keptUntil  time.Time     // of a sought non-durable position without consumers
	average    float64       // messages per entry, to read what permits allow
	below      *below        // among what only the compacted form holds, nil if it is past that
	lastMove   atomic.Int64
	lastAck    atomic.Int64
	lastFlow   atomic.Int64
	lastSent   atomic.Int64
	redelivers atomic.Int64
	expired    atomic.Int64 // entries, since the load
	// lastExpired is when some did, ms since 1970.
	lastExpired atomic.Int64
}

// keptSeek is how long a sought position of a non-durable subscription waits for its
// reader to come back (protocol 3.13).
const keptSeek = time.Minute

func newSubscription(t *Topic, name string, durable bool, c *Cursor) *Subscription {
	s := &Subscription{topic: t, name: name, durable: durable, cursor: c, average: 1}
	s.save = s.snapshot
	s.dispatch = newSingle(s)
	s.noteMarkLocked()
	return s
}

// snapshot is what the store asks for when it writes the cursor.
func (s *Subscription) snapshot() CursorState {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.cursor.State()
	if s.below != nil {
		state.Plan = s.below.encode()
	}
	return state
}

// Name is the subscription's name.
func (s *Subscription) Name() string { return s.name }

func (s *Subscription) noteMarkLocked() {
	mark := s.cursor.MarkDelete()
	if old := s.marked.Load(); old != nil && *old == mark {
		return
	}
	s.marked.Store(&mark)
	s.noteTime(&s.lastMove)
	if list := s.followers.Load(); list != nil {
		for _, f := range *list {
			f.wake()
		}
	}
}

// changedLocked makes a change of the cursor known: to followers, and to the store.
// done may be nil; with one a commit is brought on. What is closed is never saved: its
// cursor may be deleted already.
func (s *Subscription) changedLocked(done func(error)) {
	s.noteMarkLocked()
	switch {
	case s.closed != nil:
		if done != nil {
			done(s.closed)
		}
	case s.durable && done != nil:
		s.topic.ledger.SaveCursor(s.name, s.save, func(err error) { s.saved(err); done(err) })
	case s.durable:
		s.topic.ledger.SaveCursor(s.name, s.save, nil)
	case done != nil:
		done(nil)
	}
}

// saved runs on the store's goroutine. What could not be written is to be written later:
// it has changed in memory, whatever its client was told.
func (s *Subscription) saved(err error) {
	if err == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed == nil {
		s.topic.ledger.SaveCursor(s.name, s.save, nil)
	}
}

func (s *Subscription) consumerCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.consumers)
}

// mayJoinLocked says why a consumer is not admitted.
func (s *Subscription) mayJoinLocked(o *SubscribeOptions) error {
	switch {
	case s.durable != o.Durable:
		return fmt.Errorf("%w: subscription %s is durable: %t", ErrNotAllowed, s.name, s.durable)
	case len(s.consumers) == 0:
		return nil
	case s.kind != o.Kind:
		return fmt.Errorf("%w: Subscription is of different type: %s is %s", ErrTypeMismatch, s.name, s.kind)
	case o.Kind == Exclusive:
		return &InUseError{ErrConsumerBusy, "Exclusive consumer is already connected", s.consumers[0].peer}
	case o.Kind == KeyShared && (s.sticky != o.Sticky || s.outOfOrder != o.OutOfOrder):
		return fmt.Errorf("%w: Subscription is of different type: another key-shared mode", ErrTypeMismatch)
	case len(s.consumers) >= lower(s.topic.policies.Load().ConsumersPerSubscription, s.topic.broker.opts.ConsumersPerSubscription):
		return fmt.Errorf("%w: Subscription reached max consumers limit", ErrConsumerBusy)
	}
	return nil
}

// joinLocked admits a consumer; mayJoinLocked was asked.
func (s *Subscription) joinLocked(c *Consumer) error {
	if len(s.consumers) == 0 {
		s.formLocked(&c.opts)
	}
	if err := s.dispatch.join(c); err != nil {
		return err
	}
	i, _ := slices.BinarySearchFunc(s.consumers, c, func(a, b *Consumer) int {
		if a.opts.Priority != b.opts.Priority {
			return a.opts.Priority - b.opts.Priority
		}
		return int(int64(a.joined) - int64(b.joined))
	})
	s.consumers = slices.Insert(s.consumers, i, c)
	s.dispatch.seated(s)
	s.keptUntil = time.Time{}
	return nil
}

// formLocked gives an empty subscription the shape that its first consumer wants. All
// that is unacknowledged is read anew.
func (s *Subscription) formLocked(o *SubscribeOptions) {
	s.kind, s.typed, s.sticky, s.outOfOrder = o.Kind, true, o.Sticky, o.OutOfOrder
	s.dispatch.clear()
	if o.Kind.shares() {
		s.dispatch = newShared(s)
	} else {
		s.dispatch = newSingle(s)
	}
	s.generation++
}

// leaveLocked takes a consumer out. What it holds goes to the others, or is read anew
// once somebody comes. With the last one redelivery counts go, unless the broker stops.
func (s *Subscription) leaveLocked(c *Consumer) {
	i := slices.Index(s.consumers, c)
	if c.gone || i < 0 {
		return
	}
	c.gone = true
	s.consumers = slices.Delete(s.consumers, i, i+1)
	s.dispatch.leave(c)
	if len(s.consumers) == 0 {
		s.dispatch.clear()
		s.generation++
		if s.kind.shares() && !s.topic.broker.stopping.Load() {
			s.cursor.ClearCounts()
			s.changedLocked(nil)
		}
	}
	s.dispatch.seated(s)
}

// letGo removes all consumers with a reason and refuses everything from now on.
func (s *Subscription) letGo(reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.letGoLocked(reason, nil)
}

// letGoLocked does it; but, if not nil, is a consumer that is not told. Redelivery
// counts stay: a stop of the broker is not the last consumer's leave.
func (s *Subscription) letGoLocked(reason error, but *Consumer) {
	s.closed = reason
	s.generation++
	s.dispatch.clear()
	all := s.consumers
	s.consumers = nil
	s.dispatch = newSingle(s)
	for _, c := range all {
		c.gone = true
		if c != but {
			c.recv.Closed(reason)
		}
	}
	if s.timer != nil {
		s.timer.Stop()
	}
}

// followLocked lets s read only what other has acknowledged, or all for nil. The
// topic's lock and s.mu are held.
func (s *Subscription) followLocked(other *Subscription) {
	if s.follow == other {
		return
	}
	if s.follow != nil {
		s.follow.setFollower(s, false)
	}
	if s.follow = other; other != nil {
		other.setFollower(s, true)
	}
}

// setFollower adds or removes a follower. The topic's lock is held.
func (s *Subscription) setFollower(f *Subscription, add bool) {
	var list []*Subscription
	if old := s.followers.Load(); old != nil {
		list = slices.DeleteFunc(slices.Clone(*old), func(x *Subscription) bool { return x == f })
	}
	if add {
		list = append(list, f)
	}
	s.followers.Store(&list)
}
