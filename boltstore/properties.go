package boltstore

import (
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"wayside/edge"
)

// propertiesOp sets a topic's own small state.
type propertiesOp struct {
	l     *ledger
	value []byte
	done  func(error)
}

// SetProperties implements edge.Ledger.
func (l *ledger) SetProperties(value []byte, done func(error)) {
	l.store.queue.put(&propertiesOp{l, slices.Clone(value), done})
}

func (op *propertiesOp) ledger() *ledger  { return op.l }
func (op *propertiesOp) size() int        { return len(op.value) }
func (op *propertiesOp) finish(err error) { answer(op.done, err) }

func (op *propertiesOp) admit(g *group) error {
	if len(op.value) > edge.MaxProperties {
		return fmt.Errorf("properties of %s, %d bytes: %w", op.l.topic.name, len(op.value), edge.ErrBadRequest)
	}
	g.needs = true
	return op.l.usable("set properties")
}

func (op *propertiesOp) apply(g *group) error {
	g.touch(op.l.topic)
	b, err := g.sub(op.l.topic, bucketProps)
	if err != nil {
		return err
	}
	return putBound(b, op.l.topic.key, keyValue, seal(slices.Clone(op.value)))
}

// Properties implements edge.Ledger.
func (l *ledger) Properties() (value []byte, err error) {
	err = l.store.viewTopic(l.topic, func(b *bbolt.Bucket) error {
		p := b.Bucket(bucketProps)
		if p == nil {
			return nil
		}
		k, sealed := p.Cursor().First()
		if k == nil {
			return nil
		}
		raw, err := unseal(unbind(l.topic.key, keyValue, sealed))
		value = slices.Clone(raw)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("properties of %s: %w", l.topic.name, err)
	}
	return value, nil
}
