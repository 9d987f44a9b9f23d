package boltstore

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"go.etcd.io/bbolt"
)

// salvage makes a new main file of what can be read from one that was set aside. The
// entries stay where they are: the file serves as a volume under its new name. It
// reports false when nothing can be had from it.
func (s *Store) salvage(name string, next uint64) (bool, error) {
	f, err := os.Open(filepath.Join(s.opts.Path, name))
	if err != nil {
		return false, err
	}
	defer f.Close()
	t, err := openTree(f)
	if err != nil {
		return false, nil // not even its root can be read
	}
	left := rescueFactor * t.high
	t.left = &left
	r := rescue{s: s, t: t, held: map[uint64]*volume{}}
	if err := r.findFiles(); err != nil {
		return false, err
	}
	if !r.meta() {
		return false, nil
	}
	if err := s.makeMain(next, r.run); err != nil {
		return false, err
	}
	if r.kept == 0 {
		return false, os.Remove(s.path(next))
	}
	s.bereft = r.lost > 0
	s.remark(fmt.Sprintf("%d topics were salvaged from %s, %d are lost", r.kept, name, r.lost))
	return true, nil
}

// rescue copies what is not entries from a damaged file, as far as it can be read.
type rescue struct {
	s    *Store
	t    *treeFile
	held map[uint64]*volume // files by number, with what rescued topics have in them
	kept int                // topics
	lost int
}

// findFiles lists what may serve as a volume, the damaged file too.
func (r *rescue) findFiles() error {
	names, err := os.ReadDir(r.s.opts.Path)
	if err != nil {
		return err
	}
	for _, e := range names {
		if n, _, ok := parseFileName(e.Name()); ok {
			r.held[n] = &volume{number: n, name: e.Name()}
		}
	}
	return nil
}

// rescueFactor bounds the pages that a rescue reads, as a multiple of what a sound file
// would take, and rescueDepth the buckets in buckets: a damaged tree may lead in circles.
const (
	rescueFactor = 8
	rescueDepth  = 8
)

// maxRescued bounds a value that is rescued: the largest that is written but for chunks.
const maxRescued = 2 << 20

// meta takes the store's numbers as far as they can be read, and reports whether the
// file may be one of this format.
func (r *rescue) meta() bool {
	format, err := r.t.format()
	if err == nil && knownFormat(format) != nil {
		return false
	}
	r.s.ids.end = max(r.s.ids.end, r.number(metaLease))
	r.s.uptimeBase = r.number(metaUptime)
	return true
}

func (r *rescue) number(key []byte) int64 {
	b, err := r.t.find(bucketMeta)
	if err != nil {
		return 0
	}
	c := r.t.seek(b, key)
	if !c.valid() || !bytes.Equal(c.key(), key) {
		return 0
	}
	v, err := c.value(pageSize)
	if err != nil {
		return 0
	}
	n, err := decodeNumber(v)
	if err != nil {
		return 0
	}
	return n
}

// run fills a new main file.
func (r *rescue) run(db *bbolt.DB) error {
	err := db.Update(func(tx *bbolt.Tx) error {
		for _, name := range [][]byte{bucketValues, bucketLarge} {
			if from, err := r.t.find(name); err == nil {
				if err := r.copy(tx.Bucket(name), from, 0, 1); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	records, err := r.t.find(bucketRecords)
	if err != nil {
		return nil
	}
	for c := r.t.seek(records, nil); c.valid(); {
		err := db.Update(func(tx *bbolt.Tx) error {
			for n := 0; c.valid() && n < turnTopics; n++ {
				if err := r.topic(tx, c); err != nil {
					return err
				}
				c.next()
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return db.Update(func(tx *bbolt.Tx) error {
		if err := putNumber(tx.Bucket(bucketMeta), metaRebirth, 1); err != nil {
			return err
		}
		return r.s.carryMeta(tx, slices.Collect(maps.Values(r.held)))
	})
}

// topic copies the topic whose record the cursor stands at. An error is one of the
// new file.
func (r *rescue) topic(tx *bbolt.Tx, c *treeCursor) error {
	n, ok := keyNumber(c.key(), 0)
	v, err := c.value(maxRescued)
	if err != nil || !ok {
		r.lost++
		return nil
	}
	_, rec, err := decodeRecord(v)
	from, ferr := r.t.find(topicKey(n))
	if err != nil || ferr != nil || tx.Bucket(topicKey(n)) != nil {
		r.lost++
		return nil
	}
	to, err := tx.CreateBucket(topicKey(n))
	if err != nil {
		return err
	}
	if err := r.copy(to, from, prefixLedger, 1); err != nil {
		return err
	}
	places, err := closedPlaces(to, n)
	if err != nil {
		return err
	}
	for _, p := range append(places, rec.open) {
		if v := r.held[p.file]; v != nil {
			v.count(&p)
		}
	}
	r.kept++
	return putRecord(tx, number(n), v)
}

// copy copies what can be read of a bucket, but for keys that start with skip. An
// error is one of the new file.
func (r *rescue) copy(to *bbolt.Bucket, from treeBucket, skip byte, depth int) error {
	if depth > rescueDepth {
		return nil
	}
	for c := r.t.seek(from, nil); c.valid(); c.next() {
		k := c.key()
		if skip != 0 && k[0] == skip || to.Get(k) != nil || to.Bucket(k) != nil {
			continue
		}
		if err := r.copyElement(to, c, k, depth); err != nil {
			return err
		}
	}
	return nil
}

func (r *rescue) copyElement(to *bbolt.Bucket, c *treeCursor, k []byte, depth int) error {
	if !c.isBucket() {
		v, err := c.value(maxRescued)
		if err != nil {
			return nil
		}
		return to.Put(k, v)
	}
	sub, err := c.bucket()
	if err != nil {
		return nil
	}
	b, err := to.CreateBucket(k)
	if err != nil {
		return err
	}
	return r.copy(b, sub, 0, depth+1)
}

// rebirth gives every topic a new ledger and a new birth id, so that no id or index
// that a lost state had handed out is used again. What a crash interrupts is done
// again at the next start.
func (s *Store) rebirth() error {
	all := slices.Collect(maps.Values(s.topics))
	err := s.change(func(g *group) error {
		g.changed = true
		return putNumber(g.tx.Bucket(bucketMeta), metaRebirth, 1)
	})
	for batch := range slices.Chunk(all, turnTopics) {
		if err == nil {
			err = s.rebear(batch)
		}
	}
	if err == nil {
		err = s.change(func(g *group) error {
			g.changed = true
			return g.tx.Bucket(bucketMeta).Delete(metaRebirth)
		})
	}
	if err != nil {
		return fmt.Errorf("give new birth ids: %w", err)
	}
	return nil
}

// rebear does so for some topics in one transaction. A topic that is damaged stays as
// it is, and takes no changes.
func (s *Store) rebear(batch []*topic) error {
	return s.sparing(func(g *group, at **topic) error {
		for _, t := range batch {
			if t.bad != nil {
				continue
			}
			*at = t
			if err := g.rebear(t); err != nil {
				return err
			}
		}
		*at = nil
		return nil
	})
}

func (g *group) rebear(t *topic) error {
	w, err := g.touchAny(t)
	if err != nil {
		return err
	}
	w.rec.birth = newBirth()
	if w.rec.open.span.Entries() > 0 {
		return g.roll(w)
	}
	w.rec.open.span.Ledger, err = g.store.ids.next()
	return err
}
