package edge

import (
	"encoding/json"
	"fmt"
	"math/bits"
	"slices"
)

// txnAcks is what open transactions have acknowledged on a subscription (protocol 2.12):
// it is neither delivered nor counted as acknowledged until they end. No message is in
// two of them. It is a pure value; the subscription's lock guards it.
type txnAcks struct {
	sets  map[TxnID]*txnAckSet
	whole Runs                  // entries that are in a transaction as a whole
	parts map[Position][]uint64 // of batches: the messages that are in none
	words int                   // of all parts
	slots map[Position]uint16   // of entries with keys, on Key_Shared
}

// txnAckSet is the part of one transaction.
type txnAckSet struct {
	whole Runs
	parts map[Position][]uint64 // of batches: the messages that are not in it
	upTo  *AckPart              // acknowledged cumulatively

	key     string // under which it is stored
	writing bool
	waiting []func(error) // for the next write
}

func (a *txnAcks) set(id TxnID) *txnAckSet {
	x := a.sets[id]
	if x == nil {
		if a.sets == nil {
			a.sets = map[TxnID]*txnAckSet{}
		}
		x = &txnAckSet{}
		a.sets[id] = x
	}
	return x
}

// full reports whether the bound is reached.
func (a *txnAcks) full() bool { return a.whole.Count()+len(a.parts)+a.words >= maxTxnAcks }

// left narrows the rest of a batch, nil for all of an entry, to what is in no
// transaction. none says that nothing of it is.
func (a *txnAcks) left(p Position, rest []uint64) (left []uint64, none bool) {
	if a == nil {
		return rest, false
	}
	if a.whole.Contains(p) {
		return nil, true
	}
	part, ok := a.parts[p]
	if !ok {
		return rest, false
	}
	left = intersect(rest, part)
	return left, len(left) == 0
}

// add takes an acknowledgement of an entry: of all of it, or of all but rest.
func (a *txnAcks) add(id TxnID, p Position, rest []uint64) {
	x := a.set(id)
	if rest = trimWords(rest); len(rest) > 0 {
		rest = intersect(x.parts[p], rest)
	}
	if len(rest) == 0 {
		delete(x.parts, p)
		x.whole.Add(p)
		a.whole.Add(p)
		a.setPart(p, nil)
		return
	}
	if x.parts == nil {
		x.parts = map[Position][]uint64{}
	}
	x.parts[p] = rest
	a.setPart(p, intersect(a.parts[p], rest))
}

// setPart keeps what is in no transaction; nil: nothing is known of the entry.
func (a *txnAcks) setPart(p Position, words []uint64) {
	a.words -= len(a.parts[p])
	if words == nil {
		delete(a.parts, p)
		return
	}
	if a.parts == nil {
		a.parts = map[Position][]uint64{}
	}
	a.parts[p] = words
	a.words += len(words)
}

// take removes what a transaction holds, nil if that is nothing.
func (a *txnAcks) take(id TxnID) *txnAckSet {
	if a == nil || a.sets[id] == nil {
		return nil
	}
	x := a.sets[id]
	delete(a.sets, id)
	for run := range x.whole.From(Position{}) {
		a.whole.RemoveRange(run.Range())
	}
	for p := range x.parts {
		a.setPart(p, a.others(p))
	}
	return x
}

// others is what the transactions that are left leave of a batch.
func (a *txnAcks) others(p Position) (words []uint64) {
	for _, x := range a.sets {
		if part, ok := x.parts[p]; ok {
			words = intersect(words, part)
			if words == nil {
				words = []uint64{}
			}
		}
	}
	return words
}

// conflict says why a transaction may not acknowledge a part: a message of it is
// acknowledged, or is in a transaction, be it the same. A client that does not say how
// large the batch is tells all that it has acknowledged of it, in whatever transaction, as
// the Go client does: of that only what is new counts.
func (a *txnAcks) conflict(c *Cursor, id TxnID, part *AckPart) error {
	p, rest := part.Position, trimWords(part.Rest)
	if c.Acked(p) || len(rest) > 0 && overlap(c.Rest(p), rest, part.Size) {
		return fmt.Errorf("%w: message %v is acknowledged already", ErrTxnConflict, p)
	}
	if a == nil {
		return nil
	}
	held, ok := a.parts[p]
	switch {
	case a.whole.Contains(p):
	case ok && len(rest) > 0 && overlap(held, rest, part.Size):
	case ok && len(rest) == 0 && (part.Size > 0 || !a.alone(id, p)):
	default:
		return nil
	}
	return fmt.Errorf("%w: message %v is in pending ack status", ErrTxnConflict, p)
}

