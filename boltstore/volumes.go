package boltstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
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
	if !sound {
		return nil
	}
	dir, err := s.listFiles()
	if err != nil {
		return err
	}
	for _, n := range dir.files {
		if n < s.main.number && s.volumes[n] == nil {
			if err := os.Remove(s.path(n)); err != nil {
				return fmt.Errorf("remove empty volume: %w", err)
			}
		}
	}
	return nil
}
