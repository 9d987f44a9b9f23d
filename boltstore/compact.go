package boltstore

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"wayside/edge"
)

// Space that few messages pin is won back when files take three quarters of their
// limit: the volume with the least data that is still listed is moved into the main
// file ledger by ledger, and what no cursor wants any more is left behind; then the
// closed ledgers of the main file are thinned (thin.go). Each step is one
// transaction of at most moveBytes.
const (
	moveBytes   = 1 << 20
	moveLooked  = 256         // topics looked at in one step
	compactWait = time.Minute // after a pass that could do nothing more
)

// walker goes through all topics in steps.
type walker struct {
	keys []uint64
}

// mover is a volume being moved.
type mover struct {
	volume uint64
	walk   walker
	topic  *topic
	id     int64 // ledger under way, 0 for none
	after  []byte
	live   *wanted
}

// pressed reports whether files take so much that space has to be won back.
func (s *Store) pressed() bool {
	return s.fileBytes()-s.space.tail()-s.space.free > s.opts.FileLimit/4*3
}

// compactStep does one step and reports whether it did.
func (s *Store) compactStep() bool {
	if s.moving == nil {
		if !s.pressed() || time.Now().Before(s.compactAfter) {
			return false
		}
		v := s.emptiest()
		if v == nil {
			return s.thinStep()
		}
		s.moving = &mover{volume: v.number, walk: s.walkTopics()}
	}
	more, err := s.move(s.moving)
	if err != nil || !more {
		s.moving = nil
	}
	if err != nil {
		s.compactAfter = time.Now().Add(compactWait)
		if !errors.Is(err, edge.ErrStoreFull) {
			s.log().Warn("moving a volume failed", "error", err)
		}
	}
	return true
}

// emptiest is the volume with the least data, if moving it frees at least half of it
// and the main file has room.
func (s *Store) emptiest() (best *volume) {
	for _, v := range s.volumes {
		f := s.shelf.get(v.number)
		if f == nil || v.bytes > f.size.Load()/2 || s.stuck[v.number] {
			continue
		}
		if best == nil || v.bytes < best.bytes {
			best = v
		}
	}
	if best != nil && s.space.available()-s.space.reserve < best.bytes+best.bytes/4 {
		return nil
	}
	return best
}

func (s *Store) walkTopics() walker {
	s.topicByKey = make(map[uint64]*topic, len(s.topics))
	for _, t := range s.topics {
		s.topicByKey[t.key] = t
	}
	return walker{keys: slices.Sorted(maps.Keys(s.topicByKey))}
}

// next is the next topic that still exists, or nil at the end.
func (s *Store) nextTopicOf(w *walker) *topic {
	for len(w.keys) > 0 {
		t := s.topicByKey[w.keys[0]]
		w.keys = w.keys[1:]
		if t != nil && s.topics[t.name] == t {
			return t
		}
	}
	return nil
}

// move does one step of moving a volume; more is false at its end.
func (s *Store) move(m *mover) (more bool, err error) {
	for range moveLooked {
		if m.id != 0 {
			return true, s.moveChunks(m)
		}
		if m.topic == nil {
			if m.topic = s.nextTopicOf(&m.walk); m.topic == nil {
				if s.volumes[m.volume] != nil {
					s.stuck[m.volume] = true // its count is off: it stays
				}
				return false, nil
			}
		}
		if err := s.pickLedger(m); err != nil {
			return false, err
		}
	}
	return true, nil
}

// pickLedger finds a ledger of the topic that lies in the volume, or ends the topic.
func (s *Store) pickLedger(m *mover) error {
	t := m.topic
	if t.rec.open.file == m.volume && t.rec.open.span.Entries() > 0 {
		return s.rollAway(t)
	}
	places, states, err := s.topicPlaces(t)
	if err != nil {
		return err
	}
	for _, p := range places {
		if p.file == m.volume {
			m.id, m.after, m.live = p.span.Ledger, nil, newWanted(states)
			return nil
		}
	}
	m.topic = nil
	return nil
}

// topicPlaces reads a topic's closed ledgers and cursors.
func (s *Store) topicPlaces(t *topic) (places []place, states []edge.CursorState, err error) {
	err = s.viewTopic(t, func(b *bbolt.Bucket) error {
		if places, err = closedPlaces(b); err != nil {
			return err
		}
		return eachCursor(b, func(_ string, c edge.CursorState, err error) {
			if err != nil {
				c = edge.CursorState{} // wants everything
			}
			states = append(states, c)
		})
	})
	return places, states, err
}

