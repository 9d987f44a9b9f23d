package edge

import (
	"slices"

	"pgregory.net/rapid"
)

// paper is a topic's ledgers on paper: every stored position in a list, beside the
// spans that a ledger would give for it.
type paper struct {
	spans  Spans
	stored []Position
}

func newPaper(ledger int64) *paper {
	return &paper{spans: Spans{Open: Span{Ledger: ledger, Last: -1}}}
}

// paperOf has one ledger for each count, the last one open, ledger ids from 1.
func paperOf(counts ...int) *paper {
	t := newPaper(1)
	for i, n := range counts {
		if i > 0 {
			t.roll()
		}
		t.append(n)
	}
	return t
}

// append adds n entries of one message and ten bytes each.
func (t *paper) append(n int) {
	for range n {
		t.spans.Open.Last++
		t.stored = append(t.stored, t.spans.Open.End())
	}
	t.spans.Open.Messages += int64(n)
	t.spans.Open.Bytes += 10 * int64(n)
}

func (t *paper) roll() {
	old := t.spans.Open
	t.spans = Spans{
		Closed: append(slices.Clone(t.spans.Closed), old),
		Open: Span{
			Ledger: old.Ledger + 1, Last: -1,
			EntriesBefore:  old.EntriesBefore + old.Entries(),
			MessagesBefore: old.MessagesBefore + old.Messages,
			BytesBefore:    old.BytesBefore + old.Bytes,
		},
	}
}

// lose takes the closed ledger i away, which is a trim when it is the first.
func (t *paper) lose(i int) {
	gone := t.spans.Closed[i].Ledger
	t.spans.Closed = slices.Delete(slices.Clone(t.spans.Closed), i, i+1)
	t.stored = slices.DeleteFunc(slices.Clone(t.stored), func(p Position) bool { return p.Ledger == gone })
}

// behead takes the first n entries of the closed ledger i away.
func (t *paper) behead(i, n int) {
	t.spans.Closed = slices.Clone(t.spans.Closed)
	span := &t.spans.Closed[i]
	n = min(n, int(span.Entries()))
	span.First += int64(n)
	span.EntriesBefore += int64(n)
	span.MessagesBefore += int64(n)
	span.BytesBefore += 10 * int64(n)
	span.Messages -= int64(n)
	span.Bytes -= 10 * int64(n)
	t.stored = slices.DeleteFunc(slices.Clone(t.stored), func(p Position) bool {
		return p.Ledger == span.Ledger && p.Entry < span.First
	})
}

// change does something at random to the ledgers and reports whether any went away.
func (t *paper) change(r *rapid.T) (lost bool) {
	closed := len(t.spans.Closed)
	switch kind := rapid.IntRange(0, 9).Draw(r, "change"); {
	case kind < 5 || closed == 0 && kind > 6:
		t.append(rapid.IntRange(1, 8).Draw(r, "entries"))
	case kind < 7:
		t.roll()
	case kind == 7:
		t.lose(0)
		return true
	case kind == 8:
		t.lose(rapid.IntRange(0, closed-1).Draw(r, "ledger"))
		return true
	default:
		t.behead(rapid.IntRange(0, closed-1).Draw(r, "ledger"), rapid.IntRange(1, 9).Draw(r, "head"))
		return true
	}
	return false
}

// anywhere draws a position in, between, before or beyond the ledgers.
func (t *paper) anywhere(r *rapid.T) Position {
	ends := []Position{Earliest, Latest}
	if len(t.stored) > 0 && rapid.IntRange(0, 9).Draw(r, "stored") > 0 {
		return rapid.SampledFrom(t.stored).Draw(r, "position")
	}
	if rapid.IntRange(0, 9).Draw(r, "end") == 0 {
		return rapid.SampledFrom(ends).Draw(r, "position")
	}
	return Position{
		Ledger: rapid.Int64Range(0, t.spans.Open.Ledger+1).Draw(r, "ledger"),
		Entry:  rapid.Int64Range(-1, 12).Draw(r, "entry"),
	}
}
