package boltstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"wayside/edge"
)

// template makes a directory with three topics of some entries, a cursor each and a
// value, and returns what was confirmed by topic.
func template(t testing.TB, o Options) map[string][]edge.Entry {
	t.Helper()
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	stored := map[string][]edge.Entry{}
	for _, name := range []string{"a", "b", "c"} {
		l := mustLedger(t, s, name, "sub")
		for i := range 40 {
			stored[name] = append(stored[name], mustAppend(t, l, fmt.Sprintf("%s %d %*s", name, i, i*97%3000, ""))...)
		}
		if err := await(l.Roll); err != nil {
			t.Fatal(err)
		}
		stored[name] = append(stored[name], mustAppend(t, l, name+" last")...)
	}
	if err := await(func(done func(error)) { s.PutValue("key", []byte("value"), done) }); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return stored
}

// copyDir copies a store's directory for one damage.
func copyDir(t testing.TB, from string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	list, err := os.ReadDir(from)
	for _, e := range list {
		b, rerr := os.ReadFile(filepath.Join(from, e.Name()))
		if errors.Is(rerr, os.ErrNotExist) {
			continue // an open store makes segments under another name
		}
		err = errors.Join(err, rerr, os.WriteFile(filepath.Join(dir, e.Name()), b, 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// mainPath is the newest data file of a directory.
func mainPath(t testing.TB, dir string) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, filePrefix+"*"+fileSuffix))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no data file: %v", err)
	}
	return paths[len(paths)-1]
}

func edit(t testing.TB, path string, change func(b []byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, change(b), 0o600); err != nil {
		t.Fatal(err)
	}
}

// inspect reads every topic of a store and compares with what was stored: entries may
// be missing, but each that is there is the one that was stored at its place. It
// returns how many are there, and appends one to every topic.
func inspect(t testing.TB, s *Store, stored map[string][]edge.Entry) (found int) {
	t.Helper()
	found = look(t, s, stored)
	for name, entries := range stored {
		l := mustLedger(t, s, name)
		e := mustAppend(t, l, "new")[0]
		if slices.ContainsFunc(entries, func(was edge.Entry) bool { return was.Position == e.Position }) {
			t.Fatalf("%s: position %v is used again", name, e.Position)
		}
	}
	return found
}

