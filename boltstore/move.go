package boltstore

import (
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"wayside/edge"
)

// mover is a volume being moved into the main file.
type mover struct {
	volume uint64
	topic  *topic
	id     int64 // ledger under way, 0 for none
	after  int64 // entries before it have been copied
	into   uint64
	live   *wanted
}

// moveStep does one step of moving a volume; more is false at its end.
func (s *Store) moveStep(c *compaction) (more bool, err error) {
	m := c.move
	for range surveyTopics {
		if m.id != 0 {
			return true, s.moveChunks(m)
		}
		if m.topic == nil {
			if m.topic = s.nextOf(c); m.topic == nil {
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
			m.id, m.after, m.live, m.into = p.span.Ledger, 0, newWanted(states), s.main.number
			return nil
		}
	}
	m.topic = nil
	return nil
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
// one has in memory for the length of the group. What the journal knows of it is saved,
// or would be saved later over what the group does.
func (g *group) touchAny(t *topic) (*touch, error) {
	w := g.touch(t)
	if err := g.saveTopic(t); err != nil {
		return nil, err
	}
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
	if err := s.makeRoom(int64(size), 1); err != nil {
		return err
	}
	if m.into != s.main.number {
		m.id = 0 // its file turned over: again, into the new one
		return nil
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
		m.after = chunks[len(chunks)-1].last + 1
	}
	return nil
}

type storedChunk struct {
	first, last int64
	value       []byte
}

// readChunks copies the next chunks that somebody may still want out of the volume.
func (s *Store) readChunks(m *mover) (chunks []storedChunk, done bool, err error) {
	done = true
	size := 0
	err = s.viewLedger(m.topic, m.volume, m.id, func(src chunkSource) error {
		for src.seek(m.after); ; src.next() {
			first, value, ok := src.at()
			if !ok {
				return nil
			}
			c, err := openChunk(m.id, first, value)
			if first < m.after || err != nil || m.live.dead(&c) {
				continue
			}
			if done = size == 0 || size+value.size() <= moveBytes; !done {
				return nil
			}
			v, err := value.read(0, value.size())
			if err != nil {
				continue
			}
			chunks = append(chunks, storedChunk{first, c.last(), slices.Clone(v)})
			size += len(v)
		}
	})
	if errors.Is(err, errDamaged) || errors.Is(err, edge.ErrGone) {
		s.logger().Warn("part of a ledger cannot be moved and is lost", "ledger", m.id, "error", err)
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
		b, err := led.CreateBucketIfNotExists(number(uint64(c.first)))
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
		if err := putBound(b, t.key, placeKey(id), p.encode()); err != nil {
			return err
		}
	}
	w.setClosed(list)
	return nil
}
