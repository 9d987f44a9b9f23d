package boltstore

import (
	"cmp"
	"slices"

	"go.etcd.io/bbolt"

	"wayside/edge"
)

// wanted knows which entries of a topic some cursor has not acknowledged.
type wanted struct {
	states []edge.CursorState
}

// maxWanted bounds the cursors that thinning looks at; a topic with more is left alone.
const maxWanted = 256

func newWanted(states []edge.CursorState) *wanted {
	if len(states) == 0 || len(states) > maxWanted {
		return &wanted{}
	}
	return &wanted{states}
}

// dead reports whether every cursor has acknowledged all entries of a chunk. Without
// a cursor nothing is dead: somebody keeps it for a reason not known here.
func (w *wanted) dead(c *chunk) bool {
	for i := range w.states {
		if !acknowledged(&w.states[i], c.ledger, c.first, c.last()) {
			return false
		}
	}
	return len(w.states) > 0
}

// acknowledged reports whether a state covers a run of entries.
func acknowledged(s *edge.CursorState, ledger, first, last int64) bool {
	if !s.MarkDelete.Less(edge.Position{Ledger: ledger, Entry: last}) {
		return true
	}
	if s.MarkDelete.Ledger == ledger {
		first = max(first, s.MarkDelete.Entry+1)
	}
	i, _ := slices.BinarySearchFunc(s.Holes, edge.Position{Ledger: ledger, Entry: first}, func(r edge.Run, p edge.Position) int {
		return edge.Position{Ledger: r.Ledger, Entry: r.Last}.Compare(p)
	})
	return i < len(s.Holes) && s.Holes[i].Ledger == ledger && s.Holes[i].First <= first && last <= s.Holes[i].Last
}

// entries counts, at most, those of a ledger that some cursor wants.
func (w *wanted) entries(s edge.Span) (n int64) {
	if len(w.states) == 0 {
		return s.Entries()
	}
	for i := range w.states {
		n += s.Entries() - covered(&w.states[i], s)
	}
	return min(n, s.Entries())
}

// covered counts the entries of a ledger that a state has acknowledged.
func covered(c *edge.CursorState, s edge.Span) (n int64) {
	first := s.First
	switch {
	case c.MarkDelete.Ledger > s.Ledger:
		return s.Entries()
	case c.MarkDelete.Ledger == s.Ledger:
		first = max(first, min(c.MarkDelete.Entry, s.Last)+1)
	}
	n = first - s.First
	i, _ := slices.BinarySearchFunc(c.Holes, s.Ledger, func(r edge.Run, id int64) int { return cmp.Compare(r.Ledger, id) })
	for ; i < len(c.Holes) && c.Holes[i].Ledger == s.Ledger; i++ {
		n += max(0, min(c.Holes[i].Last, s.Last)-max(c.Holes[i].First, first)+1)
	}
	return n
}

// thinStep deletes dead chunks of a topic's closed ledgers in the main file, up to a
// bound. It reports false when a pass over all topics has ended.
func (s *Store) thinStep(c *compaction) (more bool, err error) {
	for range surveyTopics {
		t := s.nextOf(c)
		if t == nil {
			return false, nil
		}
		if t.rec.closed == 0 || t.rec.cursors == 0 {
			continue
		}
		found, err := s.thin(t)
		if c.gained = c.gained || found; found || err != nil {
			return true, err
		}
	}
	return true, nil
}

// thin deletes dead chunks of a topic in one transaction; when the bound is met the
// topic comes up again in the next pass.
func (s *Store) thin(t *topic) (found bool, err error) {
	places, states, err := s.topicPlaces(t)
	if err != nil {
		return false, err
	}
	live := newWanted(states)
	for _, p := range places {
		if p.file != s.main.number {
			continue
		}
		keys, err := s.deadChunks(t, p.span.Ledger, live)
		if err != nil || len(keys) == 0 {
			continue
		}
		return true, s.change(func(g *group) error {
			b, err := g.bucket(t)
			if err != nil {
				return err
			}
			led := b.Bucket(ledgerKey(p.span.Ledger))
			if led == nil {
				return nil
			}
			g.changed = true
			return deleteBuckets(led, keys)
		})
	}
	return false, nil
}

// deadChunks lists at most sweepChunks dead chunks of a ledger.
func (s *Store) deadChunks(t *topic, id int64, live *wanted) (keys [][]byte, err error) {
	err = s.viewLedger(t, s.main.number, id, func(src chunkSource) error {
		for src.seek(0); len(keys) < sweepChunks; src.next() {
			first, value, ok := src.at()
			if !ok {
				return nil
			}
			if c, err := openChunk(id, first, value); err == nil && live.dead(&c) {
				keys = append(keys, number(uint64(first)))
			}
		}
		return nil
	})
	return keys, err
}

func deleteBuckets(b *bbolt.Bucket, keys [][]byte) error {
	for _, k := range keys {
		if err := b.DeleteBucket(k); err != nil {
			return err
		}
	}
	return nil
}
