package edge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Topic is one ledger with its producers, its subscriptions and the sequences by
// producer name.
type Topic struct {
	broker    *Broker
	name      TopicName
	partition int // index, −1 for none
	ledger    Ledger
	created   time.Time // when it was loaded
	counts    counters
	policies  atomic.Pointer[Policies]  // the rules that hold; never nil
	pace      atomic.Pointer[pace]      // nil until a rate is looked at
	throttle  atomic.Pointer[throttle]  // nil without a publish rate; set with mu held
	compacted atomic.Pointer[compacted] // nil without a compacted form
	txns      atomic.Pointer[topicTxns] // nil without transactions; set with mu held

	// wakes are the subscriptions to wake after an append: the values of subs.
	wakes  atomic.Pointer[[]*Subscription]
	lastMu sync.Mutex // leaf, guards the next two
	last   lastEntry  // the newest durable one
	// arrived is where readers stop: what is durable beyond it is about to be told, and
	// can then be had from the tail.
	arrived Position

	// terminatedNow says that the topic is terminated and has all its entries.
	terminatedNow atomic.Bool

	mu         sync.Mutex
	closed     error // why it takes no more clients
	producers  map[string]*Producer
	queue      []*Producer // waiting to become exclusive
	owner      *Producer   // the exclusive one
	subs       map[string]*Subscription
	ending     []*Subscription // taken out of subs, their dispatch may still run
	sequences  map[string]*sequence
	comings    int64 // of producers whose sequences count
	state      topicState
	failing    bool            // an append failed; Recover is in line
	failures   quietly         // of appends, logged
	used       time.Time       // when a client last came or went
	compaction *compactionWork // nil until it is asked for
	retiring   *compacted      // the newest of the forms that are on their way out
}

// lastEntry is what GET_LAST_MESSAGE_ID needs to know of it, ledger 0 if there is none.
type lastEntry struct {
	position Position
	messages int32
	batch    bool
}

func newTopic(b *Broker, name TopicName, ledger Ledger) (*Topic, error) {
	t := &Topic{
		broker: b, name: name, ledger: ledger, created: time.Now(), used: time.Now(),
		producers: map[string]*Producer{}, subs: map[string]*Subscription{}, sequences: map[string]*sequence{},
		arrived: ledger.Spans().End(),
	}
	_, t.partition = name.Partition()
	if err := t.loadState(); err != nil {
		return nil, err
	}
	if err := t.loadSequences(); err != nil {
		return nil, err
	}
	if err := t.loadTxns(); err != nil {
		return nil, err
	}
	if err := t.loadLast(); err != nil {
		return nil, err
	}
	states, err := ledger.Cursors()
	if err != nil {
		return nil, fmt.Errorf("read cursors: %w", err)
	}
	for sub, state := range states {
		t.subs[sub] = newSubscription(t, sub, true, NewCursor(state, ledger.Spans()))
	}
	t.setWakesLocked()
	if err := t.loadAcks(); err != nil {
		return nil, err
	}
	t.loadCompacted()
	return t, nil
}

func (t *Topic) noteLast(p Position, f *Facts) {
	if f.Marker == 0 {
		t.lastMu.Lock()
		t.last = lastEntry{p, f.Messages, f.Batch}
		t.lastMu.Unlock()
	}
}

// arrive moves the place where readers stop.
func (t *Topic) arrive(p Position) {
	t.lastMu.Lock()
	t.arrived = p
	t.lastMu.Unlock()
}

// newestEntry is the newest one that a user published, be it in an open transaction.
func (t *Topic) newestEntry() lastEntry {
	t.lastMu.Lock()
	defer t.lastMu.Unlock()
	return t.last
}

// lastStored is the newest durable entry that a user published, false if there is none
// or it is trimmed away.
func (t *Topic) lastStored() (lastEntry, bool) {
	last := t.newestEntry()
	if x := t.txns.Load(); x != nil {
		x.mu.Lock()
		if held, ok := x.buf.last(); ok {
			last = held
		}
		x.mu.Unlock()
	}
	return last, t.ledger.Spans().Contains(last.position)
}

// Name is the topic's full name.
func (t *Topic) Name() TopicName { return t.name }

// BirthID differs for every creation of the topic.
func (t *Topic) BirthID() string { return t.ledger.BirthID() }