// rollAway closes a topic's open ledger because of the file that it lies in.
func (s *Store) rollAway(t *topic) error {
	return s.change(func(g *group) error {
		w, err := g.touchAny(t)
		if err != nil {
			return err
		}
		return g.roll(w)
	})
}

// change makes one transaction of the committer's own.
func (s *Store) change(apply func(g *group) error) error {
	g := s.newGroup(nil, nil)
	if err := g.begin(); err != nil {
		return err
	}
	err := protect(func() error {
		if err := apply(g); err != nil {
			return err
		}
		return g.apply()
	})
	if err != nil || !g.changed {
		return joinRollback(err, g.tx)
	}
	if err := s.commit(g.tx); err != nil {
		return err
	}
	g.publish()
	return nil
}

// touchAny is touch for a topic that may not be open: it is then given what an open
// one has in memory for the length of the group.
func (g *group) touchAny(t *topic) (*touch, error) {
	w := g.touch(t)
	if w.led == nil {
		led, err := g.load(t)
		if err != nil {
			return nil, err
		}
		w.led = led
	}
	return w, nil
}

// moveChunks copies some chunks of the ledger under way into the main file. With the
// last of them the topic's list names the main file as the ledger's place.
func (s *Store) moveChunks(m *mover) error {
	chunks, done, err := s.readChunks(m)
	if err != nil {
		return err
	}
	size := 0
	for _, c := range chunks {
		size += len(c.value) + pageSize
	}
	if err := s.makeRoom(int64(size)); err != nil {
		return err
	}
	err = s.change(func(g *group) error {
		b, err := g.bucket(m.topic)
		if err != nil {
			return err
		}
		if b.Get(placeKey(m.id)) == nil {
			done = true // trimmed meanwhile
			return nil
		}
		if err := putChunks(b, m.id, chunks); err != nil {
			return err
		}
		g.changed = true
		if done {
			return g.relocate(m.topic, m.id)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("move ledger %d: %w", m.id, err)
	}
	if done {
		m.id = 0
	} else {
		m.after = chunks[len(chunks)-1].key
	}
	return nil
}

type storedChunk struct{ key, value []byte }

// readChunks copies the next chunks that somebody may still want out of the volume.
func (s *Store) readChunks(m *mover) (chunks []storedChunk, done bool, err error) {
	done = true
	size := 0
	err = s.viewLedger(m.topic, m.volume, m.id, func(b *bbolt.Bucket) error {
		cur := b.Cursor()
		k, _ := cur.First()
		if m.after != nil {
			if k, _ = cur.Seek(m.after); slices.Equal(k, m.after) {
				k, _ = cur.Next()
			}
		}
		for ; k != nil; k, _ = cur.Next() {
			v := chunkValue(b, k)
			if m.live.dead(m.id, k, v) {
				continue
			}
			if done = size+len(v) <= moveBytes || size == 0; !done {
				return nil
			}
			chunks = append(chunks, storedChunk{slices.Clone(k), slices.Clone(v)})
			size += len(v)
		}
		return nil
	})
	if errors.Is(err, errDamaged) || errors.Is(err, edge.ErrGone) {
		s.log().Warn("part of a ledger cannot be moved and is lost", "ledger", m.id, "error", err)
		return chunks, true, nil
	}
	return chunks, done, err
}

func putChunks(topic *bbolt.Bucket, id int64, chunks []storedChunk) error {
	led, err := topic.CreateBucketIfNotExists(ledgerKey(id))
	if err != nil {
		return err
	}
	led.FillPercent = appendFill
	for _, c := range chunks {
		b, err := led.CreateBucketIfNotExists(c.key)
		if err != nil {
			return err
		}
		b.FillPercent = appendFill
		if err := b.Put(keyValue, c.value); err != nil {
			return err
		}
	}
	return nil
}

// relocate notes that a closed ledger lies in the main file now.
func (g *group) relocate(t *topic, id int64) error {
	w, err := g.touchAny(t)
	if err != nil {
		return err
	}
	list := w.closedPlaces()
	for i := range list {
		p := &list[i]
		if p.span.Ledger != id {
			continue
		}
		if err := g.leaveVolume(p); err != nil {
			return err
		}
		p.file = g.store.main.number
		b, err := g.bucket(t)
		if err != nil {
			return err
		}
		if err := b.Put(placeKey(id), p.encode()); err != nil {
			return err
		}
	}
	w.setClosed(list)
	return nil
}
