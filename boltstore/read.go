package boltstore

import (
	"errors"
	"fmt"
	"slices"

	"wayside/edge"
)

// reading is one call of Read on its way through ranges, ledgers and chunks.
type reading struct {
	l          *ledger
	v          *view
	batch      edge.Batch
	maxEntries int
	maxBytes   int
	bytes      int
	looked     int // frames inspected, sound or not
	names      interned
}

// maxLooked bounds the frames that one call inspects, so that a damaged stretch does
// not make a transaction long.
const maxLooked = 20_000

// errStop ends a walk early.
var errStop = errors.New("stop")

// Read implements edge.Ledger.
func (l *ledger) Read(want []edge.Range, maxEntries, maxBytes int) (edge.Batch, error) {
	for {
		r := reading{l: l, v: l.view.Load(), maxEntries: maxEntries, maxBytes: maxBytes}
		r.batch.Entries = make([]edge.Entry, 0, expect(want, maxEntries))
		err := r.spans(want)
		if errors.Is(err, errSettled) {
			if r.v != l.view.Load() {
				continue // with a view that knows
			}
			err = edge.ErrGone // nobody tells this ledger any more
		}
		if err != nil {
			return edge.Batch{}, fmt.Errorf("read %s: %w", l.topic.name, err)
		}
		if len(r.batch.Entries) == 0 {
			r.batch.Entries = nil
		}
		return r.batch, nil
	}
}

func (r *reading) spans(want []edge.Range) error {
	for _, w := range want {
		if err := r.span(w); errors.Is(err, errStop) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}

// expect is how many entries a read may return, as far as that can be told from the
// ranges, and no more than a batch usually has.
func expect(want []edge.Range, maxEntries int) int {
	const usual = 256
	n := int64(0)
	for _, w := range want {
		if w.First.Ledger != w.Last.Ledger {
			return min(maxEntries, usual)
		}
		n += max(0, w.Last.Entry-w.First.Entry+1)
	}
	return int(min(n, int64(maxEntries), usual))
}

// full reports whether the next entry is one too many.
func (r *reading) full() bool {
	n := len(r.batch.Entries)
	return n >= r.maxEntries || n > 0 && r.bytes >= r.maxBytes || r.looked > maxLooked
}

// span reads one wanted range.
func (r *reading) span(w edge.Range) error {
	if lost := r.v.gone(w); !lost.Empty() {
		r.lose(lost)
	}
	for i := range r.v.spans.Len() {
		piece, ok := r.v.clip(i, w)
		if !ok {
			continue
		}
		for part := range r.v.parts(piece) {
			if r.full() {
				return errStop
			}
			if err := r.ledger(i, part); err != nil {
				return err
			}
		}
	}
	return nil
}

// gone is the part of a range that does not exist any more: what was trimmed, or,
// inside one closed ledger, what is not in it.
func (v *view) gone(w edge.Range) edge.Range {
	none := edge.Range{Last: edge.Earliest}
	if w.Empty() || w.First.Ledger < 1 || !w.First.Less(v.spans.Open.Start()) {
		return none
	}
	if w.First.Ledger != w.Last.Ledger {
		w.Last = edge.Min(w.Last, v.floor)
		return w
	}
	for i := range v.spans.Closed {
		if s := &v.spans.Closed[i]; s.Ledger == w.First.Ledger {
			w.First.Entry = max(w.First.Entry, s.Last+1)
		}
	}
	return w
}

// clip is the part of a range that lies in ledger i.
func (v *view) clip(i int, w edge.Range) (edge.Range, bool) {
	s := v.spans.At(i)
	piece := edge.Range{
		First: edge.Max(w.First, edge.Position{Ledger: s.Ledger, Entry: s.First}),
		Last:  edge.Min(w.Last, s.End()),
	}
	return piece, !piece.Empty()
}

// file is the number of the file that holds ledger i.
func (v *view) file(i int) uint64 {
	if i == len(v.where) {
		return v.open.file
	}
	return v.where[i].file
}

func (r *reading) lose(w edge.Range) {
	if n := len(r.batch.Lost); n > 0 && r.batch.Lost[n-1].Last.Next() == w.First {
		r.batch.Lost[n-1].Last = w.Last
		return
	}
	r.batch.Lost = append(r.batch.Lost, w)
}

// ledger reads a piece of one ledger in one transaction. Whatever of it cannot be
// read is lost.
func (r *reading) ledger(i int, piece edge.Range) error {
	next := piece.First
	err := r.l.viewPiece(r.v, i, piece, func(src chunkSource) error {
		return eachChunk(src, piece, func(c *chunk, err error, covers edge.Range) error {
			if next.Less(covers.First) {
				r.lose(edge.Range{First: next, Last: covers.First.Before()})
			}
			if err != nil {
				return nil
			}
			next = covers.First
			return r.chunk(c, &next, covers.Last)
		})
	})
	switch {
	case errors.Is(err, errStop) || err == nil && r.full():
		return errStop
	case err != nil && !errors.Is(err, errDamaged) && !errors.Is(err, edge.ErrGone):
		return err
	}
	if !piece.Last.Less(next) {
		r.lose(edge.Range{First: next, Last: piece.Last})
	}
	return nil
}

// chunk copies entries of a chunk from next to last and moves next along.
func (r *reading) chunk(c *chunk, next *edge.Position, last edge.Position) error {
	walk := c.at(next.Entry)
	for next.Entry <= last.Entry {
		if r.full() {
			return errStop
		}
		if !walk.more() {
			break
		}
		r.looked++
		f, ok := walk.read()
		if !ok {
			upTo := edge.Position{Ledger: last.Ledger, Entry: min(c.first+int64(walk.next)-1, last.Entry)}
			r.lose(edge.Range{First: *next, Last: upTo})
			*next = upTo.Next()
			continue
		}
		e, err := c.open(f, &r.names)
		*next = next.Next()
		if err != nil {
			r.lose(edge.Range{First: next.Before(), Last: next.Before()})
			continue
		}
		e.Data = slices.Clone(e.Data)
		r.batch.Entries = append(r.batch.Entries, e)
		r.bytes += len(e.Data)
	}
	return nil
}
