package boltstore

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/bbolt"

	"wayside/edge"
)

// tryAppend appends one message and returns what became of it.
func tryAppend(l edge.Ledger, data string) (edge.Entry, error) {
	type outcome struct {
		e   edge.Entry
		err error
	}
	done := make(chan outcome, 1)
	l.Append(edge.Message{Facts: edge.Facts{Messages: 1}, Data: []byte(data)}, func(e edge.Entry, err error) { done <- outcome{e, err} })
	o := <-done
	return o.e, o.err
}

func await(call func(done func(error))) error {
	done := make(chan error, 1)
	call(func(err error) { done <- err })
	return <-done
}

func mustLedger(t testing.TB, s *Store, name string, cursors ...string) edge.Ledger {
	t.Helper()
	l, err := s.OpenLedger(crashName(name), cursors)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func mustAppend(t testing.TB, l edge.Ledger, data ...string) (entries []edge.Entry) {
	t.Helper()
	for _, d := range data {
		e, err := tryAppend(l, d)
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e)
	}
	return entries
}

func texts(t testing.TB, l edge.Ledger) (list []string) {
	t.Helper()
	for _, e := range readAllEntries(t, l) {
		list = append(list, string(e.Data))
	}
	return list
}

func wantTexts(t testing.TB, l edge.Ledger, want ...string) {
	t.Helper()
	got := texts(t, l)
	if len(got) != len(want) {
		t.Fatalf("stored %q, want %q", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("stored %q, want %q", got, want)
		}
	}
}

// TestFailedSync lets a commit fail in the two ways that a sync can: the pages got
// lost, or the whole transaction is in the file and only the confirmation failed.
// Either way it counts as not done, reads go on, and the store comes back by itself.
func TestFailedSync(t *testing.T) {
	for _, c := range []struct {
		name   string
		commit func(tx *bbolt.Tx) error
		cause  error
	}{
		{"nothing is in the file", func(tx *bbolt.Tx) error { return errors.Join(syscall.EIO, tx.Rollback()) }, syscall.EIO},
		{"all is in the file", func(tx *bbolt.Tx) error { return errors.Join(syscall.EIO, tx.Commit()) }, syscall.EIO},
		{"a panic on the way", func(*bbolt.Tx) error { panic("no page") }, errDamaged},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testFailedSync(t, c.commit, c.cause) })
		})
	}
}

func testFailedSync(t *testing.T, commit func(tx *bbolt.Tx) error, cause error) {
	var broken atomic.Bool
	o := testOptions(t)
	o.hooks.commit = func(tx *bbolt.Tx) error {
		if broken.Load() {
			return commit(tx)
		}
		return tx.Commit()
	}
	s := mustOpen(t, o)
	l, other := mustLedger(t, s, "a", "c"), mustLedger(t, s, "b")
	first := mustAppend(t, l, "one", "two")
	broken.Store(true)
	if _, err := tryAppend(l, "lost"); !errors.Is(err, edge.ErrStorage) || !errors.Is(err, cause) {
		t.Fatalf("append on a broken disk: %v", err)
	}
	broken.Store(false)
	if _, err := tryAppend(other, "refused"); !errors.Is(err, edge.ErrStorage) {
		t.Fatalf("append before the repair: %v", err)
	}
	if s.Stats().Failed == nil {
		t.Fatal("the store says that all is well")
	}
	wantTexts(t, l, "one", "two")
	state := func() edge.CursorState { return edge.CursorState{MarkDelete: first[0].Position} }
	l.SaveCursor("c", state, nil)

	time.Sleep(repairPause + 2*o.SaveInterval) // fake time
	if err := s.Stats().Failed; err != nil {
		t.Fatalf("not repaired: %v", err)
	}
	if c, err := l.Cursors(); err != nil || c["c"].MarkDelete != first[0].Position {
		t.Fatalf("a cursor saved while the store was broken is %v, %v", c, err)
	}
	if _, err := tryAppend(l, "behind"); !errors.Is(err, edge.ErrLedgerFailed) {
		t.Fatalf("append before Recover: %v", err)
	}
	for _, l := range []edge.Ledger{l, other} {
		if err := await(l.Recover); err != nil {
			t.Fatal(err)
		}
	}
	e := mustAppend(t, l, "three")[0]
	if e.Position != first[1].Position.Next() || e.Index != first[1].Index+1 {
		t.Fatalf("appended at %v with index %d behind %v", e.Position, e.Index, first[1].Position)
	}
	wantTexts(t, l, "one", "two", "three")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, o)
	if r := s.Stats().Remarks; len(r) > 0 {
		t.Fatalf("remarks %v", r)
	}
	wantTexts(t, mustLedger(t, s, "a"), "one", "two", "three")
	wantTexts(t, mustLedger(t, s, "b"))
}

