package edge

import (
	"context"
	"errors"
	"fmt"
)

// Unload closes a topic: its clients are told ErrUnloaded and come back. It may wait.
func (b *Broker) Unload(ctx context.Context, name TopicName) error {
	if !b.Exists(name) {
		return fmt.Errorf("%w: %s", ErrTopicNotFound, name)
	}
	return b.see(ctx, func(ctx context.Context) error {
		s, err := b.take(ctx, name, false)
		if err != nil || s == nil {
			return err
		}
		defer b.release(name, s)
		return s.topic.close(ctx, ErrUnloaded)
	})
}

// Delete removes a topic with its subscriptions, backlog and schema. Without force a
// topic with clients is left. It may wait.
func (b *Broker) Delete(ctx context.Context, name TopicName, force bool) error {
	if !b.Exists(name) {
		return fmt.Errorf("%w: %s", ErrTopicNotFound, name)
	}
	return b.see(ctx, func(ctx context.Context) error { return b.remove(ctx, name, force) })
}

func (b *Broker) remove(ctx context.Context, name TopicName, force bool) error {
	s, err := b.take(ctx, name, true)
	if err != nil {
		return err
	}
	if s.topic != nil {
		if err := s.topic.seal(force); err != nil {
			b.putBack(name, s)
			return err
		}
		err = s.topic.close(ctx, ErrUnloaded)
	}
	defer b.release(name, s)
	if err != nil {
		return err
	}
	if name.IsPersistent() {
		if err := wait(ctx, func(done func(error)) { b.store.DeleteLedger(name, done) }); err != nil {
			return fmt.Errorf("delete topic %s: %w", name, err)
		}
		b.deleteCompacted(name)
	}
	b.mu.Lock()
	b.noteLocked(name, false)
	b.mu.Unlock()
	if base, i := name.Partition(); i < 0 {
		return b.catalog.forget(ctx, base)
	}
	return nil
}

// Terminate ends a topic: nothing more can be published. It returns the last entry's
// position, entry −1 on an empty topic. It may wait.
func (b *Broker) Terminate(ctx context.Context, name TopicName) (last Position, err error) {
	err = b.see(ctx, func(ctx context.Context) error {
		for {
			t, err := b.Open(ctx, name, false)
			if err != nil {
				return err
			}
			if last, err = t.terminate(ctx); !errors.Is(err, ErrUnloaded) {
				return err
			}
		}
	})
	if err != nil {
		return Position{}, err // the work may go on and still write last
	}
	return last, nil
}

// CreateTopic makes a plain topic. It may wait.
func (b *Broker) CreateTopic(ctx context.Context, name TopicName) error {
	if err := b.namespaceFor(name); err != nil {
		return err
	}
	if _, ok := b.catalog.partitions(name); ok || b.Exists(name) {
		return fmt.Errorf("%w: %s", ErrExists, name)
	}
	_, err := b.Open(ctx, name, true)
	return err
}

// Lookup says whether a client may go on with a topic; the topic need not exist.
func (b *Broker) Lookup(name TopicName) error {
	if name.isCoordinator() {
		return nil
	}
	return b.namespaceFor(name)
}

// DeleteNamespace removes a namespace, with all its topics if force. It may wait.
func (b *Broker) DeleteNamespace(ctx context.Context, ns string, force bool) error {
	if !b.catalog.HasNamespace(ns) {
		return fmt.Errorf("%w: %s", ErrNamespaceNotFound, ns)
	}
	names := b.Names(ns)
	if len(names) > 0 && !force {
		return fmt.Errorf("%w: namespace %s has %d topics", ErrNotEmpty, ns, len(names))
	}
	for _, base := range b.PartitionedTopics(ns) {
		if err := b.DeletePartitions(ctx, base, true); err != nil && !errors.Is(err, ErrTopicNotFound) {
			return err
		}
	}
	for _, n := range b.Names(ns) {
		if err := b.Delete(ctx, n, true); err != nil && !errors.Is(err, ErrTopicNotFound) {
			return err
		}
	}
	if err := b.catalog.forgetPolicies(ctx, ns); err != nil {
		return err
	}
	return b.catalog.deleteNamespace(ctx, ns)
}
