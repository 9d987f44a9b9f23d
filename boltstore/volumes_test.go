package boltstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"wayside/edge"
)

// volumeOptions turn files over at 1 MiB.
func volumeOptions(t testing.TB) Options {
	o := testOptions(t)
	o.VolumeBytes = 1 << 20
	o.GroupBytes = 128 << 10
	o.LedgerBytes = 256 << 10
	return o
}

func dataFiles(t testing.TB, dir string) (names []string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, filePrefix+"*"+fileSuffix))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range paths {
		names = append(names, filepath.Base(p))
	}
	return names
}

// fillBytes appends about so many bytes in pieces of 10 KiB.
func fillBytes(t testing.TB, l edge.Ledger, bytes int) (entries []edge.Entry) {
	t.Helper()
	done := make(chan error, bytes/10240+1)
	n := 0
	for ; n*10240 < bytes; n++ {
		m := edge.Message{Facts: edge.Facts{Messages: 1}, Data: fmt.Appendf(nil, "%d %10230d", n, n)}
		l.Append(m, func(e edge.Entry, err error) {
			entries = append(entries, e)
			done <- err
		})
	}
	for range n {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	return entries
}

func wantEntries(t testing.TB, l edge.Ledger, want []edge.Entry) {
	t.Helper()
	got := readEntries(t, l, want[0].Position)
	if !slices.EqualFunc(got, want, func(a, b edge.Entry) bool {
		return a.Position == b.Position && a.Index == b.Index && string(a.Data) == string(b.Data)
	}) {
		t.Fatalf("read %d entries, want %d", len(got), len(want))
	}
}

// TestTurnOver fills several main files, reads over all of them, also after a
// restart, and sees them go with their last ledger.
func TestTurnOver(t *testing.T) {
	o := volumeOptions(t)
	s := mustOpen(t, o)
	l, idle := mustLedger(t, s, "a", "c"), mustLedger(t, s, "idle", "c")
	kept := mustAppend(t, idle, "idle")
	if err := await(func(done func(error)) { s.PutValue("key", make([]byte, 5000), done) }); err != nil {
		t.Fatal(err)
	}
	entries := fillBytes(t, l, 6<<20)
	if n := len(dataFiles(t, o.Path)); n < 4 {
		t.Fatalf("6 MiB lie in %d files", n)
	}
	for round := range 3 {
		wantEntries(t, l, entries)
		wantEntries(t, idle, kept)
		if st := s.Stats(); st.FileBytes > st.FileLimit || len(st.Remarks) > 0 {
			t.Fatalf("stats %+v", st)
		}
		if round == 2 {
			break
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = mustOpen(t, o)
		l, idle = mustLedger(t, s, "a"), mustLedger(t, s, "idle")
		kept = append(kept, mustAppend(t, idle, "more")...)
		entries = append(entries, fillBytes(t, l, 1<<20)...)
	}
	if err := await(func(done func(error)) { s.DeleteLedger(crashName("idle"), done) }); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(await(l.Roll), await(func(done func(error)) { l.Trim(edge.Latest, done) })); err != nil {
		t.Fatal(err)
	}
	if n := dataFiles(t, o.Path); len(n) != 1 {
		t.Fatalf("%v are left when nothing is stored", n)
	}
	if got, want := s.Stats().FileBytes, fileSize(t, o.Path); got != want {
		t.Fatalf("files take %d bytes, the stats say %d", want, got)
	}
}

func fileSize(t testing.TB, dir string) (n int64) {
	t.Helper()
	for _, name := range dataFiles(t, dir) {
		st, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		n += st.Size()
	}
	return n
}

// TestFileLimit publishes beyond the file limit: it is refused in time, the files
// stay within it, all else works, and acknowledging makes room again.
func TestFileLimit(t *testing.T) {
	for _, volume := range []int64{1 << 20, 64 << 20} {
		t.Run(fmt.Sprint("volume=", volume), func(t *testing.T) {
			o := volumeOptions(t)
			o.VolumeBytes = volume
			o.FileLimit = 8 << 20
			s := mustOpen(t, o)
			l := mustLedger(t, s, "a", "c")
			var stored []edge.Entry
			for round := range 4 {
				stored = append(stored, fillUp(t, s, l)...)
				if int64(len(stored)*fullEntry) < o.FileLimit/2 {
					t.Fatalf("round %d: full with %d entries", round, len(stored))
				}
				wantEntries(t, l, stored)
				keep := stored[len(stored)*3/4]
				at := edge.CursorState{MarkDelete: keep.Position}
				save := func(done func(error)) { l.SaveCursor("c", func() edge.CursorState { return at }, done) }
				trim := func(done func(error)) { l.Trim(keep.Position, done) }
				if err := errors.Join(await(save), await(l.Roll), await(trim), await(l.Recover)); err != nil {
					t.Fatalf("round %d: in a full store: %v", round, err)
				}
				// What is acknowledged may go before its ledger does, when space is short.
				stored = slices.DeleteFunc(stored, func(e edge.Entry) bool { return !keep.Position.Less(e.Position) })
			}
		})
	}
}

// fullEntry is the size of the entries that fill a store up.
const fullEntry = 40 << 10

// fillUp appends until the store is full.
func fillUp(t *testing.T, s *Store, l edge.Ledger) (stored []edge.Entry) {
	t.Helper()
	for {
		e, err := tryAppend(l, fmt.Sprintf("%*d", fullEntry, len(stored)))
		if errors.Is(err, edge.ErrStoreFull) {
			return stored
		}
		if err != nil {
			t.Fatal(err)
		}
		stored = append(stored, e)
		if st := s.Stats(); st.FileBytes > st.FileLimit {
			t.Fatalf("%d of %d bytes are taken", st.FileBytes, st.FileLimit)
		}
	}
}

// TestPinnedSpace keeps one entry per ledger unacknowledged in many files. The rest of
// their space has to come back.
func TestPinnedSpace(t *testing.T) {
	o := volumeOptions(t)
	o.FileLimit = 8 << 20
	o.LedgerEntries = 20
	o.hooks.pause = time.Millisecond
	s := mustOpen(t, o)
	l := mustLedger(t, s, "a", "c")
	var pinned []edge.Entry
	state := edge.CursorState{MarkDelete: l.Spans().Start()}
	for written := 0; written < 12<<20; written += 200 << 10 {
		entries := fillOrWait(t, l)
		pinned = append(pinned, entries[7])
		for _, e := range entries {
			if e.Position == entries[7].Position {
				continue
			}
			n := len(state.Holes)
			if n > 0 && state.Holes[n-1].Ledger == e.Position.Ledger && state.Holes[n-1].Last+1 == e.Position.Entry {
				state.Holes[n-1].Last++
			} else {
				state.Holes = append(state.Holes, edge.Run{Ledger: e.Position.Ledger, First: e.Position.Entry, Last: e.Position.Entry})
			}
		}
		saved := state
		saved.Holes = slices.Clone(state.Holes)
		if err := await(func(done func(error)) { l.SaveCursor("c", func() edge.CursorState { return saved }, done) }); err != nil {
			t.Fatal(err)
		}
	}
	if st := s.Stats(); st.FileBytes > st.FileLimit {
		t.Fatalf("%d of %d bytes are taken", st.FileBytes, st.FileLimit)
	}
	for _, e := range pinned {
		b, err := l.Read([]edge.Range{{First: e.Position, Last: e.Position}}, 1, 1)
		if err != nil || len(b.Entries) != 1 || string(b.Entries[0].Data) != string(e.Data) {
			t.Fatalf("entry %v: %d entries, lost %v, %v", e.Position, len(b.Entries), b.Lost, err)
		}
	}
}

// fillOrWait appends 20 entries one by one, each again until there is space.
func fillOrWait(t *testing.T, l edge.Ledger) (entries []edge.Entry) {
	t.Helper()
	retry := time.NewTicker(5 * time.Millisecond)
	defer retry.Stop()
	for try := 0; len(entries) < 20; {
		e, err := tryAppend(l, fmt.Sprintf("%10240d", len(entries)))
		if err == nil {
			entries = append(entries, e)
			continue
		}
		if try++; !errors.Is(err, edge.ErrStoreFull) || try > 2000 {
			t.Fatalf("try %d: %v", try, err)
		}
		<-retry.C
		if err := await(l.Recover); err != nil {
			t.Fatal(err)
		}
	}
	return entries
}

// TestLostVolume starts without one of its volumes: what lay in it is lost, the rest
// is served.
func TestLostVolume(t *testing.T) {
	o := volumeOptions(t)
	s := mustOpen(t, o)
	entries := fillBytes(t, mustLedger(t, s, "a", "c"), 5<<20)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	files := dataFiles(t, o.Path)
	if err := os.Remove(filepath.Join(o.Path, files[1])); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, o)
	if len(s.Stats().Remarks) != 1 {
		t.Errorf("remarks %v", s.Stats().Remarks)
	}
	stored := map[string][]edge.Entry{"a": entries}
	if found := inspect(t, s, stored); found == len(entries) || found < len(entries)/2 {
		t.Errorf("%d entries of %d are left", found, len(entries))
	}
}

// TestStaleMain loses the newest file: the one before it, a volume, serves again, and
// nothing that was used since is used again.
func TestStaleMain(t *testing.T) {
	o := volumeOptions(t)
	s := mustOpen(t, o)
	entries := fillBytes(t, mustLedger(t, s, "a", "c"), 5<<20)
	birth := s.Records()[0].BirthID
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(mainPath(t, o.Path)); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, o)
	if len(s.Stats().Remarks) == 0 || s.Records()[0].BirthID == birth {
		t.Errorf("remarks %v", s.Stats().Remarks)
	}
	if found := inspect(t, s, map[string][]edge.Entry{"a": entries}); found < len(entries)/2 {
		t.Errorf("%d entries of %d are left", found, len(entries))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s = mustOpen(t, o); len(s.Stats().Remarks) > 0 {
		t.Errorf("remarks again: %v", s.Stats().Remarks)
	}
}
