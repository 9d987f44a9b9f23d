package boltstore

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"strings"
	"testing"

	"wayside/edge"
)

var quiet = slog.New(slog.DiscardHandler)

// wasteful makes a directory whose files hold two topics in equal parts, and deletes one.
// The other has acknowledged all but every tenth of its entries, ten in a row.
func wasteful(t testing.TB, o Options, bytes int) (kept []edge.Entry, wanted map[edge.Position]bool) {
	t.Helper()
	o.GroupBytes = 64 << 10
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	a, b := mustLedger(t, s, "a", "c"), mustLedger(t, s, "b", "c")
	for range 8 {
		kept = append(kept, fillBytes(t, a, bytes/8)...)
		fillBytes(t, b, bytes/8)
	}
	wanted = map[edge.Position]bool{}
	state := edge.CursorState{MarkDelete: kept[0].Position.Before()}
	for n, e := range kept {
		if wanted[e.Position] = n%100 < 10; wanted[e.Position] {
			continue
		}
		if k := len(state.Holes) - 1; k >= 0 && state.Holes[k].Ledger == e.Position.Ledger && state.Holes[k].Last+1 == e.Position.Entry {
			state.Holes[k].Last++
			continue
		}
		state.Holes = append(state.Holes, edge.Run{Ledger: e.Position.Ledger, First: e.Position.Entry, Last: e.Position.Entry})
	}
	if err := await(func(done func(error)) { a.SaveCursor("c", func() edge.CursorState { return state }, done) }); err != nil {
		t.Fatal(err)
	}
	if err := await(func(done func(error)) { s.DeleteLedger(crashName("b"), done) }); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return kept, wanted
}

