package edge

import (
	"errors"
	"math/rand/v2"
	"testing"
)

func ackSpans(entries int64) Spans {
	return Spans{Open: Span{Ledger: 1, Last: entries - 1, Messages: entries}}
}

func TestTxnAckConflicts(t *testing.T) {
	x, y := TxnID{Least: 1}, TxnID{Least: 2}
	spans := ackSpans(20)
	c := NewCursor(CursorState{MarkDelete: spans.Start()}, spans)
	c.Ack(spans, Position{1, 0}, nil)
	c.Ack(spans, Position{1, 7}, nil)
	c.Ack(spans, Position{1, 8}, []uint64{0b1110})
	a := &txnAcks{}
	a.add(x, Position{1, 1}, nil)
	a.add(x, Position{1, 2}, []uint64{0b1110})
	a.add(y, Position{1, 3}, []uint64{0b1011})
	a.add(x, Position{1, 3}, []uint64{0b0111})
	for name, test := range map[string]struct {
		id   TxnID
		part AckPart
		ok   bool
	}{
		"acknowledged":                {x, AckPart{Position: Position{1, 0}}, false},
		"acknowledged in a hole":      {x, AckPart{Position: Position{1, 7}}, false},
		"acknowledged by a part":      {x, AckPart{Position: Position{1, 8}, Rest: []uint64{0b1110}, Size: 4}, false},
		"another part of that batch":  {x, AckPart{Position: Position{1, 8}, Rest: []uint64{0b1101}, Size: 4}, true},
		"all that is left of it":      {x, AckPart{Position: Position{1, 8}}, true},
		"free":                        {y, AckPart{Position: Position{1, 5}}, true},
		"in another transaction":      {y, AckPart{Position: Position{1, 1}}, false},
		"in the same one":             {x, AckPart{Position: Position{1, 1}}, false},
		"a part of what is in one":    {y, AckPart{Position: Position{1, 1}, Rest: []uint64{0b10}, Size: 2}, false},
		"the same message of a batch": {y, AckPart{Position: Position{1, 2}, Rest: []uint64{0b1110}, Size: 4}, false},
		"another message of it":       {y, AckPart{Position: Position{1, 2}, Rest: []uint64{0b1101}, Size: 4}, true},
		"one too many":                {y, AckPart{Position: Position{1, 2}, Rest: []uint64{0b1100}, Size: 4}, false},
		"the whole batch":             {y, AckPart{Position: Position{1, 2}, Size: 4}, false},
		"the same, size not told":     {x, AckPart{Position: Position{1, 2}, Rest: []uint64{0b1110}}, true},
		"more, size not told":         {y, AckPart{Position: Position{1, 2}, Rest: []uint64{0b1100}}, true},
		"the rest, size not told":     {x, AckPart{Position: Position{1, 2}}, true},
		"that of another one":         {y, AckPart{Position: Position{1, 2}}, false},
		"that of two":                 {x, AckPart{Position: Position{1, 3}}, false},
	} {
		if err := a.conflict(c, test.id, &test.part); (err == nil) != test.ok || err != nil && !errors.Is(err, ErrTxnConflict) {
			t.Errorf("%s: %v, want ok: %t", name, err, test.ok)
		}
	}
}

func TestTxnCumulativeConflicts(t *testing.T) {
	x, y := TxnID{Least: 1}, TxnID{Least: 2}
	spans := ackSpans(20)
	c := NewCursor(CursorState{MarkDelete: Position{1, 3}}, spans)
	a := &txnAcks{}
	a.set(x).upTo = &AckPart{Position: Position{1, 9}, Rest: []uint64{0b1100}}
	for name, test := range map[string]struct {
		id   TxnID
		part AckPart
		ok   bool
	}{
		"acknowledged":         {x, AckPart{Position: Position{1, 3}}, false},
		"less":                 {x, AckPart{Position: Position{1, 8}}, false},
		"the same":             {x, AckPart{Position: Position{1, 9}, Rest: []uint64{0b1100}}, false},
		"more of the batch":    {x, AckPart{Position: Position{1, 9}, Rest: []uint64{0b1000}}, true},
		"all of the batch":     {x, AckPart{Position: Position{1, 9}}, true},
		"more":                 {x, AckPart{Position: Position{1, 10}}, true},
		"in another one":       {y, AckPart{Position: Position{1, 10}}, false},
		"less, in another one": {y, AckPart{Position: Position{1, 5}}, false},
	} {
		if err := a.cumulativeConflict(c, test.id, &test.part); (err == nil) != test.ok {
			t.Errorf("%s: %v, want ok: %t", name, err, test.ok)
		}
	}
}

