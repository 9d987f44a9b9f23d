package boltstore

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"wayside/edge"
)

// Cases that people met with other brokers, by the numbers that they have among ours: the
// files and their limits.

// fieldOptions are a broker's, small.
func fieldOptions(t *testing.T) Options {
	o := testOptions(t)
	o.Quota, o.VolumeBytes, o.LedgerBytes = 64<<20, 8<<20, 4<<20
	o.JournalBytes, o.JournalSegment = 4<<20, 1<<20
	return o
}

// appendAll appends so many messages at once and waits for them.
func appendAll(t *testing.T, l edge.Ledger, n, size int) {
	t.Helper()
	data := []byte(strings.Repeat("x", size))
	done := make(chan error, n)
	for range n {
		l.Append(edge.Message{Data: data, Facts: edge.Facts{Messages: 1}}, func(_ edge.Entry, err error) { done <- err })
	}
	for range n {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

// DF-03: a file never shrinks after the backlog was forwarded and deleted, and the operator
// thinks that data is stuck.
func TestFieldDF03OutagesDoNotGrowTheFiles(t *testing.T) {
	o := fieldOptions(t)
	s := mustOpen(t, o)
	l := mustLedger(t, s, "a", "c")
	var most [4]int64
	for round := range most {
		for range 24 {
			appendAll(t, l, 100, 10<<10)
			most[round] = max(most[round], s.Stats().FileBytes)
		}
		if live := s.Stats().LiveBytes; live < 24_000_000 {
			t.Errorf("%d live bytes", live)
		}
		if err := await(l.Roll); err != nil {
			t.Fatal(err)
		}
		end := l.Spans().End()
		save := func() edge.CursorState { return edge.CursorState{MarkDelete: end} }
		if err := await(func(done func(error)) { l.SaveCursor("c", save, done) }); err != nil {
			t.Fatal(err)
		}
		if err := await(func(done func(error)) { l.Trim(end.Next(), done) }); err != nil {
			t.Fatal(err)
		}
		if st := s.Stats(); st.LiveBytes != 0 {
			t.Errorf("%d bytes are live of nothing, the files take %d", st.LiveBytes, st.FileBytes)
		}
	}
	t.Logf("the files took at most %d", most)
	for _, n := range most[1:] {
		if n > most[0]+most[0]/10 {
			t.Errorf("they grow: %d", most)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if c, err := Compact(t.Context(), o.Path, false, quiet); err != nil || c.After > 2<<20 {
		t.Errorf("compacted: %+v, %v", c, err)
	}
}

// ES-03: on a machine of 32 bits the store cannot be mapped beyond about 1 GB, and the
// broker restarts for ever. This needs GOARCH=386 or arm.
func TestFieldES03AFileBeyondTheMapIsRefusedInWords(t *testing.T) {
	o := fieldOptions(t)
	o.Quota, o.FileLimit = 8<<30, 16<<30
	s := mustOpen(t, o)
	mustAppend(t, mustLedger(t, s, "a"), "one")
	if limit := s.mainLimit(); is32bit && limit > 1<<30 {
		t.Errorf("a main file may take %d bytes", limit)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if !is32bit {
		t.Skip("this machine has 64 bits")
	}
	path := mainPath(t, o.Path)
	if err := os.Truncate(path, 3<<30); err != nil {
		t.Fatal(err)
	}
	s, err := Open(o)
	if err == nil {
		t.Errorf("it was opened: %q", s.Stats().Remarks)
		s.Close() //nolint:errcheck // it should not be open
		return
	}
	t.Log(err)
	if aside, _ := filepath.Glob(filepath.Join(o.Path, "*"+asideMark+"*")); len(aside) > 0 || !strings.Contains(err.Error(), "too large") {
		t.Errorf("%v, set aside %q", err, aside)
	}
}

// ES-01: a long read in one place and a growing write in another lock each other out. Who
// reads holds what was read, and no transaction.
func TestFieldES01ReadersAndAGrowingFileDoNotMeet(t *testing.T) {
	s := mustOpen(t, fieldOptions(t))
	l := mustLedger(t, s, "a", "c")
	appendAll(t, l, 10, 10<<10)
	held, err := l.Read([]edge.Range{{First: edge.Earliest, Last: edge.Latest}}, 10, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	stop, ended := make(chan struct{}), make(chan int)
	go func() {
		reads := 0
		for next := edge.Earliest; ; reads++ {
			select {
			case <-stop:
				ended <- reads
				return
			default:
			}
			b, err := l.Read([]edge.Range{{First: next, Last: edge.Latest}}, 100, 1<<20)
			if err != nil {
				t.Error(err)
			}
			if next = edge.Earliest; len(b.Entries) > 0 {
				next = b.Entries[len(b.Entries)-1].Position.Next()
			}
			s.Stats()
		}
	}()
	was := s.Stats().FileBytes
	var longest time.Duration
	for range 40 {
		begin := time.Now()
		appendAll(t, l, 100, 10<<10)
		longest = max(longest, time.Since(begin))
	}
	close(stop)
	t.Logf("%d reads, the longest commit took %s", <-ended, longest)
	if longest > time.Second {
		t.Errorf("an append took %s", longest)
	}
	if is := s.Stats().FileBytes; is < was+30<<20 {
		t.Errorf("the files grew from %d to %d bytes only", was, is)
	}
	if len(held.Entries) != 10 || len(held.Entries[9].Data) != 10<<10 || held.Entries[9].Data[0] != 'x' {
		t.Error("what was read has changed")
	}
}