// verifyKept reads a topic: each entry that is there is what was stored, each that is
// wanted is there.
func verifyKept(t testing.TB, s *Store, kept []edge.Entry, wanted map[edge.Position]bool) (there int) {
	t.Helper()
	l := mustLedger(t, s, "a")
	got := map[edge.Position]edge.Entry{}
	for next := kept[0].Position; ; {
		b, err := l.Read([]edge.Range{{First: next, Last: edge.Latest}}, 100, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range b.Entries {
			got[e.Position] = e
			next = edge.Max(next, e.Position.Next())
		}
		for _, r := range b.Lost {
			next = edge.Max(next, r.Last.Next())
		}
		if len(b.Entries)+len(b.Lost) == 0 {
			break
		}
	}
	for _, e := range kept {
		g, ok := got[e.Position]
		if ok && (string(g.Data) != string(e.Data) || g.Index != e.Index) {
			t.Fatalf("%v is another", e.Position)
		}
		if !ok && wanted[e.Position] {
			t.Fatalf("%v is gone", e.Position)
		}
	}
	return len(got)
}

func TestCompactStopped(t *testing.T) {
	for form, o := range storeForms(t) {
		for _, keep := range []bool{false, true} {
			o := withPath(o, t.TempDir())
			kept, wanted := wasteful(t, o, 6<<20)
			c, err := Compact(t.Context(), o.Path, keep, quiet)
			if err != nil {
				t.Fatal(err)
			}
			room := int64(7 << 18) // a tenth of 6 MiB in chunks that hold others too
			if keep {
				room = 8 << 20
			}
			if c.After > room || c.Before < 8<<20 || c.After != fileSize(t, o.Path) {
				t.Errorf("%s, keep %v: %+v, files take %d", form, keep, c, fileSize(t, o.Path))
			}
			if sum, found := checked(t, o.Path); sum.Damaged > 0 {
				t.Errorf("%s: %+v %v", form, sum, found)
			}
			s := mustOpen(t, o)
			if n := verifyKept(t, s, kept, wanted); keep && n != len(kept) {
				t.Errorf("%d of %d entries", n, len(kept))
			}
			if r := s.Stats().Remarks; len(r) > 0 {
				t.Error(r)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			again, err := Compact(t.Context(), o.Path, keep, quiet)
			if err != nil || again.After > c.After+64<<10 {
				t.Errorf("again: %+v, %v", again, err)
			}
		}
	}
}

// A ledger that is moved while the main file turns over is whole.
func TestMoveOverTurn(t *testing.T) {
	o := journalOptions(t)
	o.LedgerBytes = 8 << 20
	kept, wanted := wasteful(t, o, 12<<20)
	o.JournalBytes, o.VolumeBytes = 0, 2<<20
	s, err := prepare(o)
	if err != nil {
		t.Fatal(err)
	}
	s.keepAcked = true
	before := s.main.number
	err = s.squeeze(t.Context())
	turns := s.main.number - before
	if err := errors.Join(err, s.closeFiles()); err != nil {
		t.Fatal(err)
	}
	if turns < 3 {
		t.Fatalf("the main file turned over %d times", turns)
	}
	if n := verifyKept(t, mustOpen(t, o), kept, wanted); n != len(kept) {
		t.Fatalf("%d of %d entries", n, len(kept))
	}
}

// counted is a context that ends when it has been asked so often.
type counted struct {
	context.Context
	left int
}

func (c *counted) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// Wherever it is stopped, nothing is lost, and the rest can be done later.
func TestCompactInParts(t *testing.T) {
	o := journalOptions(t)
	o.VolumeBytes = 1 << 20
	kept, wanted := wasteful(t, o, 4<<20)
	stops := 0
	for left := 0; ; left += 2 {
		_, err := Compact(&counted{t.Context(), left}, o.Path, true, quiet)
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		s := mustOpen(t, o)
		if n := verifyKept(t, s, kept, wanted); n != len(kept) {
			t.Fatalf("%d of %d entries", n, len(kept))
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err == nil {
			break
		}
		stops++
	}
	if stops < 3 {
		t.Errorf("stopped %d times", stops)
	}
}

// What is in use or damaged is left as it is.
func TestCompactRefuses(t *testing.T) {
	o := journalOptions(t)
	template(t, o)
	s := mustOpen(t, o)
	if _, err := Compact(t.Context(), o.Path, false, quiet); !errors.Is(err, ErrLocked) {
		t.Error(err)
	}
	if _, err := Salvage(o.Path, quiet); !errors.Is(err, ErrLocked) {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	edit(t, mainPath(t, o.Path), func(b []byte) []byte { clear(b[:2*pageSize]); return b })
	before := contents(t, o.Path)
	if _, err := Compact(t.Context(), o.Path, false, quiet); !errors.Is(err, ErrSalvage) {
		t.Error(err)
	}
	if !maps.Equal(before, contents(t, o.Path)) {
		t.Error("refusing has changed the directory")
	}
}

func TestSalvageStopped(t *testing.T) {
	o := journalOptions(t)
	stored := template(t, o)
	before := contents(t, o.Path)
	if out, err := Salvage(o.Path, quiet); err != nil || len(out.Remarks)+len(out.Left) > 0 || out.Checked.Entries != 123 {
		t.Errorf("%+v, %v", out, err)
	}
	if !maps.Equal(before, contents(t, o.Path)) {
		t.Error("a sound directory was changed")
	}
	// Both states lose the root, the topics' pages stay.
	edit(t, mainPath(t, o.Path), func(b []byte) []byte {
		m, err := readMetas(strings.NewReader(string(b)))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range m {
			b[int64(m.root)*pageSize+pageHeader+8] = 0xff
		}
		return b
	})
	out, err := Salvage(o.Path, quiet)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(out.Remarks, "\n")
	for _, want := range []string{"cannot be served", "is set aside as wayside-", "copied beside"} {
		if !strings.Contains(text, want) {
			t.Errorf("remarks lack %q: %s", want, text)
		}
	}
	if sum, found := checked(t, o.Path); sum.Damaged != len(out.Left) {
		t.Errorf("%+v %v, told %v", sum, found, out.Left)
	}
	s := mustOpen(t, o)
	if r := s.Stats().Remarks; len(r) > 0 {
		t.Error(r)
	}
	inspect(t, s, stored)
	names, err := os.ReadDir(o.Path)
	if err != nil {
		t.Fatal(err)
	}
	copies := 0
	for _, e := range names {
		if strings.Contains(e.Name(), ".seg"+asideMark) {
			copies++
		}
	}
	if copies == 0 {
		t.Error("no copy of the journal stays")
	}
}
