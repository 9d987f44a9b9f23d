package boltstore

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"

	"wayside/boltstore/journal"
)

// createMain makes an empty main file.
func (s *Store) createMain(number uint64) error {
	return s.makeMain(number, func(*bbolt.DB) error { return nil })
}

// makeMain makes a main file under a temporary name, lets fill bring in what it
// starts with, syncs it and gives it its name. A crash leaves nothing of it or all.
func (s *Store) makeMain(number uint64, fill func(db *bbolt.DB) error) error {
	temp := s.path(number) + tempSuffix
	err := s.writeMain(temp, fill)
	if err == nil {
		err = os.Rename(temp, s.path(number))
	}
	if err != nil {
		return fmt.Errorf("create main file: %w", errors.Join(err, removeIfThere(temp)))
	}
	return journal.SyncDir(s.opts.Path)
}

func (s *Store) writeMain(temp string, fill func(db *bbolt.DB) error) error {
	db, err := openWritable(temp, 0)
	if err != nil {
		return err
	}
	db.NoSync = true // one sync at the end makes all of it durable
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, name := range [][]byte{bucketMeta, bucketRecords, bucketValues, bucketLarge, bucketDead} {
			if _, err := tx.CreateBucket(name); err != nil {
				return err
			}
		}
		return putNumber(tx.Bucket(bucketMeta), metaFormat, formatNumber)
	})
	if err == nil {
		err = fill(db)
	}
	if err = errors.Join(err, db.Close()); err != nil {
		return err
	}
	return s.finishMain(temp)
}

// startBytes is the least size of a main file in service. Below the size of its own
// steps bbolt would grow a file by itself.
const startBytes = allocSize

// maxMapped is what of a file can be mapped for certain on a machine of 32 bits.
const maxMapped = 1 << 30

