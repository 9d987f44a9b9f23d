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

func (op *valueOp) apply(g *group) error {
	g.changed = true
	b := g.tx.Bucket(bucketValues)
	if op.value == nil {
		return b.Delete([]byte(op.key))
	}
	return b.Put([]byte(op.key), seal(slices.Clone(op.value)))
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
		err := s.viewMain(func(tx *bbolt.Tx) error {
			piece, more = piece[:0], false
			size := 0
			c := tx.Bucket(bucketValues).Cursor()
			for k, v := c.Seek(from); bytes.HasPrefix(k, []byte(prefix)) && k != nil; k, v = c.Next() {
				if more = size > scanPiece; more {
					return nil
				}
				from = append(append(from[:0:0], k...), 0)
				if raw, err := unseal(v); err == nil {
					piece = append(piece, pair{string(k), slices.Clone(raw)})
					size += len(k) + len(v)
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("scan values: %w", err)
		}
		for _, p := range piece {
			if !visit(p.key, p.value) {
				return nil
			}
		}
	}
	return nil
}
