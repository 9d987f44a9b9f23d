package edge

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"sort"
)

// txnBuffer is what a topic knows of the transactions that publish on it: up to where it
// may be read, and which of its entries were aborted. It is a pure value.
//
// What is aborted is remembered as a run of positions where the transaction's entries lie
// together, the marker behind them included, so that one aborted transaction after the
// other is one run; or else by the transaction's id.
type txnBuffer struct {
	open   map[TxnID]*openTxn
	lowest *openTxn // of the open ones, whose entries come first
	runs   Runs
	ids    map[TxnID]Range // first to last entry
}

// openTxn is a transaction that has published, or is about to.
type openTxn struct {
	after    Position  // it lets everything up to here be read
	before   lastEntry // the newest entry of a user up to there
	entries  Range     // its first and last entry; ledger 0: none yet
	together bool      // nothing lies between these two but its own
	flying   int       // handed to the ledger and not answered
}

// full reports whether one transaction more would be too many.
func (b *txnBuffer) full() bool { return len(b.open)+len(b.ids)+b.runs.Count() >= maxAborted }

// coming notes that an entry of a transaction was handed to the ledger, which ends at end
// so far, with its newest user's entry.
func (b *txnBuffer) coming(id TxnID, end Position, last lastEntry) {
	x := b.open[id]
	if x == nil {
		if b.open == nil {
			b.open = map[TxnID]*openTxn{}
		}
		x = &openTxn{after: end, before: last}
		b.open[id] = x
		if b.lowest == nil { // else it has begun earlier
			b.lowest = x
		}
	}
	x.flying++
}

// came notes that an entry is stored at p, behind the user's entry last.
func (b *txnBuffer) came(id TxnID, p Position, last lastEntry) {
	x := b.open[id]
	if x == nil {
		return
	}
	x.flying--
	x.add(p, last)
	b.find()
}

func (x *openTxn) add(p Position, last lastEntry) {
	if x.entries.Last.Ledger == 0 {
		x.after, x.before, x.entries.First, x.together = p.Before(), last, p, true
	} else if x.entries.Last.Next() != p {
		x.together = false
	}
	x.entries.Last = p
}

// failed notes that an entry was not stored.
func (b *txnBuffer) failed(id TxnID) {
	x := b.open[id]
	if x == nil {
		return
	}
	x.flying--
	if x.flying == 0 && x.entries.Last.Ledger == 0 {
		b.end(id)
	}
}

// end lets go what a transaction held back.
func (b *txnBuffer) end(id TxnID) {
	delete(b.open, id)
	b.find()
}

func (b *txnBuffer) find() {
	b.lowest = nil
	for _, x := range b.open {
		if b.lowest == nil || x.after.Less(b.lowest.after) {
			b.lowest = x
		}
	}
}

// limit is the last position that may be read of a topic that ends at end.
func (b *txnBuffer) limit(end Position) Position {
	if b.lowest == nil {
		return end
	}
	return Min(end, b.lowest.after)
}

// last is the newest user's entry that may be read, false if nothing is held back.
func (b *txnBuffer) last() (lastEntry, bool) {
	if b.lowest == nil {
		return lastEntry{}, false
	}
	return b.lowest.before, true
}

// abort notes that the entries of a transaction are never to be read. It stays open.
func (b *txnBuffer) abort(id TxnID) {
	x := b.open[id]
	switch {
	case x == nil || x.entries.Last.Ledger == 0:
	case x.together:
		b.runs.AddRun(Run{x.entries.First.Ledger, x.entries.First.Entry, x.entries.Last.Entry})
	default:
		if b.ids == nil {
			b.ids = map[TxnID]Range{}
		}
		b.ids[id] = x.entries
	}
}

// marked notes the place of the marker behind an aborted transaction.
func (b *txnBuffer) marked(p Position) {
	if b.runs.Contains(p.Before()) {
		b.runs.Add(p)
	}
}

// aborted reports whether an entry is never to be read.
func (b *txnBuffer) aborted(p Position, f *Facts) bool {
	if b.runs.Contains(p) {
		return true
	}
	_, ok := b.ids[f.Txn]
	return ok && f.InTxn
}

