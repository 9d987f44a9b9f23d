package edge

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// twinEntry is an entry of a topic as a list of all entries knows it.
type bufferEntry struct {
	at    Position
	facts Facts
}

// bufferTwin says the same as a txnBuffer by looking through everything.
type bufferTwin struct {
	entries []bufferEntry
	begun   map[TxnID]Position // end of the topic when the first entry came along
	aborted map[TxnID]bool
}

func (w *bufferTwin) end() Position {
	end := Position{1, -1}
	for _, e := range w.entries {
		end = e.at
	}
	return end
}

func (w *bufferTwin) last(upTo Position) (last lastEntry) {
	for _, e := range w.entries {
		if !upTo.Less(e.at) && e.facts.Marker == 0 {
			last.position = e.at
		}
	}
	return last
}

// limit is the position before the first entry of the first open transaction, or where the
// topic ended when it was about to publish.
func (w *bufferTwin) limit() Position {
	limit := w.end()
	for id, end := range w.begun {
		for _, e := range w.entries {
			if e.facts.InTxn && e.facts.Txn == id && e.facts.Marker == 0 {
				end = e.at.Before()
				break
			}
		}
		limit = Min(limit, end)
	}
	return limit
}

// The buffer and its twin agree whatever happens, and after a restart.
func TestTxnBufferTwin(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		b, w := &txnBuffer{}, &bufferTwin{begun: map[TxnID]Position{}, aborted: map[TxnID]bool{}}
		next, ledger, entry := uint64(0), int64(1), int64(-1)
		flying := map[TxnID]int{}
		place := func(f Facts) Position {
			if rnd.IntN(12) == 0 {
				ledger, entry = ledger+1+rnd.Int64N(3), -1
			}
			entry++
			p := Position{ledger, entry}
			w.entries = append(w.entries, bufferEntry{at: p, facts: f})
			return p
		}
		for range 120 {
			var ids []TxnID
			for id := range w.begun {
				ids = append(ids, id)
			}
			slices.SortFunc(ids, func(x, y TxnID) int { return int(x.Least) - int(y.Least) })
			switch op := rnd.IntN(10); {
			case op < 2: // a plain entry
				place(Facts{})
			case op < 4 || len(ids) == 0: // a transaction publishes for the first time
				id := TxnID{Most: next % 2, Least: next}
				next++
				b.coming(id, w.end(), w.last(w.end()))
				w.begun[id] = w.end()
				flying[id]++
			case op < 7: // an entry comes
				id := ids[rnd.IntN(len(ids))]
				if flying[id] == 0 || rnd.IntN(3) == 0 {
					b.coming(id, w.end(), w.last(w.end()))
					flying[id]++
				}
				flying[id]--
				last := w.last(w.end())
				b.came(id, place(Facts{InTxn: true, Txn: id}), last)
			case op == 7: // or fails
				id := ids[rnd.IntN(len(ids))]
				if flying[id] == 0 {
					continue
				}
				flying[id]--
				b.failed(id)
				some := slices.ContainsFunc(w.entries, func(e bufferEntry) bool { return e.facts.InTxn && e.facts.Txn == id })
				if flying[id] == 0 && !some {
					delete(w.begun, id)
				}
			default: // one ends
				id := ids[rnd.IntN(len(ids))]
				if flying[id] > 0 {
					continue
				}
				if rnd.IntN(2) == 0 {
					b.abort(id)
					w.aborted[id] = true
					b.marked(place(Facts{InTxn: true, Txn: id, Marker: markerAbort}))
				}
				b.end(id)
				delete(w.begun, id)
			}
			if rnd.IntN(20) == 0 { // a restart keeps what is aborted
				again := &txnBuffer{}
				if err := again.decode(b.encode()); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				b.runs, b.ids = again.runs, again.ids
			}
			w.check(t, seed, b)
		}
	}
}

func (w *bufferTwin) check(t *testing.T, seed uint64, b *txnBuffer) {
	t.Helper()
	if got, want := b.limit(w.end()), w.limit(); got != want {
		t.Fatalf("seed %d: may be read up to %v, want %v", seed, got, want)
	}
	if got, ok := b.last(); ok && got.position != w.last(w.limit()).position {
		t.Fatalf("seed %d: newest entry %v, want %v", seed, got.position, w.last(w.limit()).position)
	}
	for _, e := range w.entries {
		want := e.facts.InTxn && e.facts.Marker == 0 && w.aborted[e.facts.Txn]
		if got := b.aborted(e.at, &e.facts); got != want && e.facts.Marker == 0 {
			t.Fatalf("seed %d: entry %v is aborted: %t, want %t", seed, e.at, got, want)
		}
	}
}

// One aborted transaction after the other takes the room of one; others take one each.
func TestAbortedNeighboursAreOne(t *testing.T) {
	b := &txnBuffer{}
	at := int64(0)
	entry := func(id TxnID) {
		b.coming(id, Position{1, at - 1}, lastEntry{})
		b.came(id, Position{1, at}, lastEntry{})
		at++
	}
	for i := range uint64(2000) {
		entry(TxnID{Least: i})
		entry(TxnID{Least: i})
		b.abort(TxnID{Least: i})
		b.marked(Position{1, at})
		at++
		b.end(TxnID{Least: i})
	}
	if n := b.runs.Count() + len(b.ids); n != 1 || b.full() {
		t.Errorf("%d pieces, full: %t", n, b.full())
	}
	for i := range uint64(maxAborted) - 1 { // with a plain entry between its own
		id := TxnID{Least: 10_000 + i}
		entry(id)
		at++
		entry(id)
		b.abort(id)
		b.end(id)
	}
	if !b.full() {
		t.Errorf("%d and %d pieces, not full", b.runs.Count(), len(b.ids))
	}
	if n := len(b.encode()); n > MaxProperties/2-1024 {
		t.Errorf("%d bytes to keep", n)
	}
	b.trim(Position{1, at})
	if b.runs.Count()+len(b.ids) != 0 || b.full() {
		t.Error("what is trimmed is not forgotten")
	}
}

func TestAbortedThatIsDamagedIsRefused(t *testing.T) {
	whole := &txnBuffer{ids: map[TxnID]Range{{1, 2}: {Position{3, 4}, Position{5, 6}}}}
	whole.runs.AddRun(Run{1, 2, 3})
	text := whole.encode()
	for _, bad := range []string{"!", text[:len(text)-4], "AwAAAA==", "/////w=="} {
		if err := new(txnBuffer).decode(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	if err := new(txnBuffer).decode(text); err != nil {
		t.Error(err)
	}
}
