package edgetest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"wayside/edge"
)

// MemStore is an edge.Store in memory. It commits on a goroutine of its own as a
// real store does, so that callers meet the same order and the same delays; tests
// can hold its commits back, let them fail and damage entries.
type MemStore struct {
	wake chan struct{} // capacity 1
	gone chan struct{} // closed when the committer has ended

	mu      sync.Mutex // guards all below and every ledger's data
	queue   []memOp
	disk    *memDisk
	ledgers map[edge.TopicName]*memLedger // open ones
	dirty   map[memCursor]func() edge.CursorState
	urgent  bool // something queued wants a commit at once
	held    bool
	fail    error
	closed  bool
	stats   edge.StoreStats
}

// memCursor names a cursor in all the store.
type memCursor struct {
	topic *memTopic
	name  string
}

// memDisk is what outlives the store.
type memDisk struct {
	topics     map[edge.TopicName]*memTopic
	values     map[string][]byte
	nextLedger int64
	births     int
	rollAfter  int64
}

// memOp is one call in line. apply runs with mu held, at the op's turn; what it
// returns runs without it, in call order.
type memOp func() (answer func())

const memSaveInterval = time.Second

// MemRollAfter is the number of entries after which a MemStore closes a ledger.
const MemRollAfter = 1000

// NewMemStore makes an empty store.
func NewMemStore() *MemStore {
	return startMemStore(&memDisk{
		topics:     map[edge.TopicName]*memTopic{},
		values:     map[string][]byte{},
		nextLedger: 1,
		rollAfter:  MemRollAfter,
	})
}

func startMemStore(d *memDisk) *MemStore {
	s := &MemStore{
		wake:    make(chan struct{}, 1),
		gone:    make(chan struct{}),
		disk:    d,
		ledgers: map[edge.TopicName]*memLedger{},
		dirty:   map[memCursor]func() edge.CursorState{},
	}
	go s.commitLoop()
	return s
}

// Reopen makes a new store on what this one had committed when it was closed.
func (s *MemStore) Reopen() *MemStore {
	<-s.gone
	return startMemStore(s.disk)
}

// Hold keeps commits back, as a slow disk does, until Release.
func (s *MemStore) Hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = true
}

// Release lets commits go on.
func (s *MemStore) Release() {
	s.mu.Lock()
	s.held = false
	s.mu.Unlock()
	s.signal()
}

// Fail lets every change fail with err; nil heals the store.
func (s *MemStore) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = err
}

// Damage makes an entry unreadable.
func (s *MemStore) Damage(name edge.TopicName, p edge.Position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.disk.topics[name]; t != nil {
		t.damaged[p] = true
	}
}

func (s *MemStore) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// submit puts an op in line. One that is not urgent waits for the next that is, or
// for the save interval. After Close it is refused on a goroutine of its own, since
// the caller may hold what the refusal needs.
func (s *MemStore) submit(urgent bool, op memOp, refuse func(error)) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		if refuse != nil {
			go refuse(edge.ErrClosing)
		}
		return
	}
	s.queue = append(s.queue, op)
	s.urgent = s.urgent || urgent
	first := len(s.queue) == 1
	s.mu.Unlock()
	if urgent || first {
		s.signal()
	}
}

// commitLoop commits until the store is closed and nothing is left.
func (s *MemStore) commitLoop() {
	defer close(s.gone)
	for {
		s.mu.Lock()
		queued, urgent, held, closed := len(s.queue) > 0, s.urgent, s.held, s.closed
		s.mu.Unlock()
		switch {
		case queued && !held && (urgent || closed):
			s.commit()
		case closed:
			return
		case s.rest(queued && !held):
			s.commit()
		}
	}
}

// rest waits for a change, and reports whether the save interval has passed for
// what is queued.
func (s *MemStore) rest(queued bool) (due bool) {
	if !queued {
		<-s.wake
		return false
	}
	t := time.NewTimer(memSaveInterval)
	defer t.Stop()
	for {
		select {
		case <-s.wake:
			s.mu.Lock()
			changed := s.urgent || s.held || s.closed
			s.mu.Unlock()
			if changed {
				return false
			}
		case <-t.C:
			return true
		}
	}
}