// wrong returns a position that is taken for a newest entry's, the topic's or one in front
// of an open transaction, and may be aborted; none that was seen.
func (b *txnBuffer) wrong(last Position, seen map[Position]bool) (Position, bool) {
	if !seen[last] && b.mayBeAborted(last) {
		return last, true
	}
	for _, x := range b.open {
		if p := x.before.position; !seen[p] && b.mayBeAborted(p) {
			return p, true
		}
	}
	return Position{}, false
}

func (b *txnBuffer) mayBeAborted(p Position) bool {
	if b.runs.Contains(p) {
		return true
	}
	for _, r := range b.ids {
		if r.Contains(p) {
			return true
		}
	}
	return false
}

// trim forgets what lies before the topic's start.
func (b *txnBuffer) trim(start Position) {
	b.runs.RemoveUpTo(start)
	for id, r := range b.ids {
		if !start.Less(r.Last) {
			delete(b.ids, id)
		}
	}
}

// encode writes what is aborted, as text.
func (b *txnBuffer) encode() string {
	runs := b.runs.All()
	v := binary.AppendUvarint(nil, uint64(len(runs)))
	var last Position
	for _, r := range runs {
		v = appendStep(v, last, r.Start())
		v = binary.AppendUvarint(v, uint64(r.Len()))
		last = r.End()
	}
	ids := make([]TxnID, 0, len(b.ids))
	for id := range b.ids {
		ids = append(ids, id)
	}
	sort.Slice(ids, func(i, j int) bool { return b.ids[ids[i]].First.Less(b.ids[ids[j]].First) })
	last = Position{}
	for _, id := range ids {
		v = binary.AppendUvarint(v, id.Most)
		v = binary.AppendUvarint(v, id.Least)
		v = appendStep(v, last, b.ids[id].First)
		v = appendStep(v, b.ids[id].First, b.ids[id].Last)
		last = b.ids[id].First
	}
	return base64.StdEncoding.EncodeToString(v)
}

// appendStep writes a position by what it is behind another one.
func appendStep(v []byte, from, to Position) []byte {
	v = binary.AppendVarint(v, to.Ledger-from.Ledger)
	if to.Ledger == from.Ledger {
		return binary.AppendVarint(v, to.Entry-from.Entry)
	}
	return binary.AppendVarint(v, to.Entry)
}

var errAborted = errors.New("aborted transactions cannot be read")

// decode reads what encode wrote.
func (b *txnBuffer) decode(text string) error {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return errAborted
	}
	r := stepReader{b: raw}
	var last Position
	for n := r.uvarint(); n > 0 && !r.bad; n-- {
		first := r.step(last)
		length := int64(r.uvarint())
		last = Position{first.Ledger, first.Entry + length - 1}
		if length <= 0 || last.Entry < first.Entry {
			return errAborted
		}
		b.runs.AddRun(Run{first.Ledger, first.Entry, last.Entry})
	}
	last = Position{}
	for len(r.b) > 0 && !r.bad {
		id := TxnID{r.uvarint(), r.uvarint()}
		first := r.step(last)
		if b.ids == nil {
			b.ids = map[TxnID]Range{}
		}
		b.ids[id] = Range{first, r.step(first)}
		last = first
	}
	if r.bad {
		return errAborted
	}
	return nil
}

// stepReader reads what appendStep wrote.
type stepReader struct {
	b   []byte
	bad bool
}

func (r *stepReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	r.b = r.b[max(n, 0):]
	r.bad = r.bad || n <= 0
	return v
}

func (r *stepReader) varint() int64 {
	v, n := binary.Varint(r.b)
	r.b = r.b[max(n, 0):]
	r.bad = r.bad || n <= 0
	return v
}

func (r *stepReader) step(from Position) Position {
	ledger, entry := from.Ledger+r.varint(), r.varint()
	if ledger == from.Ledger {
		entry += from.Entry
	}
	return Position{ledger, entry}
}
