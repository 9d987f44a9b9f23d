package boltstore

import (
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"wayside/edge"
)

// noFile is the place of a ledger none of whose entries are in a file.
const noFile = 0

// firstFile is where a new ledger lies.
func (s *Store) firstFile() uint64 {
	if s.log != nil {
		return noFile
	}
	return s.main.number
}

// fileStep files some of the oldest segment's chunks, or gives the segment back when
// none are left. It reports whether there was something to do.
func (s *Store) fileStep() (bool, error) {
	segments := s.log.Segments()
	if len(segments) < 2 {
		return false, nil
	}
	oldest := segments[0]
	if end, ok := s.ends[oldest]; ok && end > s.settled {
		return true, s.saveStep()
	}
	batch := s.looseTopics(oldest)
	if len(batch) == 0 {
		if err := s.log.Release(oldest + 1); err != nil || s.log.Segments()[0] == oldest {
			return false, err // somebody reads it
		}
		delete(s.ends, oldest)
		return true, nil
	}
	return true, s.file(batch, oldest)
}

// looseTopics are some topics with loose chunks in segments up to one.
func (s *Store) looseTopics(upTo uint64) (batch []*topic) {
	for t := range s.loosened {
		if t.loose[0].segment > upTo {
			continue
		}
		if batch = append(batch, t); len(batch) == fileTopics {
			break
		}
	}
	return batch
}

// file moves chunks of some topics that lie in segments up to one into the main file.
func (s *Store) file(batch []*topic, upTo uint64) error {
	var moves []filing
	bytes := 0
	s.clearFiling()
	for _, t := range batch {
		f, err := s.readLoose(t, fileBytes-bytes, func(c *looseChunk) bool { return c.segment <= upTo })
		if err != nil {
			return err
		}
		moves = append(moves, f)
		if bytes += f.bytes; bytes >= fileBytes {
			break
		}
	}
	if err := s.turnOverIfDue(int64(bytes)); err != nil || s.turning {
		return err
	}
	return s.fileThese(moves, bytes)
}

func (s *Store) fileThese(moves []filing, bytes int) error {
	if err := s.makeRoom(int64(bytes), int64(len(moves))); err != nil {
		return err
	}
	err := s.sparing(func(g *group, at **topic) error {
		for i := range moves {
			if *at = moves[i].t; (*at).bad != nil {
				continue
			}
			if err := g.file(&moves[i]); err != nil {
				return err
			}
		}
		*at = nil
		return nil
	})
	if err != nil {
		return fmt.Errorf("move entries from the journal: %w", err)
	}
	return nil
}

// clearFiling frees the values of the last transaction for use by the next.
func (s *Store) clearFiling() {
	if s.filing = s.filing[:0]; cap(s.filing) == 0 {
		s.filing = make([]byte, 0, fileBytes+fileBytes/8)
	}
}

// filing is what of one topic is moved.
type filing struct {
	t      *topic
	n      int // loose chunks that it stands for
	chunks []filedChunk
	bytes  int
	last   edge.Position
}

type filedChunk struct {
	ledger int64
	storedChunk
}

// readLoose reads the first loose chunks of a topic that are wanted, about so many bytes,
// and puts small ones together.
func (s *Store) readLoose(t *topic, most int, wanted func(*looseChunk) bool) (filing, error) {
	f := filing{t: t}
	m := merger{arena: s.filing}
	defer func() { s.filing = m.arena }()
	for i := range t.loose {
		c := &t.loose[i]
		if !wanted(c) || f.n > 0 && f.bytes+int(c.length) > most {
			break
		}
		f.n++
		f.bytes += int(c.length)
		f.last = c.last()
		if !t.rec.floor.Less(c.last()) {
			continue // trimmed
		}
		err := s.viewLoose(t.loose[i:i+1], c.ledger, func(src chunkSource) error {
			src.seek(c.first)
			_, value, ok := src.at()
			if !ok {
				return errSettled
			}
			opened, err := openChunk(c.ledger, c.first, value)
			if err != nil {
				return err
			}
			if c.length >= wholeBytes {
				return m.copy(&opened)
			}
			return m.add(&opened)
		})
		if errors.Is(err, errDamaged) {
			s.logger().Error("entries are damaged in the journal and lost", "topic", t.name.String(), "entry", edge.Position{Ledger: c.ledger, Entry: c.first}.String(), "count", c.count)
			continue
		}
		if err != nil {
			return f, err
		}
	}
	f.chunks = m.end()
	return f, nil
}

// file puts what was read into the transaction. A ledger whose first entries these are
// lies in the main file from now on.
func (g *group) file(f *filing) error {
	t, main := f.t, g.store.main.number
	w, err := g.touchAny(t)
	if err != nil {
		return err
	}
	b, err := g.bucket(t)
	if err != nil {
		return err
	}
	for i := range f.chunks {
		c := &f.chunks[i]
		if err := putChunks(b, c.ledger, []storedChunk{c.storedChunk}); err != nil {
			return err
		}
		if err := g.settleIn(w, b, c.ledger, main); err != nil {
			return err
		}
	}
	w.rec.filed = edge.Max(w.rec.filed, f.last.Next())
	w.tight = f.n
	return nil
}

// settleIn notes the file of a ledger that had none.
func (g *group) settleIn(w *touch, b *bbolt.Bucket, ledger int64, main uint64) error {
	if w.rec.open.span.Ledger == ledger {
		if w.rec.open.file == noFile {
			w.rec.open.file = main
		}
		return nil
	}
	list := w.closedPlaces()
	i := slices.IndexFunc(list, func(p place) bool { return p.span.Ledger == ledger })
	if i < 0 || list[i].file != noFile {
		return nil
	}
	list[i].file = main
	w.setClosed(list)
	return putBound(b, w.topic.key, placeKey(ledger), list[i].encode())
}

// partial is a topic with a ledger of which a part lies in the main file and another is
// loose, or nil.
func (s *Store) partial() *topic {
	for t := range s.loosened {
		if first := t.loose[0]; t.rec.filed.Ledger == first.ledger && t.rec.filed.Entry > 0 {
			return t
		}
	}
	return nil
}

// finishStep brings some more of the ledgers in that lie partly in the main file, so that
// it can turn over. It reports false when there are none.
func (s *Store) finishStep() (bool, error) {
	t := s.partial()
	if t == nil {
		s.turning = false
		return false, nil
	}
	if id := t.loose[0].ledger; id == t.rec.open.span.Ledger {
		if err := s.rollAway(t); err != nil {
			return true, err
		}
	}
	return true, s.fileLedger(t)
}

// fileLedger files chunks of the ledger of a topic's first.
func (s *Store) fileLedger(t *topic) error {
	s.clearFiling()
	id := t.loose[0].ledger
	f, err := s.readLoose(t, fileBytes, func(c *looseChunk) bool { return c.ledger == id })
	if err != nil {
		return err
	}
	return s.fileThese([]filing{f}, f.bytes)
}