// finishMain writes zeros behind the last page of a new file, up to the size that it
// starts with, and syncs all of it.
func (s *Store) finishMain(temp string) error {
	f, err := os.OpenFile(temp, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	metas, err := readMetas(f)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	high := int64(metas[0].high) * pageSize
	p := s.opts.space()
	err = s.writeZeros(f, high, max(high, startBytes)+p.reserve+p.step)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func removeIfThere(path string) error {
	if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// openMain opens a checked file as the main file and loads what it says of topics.
// With rebirth it cannot be proven that it holds all that was confirmed: every topic
// then gets a new ledger and a new birth id.
func (s *Store) openMain(number uint64, rebirth bool) error {
	f := &file{number: number, path: s.path(number)}
	if err := s.mountMain(f); err != nil {
		return err
	}
	s.shelf.put(f, true)
	if err := f.view(s.loadMain); err != nil {
		return err
	}
	if err := s.adoptFormat(); err != nil {
		return err
	}
	s.doubtful = rebirth || !s.reborn
	if err := s.openJournal(); err != nil {
		return err
	}
	if err := s.tidyVolumes(!rebirth); err != nil {
		return err
	}
	if err := s.fileIfAsked(); err != nil {
		return err
	}
	if s.doubtful {
		if err := s.rebirth(); err != nil {
			return err
		}
	}
	if s.ids.main != number {
		if err := s.ids.write(s.ids.end, number); err != nil {
			return err
		}
	}
	return nil
}

// adoptFormat makes a file of an older form one of this version's. All that it holds
// stays as it is and is read.
func (s *Store) adoptFormat() error {
	if s.format == formatNumber {
		return nil
	}
	err := s.change(func(g *group) error {
		g.changed = true
		return putNumber(g.tx.Bucket(bucketMeta), metaFormat, formatNumber)
	})
	if err != nil {
		return fmt.Errorf("bring store to form %d: %w", formatNumber, err)
	}
	s.logger().Info("store is of a newer form now, older versions of this program refuse it", "was", s.format, "is", formatNumber)
	return nil
}

// mountMain opens a file for writing and measures it.
func (s *Store) mountMain(f *file) error {
	if st, err := os.Stat(f.path); is32bit && err == nil && st.Size() > maxMapped {
		return fmt.Errorf("%s is too large for a machine of 32 bits: %d bytes, at most %d; run wayside store compact on one of 64", filepath.Base(f.path), st.Size(), maxMapped)
	}
	mapSize := s.opts.FileLimit
	if is32bit {
		mapSize = 2 * s.opts.VolumeBytes
	}
	db, err := openWritable(f.path, mapSize)
	if err != nil {
		return fmt.Errorf("open %s: %w", filepath.Base(f.path), err)
	}
	if err := f.mount(db); err != nil {
		return err
	}
	if err := s.openGrower(f); err != nil {
		return err
	}
	s.main = f
	db.MaxSize = int(s.space.written) + allocSize
	if err := s.growTo(startBytes); err != nil && !isFull(err) {
		return err
	}
	if s.confirmed, err = newestState(s.space.grower); err != nil {
		return err
	}
	return s.measure()
}

// openGrower opens the file a second time, for writing zeros behind its end.
func (s *Store) openGrower(f *file) error {
	g, err := os.OpenFile(f.path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	st, err := g.Stat()
	if err != nil {
		return errors.Join(err, g.Close())
	}
	if s.space.grower != nil {
		if err := s.space.grower.Close(); err != nil {
			return errors.Join(err, g.Close())
		}
	}
	s.space = s.opts.space()
	s.space.grower, s.space.written = g, st.Size()/pageSize*pageSize
	f.size.Store(st.Size())
	return nil
}

// loadMain reads the store's numbers, its volumes and the records of all topics.
func (s *Store) loadMain(tx *bbolt.Tx) error {
	meta := tx.Bucket(bucketMeta)
	s.uptimeBase = getNumber(meta, metaUptime)
	s.format = getNumber(meta, metaFormat)
	s.uptimeNoted = s.uptimeBase
	s.ids.noted = getNumber(meta, metaLease)
	s.settled = uint64(getNumber(meta, metaSettled))
	s.reborn = meta.Get(metaRebirth) == nil
	err := eachNumbered(meta, prefixVolume, func(number uint64, value []byte) error {
		v, err := decodeVolume(number, value)
		if err != nil {
			v = volume{number: number, ledgers: unknownLedgers, name: fileName(number)}
		}
		s.volumes[number] = &v
		return nil
	})
	if err != nil {
		return err
	}
	if err := s.loadDead(tx); err != nil {
		return err
	}
	return s.loadRecords(tx)
}

// loadDead sees to it that what waits to be swept goes, and that no new topic gets the
// number of one whose bucket is still there.
func (s *Store) loadDead(tx *bbolt.Tx) error {
	return tx.Bucket(bucketDead).ForEach(func(path, _ []byte) error {
		s.sweeping = true
		if n, ok := keyNumber(path[:min(len(path), len(topicKey(0)))], 1); ok {
			s.nextTopic = max(s.nextTopic, n+1)
		}
		return nil
	})
}

// loadRecords fills the table of topics. A damaged record loses its topic's name, so
// the topic cannot be served; its bucket stays.
func (s *Store) loadRecords(tx *bbolt.Tx) error {
	lost, used := 0, s.ids.noted
	parts := map[string]string{}
	err := tx.Bucket(bucketRecords).ForEach(func(k, v []byte) error {
		n, ok := keyNumber(k, 0)
		if !ok {
			lost++
			return nil
		}
		s.nextTopic = max(s.nextTopic, n+1)
		name, rec, err := decodeRecord(v)
		if err != nil {
			lost++
			return nil
		}
		for _, part := range []*string{&name.Domain, &name.Tenant, &name.Namespace} {
			*part = shared(parts, *part)
		}
		s.topics[name] = &topic{key: n, name: name, rec: rec}
		used = max(used, rec.open.span.Ledger+1)
		s.live.Add(rec.live)
		s.active += b2i(rec.open.span.Entries() > 0)
		return nil
	})
	s.ids.start(used)
	lost += s.countUnrecorded(tx)
	if lost > 0 {
		s.remark(fmt.Sprintf("%d topics have damaged records and are lost", lost))
	}
	return err
}

// countUnrecorded counts buckets of topics without a record that do not wait to be swept.
// No new topic gets their numbers.
func (s *Store) countUnrecorded(tx *bbolt.Tx) (n int) {
	has := func(bucket, key []byte) bool {
		k, _ := tx.Bucket(bucket).Cursor().Seek(key)
		return bytes.Equal(k, key)
	}
	c := tx.Cursor()
	for k, _ := c.Seek([]byte{prefixTopic}); len(k) > 0 && k[0] == prefixTopic; k, _ = c.Next() {
		if number, ok := keyNumber(k, 1); ok && number >= 1 && !has(bucketRecords, k[1:]) && !has(bucketDead, k) {
			s.nextTopic = max(s.nextTopic, number+1)
			n++
		}
	}
	return n
}

// shared returns the one copy of a text that all topics use.
func shared(texts map[string]string, text string) string {
	if t, ok := texts[text]; ok {
		return t
	}
	texts[text] = text
	return text
}
