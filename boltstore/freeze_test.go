package boltstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"wayside/edge"
)

// A backup of a store that is written to is what stood at one moment: of entries that
// went to three topics in turn, those up to one of them, and no cursor is ahead.
func TestBackupRunning(t *testing.T) {
	forms := storeForms(t)
	for form, o := range forms {
		o.GroupBytes, o.LedgerBytes = 64<<10, 128<<10
		o.hooks.small = 64 << 10
		s := mustOpen(t, o)
		names := []string{"a", "b", "c"}
		var ledgers []edge.Ledger
		for _, name := range names {
			ledgers = append(ledgers, mustLedger(t, s, name, "sub"))
		}
		stop, started := make(chan struct{}), make(chan struct{})
		var writing sync.WaitGroup
		confirmed := 0
		writing.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					confirmed = n
					return
				default:
				}
				l := ledgers[n%3]
				e := mustAppend(t, l, fmt.Sprintf("%d %*d", n, 1500+n%7*100, n))[0]
				if n%30 < 3 {
					l.SaveCursor("sub", func() edge.CursorState { return edge.CursorState{MarkDelete: e.Position} }, nil)
				}
				if n == 600 {
					close(started)
				}
			}
		})
		<-started
		before := len(dataFiles(t, o.Path))
		dir := t.TempDir()
		for round := range 3 {
			target := filepath.Join(dir, fmt.Sprint(round))
			if err := s.Backup(t.Context(), target, 0, nil); err != nil {
				t.Fatalf("%s: %v", form, err)
			}
		}
		close(stop)
		writing.Wait()
		last := 0
		for round := range 3 {
			n := verifyMoment(t, withPath(o, filepath.Join(dir, fmt.Sprint(round))), names)
			if n < max(600, last) || n > confirmed {
				t.Errorf("%s: backup of %d entries, %d before it, %d were written", form, n, last, confirmed)
			}
			last = n
		}
		if len(dataFiles(t, o.Path)) == before && form == "all in files" {
			t.Errorf("%s: the main file did not turn over", form)
		}
		left, err := os.ReadDir(o.Path)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range left {
			if strings.HasSuffix(e.Name(), tempSuffix) {
				t.Errorf("%s is left", e.Name())
			}
		}
	}
}

// verifyMoment opens a backup and returns how many entries in turn it has.
func verifyMoment(t *testing.T, o Options, names []string) (total int) {
	t.Helper()
	if sum, found := checked(t, o.Path); sum.Damaged > 0 {
		t.Errorf("%+v %v", sum, found)
	}
	s := mustOpen(t, o)
	if r := s.Stats().Remarks; len(r) > 0 {
		t.Error(r)
	}
	var counts []int
	for k, name := range names {
		l := mustLedger(t, s, name)
		all := readAllEntries(t, l)
		for i, e := range all {
			if want := fmt.Sprintf("%d ", i*3+k); !strings.HasPrefix(string(e.Data), want) {
				t.Fatalf("%s: entry %d is %.20q", name, i, e.Data)
			}
		}
		states, err := l.Cursors()
		if err != nil || len(states) != 1 {
			t.Fatal(states, err)
		}
		if end := all[len(all)-1].Position; end.Less(states["sub"].MarkDelete) {
			t.Errorf("%s: cursor at %v, last entry %v", name, states["sub"].MarkDelete, end)
		}
		counts = append(counts, len(all))
		total += len(all)
	}
	for k := range counts {
		if want := (total + 2 - k) / 3; counts[k] != want {
			t.Errorf("%v is no one moment", counts)
		}
	}
	return total
}

// One at a time; what ends early leaves nothing, and lets the store close.
func TestBackupRunningGivenUp(t *testing.T) {
	o := journalOptions(t)
	s := mustOpen(t, o)
	mustAppend(t, mustLedger(t, s, "a", "c"), numbered(0, 100)...)
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, end := range []func(){cancel, func() { go s.Close() }} {
		under := make(chan struct{})
		tell := sync.OnceFunc(func() { close(under) })
		done := make(chan error, 1)
		go func() {
			done <- s.Backup(ctx, filepath.Join(dir, "b"), 1, func(int64, int64) { tell() })
		}()
		<-under
		if err := s.Backup(t.Context(), filepath.Join(dir, "c"), 0, nil); !errors.Is(err, ErrBackupBusy) {
			t.Error(err)
		}
		end()
		if err := <-done; !errors.Is(err, context.Canceled) && !errors.Is(err, edge.ErrClosing) {
			t.Error(err)
		}
		ctx = t.Context()
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
		t.Errorf("%v is left, %v", names, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// The journal is not held longer than it can be: appends go on.
func TestBackupHoldsJournalInBounds(t *testing.T) {
	o := journalOptions(t)
	s := mustOpen(t, o)
	l := mustLedger(t, s, "a", "c")
	mustAppend(t, l, numbered(0, 50)...)
	b, err := newBackup(t.Context(), o.Path, filepath.Join(t.TempDir(), "b"), 0, nil)
	if err == nil {
		err = s.freeze(b)
	}
	if err != nil {
		t.Fatal(err)
	}
	failed := false
	for range 2000 {
		mustAppend(t, l, strings.Repeat("x", 1000))
		if _, err := s.hurryJournal(); err != nil {
			failed = true
			break
		}
	}
	if !failed {
		t.Error("the journal grows without an end")
	}
	if err := b.letAll(); err != nil {
		t.Fatal(err)
	}
	for range 300 {
		mustAppend(t, l, strings.Repeat("x", 1000))
	}
	if _, err := s.hurryJournal(); err != nil {
		t.Error(err)
	}
}
