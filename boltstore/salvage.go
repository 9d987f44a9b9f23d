package boltstore

import (
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"
)

// salvage makes a new main file of what can be read from one that was set aside. The
// entries stay where they are: the file serves as a volume under its new name. It
// reports false when nothing can be had from it.
func (s *Store) salvage(number uint64, name string, next uint64) (bool, error) {
	f := &file{number: number, path: filepath.Join(s.opts.Path, name)}
	c := carrier{from: f, skip: number, lenient: true}
	readable := f.view(func(tx *bbolt.Tx) error {
		if format := getNumber(tx.Bucket(bucketMeta), metaFormat); format != formatNumber {
			return errDamaged
		}
		return nil
	}) == nil
	if !readable {
		return false, f.close()
	}
	err := f.view(s.salvageMeta)
	if err != nil {
		s.remark("the list of volumes cannot be read")
	}
	kept := 0
	err = s.makeMain(next, func(db *bbolt.DB) error {
		if err := s.carry(&c, db); err != nil {
			return err
		}
		return db.View(func(tx *bbolt.Tx) error {
			kept = tx.Bucket(bucketRecords).Stats().KeyN
			return nil
		})
	})
	if cerr := f.close(); err == nil {
		err = cerr
	}
	if err != nil {
		return false, err
	}
	if kept == 0 {
		return false, os.Remove(s.path(next))
	}
	clear(s.volumes)
	s.remark(fmt.Sprintf("%d topics were salvaged from %s, %d are lost", kept, name, c.lost))
	return true, nil
}

// salvageMeta takes lease and volumes from a damaged file as far as they go.
func (s *Store) salvageMeta(tx *bbolt.Tx) error {
	meta := tx.Bucket(bucketMeta)
	s.ids.end = max(s.ids.end, getNumber(meta, metaLease))
	s.uptimeBase = getNumber(meta, metaUptime)
	return eachNumbered(meta, prefixVolume, func(number uint64, value []byte) error {
		if v, err := decodeVolume(number, value); err == nil {
			s.volumes[number] = &v
		}
		return nil
	})
}

// rebirth gives every topic a new ledger and a new birth id, so that no id or index
// that a lost state had handed out is used again.
func (s *Store) rebirth() error {
	batch := make([]*topic, 0, turnTopics)
	for _, t := range s.topics {
		if batch = append(batch, t); len(batch) == cap(batch) {
			if err := s.rebear(batch); err != nil {
				return err
			}
			batch = batch[:0]
		}
	}
	return s.rebear(batch)
}

// rebear does so for some topics in one transaction.
func (s *Store) rebear(batch []*topic) error {
	g := s.newGroup(nil, nil)
	if err := g.begin(); err != nil {
		return err
	}
	err := protect(func() error {
		for _, t := range batch {
			if err := g.rebear(t); err != nil {
				return fmt.Errorf("topic %s: %w", t.name, err)
			}
		}
		return s.writeMeta(g.tx)
	})
	if err != nil {
		return fmt.Errorf("give new birth ids: %w", joinRollback(err, g.tx))
	}
	if err := s.commit(g.tx); err != nil {
		return err
	}
	for _, w := range g.touched {
		w.topic.rec = w.rec
	}
	return nil
}

func (g *group) rebear(t *topic) error {
	led, err := g.load(t)
	if err != nil {
		return err
	}
	w := g.touch(t)
	w.led = led
	w.rec.birth = newBirth()
	if w.rec.open.span.Entries() > 0 {
		if err := g.roll(w); err != nil {
			return err
		}
	} else if w.rec.open.span.Ledger, err = g.store.ids.next(); err != nil {
		return err
	}
	return g.putRecord(w)
}
