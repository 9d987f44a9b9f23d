package boltstore

import (
	"bytes"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"wayside/edge"
)

// In the bucket of a topic's cursors a state is one value under 'v' and the name, or,
// when it is large, a bucket under 'x' and the name: the head under "h" and one
// bucket per page, so that an unchanged page is not written again.
const (
	prefixCursor = 'v'
	prefixPaged  = 'x'
)

var keyHead = []byte("h")

func cursorKey(prefix byte, name string) []byte {
	return append(append(make([]byte, 0, len(name)+1), prefix), name...)
}

// writeCursor saves or deletes one cursor in the transaction.
func (g *group) writeCursor(c cursorWrite) error {
	w := g.touch(c.led.topic)
	if w.deleted {
		return nil
	}
	b, err := g.sub(w.topic, bucketCursors)
	if err != nil {
		return err
	}
	if c.state == nil {
		w.unmark(c.name)
		err = deleteCursor(b, c.name)
	} else {
		var large bool
		large, err = putCursor(b, w.topic.key, c.name, c.state)
		w.mark(mark{c.name, c.state.MarkDelete, large})
	}
	if err != nil {
		return fmt.Errorf("cursor %q of %s: %w", c.name, w.topic.name, err)
	}
	return nil
}

func (w *touch) mark(m mark) {
	marks := w.cursorMarks()
	i, ok := findMark(marks, m.name)
	if !ok {
		marks = slices.Insert(marks, i, m)
	}
	marks[i] = m
	w.marks = marks
}

func (w *touch) unmark(name string) {
	marks := w.cursorMarks()
	if i, ok := findMark(marks, name); ok {
		w.marks = slices.Delete(marks, i, i+1)
	}
}

func deleteCursor(b *bbolt.Bucket, name string) error {
	if err := b.Delete(cursorKey(prefixCursor, name)); err != nil {
		return err
	}
	if paged := cursorKey(prefixPaged, name); b.Bucket(paged) != nil {
		return b.DeleteBucket(paged)
	}
	return nil
}

// putCursor writes a state in the form that its size asks for.
func putCursor(b *bbolt.Bucket, topic uint64, name string, s *edge.CursorState) (large bool, err error) {
	value, fits := encodeCursor(s)
	if fits {
		if paged := cursorKey(prefixPaged, name); b.Bucket(paged) != nil {
			if err := b.DeleteBucket(paged); err != nil {
				return false, err
			}
		}
		return false, putBound(b, topic, cursorKey(prefixCursor, name), value)
	}
	if err := b.Delete(cursorKey(prefixCursor, name)); err != nil {
		return true, err
	}
	x, err := b.CreateBucketIfNotExists(cursorKey(prefixPaged, name))
	if err != nil {
		return true, err
	}
	return true, putPages(x, topic, cursorKey(prefixPaged, name), s)
}

// putPages writes the head and the pages that changed, and deletes those that went.
func putPages(x *bbolt.Bucket, topic uint64, cursor []byte, s *edge.CursorState) error {
	pages := encodePages(s)
	keep := make(map[string]bool, len(pages))
	for _, p := range pages {
		keep[string(p.key)] = true
		if b := x.Bucket(p.key); b != nil && bytes.Equal(b.Get(keyValue), p.value) {
			continue
		}
		b, err := x.CreateBucketIfNotExists(p.key)
		if err != nil {
			return err
		}
		if err := b.Put(keyValue, p.value); err != nil {
			return err
		}
	}
	var gone [][]byte
	err := x.ForEachBucket(func(k []byte) error {
		if !keep[string(k)] {
			gone = append(gone, slices.Clone(k))
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, k := range gone {
		if err := x.DeleteBucket(k); err != nil {
			return err
		}
	}
	return x.Put(keyHead, bind(topic, cursor, encodeHead(s, pages)))
}

// eachCursor visits the states of a topic's cursors. One that is damaged comes with
// its error.
func eachCursor(topic *bbolt.Bucket, key uint64, visit func(name string, s edge.CursorState, err error)) error {
	b := topic.Bucket(bucketCursors)
	if b == nil {
		return nil
	}
	return b.ForEach(func(k, v []byte) error {
		switch name := string(k[1:]); k[0] {
		case prefixCursor:
			s, err := decodeCursor(unbind(key, k, v))
			visit(name, s, err)
		case prefixPaged:
			x := b.Bucket(k)
			s, err := decodePaged(unbind(key, k, x.Get(keyHead)), readPages(x))
			visit(name, s, err)
		default:
			visit(name, edge.CursorState{}, errDamaged)
		}
		return nil
	})
}

// eachState visits the states of a topic's cursors, those that only the journal has and
// the others from the main file.
func (s *Store) eachState(t *topic, visit func(name string, c edge.CursorState, err error)) error {
	newer := s.unsavedCursors(t) // before the file is read
	err := s.viewTopic(t, func(b *bbolt.Bucket) error {
		return eachCursor(b, t.key, func(name string, c edge.CursorState, err error) {
			if _, ok := newer[name]; !ok {
				visit(name, c, err)
			}
		})
	})
	if err != nil {
		return err
	}
	for name, value := range newer {
		if value != nil { // else it was deleted
			c, err := decodeCursor(value)
			visit(name, c, err)
		}
	}
	return nil
}

func readPages(x *bbolt.Bucket) (pages []cursorPage) {
	c := x.Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		if v != nil {
			continue
		}
		if value := x.Bucket(k).Get(keyValue); len(value) >= 4 {
			pages = append(pages, cursorPage{k, value})
		}
	}
	return pages
}

// mend makes a state that was read usable: a damaged one starts again at the topic's
// first entry, since delivering twice is better than losing, and none stands before
// the floor.
func (v *view) mend(s edge.CursorState, err error) edge.CursorState {
	if err != nil {
		return edge.CursorState{MarkDelete: edge.Max(v.spans.Start(), v.floor)}
	}
	return s.Raised(v.floor)
}

// loadMarks reads where a topic's cursors stand.
func loadMarks(topic *bbolt.Bucket, key uint64, v *view) (marks []mark, err error) {
	err = eachCursor(topic, key, func(name string, s edge.CursorState, err error) {
		i, _ := findMark(marks, name)
		marks = slices.Insert(marks, i, mark{name: name, at: v.mend(s, err).MarkDelete})
	})
	return marks, err
}

// Cursors implements edge.Ledger.
func (l *ledger) Cursors() (map[string]edge.CursorState, error) {
	states := map[string]edge.CursorState{}
	var damaged []string
	err := l.store.eachState(l.topic, func(name string, s edge.CursorState, err error) {
		states[name] = l.view.Load().mend(s, err)
		if err != nil {
			damaged = append(damaged, name)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("cursors of %s: %w", l.topic.name, err)
	}
	for _, name := range damaged {
		l.store.opts.Logger.Error("subscription state is damaged, it starts again at the first message", "topic", l.topic.name.String(), "subscription", name)
	}
	return states, nil
}