// alone reports whether all that is held of a batch is in one transaction.
func (a *txnAcks) alone(id TxnID, p Position) bool {
	for other, x := range a.sets {
		if _, ok := x.parts[p]; ok && other != id {
			return false
		}
	}
	return true
}

// overlap reports whether two rests of a batch, the first nil for all of it, leave out
// the same message. Of a batch of unknown size, 0, that is not known.
func overlap(old, rest []uint64, size int) bool {
	if old == nil {
		return false
	}
	for i := range (size + 63) / 64 {
		out := ^word(old, i) &^ word(rest, i)
		if n := size - 64*i; n < 64 {
			out &= 1<<n - 1
		}
		if out != 0 {
			return true
		}
	}
	return false
}

func word(words []uint64, i int) uint64 {
	if i < len(words) {
		return words[i]
	}
	return 0
}

// onlyNew narrows an acknowledgement, which leaves rest, to the messages in left.
func onlyNew(rest, left []uint64) []uint64 {
	if left == nil {
		return rest
	}
	last := max(highest(rest), highest(left))
	out := make([]uint64, (last+63)/64)
	for i := range out {
		out[i] = word(rest, i) | ^word(left, i)
		if n := last - 64*i; n < 64 {
			out[i] &= 1<<n - 1
		}
	}
	return out
}

// highest is the number of messages that a rest shows there to be.
func highest(words []uint64) int {
	words = trimWords(words)
	if len(words) == 0 {
		return 0
	}
	return 64*(len(words)-1) + bits.Len64(words[len(words)-1])
}

// cumulativeConflict is conflict for an acknowledgement of everything up to a part: only
// one transaction may have one, and it only grows.
func (a *txnAcks) cumulativeConflict(c *Cursor, id TxnID, part *AckPart) error {
	p := part.Position
	if !c.MarkDelete().Less(p) {
		return fmt.Errorf("%w: position %v is acknowledged already", ErrTxnConflict, p)
	}
	if a == nil {
		return nil
	}
	for other, x := range a.sets {
		if x.upTo != nil && (other != id || !x.upTo.before(part)) {
			return fmt.Errorf("%w: position %v is within range of position %v", ErrTxnConflict, p, x.upTo.Position)
		}
	}
	return nil
}

// before reports whether a cumulative acknowledgement takes in less than another one.
func (p *AckPart) before(o *AckPart) bool {
	if p.Position != o.Position {
		return p.Position.Less(o.Position)
	}
	return len(p.Rest) > 0 && (len(o.Rest) == 0 || ones(o.Rest) < ones(p.Rest))
}

// txnAckValue is a txnAckSet as it is stored, in JSON, where later versions may add fields.
type txnAckValue struct {
	Whole [][3]int64     `json:"whole,omitempty"` // ledger, first entry, last entry
	Parts []txnPartValue `json:"parts,omitempty"`
	UpTo  *txnPartValue  `json:"upTo,omitempty"`
}

type txnPartValue struct {
	Ledger int64    `json:"l"`
	Entry  int64    `json:"e"`
	Rest   []uint64 `json:"r,omitempty"`
}

// encode never fails: the type has nothing that JSON cannot say.
func (x *txnAckSet) encode() []byte {
	var v txnAckValue
	for run := range x.whole.From(Position{}) {
		v.Whole = append(v.Whole, [3]int64{run.Ledger, run.First, run.Last})
	}
	for p, rest := range x.parts {
		v.Parts = append(v.Parts, txnPartValue{p.Ledger, p.Entry, rest})
	}
	if x.upTo != nil {
		v.UpTo = &txnPartValue{x.upTo.Position.Ledger, x.upTo.Position.Entry, x.upTo.Rest}
	}
	raw, _ := json.Marshal(v)
	return raw
}

// load takes what encode wrote.
func (a *txnAcks) load(id TxnID, key string, raw []byte) error {
	var v txnAckValue
	if err := json.Unmarshal(raw, &v); err != nil {
		return fmt.Errorf("acknowledgements of transaction %v: %w", id, err)
	}
	x := a.set(id)
	x.key = key
	for _, r := range v.Whole {
		run := Run{r[0], r[1], r[2]}
		x.whole.AddRun(run)
		a.whole.AddRun(run)
	}
	for _, p := range v.Parts {
		a.add(id, Position{p.Ledger, p.Entry}, slices.Clone(p.Rest))
	}
	if v.UpTo != nil {
		x.upTo = &AckPart{Position: Position{v.UpTo.Ledger, v.UpTo.Entry}, Rest: v.UpTo.Rest}
	}
	return nil
}
