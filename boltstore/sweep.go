package boltstore

import (
	"bytes"
	"errors"

	"go.etcd.io/bbolt"
)

// What a trim or a deletion crosses off is noted in the bucket of the dead, under
// the path of the bucket to delete: a topic's key, or a topic's and a ledger's. The
// committer gives the pages back between commits, in steps of sweepChunks, so that
// no transaction becomes long. What a crash interrupts goes on after the restart.

// sweepChunks is the number of chunks that one step gives back: a few milliseconds.
const sweepChunks = 1000

// bury notes a path for the sweeper.
func (g *group) bury(path []byte) error {
	g.changed = true
	g.after = append(g.after, func() { g.store.sweeping = true })
	return g.tx.Bucket(bucketDead).Put(path, []byte{})
}

// sweep gives back one step of pages in a transaction of its own. The store stops
// sweeping when nothing is left.
func (s *Store) sweep() error {
	tx, err := s.main.db.Begin(true)
	if err != nil {
		return err
	}
	more := false
	err = protect(func() (err error) {
		more, err = sweepStep(tx, sweepChunks)
		return err
	})
	if err != nil || !more {
		s.sweeping = false
		err = joinRollback(err, tx)
		if errors.Is(err, errDamaged) {
			return errors.Join(err, s.forgetDead())
		}
		return err
	}
	return s.commit(tx)
}

// forgetDead gives up the first dead bucket, which cannot be walked: its pages stay
// taken, and those behind it in line come up.
func (s *Store) forgetDead() error {
	return s.change(func(g *group) error {
		dead := g.tx.Bucket(bucketDead)
		path, _ := dead.Cursor().First()
		if path == nil {
			return nil
		}
		g.changed = true
		g.after = append(g.after, func() { s.sweeping = true })
		return dead.Delete(bytes.Clone(path))
	})
}

// sweepStep deletes at most budget chunks of the first dead bucket, and the bucket
// itself with the last. It reports whether there was one.
func sweepStep(tx *bbolt.Tx, budget int) (bool, error) {
	dead := tx.Bucket(bucketDead)
	path, _ := dead.Cursor().First()
	if path == nil {
		return false, nil
	}
	path = bytes.Clone(path)
	const keyLen = 9
	topic := tx.Bucket(path[:min(keyLen, len(path))])
	if topic == nil || len(path) != keyLen && len(path) != 2*keyLen {
		return true, dead.Delete(path)
	}
	var done bool
	var err error
	if len(path) == keyLen {
		done, err = sweepTopic(tx, topic, path, budget)
	} else {
		_, done, err = sweepLedger(topic, path[keyLen:], budget)
	}
	if err != nil || !done {
		return true, err
	}
	return true, dead.Delete(path)
}

// sweepTopic deletes the ledgers of a topic one by one, and the rest of it at last.
func sweepTopic(tx *bbolt.Tx, topic *bbolt.Bucket, key []byte, budget int) (bool, error) {
	for {
		k, _ := topic.Cursor().Seek([]byte{prefixLedger})
		if len(k) == 0 || k[0] != prefixLedger {
			return true, tx.DeleteBucket(key)
		}
		left, done, err := sweepLedger(topic, bytes.Clone(k), budget)
		if err != nil || !done {
			return false, err
		}
		budget = left
	}
}

// sweepLedger deletes chunks of a ledger, and the ledger when none are left. It
// returns the rest of the budget. Keys are collected before anything is deleted: a
// cursor skips when its bucket changes.
func sweepLedger(topic *bbolt.Bucket, key []byte, budget int) (int, bool, error) {
	led := topic.Bucket(key)
	if led == nil {
		return budget, true, nil
	}
	var keys [][]byte
	c := led.Cursor()
	k, _ := c.First()
	for ; k != nil && len(keys) < budget; k, _ = c.Next() {
		keys = append(keys, bytes.Clone(k))
	}
	if k == nil {
		return budget - len(keys), true, topic.DeleteBucket(key)
	}
	return 0, false, deleteBuckets(led, keys)
}
