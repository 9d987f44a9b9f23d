package boltstore

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"wayside/edge"
)

// TestEveryByteOfASmallStore changes a store of 128 KiB that has a volume, a main file and
// a journal, one byte or one page at a time. It has to start soon, to serve what is whole
// as it was stored, and to name what is missing: as a remark, in its log or to the reader.
// A change in dead space may go unnoticed. With WAYSIDE_ROT_ALL it is each byte.
func TestEveryByteOfASmallStore(t *testing.T) {
	small := newSmallStore(t)
	step := 997
	if os.Getenv("WAYSIDE_ROT_ALL") != "" {
		step = 1
	}
	for _, name := range small.names() {
		b := small.files[name]
		sum := rotSum{}
		for at := 0; at < len(b); at += step {
			bad := bytes.Clone(b)
			bad[at] ^= 1 << (at % 8)
			sum.add(t, small, name, bad, fmt.Sprintf("byte %d", at))
		}
		for at := 0; at < len(b); at += pageSize {
			bad := bytes.Clone(b)
			clear(bad[at:min(at+pageSize, len(b))])
			sum.add(t, small, name, bad, fmt.Sprintf("page %d", at/pageSize))
		}
		t.Logf("%s, %d bytes: %+v of %d entries", name, len(b), sum, small.entries())
	}
}

// rotSum counts what became of damages.
type rotSum struct {
	Trials, Named, Losing, Worst, Faults int
	Slowest                              time.Duration
}

// maxFaults is how many are shown.
const maxFaults = 20

func (sum *rotSum) add(t *testing.T, small *smallStore, name string, bad []byte, what string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "rot")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // of the system's temporary directory
	for other, b := range small.files {
		if other == name {
			b = bad
		}
		if err := os.WriteFile(filepath.Join(dir, other), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	start := time.Now()
	missing, named, err := small.open(dir)
	took := time.Since(start)
	if err != nil || took > slowStart {
		if t.Errorf("%s, %s: after %v: %v; named: %q", name, what, took, err, named); sum.Faults > maxFaults {
			t.FailNow()
		}
		sum.Faults++
	}
	sum.Trials++
	sum.Named += int(b2i(len(named) > 0))
	sum.Losing += int(b2i(missing > 0))
	sum.Worst = max(sum.Worst, missing)
	sum.Slowest = max(sum.Slowest, took)
}

// smallStore is the files of a store, and what is in it.
type smallStore struct {
	o      Options
	files  map[string][]byte
	topics map[string]*smallTopic
	values map[string][]byte
}

// smallTopic is what is in a topic.
type smallTopic struct {
	entries   []edge.Entry
	cursors   map[string]edge.CursorState
	props     []byte
	sequences map[string]edge.SequenceState
}

// turnOp lets the committer turn the main file over.
type turnOp struct {
	s    *Store
	done chan error
}

func (op *turnOp) ledger() *ledger    { return nil }
func (op *turnOp) size() int          { return 0 }
func (op *turnOp) admit(*group) error { return nil }
func (op *turnOp) apply(*group) error { return nil }
func (op *turnOp) finish(error)       { op.done <- op.s.turnOver() }

// newSmallStore makes a volume and a main file without a journal, then a journal, and takes
// the files as a crash would leave them, without the zeros behind the last page.
func newSmallStore(t *testing.T) *smallStore {
	t.Helper()
	o := testOptions(t)
	small := &smallStore{o: o, files: map[string][]byte{}, topics: map[string]*smallTopic{}, values: map[string][]byte{}}
	s := mustOpen(t, o)
	small.fill(t, s, 0)
	op := &turnOp{s, make(chan error, 1)}
	s.queue.put(op)
	if err := <-op.done; err != nil {
		t.Fatal(err)
	}
	small.fill(t, s, 1)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	small.o.JournalBytes, small.o.JournalSegment = 64<<10, 16<<10
	s = mustOpen(t, small.o)
	small.fill(t, s, 2)
	small.look(t, s)
	mustAppend(t, mustLedger(t, s, "z"), "the last group of the journal, which may be missing without a word")
	total := 0
	sizes := ""
	err := filepath.WalkDir(o.Path, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "journal-000002.seg" || strings.HasSuffix(d.Name(), ".new") { // made ahead, with a head only
			return err
		}
		b, err := os.ReadFile(path)
		if path == mainPath(t, o.Path) {
			b = b[:usedPages(b)*pageSize]
		}
		small.files[d.Name()] = b
		total += len(b)
		sizes += fmt.Sprintf(" %s %d", d.Name(), len(b))
		return err
	})
	if err != nil || total > smallBytes || len(s.volumes) == 0 {
		t.Fatalf("%s, %d volumes: %v", sizes, len(s.volumes), err)
	}
	return small
}

