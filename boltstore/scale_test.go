package boltstore

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"wayside/edge"
)

// heap is what is reachable, bytes.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// openMany opens or creates topics, many at a time.
func openMany(t testing.TB, s *Store, n int) []edge.Ledger {
	t.Helper()
	leds := make([]edge.Ledger, n)
	errs := make([]error, n)
	var all sync.WaitGroup
	seats := make(chan struct{}, 128)
	for i := range n {
		seats <- struct{}{}
		all.Go(func() {
			leds[i], errs[i] = s.OpenLedger(crashName(fmt.Sprintf("sensors/line-%d/temperature", i)), []string{"sub"})
			<-seats
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	return leds
}

// TestManyTopics holds what ten thousand topics cost: little memory when they are only
// known, about a kilobyte each when they are open, and a start that reads one bucket.
func TestManyTopics(t *testing.T) {
	n := int64(10_000)
	if raced {
		n = 1000
	}
	o := DefaultOptions()
	o.Path = t.TempDir()
	s := mustOpen(t, o)
	leds := openMany(t, s, int(n))
	for i, l := range leds {
		l.Append(edge.Message{Facts: edge.Facts{Messages: 1}, Data: fmt.Append(nil, i)}, func(_ edge.Entry, err error) {
			if err != nil {
				t.Error(err)
			}
		})
	}
	leds = nil
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	before := heap()
	start := time.Now()
	s = mustOpen(t, o)
	took := time.Since(start)
	known := (heap() - before) / n
	leds = openMany(t, s, int(n))
	open := (heap() - before) / n
	t.Logf("%d topics: open in %v; %d bytes each known, %d open", n, took, known, open)
	records := s.Records()
	for _, r := range records {
		if r.Entries != 1 {
			t.Fatalf("record %+v", r)
		}
	}
	if len(records) != int(n) {
		t.Fatalf("%d records", len(records))
	}
	if !raced && (known > 700 || open-known > 1100) {
		t.Errorf("%d bytes per topic, %d more when it is open", known, open-known)
	}
	if took > 5*time.Second {
		t.Errorf("the store takes %v to open", took)
	}
	runtime.KeepAlive(leds)
}

// appendMany appends n entries of 128 bytes, some thousand at a time.
func appendMany(t testing.TB, l edge.Ledger, n int) {
	t.Helper()
	data := make([]byte, 128)
	var all sync.WaitGroup
	seats := make(chan struct{}, 4000)
	all.Add(n)
	for i := range n {
		seats <- struct{}{}
		m := edge.Message{Facts: edge.Facts{Producer: "p", Sequence: int64(i), Messages: 1, Publish: int64(i)}, Data: data}
		l.Append(m, func(_ edge.Entry, err error) {
			if err != nil {
				t.Error(err)
			}
			<-seats
			all.Done()
		})
	}
	all.Wait()
}

// countEntries reads all without keeping them.
func countEntries(t testing.TB, l edge.Ledger) (n int) {
	t.Helper()
	next := l.Spans().Start()
	for {
		b, err := l.Read([]edge.Range{{First: next, Last: edge.Latest}}, 500, 1<<20)
		if err != nil || len(b.Lost) > 0 {
			t.Fatalf("lost %v, %v", b.Lost, err)
		}
		if len(b.Entries) == 0 {
			return n
		}
		n += len(b.Entries)
		next = b.Entries[len(b.Entries)-1].Position.Next()
	}
}

// TestMillionEntries opens a store of a million entries: nothing is kept per entry.
func TestMillionEntries(t *testing.T) {
	n := int64(1_000_000)
	if raced {
		n = 50_000
	}
	o := DefaultOptions()
	o.Path = t.TempDir()
	s := mustOpen(t, o)
	appendMany(t, mustLedger(t, s, "a", "c"), int(n))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	before := heap()
	since := time.Now()
	lap := func() time.Duration {
		d := time.Since(since)
		since = time.Now()
		return d
	}
	s = mustOpen(t, o)
	l := mustLedger(t, s, "a")
	if e := mustAppend(t, l, "one more")[0]; e.Index != uint64(n) {
		t.Fatalf("index %d", e.Index)
	}
	opened := lap()
	kept := heap() - before
	lap()
	at, ok, err := l.Find(edge.Earliest, n/2)
	if err != nil || !ok || l.Spans().EntriesUpTo(at) != n/2+1 {
		t.Fatalf("found %v %v %v", at, ok, err)
	}
	found := lap()
	if got := countEntries(t, l); got != int(n)+1 {
		t.Fatalf("%d entries", got)
	}
	read := lap()
	if err := errors.Join(await(l.Roll), await(func(done func(error)) { l.Trim(edge.Latest, done) })); err != nil {
		t.Fatal(err)
	}
	t.Logf("open and append %v, %d bytes kept; find in the middle %v; read all %v; trim %v", opened, kept, found, read, lap())
	if kept > 8<<20 {
		t.Errorf("%d bytes are kept in memory", kept)
	}
}
