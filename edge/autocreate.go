package edge

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// AutoCreates reports whether a missing topic comes into being when a client names it.
func (b *Broker) AutoCreates(name TopicName) bool {
	if rule := b.catalog.effective(name).AutoTopics; rule != nil {
		return rule.Allow
	}
	return b.opts.AutoCreate
}

// AutoPartitions is with how many partitions it does, 0 for a plain topic. Single
// partitions, and the topics that clients make for messages to retry or give up, stay
// plain (protocol 2.6).
func (b *Broker) AutoPartitions(name TopicName) int {
	if _, i := name.Partition(); i >= 0 || strings.HasSuffix(name.Local, "-DLQ") || strings.HasSuffix(name.Local, "-RETRY") {
		return 0
	}
	n := b.opts.AutoPartitions
	if rule := b.catalog.effective(name).AutoTopics; rule != nil && rule.Type != "" {
		n = 0
		if rule.Type == AutoPartitioned {
			n = int(rule.Partitions)
		}
	}
	return n
}

// Metadata answers how many partitions a name has (protocol 2.6): 0 for a plain topic.
// With create a missing one that comes into being by itself does so where it becomes
// partitioned, for which it may wait; a plain one waits for its first client.
func (b *Broker) Metadata(ctx context.Context, name TopicName, create bool) (int, error) {
	n, known, err := b.Known(name)
	if known || err != nil {
		return n, err
	}
	if !create || !b.AutoCreates(name) {
		return 0, ErrTopicNotFound
	}
	if n = b.AutoPartitions(name); n == 0 {
		return 0, nil
	}
	if err := b.CreatePartitions(ctx, name, n); !errors.Is(err, ErrExists) {
		return n, err
	}
	n, _, err = b.Known(name) // somebody else was quicker
	return n, err
}

// Known tells whether a topic exists, and how many partitions it has. A name beyond the
// partitions of its topic, or in a namespace that there is not, is an error.
func (b *Broker) Known(name TopicName) (partitions int, known bool, err error) {
	if name.isCoordinator() {
		return 1, true, nil
	}
	if n, ok := b.catalog.partitions(name); ok {
		return n, true, nil
	}
	if b.Exists(name) {
		return 0, true, nil
	}
	if base, i := name.Partition(); i >= 0 {
		if n, ok := b.catalog.partitions(base); ok {
			if i >= n {
				return 0, false, ErrTopicNotFound
			}
			return 0, true, nil
		}
	}
	return 0, false, b.namespaceFor(name)
}

// roomLocked says why a namespace takes no more topics.
func (b *Broker) roomLocked(name TopicName, more int) error {
	most := b.catalog.Policies(name.NamespaceName()).Topics
	if most == nil || *most <= 0 {
		return nil
	}
	have := more
	for n := range b.known {
		if n.NamespaceName() == name.NamespaceName() {
			have++
		}
	}
	if have > int(*most) {
		return fmt.Errorf("%w: Exceed maximum number of topics in namespace", ErrLimit)
	}
	return nil
}
