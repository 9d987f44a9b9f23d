package boltstore

import (
	"fmt"
	"maps"
	"time"

	"wayside/boltstore/journal"
	"wayside/edge"
)

// metaSettled is the commit up to which the main file knows all but chunks.
var metaSettled = []byte("settled")

// saving is one under way.
type saving struct {
	upTo   uint64
	topics []*topic
}

// noteCommit counts what a commit brought to the journal.
func (s *Store) noteCommit(at journal.Place, number uint64, bytes int) {
	if s.fresh == 0 {
		s.since = time.Now()
	}
	s.fresh += int64(bytes)
	s.ends[at.Segment] = number
}

// saveStep saves some topics. The step after the last of them notes how far the main
// file knows everything.
func (s *Store) saveStep() error {
	if s.saving == nil {
		s.saving = &saving{upTo: s.log.Next() - 1}
		for t := range s.unsaved {
			s.saving.topics = append(s.saving.topics, t)
		}
		s.fresh = 0
	}
	v := s.saving
	n := min(len(v.topics), saveTopics)
	batch := v.topics[:n]
	last := n == len(v.topics)
	s.makeTail(int64(n) * cursorBytes)
	err := s.sparing(func(g *group, at **topic) error {
		for _, *at = range batch {
			if err := g.save(*at); err != nil {
				return err
			}
		}
		*at = nil
		if !last {
			return nil
		}
		g.changed = true
		return putNumber(g.tx.Bucket(bucketMeta), metaSettled, int64(v.upTo))
	})
	if err != nil {
		s.saving = nil
		s.fresh = max(s.fresh, 1)
		return fmt.Errorf("save state of topics: %w", err)
	}
	v.topics = v.topics[n:]
	if last {
		s.settled, s.saving = v.upTo, nil
	}
	return nil
}

// save brings a topic's record up to date, and all that saveTopic does.
func (g *group) save(t *topic) error {
	if g.store.topics[t.name] != t {
		return nil
	}
	if t.bad != nil {
		g.store.dropTopic(t)
		return nil
	}
	w, err := g.touchAny(t)
	if err == nil && t.led == nil { // nobody has counted its cursors
		w.marks, w.marked = w.led.marks, true
	}
	return err
}

// saveTopic writes what the main file does not know of a topic, but for its record and
// its chunks, into a transaction.
func (g *group) saveTopic(t *topic) error {
	s := g.store
	u := s.unsaved[t]
	if u == nil || g.saved[t] {
		return nil
	}
	b, err := g.bucket(t)
	if err != nil {
		return err
	}
	w := g.touch(t)
	for i := range u.closed {
		p := &u.closed[i]
		if !w.rec.floor.Less(p.span.End()) {
			continue // trimmed
		}
		if err := putBound(b, t.key, placeKey(p.span.Ledger), p.encode()); err != nil {
			return err
		}
	}
	if err := g.saveCursors(t, u); err != nil {
		return err
	}
	if g.saved == nil {
		g.saved = map[*topic]bool{}
	}
	g.saved[t] = true
	if err := g.saveSequences(w, u); err != nil {
		return err
	}
	g.after = append(g.after, func() {
		s.topicsMu.Lock()
		defer s.topicsMu.Unlock()
		delete(s.unsaved, t)
	})
	return nil
}

func (g *group) saveCursors(t *topic, u *unsaved) error {
	b, err := g.sub(t, bucketCursors)
	if err != nil {
		return err
	}
	for name, value := range u.cursors {
		if err := deleteCursor(b, name); err != nil {
			return fmt.Errorf("cursor %q of %s: %w", name, t.name, err)
		}
		if value == nil {
			continue
		}
		if err := putBound(b, t.key, cursorKey(prefixCursor, name), value); err != nil {
			return fmt.Errorf("cursor %q of %s: %w", name, t.name, err)
		}
	}
	return nil
}

func (g *group) saveSequences(w *touch, u *unsaved) error {
	if !u.forgotten && len(u.dropped)+len(u.sequences) == 0 {
		return nil
	}
	if u.forgotten {
		if err := g.dropSequences(w); err != nil {
			return err
		}
	}
	b, err := g.sub(w.topic, bucketSequences)
	if err == nil {
		err = dropNames(w, b, maps.Keys(u.dropped))
	}
	if err != nil {
		return err
	}
	for name, q := range u.sequences {
		if v := b.Get([]byte(name)); v == nil {
			w.rec.sequences++
		} else if old, err := decodeSequence(unbind(w.topic.key, []byte(name), v)); err == nil {
			q.Highest = max(q.Highest, old.Highest)
		}
		if err := putBound(b, w.topic.key, []byte(name), q.encode()); err != nil {
			return fmt.Errorf("sequence of %s: %w", w.topic.name, err)
		}
	}
	if w.rec.sequences > edge.MaxSequences {
		return g.evictSequences(w, b)
	}
	return nil
}