func (s *MemStore) commit() {
	s.mu.Lock()
	ops := s.queue
	s.queue, s.urgent = nil, false
	answers := make([]func(), 0, len(ops))
	for _, op := range ops {
		answers = append(answers, op())
	}
	s.stats.Commits++
	s.stats.Syncs++
	s.mu.Unlock()
	s.saveDirty()
	for _, answer := range answers {
		answer()
	}
}

// saveDirty writes the dirty cursors, unless writing fails: then they stay dirty.
// Their states are asked for without the lock.
func (s *MemStore) saveDirty() {
	s.mu.Lock()
	if s.fail != nil {
		s.mu.Unlock()
		return
	}
	saves := s.dirty
	s.dirty = map[memCursor]func() edge.CursorState{}
	s.mu.Unlock()
	for c, state := range saves {
		c.topic.saveCursor(&s.mu, c.name, state())
	}
}

// Records implements edge.Store.
func (s *MemStore) Records() []edge.TopicRecord {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]edge.TopicRecord, 0, len(s.disk.topics))
	for _, t := range s.disk.topics {
		list = append(list, t.record())
	}
	slices.SortFunc(list, func(a, b edge.TopicRecord) int { return strings.Compare(a.Name.String(), b.Name.String()) })
	return list
}

// OpenLedger implements edge.Store.
func (s *MemStore) OpenLedger(name edge.TopicName, reserved []string) (edge.Ledger, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, edge.ErrClosing
	case s.ledgers[name] != nil:
		return nil, fmt.Errorf("open %s: %w", name, edge.ErrExists)
	}
	t := s.disk.topics[name]
	if t == nil {
		if s.fail != nil {
			return nil, fmt.Errorf("create %s: %w", name, s.fail)
		}
		t = s.disk.create(name, reserved)
	}
	l := &memLedger{store: s, topic: t}
	s.ledgers[name] = l
	return l, nil
}

// DeleteLedger implements edge.Store.
func (s *MemStore) DeleteLedger(name edge.TopicName, done func(error)) {
	s.submit(true, func() func() {
		if s.fail != nil {
			return answer(done, s.fail)
		}
		if l := s.ledgers[name]; l != nil {
			l.close()
		}
		delete(s.disk.topics, name)
		return answer(done, nil)
	}, done)
}

// ScanValues implements edge.Values.
func (s *MemStore) ScanValues(prefix string, visit func(key string, value []byte) bool) error {
	s.mu.Lock()
	values := maps.Clone(s.disk.values)
	s.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if strings.HasPrefix(key, prefix) && !visit(key, values[key]) {
			break
		}
	}
	return nil
}

// PutValue implements edge.Values.
func (s *MemStore) PutValue(key string, value []byte, done func(error)) {
	value = slices.Clone(value)
	s.submit(true, func() func() {
		switch {
		case s.fail != nil:
			return answer(done, s.fail)
		case len(key) == 0 || len(key) > edge.MaxValueKey || len(value) > edge.MaxValue:
			return answer(done, edge.ErrBadRequest)
		case value == nil:
			delete(s.disk.values, key)
		default:
			s.disk.values[key] = value
		}
		return answer(done, nil)
	}, done)
}

// Stats implements edge.Store.
func (s *MemStore) Stats() edge.StoreStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.stats
	st.Failed = s.fail
	for _, t := range s.disk.topics {
		r := t.record()
		st.LiveBytes += r.LiveBytes
		st.FileBytes += r.Bytes
	}
	return st
}

// Close implements edge.Store.
func (s *MemStore) Close() error {
	s.mu.Lock()
	s.closed, s.held = true, false
	s.mu.Unlock()
	s.signal()
	<-s.gone
	return nil
}

func answer(done func(error), err error) func() {
	return func() {
		if done != nil {
			done(err)
		}
	}
}
