package edge

import (
	"cmp"
	"fmt"
	"math"
)

// Position names an entry of a topic: the ledger that holds it and its place there,
// both counted as in Pulsar's message ids. Positions of one topic rise in publish
// order and are never used twice, not after a crash nor after the topic was deleted.
type Position struct {
	Ledger int64 // ≥ 1 for stored entries
	Entry  int64 // from 0, without gaps inside a ledger; −1 stands before the first
}

// Earliest and Latest are the ids by which clients ask for either end of a topic
// (protocol: message ids −1:−1 and 2^63−1:2^63−1).
var (
	Earliest = Position{Ledger: -1, Entry: -1}
	Latest   = Position{Ledger: math.MaxInt64, Entry: math.MaxInt64}
)

// Compare orders by ledger, then by entry.
func (p Position) Compare(q Position) int {
	if c := cmp.Compare(p.Ledger, q.Ledger); c != 0 {
		return c
	}
	return cmp.Compare(p.Entry, q.Entry)
}

// Less reports whether p lies before q.
func (p Position) Less(q Position) bool { return p.Compare(q) < 0 }

// Next is the position behind p in the same ledger; it need not exist. The highest
// entry id, which clients may send, has none and is its own.
func (p Position) Next() Position {
	return Position{p.Ledger, max(p.Entry, p.Entry+1)}
}

// Before is the position in front of p in the same ledger, down to entry −1.
func (p Position) Before() Position { return Position{p.Ledger, max(p.Entry-1, -1)} }

// String is the form used by Pulsar's tools, ledger:entry.
func (p Position) String() string { return fmt.Sprintf("%d:%d", p.Ledger, p.Entry) }

// Range is every position from First to Last, both included. It may reach over
// ledgers and over positions that do not exist.
type Range struct{ First, Last Position }

// Empty reports whether the range holds no position.
func (r Range) Empty() bool { return r.Last.Less(r.First) }

// Contains reports whether p lies in the range.
func (r Range) Contains(p Position) bool { return !p.Less(r.First) && !r.Last.Less(p) }

// Max and Min return the later and the earlier of two positions.
func Max(p, q Position) Position {
	if p.Less(q) {
		return q
	}
	return p
}

func Min(p, q Position) Position {
	if q.Less(p) {
		return q
	}
	return p
}
