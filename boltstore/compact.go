package boltstore

import (
	"errors"
	"time"

	"go.etcd.io/bbolt"

	"wayside/edge"
)

// Space that few messages pin is won back when files take three quarters of their
// limit. A survey of all topics finds the volume with the least data that some
// cursor still wants; its ledgers are moved into the main file, and what nobody wants
// is left behind (move.go). When no volume is worth it, the closed ledgers of the
// main file are thinned (thin.go). All goes in steps between commits: surveyTopics
// topics, or a transaction of at most moveBytes.
const (
	moveBytes    = 1 << 20
	surveyTopics = 256
	compactPause = 10 * time.Second // after a pass that could do nothing more
	compactHurry = time.Second      // the same while appends are refused
)

// compaction is one pass under way.
type compaction struct {
	byKey  map[uint64]*topic
	keys   []uint64         // topics that the present stage has still to look at
	live   map[uint64]int64 // bytes by volume that some cursor wants, at most
	move   *mover
	thin   bool // the last stage
	gained bool
	upTo   uint64 // of a stopped store: files up to it are looked at, 0 for a running one
}

// pressed reports whether files take so much that space has to be won back.
func (s *Store) pressed() bool {
	files, limit := s.fileBytes()-s.journalBytes(), s.opts.FileLimit-s.opts.JournalBytes
	return files-s.space.tail()-s.space.free > limit/4*3
}

// compactStep does one step and reports whether it did.
func (s *Store) compactStep() bool {
	c := s.compaction
	if c == nil {
		if !s.pressed() || time.Now().Before(s.compactAfter) {
			return false
		}
		c = &compaction{live: map[uint64]int64{}}
		s.compaction = c
		s.walk(c)
	}
	more, err := s.compact(c)
	if err != nil && !errors.Is(err, edge.ErrStoreFull) {
		s.logger().Warn("winning back space failed", "error", err)
	}
	if err != nil || !more {
		s.compaction = nil
		s.compactAfter = time.Now()
		if err != nil || !c.gained {
			s.compactAfter = s.compactAfter.Add(s.compactPause)
		}
	}
	return true
}

// hurry brings the next pass on, because appends find no space.
func (s *Store) hurry() {
	if soon := time.Now().Add(min(compactHurry, s.compactPause)); soon.Before(s.compactAfter) {
		s.compactAfter = soon
	}
}

// compact does a step of the present stage; more is false at the end of the pass.
func (s *Store) compact(c *compaction) (more bool, err error) {
	switch {
	case c.move != nil:
		more, err = s.moveStep(c)
		c.gained = true
		return more, err
	case c.thin:
		return s.thinStep(c)
	}
	for range surveyTopics {
		t := s.nextOf(c)
		if t == nil {
			s.choose(c)
			return c.move != nil || c.thin, nil
		}
		if err := s.survey(c, t); err != nil {
			return false, err
		}
	}
	return true, nil
}

// walk starts a stage at the first topic.
func (s *Store) walk(c *compaction) {
	c.byKey = make(map[uint64]*topic, len(s.topics))
	for _, t := range s.topics {
		c.byKey[t.key] = t
	}
	c.keys = sortedKeys(c.byKey)
}

// nextOf is the next topic that still exists, or nil at the end.
func (s *Store) nextOf(c *compaction) *topic {
	for len(c.keys) > 0 {
		t := c.byKey[c.keys[0]]
		c.keys = c.keys[1:]
		if s.topics[t.name] == t {
			return t
		}
	}
	return nil
}

// survey adds what a topic has in volumes.
func (s *Store) survey(c *compaction, t *topic) error {
	places, states, err := s.topicPlaces(t)
	if errors.Is(err, errDamaged) || errors.Is(err, edge.ErrGone) {
		return nil
	}
	if err != nil {
		return err
	}
	w := newWanted(states)
	for _, p := range append(places, t.rec.open) {
		if (p.file != s.main.number || c.upTo > 0) && p.span.Entries() > 0 {
			c.live[p.file] += p.span.Bytes * w.entries(p.span) / p.span.Entries()
		}
	}
	return nil
}

// choose ends the survey: with the volume to move, or else with thinning.
func (s *Store) choose(c *compaction) {
	var best *volume
	for _, v := range s.volumes {
		f := s.shelf.get(v.number)
		if f == nil || s.stuck[v.number] || !c.worth(v.number, c.live[v.number], f.size.Load()) {
			continue
		}
		if best == nil || c.live[v.number] < c.live[best.number] {
			best = v
		}
	}
	s.walk(c)
	if c.upTo > 0 {
		if best != nil {
			c.move = &mover{volume: best.number}
		}
		return
	}
	if best == nil || s.space.available()-s.space.reserve < c.live[best.number]+c.live[best.number]/4 {
		c.thin = true
		return
	}
	c.move = &mover{volume: best.number}
}

// worth reports whether a volume with so much that lives is worth a move.
func (c *compaction) worth(number uint64, live, size int64) bool {
	if c.upTo > 0 {
		return number <= c.upTo && live+live/8 <= size/8*7
	}
	return live <= size/2
}

// topicPlaces reads a topic's closed ledgers and cursors.
func (s *Store) topicPlaces(t *topic) (places []place, states []edge.CursorState, err error) {
	err = s.viewTopic(t, func(b *bbolt.Bucket) error {
		places, err = closedPlaces(b, t.key)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	if s.keepAcked {
		return places, nil, nil
	}
	err = s.eachState(t, func(_ string, c edge.CursorState, err error) {
		if err != nil {
			c = edge.CursorState{} // wants everything
		}
		states = append(states, c)
	})
	return places, states, err
}
