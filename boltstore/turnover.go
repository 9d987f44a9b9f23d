package boltstore

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"go.etcd.io/bbolt"

	"wayside/boltstore/journal"
)

const (
	// turnTopics is the number of topics that one transaction carries over.
	turnTopics = 200

	// turnTopicBytes is what a topic is expected to take in a new main file.
	turnTopicBytes = 2 << 10
)

// turnOverIfDue turns the main file over when the next appends would make it larger
// than a volume is to be and it is full of data that lives.
func (s *Store) turnOverIfDue(need int64) error {
	p := &s.space
	size := s.opts.VolumeBytes
	if p.high+need <= size || p.free >= size/4 && p.high+need <= size+size/4 || p.free >= size/2 {
		return nil
	}
	start := int64(len(s.topics))*turnTopicBytes + p.reserve + p.step + 1<<20
	if s.shelf.bytes()-p.tail()+start > s.opts.FileLimit {
		return nil
	}
	if c := s.compaction; c != nil && c.move != nil && c.move.after > 0 {
		return nil // a ledger lies in one file
	}
	if s.partial() != nil {
		s.turning = true // first what belongs to its ledgers comes in
		return nil
	}
	if err := s.turnOver(); err != nil {
		return fmt.Errorf("turn main file over: %w", err)
	}
	return nil
}

// turnOver makes the main file a read-only volume. A new main file starts with all
// that is not entries; its rename is the moment at which it counts.
func (s *Store) turnOver() error {
	old := s.main
	next := old.number + 1
	c := carrier{from: old, held: volume{number: old.number, name: old.name()}}
	err := s.makeMain(next, func(db *bbolt.DB) error { return s.carry(&c, db) })
	if err != nil {
		if isFull(err) {
			return nil // goes on in the old one as long as that has room
		}
		return err
	}
	high := s.space.high
	f := &file{number: next, path: s.path(next)}
	if err := s.mountMain(f); err != nil {
		return s.turnBack(f, err)
	}
	s.volumes[old.number] = &c.held
	s.sweeping, s.compaction = false, nil
	s.shelf.put(f, true)
	s.logger().Info("main file is full, a new one takes its place", "volume", fileName(old.number), "main", fileName(next))
	return errors.Join(s.retire(old, high), s.ids.write(s.ids.end, next), s.dropIfEmpty(s.volumes[old.number]))
}

// turnBack takes a new main file away that could not be opened. If that fails too, two
// files would both be the main one: nothing is changed any more until a restart.
func (s *Store) turnBack(f *file, cause error) error {
	err := errors.Join(f.close(), os.Remove(f.path), journal.SyncDir(s.opts.Path))
	if err == nil {
		err = s.openGrower(s.main)
	}
	if err != nil {
		cause = errors.Join(cause, err)
		s.setFailure(cause)
		s.hopeless = true
	}
	return cause
}

// retire closes the writing handle of what is a volume now, and gives the space
// behind its last page back. The next reader opens it read-only.
func (s *Store) retire(f *file, high int64) error {
	if err := f.close(); err != nil {
		return fmt.Errorf("close volume: %w", err)
	}
	if err := os.Truncate(f.path, high); err != nil {
		return fmt.Errorf("cut volume: %w", err)
	}
	f.size.Store(high)
	return nil
}

// carrier carries what is not entries from the main file into the one that follows.
type carrier struct {
	from *file
	held volume // what from will be
}

// carry fills a new main file.
func (s *Store) carry(c *carrier, db *bbolt.DB) error {
	if err := c.values(db); err != nil {
		return err
	}
	keys, err := c.topicKeys()
	if err != nil {
		return err
	}
	for len(keys) > 0 {
		n := min(len(keys), turnTopics)
		if err := c.topics(db, keys[:n]); err != nil {
			return err
		}
		keys = keys[n:]
	}
	list := append(slices.Collect(maps.Values(s.volumes)), &c.held)
	return db.Update(func(tx *bbolt.Tx) error { return s.carryMeta(tx, list) })
}

// carryMeta writes the store's numbers and the volumes that hold something.
func (s *Store) carryMeta(tx *bbolt.Tx, volumes []*volume) error {
	meta := tx.Bucket(bucketMeta)
	for _, v := range volumes {
		if v.ledgers <= 0 {
			continue
		}
		if err := meta.Put(numberKey(prefixVolume, v.number), v.encode()); err != nil {
			return err
		}
	}
	if err := putNumber(meta, metaUptime, s.uptime()); err != nil {
		return err
	}
	if s.log != nil {
		if err := putNumber(meta, metaSettled, int64(s.settled)); err != nil {
			return err
		}
	}
	return putNumber(meta, metaLease, s.ids.end)
}

// values copies the broker's small values.
func (c *carrier) values(db *bbolt.DB) error {
	return db.Update(func(tx *bbolt.Tx) error {
		return c.from.view(func(old *bbolt.Tx) error {
			if err := copyBucket(tx.Bucket(bucketLarge), old.Bucket(bucketLarge)); err != nil {
				return err
			}
			return copyBucket(tx.Bucket(bucketValues), old.Bucket(bucketValues))
		})
	})
}

func (c *carrier) topicKeys() (keys [][]byte, err error) {
	err = c.from.view(func(old *bbolt.Tx) error {
		return old.Bucket(bucketRecords).ForEach(func(k, _ []byte) error {
			keys = append(keys, bytes.Clone(k))
			return nil
		})
	})
	return keys, err
}

// topics copies some topics in one transaction.
func (c *carrier) topics(db *bbolt.DB, keys [][]byte) error {
	return db.Update(func(tx *bbolt.Tx) error {
		return c.from.view(func(old *bbolt.Tx) error {
			for _, k := range keys {
				if err := c.topic(tx, old, k); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// topic copies one topic's record, and its bucket without the entries. A record that
// is damaged has been reported when it was loaded, and ends here.
func (c *carrier) topic(tx, old *bbolt.Tx, key []byte) error {
	v := old.Bucket(bucketRecords).Get(key)
	_, rec, err := decodeRecord(v)
	n, ok := keyNumber(key, 0)
	if err != nil || !ok {
		return nil
	}
	from := old.Bucket(topicKey(n))
	if from == nil {
		return fmt.Errorf("topic without a bucket: %w", errDamaged)
	}
	to, err := tx.CreateBucket(topicKey(n))
	if err != nil {
		return err
	}
	if err := copyTopic(to, from); err != nil {
		return err
	}
	places, err := closedPlaces(from, n)
	if err != nil {
		return err
	}
	for _, p := range append(places, rec.open) {
		c.held.count(&p)
	}
	return putRecord(tx, key, bytes.Clone(v))
}

func putRecord(tx *bbolt.Tx, key, value []byte) error {
	b := tx.Bucket(bucketRecords)
	b.FillPercent = recordFill
	return b.Put(key, value)
}

// copyTopic copies a topic's bucket but for its ledgers.
func copyTopic(to, from *bbolt.Bucket) error {
	return from.ForEach(func(k, v []byte) error {
		if k[0] == prefixLedger {
			return nil
		}
		return copyKey(to, from, k, v)
	})
}

// copyBucket copies all of a bucket, nested ones too.
func copyBucket(to, from *bbolt.Bucket) error {
	return from.ForEach(func(k, v []byte) error { return copyKey(to, from, k, v) })
}

func copyKey(to, from *bbolt.Bucket, k, v []byte) error {
	if v != nil {
		return to.Put(k, bytes.Clone(v))
	}
	sub, err := to.CreateBucket(k)
	if err != nil {
		return err
	}
	return copyBucket(sub, from.Bucket(k))
}
