package boltstore

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"wayside/edge"
)

// backedUp makes a backup of a stopped store.
func backedUp(ctx context.Context, t testing.TB, dir, target string, tell Progress) error {
	t.Helper()
	i, err := Inspect(dir)
	if err != nil {
		t.Fatal(err)
	}
	return errors.Join(i.Backup(ctx, target, 0, tell), i.Close())
}

// A backup holds all that the original does, serves beside it and is not taken for it.
func TestBackupStopped(t *testing.T) {
	for form, o := range storeForms(t) {
		stored := template(t, o)
		target := filepath.Join(t.TempDir(), "b")
		before := contents(t, o.Path)
		if err := backedUp(t.Context(), t, o.Path, target, nil); err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(before, contents(t, o.Path)) {
			t.Error("the backup has changed the original")
		}
		if sum, found := checked(t, target); sum.Damaged > 0 || sum.Entries != 123 {
			t.Errorf("%s: %+v %v", form, sum, found)
		}
		s, b := mustOpen(t, o), mustOpen(t, withPath(o, target))
		if r := b.Stats().Remarks; len(r) > 0 {
			t.Errorf("%s: %v", form, r)
		}
		if n := look(t, b, stored); n != 123 {
			t.Errorf("%s: %d entries", form, n)
		}
		for name := range stored {
			here, there := mustLedger(t, s, name), mustLedger(t, b, name)
			if here.BirthID() == there.BirthID() {
				t.Errorf("%s: %s has the same birth id", form, name)
			}
			if err := await(here.Roll); err != nil {
				t.Fatal(err)
			}
			x, y := mustAppend(t, here, "x")[0], mustAppend(t, there, "y")[0]
			if y.Position.Ledger < x.Position.Ledger+jump/2 || y.Index != x.Index {
				t.Errorf("%s: original goes on at %v, backup at %v", form, x, y)
			}
			states, err := there.Cursors()
			if err != nil || len(states) != 1 {
				t.Errorf("%s: cursors %v, %v", form, states, err)
			}
		}
	}
}

// What is refused or given up leaves nothing behind.
func TestBackupRefuses(t *testing.T) {
	o := journalOptions(t)
	template(t, o)
	dir := t.TempDir()
	full := filepath.Join(dir, "full")
	if err := errors.Join(os.Mkdir(full, 0o700), os.WriteFile(filepath.Join(full, "x"), nil, 0o600), os.Mkdir(filepath.Join(dir, "busy"+unfinishedSuffix), 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(o.Path, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	was := contents(t, dir)
	for _, target := range []string{
		"relative", full, filepath.Join(full, "x"), filepath.Join(dir, "none", "b"), filepath.Join(dir, "busy"),
		o.Path, filepath.Join(o.Path, "b"), filepath.Join(dir, "link", "b"),
	} {
		if err := backedUp(t.Context(), t, o.Path, target, nil); !errors.Is(err, ErrTarget) {
			t.Errorf("%s: %v", target, err)
		}
	}
	for part := range int64(3) {
		ctx, cancel := context.WithCancel(t.Context())
		err := backedUp(ctx, t, o.Path, filepath.Join(dir, "b"), func(done, total int64) {
			if done >= total*part/2 {
				cancel()
			}
		})
		if cancel(); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	if !maps.Equal(was, contents(t, dir)) {
		t.Error("something was left behind")
	}
	names, err := os.ReadDir(dir)
	if err != nil || len(names) != 3 {
		t.Errorf("%v is left, %v", names, err)
	}
	edit(t, mainPath(t, o.Path), func(b []byte) []byte { clear(b[:2*pageSize]); return b })
	if err := backedUp(t.Context(), t, o.Path, filepath.Join(dir, "b"), nil); !errors.Is(err, ErrSalvage) {
		t.Error(err)
	}
	empty := filepath.Join(dir, "empty")
	if err := os.Mkdir(empty, 0o700); err != nil {
		t.Fatal(err)
	}
	o = journalOptions(t)
	template(t, o)
	if err := backedUp(t.Context(), t, o.Path, empty, nil); err != nil {
		t.Error(err)
	}
}

// Volumes come along.
func TestBackupVolumes(t *testing.T) {
	o := journalOptions(t)
	o.VolumeBytes, o.GroupBytes = 1<<20, 64<<10
	s := mustOpen(t, o)
	entries := fillBytes(t, mustLedger(t, s, "a", "c"), 4<<20)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if n := len(dataFiles(t, o.Path)); n < 3 {
		t.Fatalf("%d files", n)
	}
	target := filepath.Join(t.TempDir(), "b")
	if err := backedUp(t.Context(), t, o.Path, target, nil); err != nil {
		t.Fatal(err)
	}
	got := readEntries(t, mustLedger(t, mustOpen(t, withPath(o, target)), "a"), entries[0].Position)
	if !slices.EqualFunc(got, entries, func(a, b edge.Entry) bool { return a.Position == b.Position && string(a.Data) == string(b.Data) }) {
		t.Errorf("%d of %d entries", len(got), len(entries))
	}
}
