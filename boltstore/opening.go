package boltstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.etcd.io/bbolt"

	"wayside/edge"
)

// Open takes a directory, makes it if need be, and starts the committer. ErrLocked
// says that somebody else has it, ErrFormat that another version wrote it.
func Open(o Options) (*Store, error) {
	o, err := o.withLimits()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.Path, 0o750); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	lock, err := lockDir(o.Path)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	s := &Store{
		opts: o, lock: lock, queue: newQueue(), shelf: newShelf(), started: time.Now(),
		closing: make(chan struct{}), done: make(chan struct{}),
		topics: map[edge.TopicName]*topic{}, volumes: map[uint64]*volume{},
		zeros: make([]byte, 256<<10), nextTopic: 1,
	}
	if err := s.openFiles(); err != nil {
		err = errors.Join(err, s.shelf.closeAll(), lock.Close())
		return nil, fmt.Errorf("store: %w", err)
	}
	go s.run()
	return s, nil
}

func (s *Store) openFiles() error {
	numbers, err := s.listFiles()
	if err != nil {
		return err
	}
	if s.ids, err = openIDs(s.opts.Path); err != nil {
		return err
	}
	var main uint64 = 1
	if len(numbers) > 0 {
		main = numbers[len(numbers)-1]
	} else if err := s.createMain(main); err != nil {
		return err
	}
	return s.openMain(main)
}

// listFiles returns the numbers of the store's files in order, and removes what an
// interrupted creation left.
func (s *Store) listFiles() (numbers []uint64, err error) {
	names, err := os.ReadDir(s.opts.Path)
	if err != nil {
		return nil, err
	}
	for _, e := range names {
		if strings.HasSuffix(e.Name(), fileSuffix+tempSuffix) {
			if err := os.Remove(filepath.Join(s.opts.Path, e.Name())); err != nil {
				return nil, fmt.Errorf("remove unfinished file: %w", err)
			}
		}
		if n, ok := parseFileName(e.Name()); ok {
			numbers = append(numbers, n)
		}
	}
	return numbers, nil
}

func (s *Store) path(number uint64) string { return filepath.Join(s.opts.Path, fileName(number)) }

// createMain makes a new main file under a temporary name, syncs it and gives it its
// name. A crash leaves either nothing of it or all.
func (s *Store) createMain(number uint64) error {
	temp := s.path(number) + tempSuffix
	db, err := openWritable(temp, 0)
	if err != nil {
		return fmt.Errorf("create main file: %w", err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, name := range [][]byte{bucketMeta, bucketRecords, bucketValues, bucketDead} {
			if _, err := tx.CreateBucket(name); err != nil {
				return err
			}
		}
		return putNumber(tx.Bucket(bucketMeta), metaFormat, formatNumber)
	})
	if err = errors.Join(err, db.Close()); err != nil {
		return fmt.Errorf("create main file: %w", err)
	}
	if err := os.Rename(temp, s.path(number)); err != nil {
		return fmt.Errorf("create main file: %w", err)
	}
	return syncDir(s.opts.Path)
}

func (s *Store) openMain(number uint64) error {
	f := &file{number: number, path: s.path(number)}
	mapSize := s.opts.FileLimit
	if is32bit {
		mapSize = 2 * s.opts.VolumeBytes
	}
	db, err := openWritable(f.path, mapSize)
	if err != nil {
		return err
	}
	f.setDB(db)
	s.main = f
	s.shelf.put(f, true)
	if s.space.grower, err = os.OpenFile(f.path, os.O_RDWR, 0); err != nil {
		return err
	}
	st, err := s.space.grower.Stat()
	if err != nil {
		return err
	}
	s.space.written = st.Size() / pageSize * pageSize
	s.space.reserve = s.opts.reserve()
	s.space.step = min(max(s.opts.FileLimit/64, 64<<10), 2<<20)
	f.size.Store(s.space.written)
	db.MaxSize = int(s.space.written) + allocSize
	if err := f.view(s.loadTopics); err != nil {
		return err
	}
	return s.measure()
}

func (s *Store) loadTopics(tx *bbolt.Tx) error {
	meta := tx.Bucket(bucketMeta)
	s.uptimeBase = getNumber(meta, metaUptime)
	s.uptimeNoted = s.uptimeBase
	used := getNumber(meta, metaLease)
	s.ids.noted = used
	err := tx.Bucket(bucketRecords).ForEach(func(k, v []byte) error {
		n, ok := keyNumber(k, 0)
		if !ok {
			return nil
		}
		name, rec, err := decodeRecord(v)
		if err != nil {
			return err
		}
		t := &topic{key: n, name: name, rec: rec}
		s.topics[name] = t
		s.live.Add(rec.live)
		s.nextTopic = max(s.nextTopic, n+1)
		if rec.open.span.Entries() > 0 {
			s.active++
		}
		return nil
	})
	s.ids.start(used)
	k, _ := tx.Bucket(bucketDead).Cursor().First()
	s.sweeping = k != nil
	return err
}