func (small *smallStore) names() (list []string) {
	for name := range small.files {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

func (small *smallStore) entries() (n int) {
	for _, w := range small.topics {
		n += len(w.entries)
	}
	return n
}

// smallBytes is what the files of the small store may have, and smallEntries what goes to
// each topic in its parts.
const smallBytes = 128 << 10

var smallEntries = [3]int{3, 3, 6}

// fill brings some more into a store, most of it in few commits.
func (small *smallStore) fill(t *testing.T, s *Store, part int) {
	t.Helper()
	done := make(chan error, 100)
	calls := 0
	call := func(f func(done func(error))) {
		calls++
		f(func(err error) { done <- err })
	}
	for _, name := range []string{"a", "b"} {
		l := mustLedger(t, s, name, "c")
		at := l.Spans().End().Next()
		for i := range smallEntries[part] {
			seq := int64(10*part + i)
			m := edge.Message{
				Facts:     edge.Facts{Producer: fmt.Sprint("p", i%2), Sequence: seq, Highest: seq, Messages: int32(1 + i%3), Key: []byte("k")},
				Data:      fmt.Appendf(nil, "%s %d %d %*s", name, part, i, 20*i, ""),
				Sequenced: true,
			}
			call(func(done func(error)) { l.Append(m, func(_ edge.Entry, err error) { done(err) }) })
			if i == 1 && part > 0 {
				call(l.Roll)
			}
		}
		for i, cursor := range crashCursors {
			state := crashState(name+" "+cursor, version{n: uint64(100*part + i + 1), at: at})
			call(func(done func(error)) { l.SaveCursor(cursor, func() edge.CursorState { return state }, done) })
		}
		if part == 0 {
			call(func(done func(error)) { l.SetProperties([]byte("of "+name), done) })
			call(func(done func(error)) { s.PutValue("small "+name, []byte("value of "+name), done) })
		}
		if part == 0 && name == "a" {
			call(func(done func(error)) { s.PutValue("large", bytes.Repeat([]byte(name), smallValue+1), done) })
		}
		call(l.Close)
	}
	for range calls {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

// look notes what is in the store.
func (small *smallStore) look(t *testing.T, s *Store) {
	t.Helper()
	for _, name := range []string{"a", "b"} {
		l := mustLedger(t, s, name)
		w := &smallTopic{}
		var errs [4]error
		w.entries, errs[0] = collectEntries(l, l.Spans().Start())
		w.cursors, errs[1] = l.Cursors()
		w.props, errs[2] = l.Properties()
		w.sequences, errs[3] = l.Sequences()
		if err := errors.Join(errs[:]...); err != nil || len(w.entries) != smallEntries[0]+smallEntries[1]+smallEntries[2] || len(w.cursors) != 2 || len(w.props) == 0 || len(w.sequences) != 2 {
			t.Fatalf("%+v: %v", w, err)
		}
		small.topics[name] = w
		if err := await(l.Close); err != nil {
			t.Fatal(err)
		}
	}
	err := s.ScanValues("", func(key string, value []byte) bool {
		small.values[key] = value
		return true
	})
	if err != nil || len(small.values) != 3 {
		t.Fatalf("%d values: %v", len(small.values), err)
	}
}

// open opens a damaged copy. It returns how many entries are missing, and what was named;
// an error if something is other than it was, or missing without being named.
func (small *smallStore) open(dir string) (missing int, named []string, err error) {
	o, said := small.o, &listener{}
	o.Path, o.Logger = dir, said.logger()
	s, err := Open(o)
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	unnamed := small.changedValues(s)
	for name, w := range small.topics {
		n, what, err := w.compare(s, name)
		if err != nil {
			return 0, nil, fmt.Errorf("%s: %w", name, err)
		}
		missing += n
		unnamed = append(unnamed, what...)
	}
	if named = append(s.Stats().Remarks, said.all()...); len(named) == 0 && len(unnamed) > 0 {
		return 0, nil, fmt.Errorf("missing, and not named: %q", unnamed)
	}
	return missing, named, small.goOn(s)
}

// changedValues lists values that are not as they were.
func (small *smallStore) changedValues(s *Store) (unnamed []string) {
	found := map[string][]byte{}
	err := s.ScanValues("", func(key string, value []byte) bool {
		found[key] = value
		return true
	})
	for key, value := range small.values {
		if !bytes.Equal(found[key], value) {
			unnamed = append(unnamed, fmt.Sprintf("value %q: %v", key, err))
		}
	}
	return unnamed
}

// compare compares a topic. unnamed is what is missing and was not told to who asked.
func (w *smallTopic) compare(s *Store, name string) (missing int, unnamed []string, err error) {
	if !slices.ContainsFunc(s.Records(), func(r edge.TopicRecord) bool { return r.Name == crashName(name) }) {
		return len(w.entries), []string{"topic " + name}, nil
	}
	l, err := s.OpenLedger(crashName(name), nil)
	if errors.Is(err, edge.ErrStorage) || errors.Is(err, errDamaged) {
		return len(w.entries), nil, nil // who asks is told
	} else if err != nil {
		return 0, nil, err
	}
	got, lost, err := collectServed(l)
	if err != nil {
		return 0, nil, err
	}
	for _, e := range w.entries {
		i := slices.IndexFunc(got, func(g edge.Entry) bool { return g.Position == e.Position })
		if i >= 0 {
			if !reflect.DeepEqual(got[i], e) {
				return 0, nil, fmt.Errorf("entry %+v, was %+v", got[i], e)
			}
			got = slices.Delete(got, i, i+1)
			continue
		}
		missing++
		if !slices.ContainsFunc(lost, func(r edge.Range) bool { return !e.Position.Less(r.First) && !r.Last.Less(e.Position) }) {
			unnamed = append(unnamed, fmt.Sprintf("entry %v", e.Position))
		}
	}
	if len(got) > 0 {
		return 0, nil, fmt.Errorf("entries that were never stored: %v", got)
	}
	return missing, append(unnamed, w.compareState(l)...), await(l.Close)
}

func (w *smallTopic) compareState(l edge.Ledger) (unnamed []string) {
	states, err := l.Cursors()
	for cursor, state := range w.cursors {
		if err == nil && !sameState(states[cursor], state) {
			unnamed = append(unnamed, fmt.Sprintf("cursor %s: %v", cursor, states[cursor]))
		}
	}
	if props, err := l.Properties(); err == nil && !bytes.Equal(props, w.props) {
		unnamed = append(unnamed, fmt.Sprintf("properties %q", props))
	}
	sequences, err := l.Sequences()
	for name, q := range w.sequences {
		if err == nil && sequences[name].Highest != q.Highest {
			unnamed = append(unnamed, fmt.Sprintf("sequence of %s: %v", name, sequences[name]))
		}
	}
	return unnamed
}

// goOn appends to each topic and wants positions that were never used.
func (small *smallStore) goOn(s *Store) error {
	for name, w := range small.topics {
		l, err := s.OpenLedger(crashName(name), nil)
		if errors.Is(err, edge.ErrStorage) || errors.Is(err, errDamaged) {
			continue
		}
		if err != nil {
			return err
		}
		e, err := tryAppend(l, "new")
		if err != nil {
			return err
		}
		if slices.ContainsFunc(w.entries, func(was edge.Entry) bool { return was.Position == e.Position }) {
			return fmt.Errorf("%s: position %v is used again", name, e.Position)
		}
	}
	return nil
}