// TestRepairTriesAgain keeps the disk broken for some repairs.
func TestRepairTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := testOptions(t)
		var fails atomic.Bool
		var tries atomic.Int64
		o.hooks.commit = func(tx *bbolt.Tx) error {
			if fails.Swap(false) {
				return errors.Join(syscall.EIO, tx.Commit())
			}
			return tx.Commit()
		}
		o.hooks.reopen = func() error {
			if tries.Add(1) < 4 {
				return syscall.EIO
			}
			return nil
		}
		s := mustOpen(t, o)
		l := mustLedger(t, s, "a")
		mustAppend(t, l, "one")
		fails.Store(true)
		if _, err := tryAppend(l, "two"); err == nil {
			t.Fatal("no error")
		}
		for want := int64(1); want < 4; want++ {
			time.Sleep(repairPause << (want - 1)) // fake time
			synctest.Wait()
			if s.Stats().Failed == nil || tries.Load() != want {
				t.Fatalf("try %d: %v", tries.Load(), s.Stats().Failed)
			}
			wantTexts(t, l, "one")
		}
		time.Sleep(repairPause << 3)
		synctest.Wait()
		if err := errors.Join(s.Stats().Failed, await(l.Recover)); err != nil {
			t.Fatal(err)
		}
		mustAppend(t, l, "two")
		wantTexts(t, l, "one", "two")
	})
}

// TestDiskFull refuses appends while the disk has no space, goes on with all else,
// and takes appends again by itself once it has.
func TestDiskFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var full atomic.Bool
		o := testOptions(t)
		o.hooks.grow = func(f *os.File, to int64) error {
			if full.Load() {
				return syscall.ENOSPC
			}
			return f.Truncate(to)
		}
		s := mustOpen(t, o)
		l := mustLedger(t, s, "a", "c")
		mustAppend(t, l, "one")
		full.Store(true)
		stored := 1
		var err error
		for ; err == nil; stored++ {
			_, err = tryAppend(l, string(make([]byte, 200<<10)))
		}
		if !errors.Is(err, edge.ErrStoreFull) {
			t.Fatalf("append on a full disk: %v", err)
		}
		stored--
		for i := range 50 {
			at := l.Spans().End()
			at.Entry -= int64(i)
			save := func() edge.CursorState { return edge.CursorState{MarkDelete: at} }
			err := errors.Join(await(func(done func(error)) { l.SaveCursor("c", save, done) }), await(l.Roll))
			if err != nil {
				t.Fatalf("cursor on a full disk: %v", err)
			}
		}
		if s.Stats().Failed != nil {
			t.Fatal("a full disk is taken for a broken one")
		}
		if n := len(readAllEntries(t, l)); n != stored {
			t.Fatalf("%d entries, %d were confirmed", n, stored)
		}
		full.Store(false)
		time.Sleep(2 * fullBackoff)
		if err := await(l.Recover); err != nil {
			t.Fatal(err)
		}
		mustAppend(t, l, "again")
		if n := len(readAllEntries(t, l)); n != stored+1 {
			t.Fatalf("%d entries, want %d", n, stored+1)
		}
	})
}

// What is written to a file that has lost its name would be confirmed and gone at the
// next start.
func TestRemovedFileConfirmsNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	o := DefaultOptions()
	o.Path = dir
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	l := mustLedger(t, s, "removed", "c")
	mustAppend(t, l, "a", "b")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := tryAppend(l, "c"); err == nil || !strings.Contains(err.Error(), "was removed") {
			t.Fatalf("an append to a removed file: %v", err)
		}
		if err := await(l.Recover); err != nil {
			t.Fatal(err)
		}
	}
	if err := await(func(done func(error)) { s.PutValue("k", []byte("v"), done) }); err == nil {
		t.Error("a value was saved in a removed file")
	}
	if got := s.Stats().Failed; got == nil || !strings.Contains(got.Error(), "was removed") {
		t.Errorf("stats say %v", got)
	}
	if got := texts(t, l); len(got) != 2 {
		t.Errorf("%q can be read", got)
	}
	if err := s.Close(); err != nil {
		t.Logf("close: %v", err)
	}
}
