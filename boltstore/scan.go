package boltstore

import (
	"errors"
	"fmt"
	"math"

	"wayside/edge"
)

// scanFacts is the number of entries that one piece of a scan collects.
const scanFacts = 512

type scanned struct {
	at    edge.Position
	facts edge.Facts
}

// Scan implements edge.Ledger. It collects in pieces, so that visit may take its time.
func (l *ledger) Scan(want edge.Range, visit func(edge.Position, edge.Facts) bool) error {
	return l.scan(want, math.MinInt64, visit)
}

// Find implements edge.Ledger. Ledgers and chunks whose latest publish time lies
// before the one sought are passed over.
func (l *ledger) Find(from edge.Position, publish int64) (edge.Position, bool, error) {
	var found edge.Position
	ok := false
	err := l.scan(edge.Range{First: from, Last: edge.Latest}, publish, func(p edge.Position, f edge.Facts) bool {
		found, ok = p, f.Publish >= publish
		return !ok
	})
	return found, ok, err
}

// scan visits entries, but for those in ledgers and chunks without one as new as newest.
func (l *ledger) scan(want edge.Range, newest int64, visit func(edge.Position, edge.Facts) bool) error {
	next := want.First
	for !want.Last.Less(next) {
		piece, after, err := l.collect(edge.Range{First: next, Last: want.Last}, newest)
		if err != nil {
			return fmt.Errorf("scan %s: %w", l.topic.name, err)
		}
		for i := range piece {
			if !visit(piece[i].at, piece[i].facts) {
				return nil
			}
		}
		if after == (edge.Position{}) {
			return nil
		}
		next = after
	}
	return nil
}

// collect gathers one piece of a scan and tells where to go on; the zero position
// means the end.
func (l *ledger) collect(want edge.Range, newest int64) (piece []scanned, after edge.Position, err error) {
	v := l.view.Load()
	for i := range v.spans.Len() {
		whole, ok := v.clip(i, want)
		if !ok || v.newest(i) < newest {
			continue
		}
		for part := range v.parts(whole) {
			piece, err = l.collectLedger(v, i, part, newest)
			switch {
			case errors.Is(err, errSettled) && v != l.view.Load():
				return l.collect(want, newest) // with a view that knows
			case errors.Is(err, errDamaged), errors.Is(err, edge.ErrGone), errors.Is(err, errSettled):
				err = nil
			case errors.Is(err, errStop):
				return piece, piece[len(piece)-1].at.Next(), nil
			}
			if err != nil || len(piece) > 0 {
				return piece, part.Last.Next(), err
			}
		}
	}
	return nil, edge.Position{}, nil
}

// newest is the latest publish time in ledger i.
func (v *view) newest(i int) int64 {
	if i == len(v.where) {
		return v.open.newest
	}
	return v.where[i].newest
}

func (l *ledger) collectLedger(v *view, i int, part edge.Range, newest int64) (piece []scanned, err error) {
	var names interned
	err = l.viewPiece(v, i, part, func(src chunkSource) error {
		return eachChunk(src, part, func(c *chunk, err error, covers edge.Range) error {
			if err != nil || c.newest < newest {
				return nil
			}
			walk := c.at(covers.First.Entry)
			for walk.more() {
				f, ok := walk.read()
				if !ok || f.entry < covers.First.Entry {
					continue
				}
				if f.entry > covers.Last.Entry {
					break
				}
				e, err := c.open(f, &names)
				if err != nil {
					continue
				}
				if piece = append(piece, scanned{e.Position, e.Facts}); len(piece) >= scanFacts {
					return errStop
				}
			}
			return nil
		})
	})
	return piece, err
}