// Spans is what the topic's ledger holds now.
func (t *Topic) Spans() Spans { return t.ledger.Spans() }

// setWakesLocked refreshes what appended wakes. t.mu is held, or nobody knows t yet.
func (t *Topic) setWakesLocked() {
	list := make([]*Subscription, 0, len(t.subs))
	for _, s := range t.subs {
		list = append(list, s)
	}
	t.wakes.Store(&list)
}

// appended runs on the store's goroutine when an entry is durable.
func (t *Topic) appended(e *Entry) {
	if !t.name.IsPersistent() {
		t.pass(e)
		return
	}
	if e.Facts.InTxn && e.Facts.Marker == 0 {
		t.txnCame(e)
	}
	t.noteLast(e.Position, &e.Facts)
	list := *t.wakes.Load()
	if slices.ContainsFunc(list, func(s *Subscription) bool { return !s.deaf.Load() }) {
		t.broker.tails.keep(t, e)
	}
	t.arrive(e.Position)
	for _, s := range list {
		if !s.deaf.Load() {
			s.wake()
		}
	}
}

// clientsLocked counts producers and consumers.
func (t *Topic) clientsLocked() int {
	return len(t.producers) + len(t.queue) + t.consumersLocked()
}

func (t *Topic) consumersLocked() (n int) {
	for _, s := range t.subs {
		n += s.consumerCount()
	}
	return n
}

// seal stops new clients from coming; without force it refuses while there are any.
func (t *Topic) seal(force bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.clientsLocked(); n > 0 && !force {
		return fmt.Errorf("%w: topic %s has %d connected producers/consumers", ErrTopicInUse, t.name, n)
	}
	t.closed = ErrUnloaded
	return nil
}

// sealIdle stops new clients from coming if the topic has been idle for so long.
func (t *Topic) sealIdle(now time.Time, long time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.idleLocked() || now.Sub(t.used) <= long {
		return false
	}
	t.closed = ErrUnloaded
	return true
}

// close lets all clients go with a reason, ends dispatch and closes the ledger.
func (t *Topic) close(ctx context.Context, reason error) error {
	t.mu.Lock()
	t.closed = reason
	subs := append(t.ending, *t.wakes.Load()...)
	t.ending = nil
	for _, s := range *t.wakes.Load() {
		s.letGo(reason)
	}
	t.kickAllLocked(reason)
	t.mu.Unlock()
	stopped := t.stopCompaction(ctx)
	for _, s := range subs {
		s.end()
	}
	err := errors.Join(stopped, wait(ctx, t.ledger.Close))
	if form := t.compacted.Load(); form != nil {
		err = errors.Join(err, wait(ctx, form.close))
	}
	t.broker.tails.forget(t)
	if err != nil {
		return fmt.Errorf("close topic %s: %w", t.name, err)
	}
	return nil
}

// terminate ends publishing. It returns the last position.
func (t *Topic) terminate(ctx context.Context) (Position, error) {
	t.mu.Lock()
	if t.closed != nil {
		defer t.mu.Unlock()
		return Position{}, t.closed
	}
	was := t.state.Terminated
	if !was {
		t.state.Terminated = true
		t.kickAllLocked(ErrTerminated)
	}
	t.mu.Unlock()
	if err := t.saveState(ctx); err != nil {
		t.mu.Lock()
		t.state.Terminated = was
		t.mu.Unlock()
		return Position{}, err
	}
	err := wait(ctx, t.ledger.Barrier) // behind all that was admitted
	t.terminatedNow.Store(true)
	for _, s := range *t.wakes.Load() {
		s.wake()
	}
	if err != nil {
		return Position{}, fmt.Errorf("terminate topic %s: %w", t.name, err)
	}
	return t.ledger.Spans().End(), nil
}

// idle reports whether nobody uses the topic, and since when.
func (t *Topic) idle() (since time.Time, idle bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.used, t.idleLocked()
}

func (t *Topic) idleLocked() bool {
	if t.closed != nil || t.clientsLocked() > 0 || t.compaction != nil && t.compaction.Running {
		return false
	}
	for _, s := range t.subs {
		if !s.durable { // a sought position waits for its reader
			return false
		}
	}
	return true
}
