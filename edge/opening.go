package edge

import (
	"context"
	"fmt"
	"maps"
	"slices"
)

// slot is the place of a topic that is open, being opened, or being closed. Its
// fields are set before ready closes; gone closes when the place is free again.
type slot struct {
	ready   chan struct{}
	topic   *Topic
	err     error
	creates bool // the topic was not known before
	going   bool // guarded by Broker.mu: closing or being deleted
	gone    chan struct{}
}

// Open returns a topic, ready for producers and consumers. A missing one is created if
// create is set, which front ends set by Options.AutoCreate and by what the client asks.
// It may wait for the disk.
func (b *Broker) Open(ctx context.Context, name TopicName, create bool) (*Topic, error) {
	for {
		s, mine, wait, err := b.place(name, create)
		switch {
		case err != nil:
			return nil, err
		case mine:
			b.fill(name, s)
			return s.topic, s.err
		case wait == nil:
			return s.topic, nil
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, fmt.Errorf("open topic %s: %w", name, ctx.Err())
		}
	}
}

// place finds the slot of a topic that is open, or makes one that the caller has to
// fill (mine), or says on what to wait before looking again.
func (b *Broker) place(name TopicName, create bool) (s *slot, mine bool, wait <-chan struct{}, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, false, nil, ErrClosing
	}
	if s, ok := b.open[name]; ok {
		if s.going {
			return s, false, s.gone, nil
		}
		select {
		case <-s.ready:
			return s, false, nil, nil
		default:
			return s, false, s.ready, nil
		}
	}
	_, known := b.known[name]
	if !known {
		if err := b.mayCreateLocked(name, create); err != nil {
			return nil, false, nil, err
		}
	}
	s = &slot{ready: make(chan struct{}), gone: make(chan struct{}), creates: !known}
	if s.creates {
		b.making++
	}
	b.open[name] = s
	return s, true, nil, nil
}

// mayCreateLocked says why a missing topic is not created now.
func (b *Broker) mayCreateLocked(name TopicName, create bool) error {
	if err := b.namespaceFor(name); err != nil {
		return err
	}
	base, index := name.Partition()
	promised := false
	if n, ok := b.catalog.partitions(base); ok && index >= 0 {
		if index >= n {
			return fmt.Errorf("%w: Topic not found %s", ErrTopicNotFound, name)
		}
		create, promised = true, true // a partition that metadata promises comes into being on demand
	}
	if _, ok := b.catalog.partitions(name); ok {
		return fmt.Errorf("%w: %s is partitioned: name one of its partitions", ErrNotAllowed, name)
	}
	if !create {
		return fmt.Errorf("%w: Topic not found %s", ErrTopicNotFound, name)
	}
	if len(b.known)+b.making >= b.opts.Topics {
		return fmt.Errorf("%w: %d topics exist", ErrLimit, b.opts.Topics)
	}
	if promised {
		return nil
	}
	return b.roomLocked(name, 1)
}

// namespaceFor reports whether a topic's namespace exists or may come into being.
func (b *Broker) namespaceFor(name TopicName) error {
	if b.catalog.HasNamespace(name.NamespaceName()) || b.opts.AutoCreateNamespaces {
		return nil
	}
	return fmt.Errorf("%w: Namespace not found %s", ErrNamespaceNotFound, name.NamespaceName())
}

// fill opens the ledger for a placed slot. No client's context ends it, since others
// may wait for the same slot.
func (b *Broker) fill(name TopicName, s *slot) {
	s.topic, s.err = b.load(name, !s.creates)
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.creates {
		b.making--
	}
	if s.err != nil {
		delete(b.open, name)
	} else {
		s.topic.policies.Store(b.catalog.effective(name)) // here, so that no change of them passes it by
		s.topic.adoptPublishRate()
		b.noteLocked(name, true)
	}
	close(s.ready)
}

// load opens a topic's ledger and all its cursors.
func (b *Broker) load(name TopicName, existed bool) (*Topic, error) {
	if !existed && b.opts.AutoCreateNamespaces {
		if err := b.catalog.ensureNamespace(b.run, name.Tenant, name.NamespaceName()); err != nil {
			return nil, fmt.Errorf("create namespace of %s: %w", name, err)
		}
	}
	if !name.IsPersistent() {
		return newTopic(b, name, fleeting{})
	}
	var reserved []string
	if !existed && b.opts.OnCreate != nil {
		reserved = b.opts.OnCreate(name)
	}
	ledger, err := b.store.OpenLedger(name, reserved)
	if err != nil {
		return nil, fmt.Errorf("open topic %s: %w: %w", name, ErrStorage, err)
	}
	t, err := newTopic(b, name, ledger)
	if err != nil {
		_ = wait(context.Background(), ledger.Close) // the next one to open it comes behind
		return nil, fmt.Errorf("open topic %s: %w: %w", name, ErrStorage, err)
	}
	return t, nil
}

// take marks an open topic's slot as going, so that nobody is given it any more.
// Without an open topic it makes such a slot, when hold is set.
func (b *Broker) take(ctx context.Context, name TopicName, hold bool) (*slot, error) {
	for {
		b.mu.Lock()
		s, ok := b.open[name]
		switch {
		case !ok && !hold:
			b.mu.Unlock()
			return nil, nil
		case !ok && b.closed:
			b.mu.Unlock()
			return nil, ErrClosing
		case !ok:
			s = &slot{ready: make(chan struct{}), gone: make(chan struct{}), going: true}
			close(s.ready)
			b.open[name] = s
			b.mu.Unlock()
			return s, nil
		}
		wait := s.ready
		if s.going {
			wait = s.gone
		}
		select {
		case <-wait:
			if !s.going {
				s.going = true
				b.mu.Unlock()
				return s, nil
			}
		default:
		}
		b.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// release frees the place of a slot that take returned.
func (b *Broker) release(name TopicName, s *slot) {
	b.mu.Lock()
	delete(b.open, name)
	if !name.IsPersistent() {
		b.noteLocked(name, false)
	}
	close(s.gone)
	b.mu.Unlock()
}

// putBack makes a taken topic available again.
func (b *Broker) putBack(name TopicName, s *slot) {
	b.mu.Lock()
	b.open[name] = &slot{ready: s.ready, topic: s.topic, gone: make(chan struct{})}
	close(s.gone)
	b.mu.Unlock()
}

// openTopics is a snapshot of the topics that are open now.
func (b *Broker) openTopics() []*Topic {
	b.mu.Lock()
	defer b.mu.Unlock()
	ts := make([]*Topic, 0, len(b.open))
	for _, s := range b.open {
		select {
		case <-s.ready:
			if s.topic != nil && !s.going {
				ts = append(ts, s.topic)
			}
		default:
		}
	}
	return ts
}

// places are the names of all topics that are open, opening or going.
func (b *Broker) places() []TopicName {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Keys(b.open))
}