// What transactions hold, and what they leave, agrees with a map of single messages,
// whoever ends in whatever order, and after a restart.
func TestTxnAcksTwin(t *testing.T) {
	const entries, size = 12, 70
	type message struct{ entry, index int }
	spans := ackSpans(entries)
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		a, c := &txnAcks{}, NewCursor(CursorState{MarkDelete: spans.Start()}, spans)
		held, acked := map[message]TxnID{}, map[message]bool{}
		for range 80 {
			id := TxnID{Least: uint64(rnd.IntN(4))}
			p := Position{1, rnd.Int64N(entries)}
			if rnd.IntN(8) == 0 { // one ends
				set, commit := a.take(id), rnd.IntN(2) == 0
				if set != nil && commit {
					for run := range set.whole.From(Position{}) {
						for p := run.Start(); !run.End().Less(p); p = p.Next() {
							c.Ack(spans, p, nil)
						}
					}
					for p, rest := range set.parts {
						c.Ack(spans, p, rest)
					}
				}
				for m, by := range held {
					if by == id {
						delete(held, m)
						acked[m] = acked[m] || commit
					}
				}
				continue
			}
			part := AckPart{Position: p, Size: size}
			whole := rnd.IntN(3) == 0
			rest := []uint64{^uint64(0), 1<<(size-64) - 1}
			var of []message
			for i := range size {
				if whole || rnd.IntN(20) == 0 {
					of = append(of, message{int(p.Entry), i})
					rest[i/64] &^= 1 << (i % 64)
				}
			}
			if !whole {
				part.Rest = rest
			}
			free := len(of) > 0
			for _, m := range of {
				_, h := held[m]
				free = free && !h && (!acked[m] || whole && !c.Acked(p))
			}
			if err := a.conflict(c, id, &part); (err == nil) != free && len(of) > 0 {
				t.Fatalf("seed %d: %v, want free: %t", seed, err, free)
			}
			if !free {
				continue
			}
			a.add(id, p, part.Rest)
			for _, m := range of {
				held[m] = id
			}
			if rnd.IntN(10) == 0 {
				again := &txnAcks{}
				for id, x := range a.sets {
					if err := again.load(id, x.key, x.encode()); err != nil {
						t.Fatal(err)
					}
				}
				a = again
			}
			for e := range int64(entries) {
				left, none := a.left(Position{1, e}, c.Rest(Position{1, e}))
				some := false
				for i := range size {
					_, h := held[message{int(e), i}]
					want := !h && !acked[message{int(e), i}]
					got := !none && !c.Acked(Position{1, e}) && (left == nil || word(left, i/64)&(1<<(i%64)) != 0)
					some = some || want
					if got != want {
						t.Fatalf("seed %d: message %d of entry %d is left: %t, want %t", seed, i, e, got, want)
					}
				}
				if !some && !none && !c.Acked(Position{1, e}) {
					t.Fatalf("seed %d: nothing is left of entry %d, and it is not known", seed, e)
				}
			}
		}
	}
}

// The Go client tells of a batch all that it has acknowledged, in any transaction.
func TestOnlyNewMessagesOfABatchCount(t *testing.T) {
	for name, test := range map[string]struct{ rest, left, want []uint64 }{
		"nothing before":    {[]uint64{0b1101}, nil, []uint64{0b1101}},
		"one before":        {[]uint64{0b1001}, []uint64{0b1101}, []uint64{0b1011}},
		"nothing new":       {[]uint64{0b1101}, []uint64{0b1101}, []uint64{0b1111}},
		"in a second word":  {[]uint64{^uint64(0), 0b10}, []uint64{^uint64(0), 0b11}, []uint64{^uint64(0), 0b10}},
		"left is shorter":   {[]uint64{^uint64(0), 0b10}, []uint64{^uint64(1)}, []uint64{^uint64(0), 0b11}},
		"the last one left": {[]uint64{0b1000}, []uint64{0b1100}, []uint64{0b1011}},
	} {
		got := onlyNew(test.rest, test.left)
		if len(got) != len(test.want) || word(got, 0) != word(test.want, 0) || word(got, 1) != word(test.want, 1) {
			t.Errorf("%s: %b, want %b", name, got, test.want)
		}
	}
}
