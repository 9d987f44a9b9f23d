package boltstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.etcd.io/bbolt"
)

// count adds a ledger that lies in the volume.
func (v *volume) count(p *place) {
	if p.file == v.number && p.span.Entries() > 0 {
		v.ledgers++
		v.bytes += p.span.Bytes
	}
}

// volumeBytes is what the volumes take on disk.
func (s *Store) volumeBytes() int64 { return s.shelf.bytes() - s.main.size.Load() }

// leaveVolume takes a ledger that goes out of its volume's count. The volume's file
// goes with its last ledger, once the commit that says so is durable.
func (g *group) leaveVolume(p *place) error {
	v := g.store.volumes[p.file]
	if v == nil || p.span.Entries() == 0 {
		return nil
	}
	if g.left == nil {
		g.left = map[uint64]*volume{}
	}
	after := g.left[p.file]
	if after == nil {
		after = &volume{number: v.number, name: v.name, ledgers: v.ledgers, bytes: v.bytes}
		g.left[p.file] = after
	}
	after.ledgers--
	after.bytes -= p.span.Bytes
	return nil
}

// flushVolumes writes the counts that the group changed.
func (g *group) flushVolumes() error {
	meta := g.tx.Bucket(bucketMeta)
	for number, v := range g.left {
		key := numberKey(prefixVolume, number)
		if v.ledgers <= 0 {
			if err := meta.Delete(key); err != nil {
				return err
			}
		} else if err := meta.Put(key, v.encode()); err != nil {
			return err
		}
		g.after = append(g.after, func() {
			g.store.volumes[number] = v
			if err := g.store.dropIfEmpty(v); err != nil {
				g.store.logger().Warn("empty volume stays", "error", err)
			}
		})
	}
	return nil
}

// dropIfEmpty deletes the file of a volume that no topic has a ledger in. One that
// was set aside is only left alone.
func (s *Store) dropIfEmpty(v *volume) error {
	if v.ledgers > 0 {
		return nil
	}
	delete(s.volumes, v.number)
	f := s.shelf.remove(v.number)
	if f == nil {
		return nil
	}
	err := f.close()
	if strings.Contains(v.name, asideMark) {
		return err
	}
	return errors.Join(err, removeIfThere(f.path))
}

// tidyVolumes puts the listed volumes on the shelf. What is listed and not there is
// lost; what is there, older than the main file and not listed was left by a crash
// behind its last trim, and goes if the main file is known to be sound.
func (s *Store) tidyVolumes(sound bool) error {
	for number, v := range s.volumes {
		path := filepath.Join(s.opts.Path, v.name)
		st, err := os.Stat(path)
		if err != nil {
			s.remark(fmt.Sprintf("volume %s is missing, %d ledgers are lost: %v", v.name, v.ledgers, err))
			delete(s.volumes, number)
			continue
		}
		f := &file{number: number, path: path}
		f.size.Store(st.Size())
		s.shelf.put(f, false)
	}
	dir, err := s.listFiles()
	if err != nil {
		return err
	}
	unlisted := slices.DeleteFunc(dir.files, func(n uint64) bool { return n >= s.main.number || s.volumes[n] != nil })
	return s.tidyUnlisted(unlisted, sound)
}

// tidyUnlisted lists files again that topics have ledgers in: the list was damaged, or is
// that of an older main file. The others are deleted if the main file is sound.
func (s *Store) tidyUnlisted(numbers []uint64, sound bool) error {
	found := map[uint64]*volume{}
	for _, n := range numbers {
		found[n] = &volume{number: n, name: fileName(n)}
	}
	if len(found) > 0 {
		s.countLedgers(found)
	}
	for n, v := range found {
		if v.ledgers == 0 && !sound {
			continue
		}
		if v.ledgers == 0 {
			if err := os.Remove(s.path(n)); err != nil {
				return fmt.Errorf("remove empty volume: %w", err)
			}
			continue
		}
		s.remark(fmt.Sprintf("%s is not in the list of volumes, though topics need it", v.name))
		s.doubtful = true // the list may be as old as the rest of the main file
		st, err := os.Stat(s.path(n))
		if err == nil {
			err = s.change(func(g *group) error {
				g.changed = true
				return g.tx.Bucket(bucketMeta).Put(numberKey(prefixVolume, n), v.encode())
			})
		}
		if err != nil {
			return fmt.Errorf("list volume: %w", err)
		}
		f := &file{number: n, path: s.path(n)}
		f.size.Store(st.Size())
		s.volumes[n] = v
		s.shelf.put(f, false)
	}
	return nil
}

// countLedgers counts what topics have in files. Of a topic whose ledgers are not all
// known some may lie in any.
func (s *Store) countLedgers(files map[uint64]*volume) {
	for _, t := range s.topics {
		var places []place
		err := s.main.view(func(tx *bbolt.Tx) (err error) {
			if b := tx.Bucket(topicKey(t.key)); b != nil {
				places, err = closedPlaces(b, t.key)
			}
			return err
		})
		for _, v := range files {
			for _, p := range append(places, t.rec.open) {
				v.count(&p)
			}
			if err != nil || len(places) < t.rec.closed {
				v.ledgers = unknownLedgers
			}
		}
	}
}
