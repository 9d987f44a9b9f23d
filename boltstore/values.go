package boltstore

import (
	"bytes"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"wayside/edge"
)

// valueOp sets or removes a small value of the broker.
type valueOp struct {
	key   string
	value []byte
	done  func(error)
}

// PutValue implements edge.Values.
func (s *Store) PutValue(key string, value []byte, done func(error)) {
	s.queue.put(&valueOp{key, slices.Clone(value), done})
}

func (op *valueOp) ledger() *ledger  { return nil }
func (op *valueOp) size() int        { return len(op.value) }
func (op *valueOp) finish(err error) { answer(op.done, err) }

func (op *valueOp) admit(g *group) error {
	if op.key == "" || len(op.key) > edge.MaxValueKey || len(op.value) > edge.MaxValue {
		return fmt.Errorf("value %.40q of %d bytes: %w", op.key, len(op.value), edge.ErrBadRequest)
	}
	g.needs = true
	return nil
}

// smallValue is the largest value that lies beside others: a leaf is written as a
// whole when one of its values changes.
const smallValue = 1 << 10

// The first byte of a stored value says whether it follows or lies in the bucket of
// large ones.
const (
	valueHere = iota
	valueLarge
)

func (op *valueOp) apply(g *group) error {
	g.changed = true
	key := []byte(op.key)
	small, large := g.tx.Bucket(bucketValues), g.tx.Bucket(bucketLarge)
	if large.Bucket(key) != nil {
		if err := large.DeleteBucket(key); err != nil {
			return err
		}
	}
	switch {
	case op.value == nil:
		return small.Delete(key)
	case len(op.value) <= smallValue:
		return putBound(small, 0, key, seal(append([]byte{valueHere}, op.value...)))
	}
	b, err := large.CreateBucket(key)
	if err != nil {
		return err
	}
	if err := b.Put(keyValue, bind(0, key, seal(slices.Clone(op.value)))); err != nil {
		return err
	}
	return putBound(small, 0, key, seal([]byte{valueLarge}))
}

// readValue copies the value that is stored under a key as v.
func readValue(tx *bbolt.Tx, key, v []byte) ([]byte, error) {
	raw, err := unseal(unbind(0, key, v))
	if err != nil || len(raw) == 0 {
		return nil, errDamaged
	}
	if raw[0] == valueLarge {
		b := tx.Bucket(bucketLarge).Bucket(key)
		if b == nil {
			return nil, errDamaged
		}
		raw, err = unseal(unbind(0, key, b.Get(keyValue)))
		return slices.Clone(raw), err
	}
	return slices.Clone(raw[1:]), nil
}

// scanPiece bounds what one read transaction of a scan collects.
const scanPiece = 256 << 10

// ScanValues implements edge.Values. A damaged value is passed over: its owner finds
// it missing.
func (s *Store) ScanValues(prefix string, visit func(key string, value []byte) bool) error {
	type pair struct {
		key   string
		value []byte
	}
	from, more := []byte(prefix), true
	for more {
		var piece []pair
		var damaged []string
		err := s.viewMain(func(tx *bbolt.Tx) error {
			piece, damaged, more = piece[:0], nil, false
			size := 0
			c := tx.Bucket(bucketValues).Cursor()
			for k, v := c.Seek(from); bytes.HasPrefix(k, []byte(prefix)) && k != nil; k, v = c.Next() {
				if more = size > scanPiece; more {
					return nil
				}
				from = append(append(from[:0:0], k...), 0)
				value, err := readValue(tx, k, v)
				if err != nil {
					damaged = append(damaged, string(k))
					continue
				}
				piece = append(piece, pair{string(k), value})
				size += len(k) + len(value)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("scan values: %w", err)
		}
		for _, key := range damaged {
			s.logger().Error("a value is damaged and lost", "key", key)
		}
		for _, p := range piece {
			if !visit(p.key, p.value) {
				return nil
			}
		}
	}
	return nil
}
