package boltstore

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wayside/edge"
)

// contents are the bytes and the modes of all files of a directory.
func contents(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(filepath.Join(dir, name))
		info, _ := e.Info()
		all[name] = info.Mode().String() + info.ModTime().String() + string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// checked checks a directory, which has to stay as it is.
func checked(t testing.TB, dir string) (Checked, []Finding) {
	t.Helper()
	before := contents(t, dir)
	i, err := Inspect(dir)
	if err != nil {
		t.Fatal(err)
	}
	var found []Finding
	sum, err := i.Check(func(f Finding) { found = append(found, f) })
	if err := errors.Join(err, i.Close()); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(before, contents(t, dir)) {
		t.Fatal("checking has changed the directory")
	}
	return sum, found
}

// storeForms are directories of a stopped store by what they lack.
func storeForms(t testing.TB) map[string]Options {
	small := journalOptions(t)
	small.VolumeBytes = 1 << 20
	return map[string]Options{"all in files": testOptions(t), "journal": journalOptions(t), "small": small}
}

func TestSoundDirectories(t *testing.T) {
	for form, o := range storeForms(t) {
		stored := template(t, o)
		sum, found := checked(t, o.Path)
		if sum.Damaged != 0 || len(found) > 0 || sum.Topics != 3 || sum.Entries != 123 {
			t.Errorf("%s: %+v %v", form, sum, found)
		}
		i, err := Inspect(o.Path)
		if err != nil {
			t.Fatal(err)
		}
		got := i.Summary()
		if err := i.Close(); err != nil {
			t.Fatal(err)
		}
		s := mustOpen(t, o)
		if st := s.Stats(); got.Entries != 123 || got.LiveBytes != st.LiveBytes || got.Format != formatNumber || len(got.Findings) > 0 {
			t.Errorf("%s: %+v, the store says %+v", form, got, st)
		}
		for n, r := range s.Records() {
			if got.Topics[n] != r {
				t.Errorf("%s: %+v, the store says %+v", form, got.Topics[n], r)
			}
		}
		if n := look(t, s, stored); n != 123 {
			t.Errorf("%d entries", n)
		}
	}
}

// What was killed has most of it in the journal alone.
func TestInspectKilled(t *testing.T) {
	o := journalOptions(t)
	s := mustOpen(t, o)
	l := mustLedger(t, s, "a", "c")
	at := mustAppend(t, l, numbered(0, 20)...)
	if err := await(l.Roll); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, numbered(20, 30)...)
	if err := await(func(done func(error)) {
		l.SaveCursor("c", func() edge.CursorState { return edge.CursorState{MarkDelete: at[9].Position} }, done)
	}); err != nil {
		t.Fatal(err)
	}
	dir := copyDir(t, o.Path)
	sum, found := checked(t, dir)
	if sum.Damaged != 0 || sum.Entries != 30 {
		t.Errorf("%+v %v", sum, found)
	}
	i, err := Inspect(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	if got, st := i.Summary(), s.Stats(); got.LiveBytes != st.LiveBytes || got.Topics[0] != s.Records()[0] {
		t.Errorf("%+v, the store says %+v", got, s.Records()[0])
	}
	if _, err := Inspect(o.Path); !errors.Is(err, ErrLocked) {
		t.Errorf("a directory in use: %v", err)
	}
	if _, err := Open(Options(withPath(o, dir))); !errors.Is(err, ErrLocked) {
		t.Errorf("open beside an inspection: %v", err)
	}
}

func withPath(o Options, dir string) Options {
	o.Path = dir
	return o
}

func TestInspectNothing(t *testing.T) {
	if _, err := Inspect(t.TempDir()); !errors.Is(err, ErrNoStore) {
		t.Error(err)
	}
	if _, err := Inspect(filepath.Join(t.TempDir(), "x")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// One rotten entry is named, and nothing else.
func TestCheckNamesEntries(t *testing.T) {
	for form, o := range storeForms(t) {
		template(t, o)
		hit := false
		paths, _ := filepath.Glob(filepath.Join(o.Path, "*"))
		for _, path := range paths {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			at := bytes.Index(b, []byte("b 7 "))
			if at < 0 || bytes.Contains(b, []byte("waysegmt")) {
				continue
			}
			hit = true
			edit(t, path, func(b []byte) []byte { b[at] ^= 1; return b })
		}
		if !hit {
			continue // it lies in the journal, whose frames TestCheckMissesNothing hits
		}
		sum, found := checked(t, o.Path)
		if sum.Damaged != 1 || !strings.Contains(found[0].String(), "/b, ledger ") || !strings.Contains(found[0].String(), "entries 7 to 7") || sum.Entries != 122 {
			t.Errorf("%s: %+v %v", form, sum, found)
		}
	}
}

// Where a check finds nothing a start finds nothing either, and every entry is there;
// what it finds is worth a word.
func TestCheckMissesNothing(t *testing.T) {
	rounds := often(60)
	if testing.Short() {
		rounds = min(rounds, 15)
	}
	random := rand.New(rand.NewPCG(7, 7))
	for form, o := range storeForms(t) {
		stored := template(t, o)
		found := 0
		for round := range rounds {
			dir := copyDir(t, o.Path)
			paths, _ := filepath.Glob(filepath.Join(dir, "*"))
			path := paths[random.IntN(len(paths))]
			what := fmt.Sprintf("%s, round %d: %s", form, round, filepath.Base(path))
			edit(t, path, func(b []byte) []byte {
				for range 1 + random.IntN(3) {
					if len(b) > 0 {
						at := random.IntN(min(len(b), 300<<10))
						copy(b[at:], make([]byte, 512))
					}
				}
				return b
			})
			sum, list := checked(t, dir)
			s, err := Open(withPath(o, dir))
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			remarks := s.Stats().Remarks
			there := look(t, s, stored)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if sum.Damaged == 0 && (len(remarks) > 0 || there != 123) {
				t.Fatalf("%s: found nothing, a start says %v and has %d entries", what, remarks, there)
			}
			if sum.Damaged > 0 {
				found++
			}
			mends := false
			for _, f := range list {
				mends = mends || f.Mends
			}
			if len(remarks) > 0 && !mends {
				t.Fatalf("%s: found %v, a start says %v", what, list, remarks)
			}
		}
		if found == 0 {
			t.Errorf("%s: no damage was ever met", form)
		}
	}
}
