package edgetest

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"testing"

	"wayside/edge"
)

// fullFacts has every field set.
func fullFacts() edge.Facts {
	return edge.Facts{
		Producer: "sensor", Sequence: -5, Highest: 1 << 40, Messages: 7, Batch: true,
		Slot: 65535, Key: []byte("key"), KeyBinary: true, Tombstone: true, Encrypted: true,
		Chunk: edge.Chunk{UUID: "uuid", ID: 2, Of: 3}, Marker: 10, Txn: edge.TxnID{Most: 1 << 63, Least: 2}, InTxn: true,
		Publish: 1_700_000_000_000, Event: -1, DeliverAt: 1 << 50,
		Receive: 1_600_000_000_000, ReceiveMono: 12345, Boot: 1<<64 - 1,
		Schema: []byte{0, 1}, Tail: []byte{100, 2, 'x', 'y'},
		Origin: &edge.Origin{Position: edge.Position{Ledger: 3, Entry: 4}, Index: 5},
	}
}

func testAppend(t *testing.T, b *bench) {
	l := b.open("append")
	start := l.Spans().Open.Start()
	full := edge.Message{Facts: fullFacts(), Data: []byte("full")}
	bare := edge.Message{Facts: edge.Facts{Sequence: 1, Highest: 1, Messages: 1, Key: []byte{}}, Data: []byte{}}
	entries := b.appendAll(l, full, bare)
	entries = append(entries, b.fill(l, 0, 40)...)
	index := uint64(0)
	for i, e := range entries {
		if want := (edge.Position{Ledger: start.Ledger, Entry: int64(i)}); e.Position != want {
			t.Fatalf("entry %d at %v, want %v", i, e.Position, want)
		}
		if e.Index != index {
			t.Fatalf("entry %d has index %d, want %d", i, e.Index, index)
		}
		index += uint64(e.Facts.Messages)
	}
	for round := range 2 {
		got := b.readAll(l)
		if !reflect.DeepEqual(got, entries) {
			t.Fatalf("round %d: read\n%+v\nwant\n%+v", round, got, entries)
		}
		b.reopen()
		l = b.open("append")
	}
	if e := b.fill(l, 40, 1)[0]; e.Index != index || e.Position.Less(entries[len(entries)-1].Position) {
		t.Fatalf("after reopening at %v with index %d, want %d", e.Position, e.Index, index)
	}
}

func testBarrier(t *testing.T, b *bench) {
	l := b.open("barrier")
	var mu sync.Mutex
	var order []int
	note := func(i int) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, i)
	}
	const n = 60
	for i := range n {
		switch i % 3 {
		case 0:
			l.Append(message(i), func(_ edge.Entry, err error) { note(i) })
		case 1:
			l.Barrier(func(error) { note(i) })
		case 2:
			l.Recover(func(error) { note(i) })
		}
	}
	b.do(l.Barrier)
	for i := range n {
		if order[i] != i {
			t.Fatalf("answers came as %v", order)
		}
	}
}

func testGrants(t *testing.T, b *bench) {
	budget := edge.NewBudget(1 << 20)
	l := b.open("grants")
	send := func() {
		m := message(1)
		var err error
		m.Grant, err = budget.Take(context.Background(), edge.SharePublish, 1000)
		b.check(err)
		if err := await(func(done func(error)) { l.Append(m, func(_ edge.Entry, err error) { done(err) }) }); err != nil {
			t.Logf("refused: %v", err)
		}
		if used, _ := budget.Usage(edge.SharePublish); used != 0 {
			t.Fatalf("%d bytes still granted", used)
		}
	}
	send()
	b.h.Fail(b.store, edge.ErrStoreFull)
	send()
	send()
	b.h.Fail(b.store, nil)
	b.do(l.Close)
	send()
}

func testFailure(t *testing.T, b *bench) {
	l, other := b.open("failing"), b.open("other")
	kept := b.fill(l, 0, 3)
	cause := errors.New("cause")
	b.h.Fail(b.store, cause)
	try := func(l edge.Ledger) error {
		return await(func(done func(error)) { l.Append(message(9), func(_ edge.Entry, err error) { done(err) }) })
	}
	b.want(try(l), cause)
	b.h.Fail(b.store, nil)
	b.want(try(l), edge.ErrLedgerFailed)
	b.want(await(l.Barrier), edge.ErrLedgerFailed)
	b.check(try(other))
	b.check(await(l.Recover))
	b.check(await(l.Barrier))
	kept = append(kept, b.fill(l, 3, 2)...)
	if got := b.readAll(l); !reflect.DeepEqual(got, kept) {
		t.Fatalf("read %v, want %v", got, kept)
	}
	b.reopen()
	if got := b.readAll(b.open("failing")); !reflect.DeepEqual(got, kept) {
		t.Fatalf("after reopening %v, want %v", got, kept)
	}
}
