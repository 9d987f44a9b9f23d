package boltstore

import (
	"bytes"
	"fmt"
	"path/filepath"

	"go.etcd.io/bbolt"
)

// salvage makes a new main file of what can be read from one that was set aside. The
// entries stay where they are: the file serves as a volume under its new name. It
// reports false when nothing can be had from it.
func (s *Store) salvage(number uint64, name string, next uint64) (bool, error) {
	f := &file{number: number, path: filepath.Join(s.opts.Path, name)}
	r := rescue{c: carrier{from: f}, s: s}
	err := f.plain(func(t *treeFile) error {
		left := rescueFactor * t.high
		r.t = &treeFile{f: t.f, high: t.high, root: t.root, left: &left}
		if !r.meta() {
			return nil
		}
		return s.makeMain(next, r.run)
	})
	if cerr := f.close(); err == nil {
		err = cerr
	}
	if r.kept > 0 {
		clear(s.volumes) // they are read again from the new file
		s.remark(fmt.Sprintf("%d topics were salvaged from %s, %d are lost", r.kept, name, r.lost))
		return err == nil, err
	}
	if r.t == nil {
		return false, nil // not even its root can be read
	}
	return false, removeIfThere(s.path(next))
}

// rescue copies what is not entries from a damaged file, as far as it can be read.
type rescue struct {
	s    *Store
	t    *treeFile
	c    carrier
	kept int // topics
	lost int
}

// rescueFactor bounds the pages that a rescue reads, as a multiple of what a sound file
// would take, and rescueDepth the buckets in buckets: a damaged tree may lead in circles.
const (
	rescueFactor = 8
	rescueDepth  = 8
)

// maxRescued bounds a value that is rescued: the largest that is written but for chunks.
const maxRescued = 2 << 20

// meta takes lease and volumes, and reports whether the file is one of this format.
func (r *rescue) meta() bool {
	b, err := r.t.find(bucketMeta)
	if err != nil {
		return false
	}
	format := int64(0)
	for c := r.t.seek(b, nil); c.valid(); c.next() {
		v, err := c.value(maxRescued)
		if err != nil {
			continue
		}
		d := decoder{b: v}
		switch k := c.key(); {
		case bytes.Equal(k, metaFormat):
			format = int64(d.uvarint())
		case bytes.Equal(k, metaLease):
			r.s.ids.end = max(r.s.ids.end, int64(d.uvarint()))
		case bytes.Equal(k, metaUptime):
			r.s.uptimeBase = int64(d.uvarint())
		case len(k) == 9 && k[0] == prefixVolume:
			n, _ := keyNumber(k, 1)
			if v, err := decodeVolume(n, v); err == nil {
				r.s.volumes[n] = &v
			}
		}
	}
	return format == formatNumber
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
	n := r.c.from.number
	return db.Update(func(tx *bbolt.Tx) error {
		return r.s.carryMeta(tx, volume{number: n, ledgers: r.c.ledgers, bytes: r.c.bytes, name: r.c.from.name()})
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
	places, err := closedPlaces(to)
	if err != nil {
		return err
	}
	for _, p := range append(places, rec.open) {
		r.c.count(&p)
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
