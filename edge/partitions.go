package edge

import (
	"context"
	"errors"
	"fmt"
	"strconv"
)

// partitions returns the partition count of a base name, or false.
func (c *Catalog) partitions(base TopicName) (int, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	n, ok := c.parts[base]
	return n, ok
}

func (c *Catalog) setPartitions(ctx context.Context, base TopicName, n int) error {
	return c.put(ctx, keyParts+base.String(), strconv.AppendInt(nil, int64(n), 10), func() { c.parts[base] = n })
}

// Partitions returns the partition count of a topic, or false if it has none.
func (b *Broker) Partitions(base TopicName) (int, bool) { return b.catalog.partitions(base) }

// PartitionedTopics lists the base names in a namespace, sorted.
func (b *Broker) PartitionedTopics(namespace string) []TopicName {
	c := b.catalog
	c.mu.RLock()
	defer c.mu.RUnlock()
	var names []TopicName
	for n := range c.parts {
		if n.NamespaceName() == namespace {
			names = append(names, n)
		}
	}
	return sortedNames(names)
}

// CreatePartitions makes a partitioned topic with all its partitions. It may wait.
func (b *Broker) CreatePartitions(ctx context.Context, base TopicName, n int) error {
	if n < 1 || n > maxPartitions {
		return fmt.Errorf("%w: number of partitions has to be from 1 to %d", ErrBadRequest, maxPartitions)
	}
	if _, i := base.Partition(); i >= 0 {
		return fmt.Errorf("%w: %s names a partition", ErrName, base)
	}
	if len(keyParts)+len(base.String()) > MaxValueKey {
		return fmt.Errorf("%w: a name of %d bytes is too long for a partitioned topic", ErrName, len(base.String()))
	}
	if err := b.namespaceFor(base); err != nil {
		return err
	}
	b.mu.Lock()
	err := b.roomLocked(base, n)
	b.mu.Unlock()
	if err != nil {
		return err
	}
	if err := b.declare(ctx, base, n); err != nil {
		return err
	}
	return b.createPartitions(ctx, base, 0, n)
}

// declare notes a partition count for a name that nothing has. Meanwhile nobody can
// open a plain topic of that name.
func (b *Broker) declare(ctx context.Context, base TopicName, n int) error {
	s, err := b.take(ctx, base, true)
	if err != nil {
		return err
	}
	if s.topic != nil {
		b.putBack(base, s)
		return fmt.Errorf("%w: %s", ErrExists, base)
	}
	defer b.release(base, s)
	c := b.catalog
	c.change.Lock()
	defer c.change.Unlock()
	if _, ok := c.partitions(base); ok || b.Exists(base) {
		return fmt.Errorf("%w: %s", ErrExists, base)
	}
	c.mu.RLock()
	count := len(c.parts)
	c.mu.RUnlock()
	if count >= maxPartitioned {
		return fmt.Errorf("%w: %d partitioned topics exist", ErrLimit, count)
	}
	return c.setPartitions(ctx, base, n)
}

// createPartitions opens, and thereby creates, partitions from … n−1.
func (b *Broker) createPartitions(ctx context.Context, base TopicName, from, n int) error {
	for i := from; i < n; i++ {
		if _, err := b.Open(ctx, base.WithPartition(i), true); err != nil {
			return err
		}
	}
	return nil
}

// UpdatePartitions raises the number of partitions; the same number is fine. New
// partitions get the subscriptions of the first one, at the earliest message, so that
// nothing published before a consumer notices is missed. It may wait.
func (b *Broker) UpdatePartitions(ctx context.Context, base TopicName, n int) error {
	c := b.catalog
	c.change.Lock()
	have, ok := c.partitions(base)
	var err error
	switch {
	case !ok:
		err = fmt.Errorf("%w: Topic %s is not the partitioned topic", ErrNotAllowed, base)
	case n < have:
		err = fmt.Errorf("%w: Desired partitions %d can't be less than the current partitions %d", ErrBadRequest, n, have)
	case n > maxPartitions:
		err = fmt.Errorf("%w: at most %d partitions", ErrBadRequest, maxPartitions)
	}
	c.change.Unlock()
	if err != nil {
		return err
	}
	subs, err := b.subscriptionsOf(ctx, base.WithPartition(0))
	if err != nil {
		return err
	}
	c.change.Lock()
	if now, _ := c.partitions(base); n < now {
		err = fmt.Errorf("%w: Desired partitions %d can't be less than the current partitions %d", ErrBadRequest, n, now)
	} else {
		err = c.setPartitions(ctx, base, n)
	}
	c.change.Unlock()
	if err != nil {
		return err
	}
	for i := have; i < n; i++ {
		if err := b.createWith(ctx, base.WithPartition(i), subs); err != nil {
			return err
		}
	}
	return nil
}

func (b *Broker) subscriptionsOf(ctx context.Context, name TopicName) ([]string, error) {
	t, err := b.Open(ctx, name, true)
	if err != nil {
		return nil, err
	}
	return t.Subscriptions(), nil
}

func (b *Broker) createWith(ctx context.Context, name TopicName, subs []string) error {
	t, err := b.Open(ctx, name, true)
	if err != nil {
		return err
	}
	for _, s := range subs {
		if err := t.ensureSubscription(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// DeletePartitions removes a partitioned topic. It may wait.
func (b *Broker) DeletePartitions(ctx context.Context, base TopicName, force bool) error {
	n, ok := b.catalog.partitions(base)
	if !ok {
		return fmt.Errorf("%w: Partitioned Topic %s not found", ErrTopicNotFound, base)
	}
	if !force {
		if err := b.partitionsIdle(base, n); err != nil {
			return err
		}
	}
	b.catalog.change.Lock()
	err := b.forgetPartitionProperties(ctx, base)
	if err == nil {
		err = b.catalog.put(ctx, keyParts+base.String(), nil, func() { delete(b.catalog.parts, base) })
	}
	b.catalog.change.Unlock()
	if err != nil {
		return err
	}
	for i := range n {
		if err := b.Delete(ctx, base.WithPartition(i), true); err != nil && !errors.Is(err, ErrTopicNotFound) {
			return err
		}
	}
	return b.catalog.forget(ctx, base)
}

// partitionsIdle says which partition still has clients.
func (b *Broker) partitionsIdle(base TopicName, n int) error {
	for _, t := range b.openTopics() {
		if tb, i := t.name.Partition(); tb != base || i < 0 || i >= n {
			continue
		}
		t.mu.Lock()
		clients := t.clientsLocked()
		t.mu.Unlock()
		if clients > 0 {
			return fmt.Errorf("%w: topic %s has %d connected producers/consumers", ErrTopicInUse, t.name, clients)
		}
	}
	return nil
}
