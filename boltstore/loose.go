package boltstore

import (
	"cmp"
	"errors"
	"iter"
	"slices"

	"wayside/boltstore/journal"
	"wayside/edge"
)

// looseChunk says where in the journal a chunk lies that is not in the files yet.
type looseChunk struct {
	ledger  int64
	first   int64
	segment uint64
	offset  int64 // of its value
	length  int32
	count   int32
}

func (c *looseChunk) last() edge.Position {
	return edge.Position{Ledger: c.ledger, Entry: c.first + int64(c.count) - 1}
}

// errSettled says that what was loose when a reader looked is in the files by now, or
// gone.
var errSettled = errors.New("chunk has left the journal")

// looseChunks are the loose ones of one ledger.
type looseChunks struct {
	chunks []looseChunk
	log    *journal.Log
	pin    *journal.Pinned
	pinned uint64
	i      int
	err    error
}

// viewLoose reads the loose chunks of a ledger. It is errSettled when one of them is not
// loose any more.
func (s *Store) viewLoose(loose []looseChunk, id int64, fn func(src chunkSource) error) error {
	from, _ := slices.BinarySearchFunc(loose, id, func(c looseChunk, id int64) int { return cmp.Compare(c.ledger, id) })
	to, _ := slices.BinarySearchFunc(loose, id+1, func(c looseChunk, id int64) int { return cmp.Compare(c.ledger, id) })
	src := &looseChunks{chunks: loose[from:to], log: s.log}
	defer src.let()
	err := fn(src)
	if src.err != nil {
		return src.err
	}
	return err
}

func (l *looseChunks) let() {
	if l.pin != nil {
		l.pin.Unpin()
		l.pin = nil
	}
}

func (l *looseChunks) seek(entry int64) {
	i, found := slices.BinarySearchFunc(l.chunks, entry, func(c looseChunk, entry int64) int { return cmp.Compare(c.first, entry) })
	if !found {
		i = max(i-1, 0)
	}
	l.i = i
}

func (l *looseChunks) next() { l.i++ }

func (l *looseChunks) at() (int64, chunkValue, bool) {
	if l.err != nil || l.i >= len(l.chunks) {
		return 0, nil, false
	}
	c := &l.chunks[l.i]
	if l.pin == nil || l.pinned != c.segment {
		l.let()
		if l.pin = l.log.Pin(c.segment); l.pin == nil {
			l.err = errSettled
			return 0, nil, false
		}
		l.pinned = c.segment
	}
	return c.first, &looseValue{pin: l.pin, offset: c.offset, length: int(c.length)}, true
}

// looseValue is a chunk's value in the journal.
type looseValue struct {
	pin    *journal.Pinned
	offset int64
	length int
	all    []byte // if it is short, once something of it was read
}

// shortValue is a value that is read as a whole.
const shortValue = 32 << 10

func (v *looseValue) size() int { return v.length }

func (v *looseValue) read(offset, n int) ([]byte, error) {
	if n < 0 || offset < 0 || offset+n > v.length {
		return nil, errDamaged
	}
	if v.all != nil {
		return v.all[offset : offset+n], nil
	}
	if v.length <= shortValue {
		all := make([]byte, v.length)
		if _, err := v.pin.ReadAt(all, v.offset); err != nil {
			return nil, err
		}
		v.all = all
		return v.all[offset : offset+n], nil
	}
	b := make([]byte, n)
	_, err := v.pin.ReadAt(b, v.offset+int64(offset))
	return b, err
}

// parts are what of a piece of a ledger lies in the files, and what is loose.
func (v *view) parts(piece edge.Range) iter.Seq[edge.Range] {
	filed, loose := piece, piece
	filed.Last = edge.Min(filed.Last, v.filed.Before())
	loose.First = edge.Max(loose.First, v.filed)
	return func(yield func(edge.Range) bool) {
		if filed.Empty() || yield(filed) {
			if !loose.Empty() {
				yield(loose)
			}
		}
	}
}

// viewPiece reads chunks of a piece that lies whole in the files, or whole in the journal.
func (l *ledger) viewPiece(v *view, i int, piece edge.Range, fn func(src chunkSource) error) error {
	if piece.First.Less(v.filed) {
		return l.store.viewLedger(l.topic, v.file(i), piece.First.Ledger, fn)
	}
	return l.store.viewLoose(v.loose, piece.First.Ledger, fn)
}

// readAll reads the whole value into memory of its size.
func (v *looseValue) readAll(b []byte) error {
	_, err := v.pin.ReadAt(b, v.offset)
	return err
}