// look is the reading half of inspect. It leaves the topics closed.
func look(t testing.TB, s *Store, stored map[string][]edge.Entry) (found int) {
	t.Helper()
	for name, entries := range stored {
		l, err := s.OpenLedger(crashName(name), nil)
		if errors.Is(err, errDamaged) {
			continue // its own page, hit behind the store's back
		}
		if err != nil {
			t.Fatal(err)
		}
		at := map[edge.Position]edge.Entry{}
		for _, e := range entries {
			at[e.Position] = e
		}
		next := l.Spans().Start()
		for {
			b, err := l.Read([]edge.Range{{First: next, Last: edge.Latest}}, 7, 10_000)
			if err != nil {
				t.Fatalf("read %s: %v", name, err)
			}
			for _, e := range b.Entries {
				want, ok := at[e.Position]
				if !ok || !bytes.Equal(want.Data, e.Data) || want.Index != e.Index {
					t.Fatalf("%s: entry %v with index %d is not what was stored", name, e.Position, e.Index)
				}
				found++
				next = edge.Max(next, e.Position.Next())
			}
			for _, r := range b.Lost {
				next = edge.Max(next, r.Last.Next())
			}
			if len(b.Entries)+len(b.Lost) == 0 {
				break
			}
		}
		if _, err := l.Cursors(); err != nil && !errors.Is(err, errDamaged) {
			t.Fatalf("cursors of %s: %v", name, err)
		}
		if err := l.Scan(edge.Range{First: edge.Earliest, Last: edge.Latest}, func(edge.Position, edge.Facts) bool { return true }); err != nil {
			t.Fatalf("scan %s: %v", name, err)
		}
		if err := await(l.Close); err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// TestDamagedFile damages a store in the ways that outages do. It has to start, to
// say what happened, to keep the damaged file, and never to use an id again. A written
// free list is PL-03 of the cases that people met with other brokers: one that is no list
// makes bbolt panic when it opens the file, so that no file that has one is opened; nothing
// of the messages is lost by that.
func TestDamagedFile(t *testing.T) {
	o := testOptions(t)
	stored := template(t, o)
	all := 3 * 41
	for _, c := range []struct {
		name   string
		damage func(b []byte) []byte
		keeps  int // entries at least
		aside  bool
		reborn bool
	}{
		{"zeros", func(b []byte) []byte { return make([]byte, len(b)) }, 0, true, true},
		{"empty", func(b []byte) []byte { return nil }, 0, true, true},
		{"half", func(b []byte) []byte { return b[:usedPages(b)/2*pageSize] }, 0, true, true},
		{"foreign bytes", func(b []byte) []byte { return []byte(strings.Repeat("not a store ", 2000)) }, 0, true, true},
		{"newer meta page torn", func(b []byte) []byte { b[newerMeta(b)*pageSize+40] ^= 1; return b }, all - 3, false, true},
		{"older meta page torn", func(b []byte) []byte { b[(1-newerMeta(b))*pageSize+40] ^= 1; return b }, all, false, true},
		{"both meta pages torn", func(b []byte) []byte { b[40] ^= 1; b[pageSize+40] ^= 1; return b }, 0, true, true},
		{"a written free list", withFreeList, all, true, true},
		{"root page gone", func(b []byte) []byte { clear(b[rootPage(b)*pageSize:][:pageSize]); return b }, all - 3, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := o
			o.Path = copyDir(t, o.Path)
			path := mainPath(t, o.Path)
			edit(t, path, c.damage)
			damaged, _ := os.ReadFile(path)
			s := mustOpen(t, o)
			if len(s.Stats().Remarks) == 0 && c.name != "older meta page torn" {
				t.Error("nobody is told")
			}
			if found := inspect(t, s, stored); found < c.keeps {
				t.Errorf("%d entries are left, want %d", found, c.keeps)
			}
			aside, _ := filepath.Glob(filepath.Join(o.Path, "*"+asideMark+"*"))
			if got := len(aside) > 0; got != c.aside {
				t.Fatalf("set aside: %v, want %v", got, c.aside)
			}
			if c.aside {
				if kept, err := os.ReadFile(aside[0]); err != nil || !bytes.Equal(kept, damaged) {
					t.Errorf("the file set aside has %d bytes, was %d (%v)", len(kept), len(damaged), err)
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = mustOpen(t, o)
			if r := s.Stats().Remarks; len(r) > 0 {
				t.Errorf("remarks again: %v", r)
			}
		})
	}
}

// withFreeList lets both states name a page as their free list, as only those do that bbolt
// makes a file with: what such a state leads to is not what was committed.
func withFreeList(b []byte) []byte {
	for slot := range 2 {
		m := b[slot*pageSize+pageHeader:]
		native.PutUint64(m[32:], 2)
		h := fnv.New64a()
		h.Write(m[:56])
		native.PutUint64(m[56:], h.Sum64())
	}
	return b
}

func newerMeta(b []byte) int {
	if native.Uint64(b[pageHeader+48:]) > native.Uint64(b[pageSize+pageHeader+48:]) {
		return 0
	}
	return 1
}

func rootPage(b []byte) int {
	return int(native.Uint64(b[newerMeta(b)*pageSize+pageHeader+16:]))
}

func usedPages(b []byte) int {
	return int(native.Uint64(b[newerMeta(b)*pageSize+pageHeader+40:]))
}

// TestBirthAfterDamage gives topics new birth ids when it cannot be proven that the
// state served is the last one that was confirmed.
func TestBirthAfterDamage(t *testing.T) {
	o := testOptions(t)
	template(t, o)
	s := mustOpen(t, o)
	before := s.Records()
	ends := map[string]edge.Position{}
	for _, r := range before {
		ends[r.Name.Local] = r.End
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	edit(t, mainPath(t, o.Path), func(b []byte) []byte { b[newerMeta(b)*pageSize+40] ^= 1; return b })
	s = mustOpen(t, o)
	for i, r := range s.Records() {
		if r.BirthID == before[i].BirthID {
			t.Errorf("%s keeps birth id %s", r.Name.Local, r.BirthID)
		}
		l := mustLedger(t, s, r.Name.Local)
		if e := mustAppend(t, l, "x")[0]; e.Position.Ledger <= ends[r.Name.Local].Ledger {
			t.Errorf("%s goes on at %v, it was at %v", r.Name.Local, e.Position, ends[r.Name.Local])
		}
	}
}

// TestDamagedEntry flips one byte in an entry: that one is lost, all others are
// served, and no read comes back to it.
func TestDamagedEntry(t *testing.T) {
	o := testOptions(t)
	stored := template(t, o)
	edit(t, mainPath(t, o.Path), func(b []byte) []byte {
		i := bytes.LastIndex(b, []byte("b 17 "))
		b[i] ^= 0x20
		return b
	})
	s := mustOpen(t, o)
	if r := s.Stats().Remarks; len(r) > 0 {
		t.Errorf("remarks %v", r)
	}
	l := mustLedger(t, s, "b")
	b, err := l.Read([]edge.Range{{First: edge.Earliest, Last: edge.Latest}}, 100, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	bad := stored["b"][17].Position
	if len(b.Entries) != 40 || len(b.Lost) != 1 || b.Lost[0] != (edge.Range{First: bad, Last: bad}) {
		t.Fatalf("%d entries, lost %v", len(b.Entries), b.Lost)
	}
	if err := await(l.Close); err != nil {
		t.Fatal(err)
	}
	if found := inspect(t, s, stored); found != 3*41-1 {
		t.Fatalf("%d entries are left", found)
	}
}

// TestUnknownFormat refuses the files of other versions and changes nothing.
func TestUnknownFormat(t *testing.T) {
	o := testOptions(t)
	template(t, o)
	stored := func(n int64) []byte { return append(bytes.Clone(metaFormat), seal(binary.AppendVarint(nil, n))...) }
	edit(t, mainPath(t, o.Path), func(b []byte) []byte {
		return bytes.ReplaceAll(b, stored(formatNumber), stored(formatNumber+1))
	})
	refuses(t, o)
	o.Path = t.TempDir()
	template(t, o)
	edit(t, mainPath(t, o.Path), func(b []byte) []byte {
		for slot := range 2 {
			m := b[slot*pageSize+pageHeader:]
			native.PutUint32(m[4:], metaVersion+1)
			h := fnv.New64a()
			h.Write(m[:56])
			native.PutUint64(m[56:], h.Sum64())
		}
		return b
	})
	refuses(t, o)
}

func refuses(t *testing.T, o Options) {
	t.Helper()
	before, err := os.ReadFile(mainPath(t, o.Path))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(o); !errors.Is(err, ErrFormat) {
		t.Fatalf("open: %v", err)
	}
	if after, err := os.ReadFile(mainPath(t, o.Path)); err != nil || !bytes.Equal(before, after) {
		t.Fatalf("the file was changed (%v)", err)
	}
}

// TestLocked lets one store have a directory.
func TestLocked(t *testing.T) {
	o := testOptions(t)
	s := mustOpen(t, o)
	if _, err := Open(o); !errors.Is(err, ErrLocked) {
		t.Fatalf("second open: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	mustOpen(t, o)
}

// TestIDsOutliveFiles loses each of the two notes of used ids.
func TestIDsOutliveFiles(t *testing.T) {
	for name, lose := range map[string]func(dir string) error{
		"main file": func(dir string) error { return os.Remove(filepath.Join(dir, fileName(1))) },
		"side file": func(dir string) error { return os.Remove(filepath.Join(dir, idsName)) },
		"a slot": func(dir string) error {
			f, err := os.OpenFile(filepath.Join(dir, idsName), os.O_RDWR, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteAt(binary.LittleEndian.AppendUint64(nil, 1), 16)
			return errors.Join(err, f.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := testOptions(t)
			highest := int64(0)
			for range 4 {
				s := mustOpen(t, o)
				l := mustLedger(t, s, "a")
				for range idLease / 3 {
					l.Append(edge.Message{Data: []byte("x")}, func(edge.Entry, error) {})
					l.Roll(nil)
				}
				e := mustAppend(t, l, "x")[0]
				if e.Position.Ledger <= highest {
					t.Fatalf("ledger %d behind %d", e.Position.Ledger, highest)
				}
				highest = e.Position.Ledger
				if err := errors.Join(s.Close(), lose(o.Path)); err != nil {
					t.Fatal(err)
				}
				if name == "main file" {
					lose = func(dir string) error { return os.Remove(mainPath(t, dir)) }
				}
			}
		})
	}
}
