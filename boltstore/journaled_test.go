package boltstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"wayside/edge"
)

// journalOptions are those of tests with a journal of few, small segments.
func journalOptions(t testing.TB) Options {
	o := testOptions(t)
	o.JournalBytes, o.JournalSegment = 256<<10, 64<<10
	return o
}

// reopened closes a store and opens it with other options.
func reopened(t *testing.T, s *Store, o Options) *Store {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return mustOpen(t, o)
}

func numbered(from, to int) (list []string) {
	for i := from; i < to; i++ {
		list = append(list, fmt.Sprint(i))
	}
	return list
}

// The journal may be turned on and off; what was stored stays.
func TestJournalComesAndGoes(t *testing.T) {
	with := journalOptions(t)
	without := with
	without.JournalBytes = 0
	s := mustOpen(t, without)
	mustAppend(t, mustLedger(t, s, "a", "c"), numbered(0, 30)...)
	for i, o := range []Options{with, with, without, without, with} {
		s = reopened(t, s, o)
		l := mustLedger(t, s, "a")
		wantTexts(t, l, numbered(0, 30*(i+1))...)
		mustAppend(t, l, numbered(30*(i+1), 30*(i+2))...)
		wantTexts(t, l, numbered(0, 30*(i+2))...)
		names, _ := filepath.Glob(filepath.Join(o.Path, "*.seg"))
		if (len(names) > 0) != (o.JournalBytes > 0) {
			t.Errorf("with a journal of %d there are %v", o.JournalBytes, names)
		}
	}
}

// A store of the first form, all of it in the main file, is taken over as it is.
func TestStoreOfTheFirstForm(t *testing.T) {
	o := journalOptions(t)
	o.JournalBytes = 0
	s := mustOpen(t, o)
	l := mustLedger(t, s, "a", "c")
	at := mustAppend(t, l, numbered(0, 100)...)
	if err := await(func(done func(error)) {
		l.SaveCursor("c", func() edge.CursorState { return edge.CursorState{MarkDelete: at[9].Position} }, done)
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := openWritable(filepath.Join(o.Path, fileName(1)), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Update(makeFirstForm), db.Close()); err != nil {
		t.Fatal(err)
	}
	o.JournalBytes = 256 << 10
	s = mustOpen(t, o)
	l = mustLedger(t, s, "a")
	wantTexts(t, l, numbered(0, 100)...)
	mustAppend(t, l, numbered(100, 200)...)
	s = reopened(t, s, o)
	l = mustLedger(t, s, "a")
	wantTexts(t, l, numbered(0, 200)...)
	if c, err := l.Cursors(); err != nil || c["c"].MarkDelete != at[9].Position {
		t.Errorf("cursors %v, %v", c, err)
	}
	if s.format != formatNumber {
		t.Errorf("the form is %d still", s.format)
	}
}

// makeFirstForm writes what the first form has otherwise: its number, and records that
// do not say what lies in the files.
func makeFirstForm(tx *bbolt.Tx) error {
	records := tx.Bucket(bucketRecords)
	var keys, values [][]byte
	err := records.ForEach(func(k, v []byte) error {
		name, rec, err := decodeRecord(v)
		if err != nil {
			return err
		}
		sealed := rec.encode(name)
		end := len(sealed) - 4
		for range 2 { // the last two numbers
			for end--; end > 0 && sealed[end-1]&0x80 != 0; {
				end--
			}
		}
		keys, values = append(keys, k), append(values, seal(append([]byte{recordFiled}, sealed[1:end]...)))
		return nil
	})
	for i := range keys {
		err = errors.Join(err, records.Put(keys[i], values[i]))
	}
	return errors.Join(err, putNumber(tx.Bucket(bucketMeta), metaFormat, formatFirst))
}

// Readers go on while segments go and chunks move into the main file under them.
func TestReadersMeetFiling(t *testing.T) {
	o := journalOptions(t)
	o.VolumeBytes = 1 << 20
	s := mustOpen(t, o)
	l := mustLedger(t, s, "a", "c")
	done := make(chan struct{})
	failed := make(chan error, 2)
	for range 2 {
		go func() {
			var err error
			for err == nil {
				select {
				case <-done:
					failed <- nil
					return
				default:
				}
				err = readWhole(l)
			}
			failed <- err
		}()
	}
	text := strings.Repeat("x", 2000)
	rounds := 60
	if raced {
		rounds = 20
	}
	for i := range rounds {
		var texts []string
		for j := range 20 {
			texts = append(texts, fmt.Sprint(i*20+j, " ", text))
		}
		mustAppend(t, l, texts...)
	}
	close(done)
	for range 2 {
		if err := <-failed; err != nil {
			t.Fatal(err)
		}
	}
	if s.main.number == 1 && !raced {
		t.Error("the main file never turned over: little was tested")
	}
	if err := readWhole(l); err != nil {
		t.Fatal(err)
	}
}

// readWhole wants all entries, in order.
func readWhole(l edge.Ledger) error {
	want := l.Spans()
	next, n := want.Start(), 0
	for !want.End().Less(next) {
		b, err := l.Read([]edge.Range{{First: next, Last: want.End()}}, 100, 1<<20)
		if err != nil || len(b.Lost) > 0 {
			return fmt.Errorf("read from %v: lost %v: %w", next, b.Lost, err)
		}
		for _, e := range b.Entries {
			if got, _, _ := strings.Cut(string(e.Data), " "); got != fmt.Sprint(n) {
				return fmt.Errorf("entry %d is %s", n, got)
			}
			n++
		}
		if len(b.Entries) == 0 {
			break
		}
		next = b.Entries[len(b.Entries)-1].Position.Next()
	}
	if total, _, _ := want.Totals(); int64(n) != total {
		return fmt.Errorf("%d entries of %d", n, total)
	}
	return nil
}

// What is trimmed while it is in the journal never gets into the main file.
func TestWhatIsTrimmedInTimeIsWrittenOnce(t *testing.T) {
	o := journalOptions(t)
	o.LedgerEntries = 20
	s := mustOpen(t, o)
	l := mustLedger(t, s, "a")
	text := strings.Repeat("x", 1000)
	for range 3000 / 20 {
		var last edge.Position
		for range 20 {
			last = mustAppend(t, l, text)[0].Position
		}
		if err := await(l.Roll); err != nil {
			t.Fatal(err)
		}
		if err := await(func(done func(error)) { l.Trim(last.Next(), done) }); err != nil {
			t.Fatal(err)
		}
	}
	s = reopened(t, s, o)
	found := 0
	if err := s.viewMain(func(tx *bbolt.Tx) error {
		return tx.Bucket(topicKey(s.topics[crashName("a")].key)).ForEachBucket(func(k []byte) error {
			if k[0] == prefixLedger {
				found++
			}
			return nil
		})
	}); err != nil {
		t.Fatal(err)
	}
	if found > 3 {
		t.Errorf("%d ledgers are in the main file", found)
	}
	if st := s.Stats(); st.FileBytes > 9<<20 {
		t.Errorf("the files take %d bytes", st.FileBytes)
	}
}

// Whatever writes a topic's record writes what the record counts on: a ledger that was
// closed in the journal is not forgotten because something else has moved the record on.
func TestARecordNeverGetsAheadOfItsLedgers(t *testing.T) {
	for name, change := range map[string]func(l edge.Ledger, done func(error)){
		"properties": func(l edge.Ledger, done func(error)) { l.SetProperties([]byte("p"), done) },
		"trim": func(l edge.Ledger, done func(error)) {
			l.Trim(edge.Position{Ledger: l.Spans().Closed[1].Ledger}, done)
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := journalOptions(t)
			s := mustOpen(t, o)
			l := mustLedger(t, s, "a", "c")
			for i := range 4 {
				mustAppend(t, l, numbered(10*i, 10*i+10)...)
				if err := await(l.Roll); err != nil {
					t.Fatal(err)
				}
			}
			if err := await(func(done func(error)) { change(l, done) }); err != nil {
				t.Fatal(err)
			}
			want := texts(t, l)
			copied := filepath.Join(t.TempDir(), "s")
			if err := os.CopyFS(copied, os.DirFS(o.Path)); err != nil {
				t.Fatal(err)
			}
			o.Path = copied
			wantTexts(t, mustLedger(t, mustOpen(t, o), "a"), want...)
		})
	}
}

// The bucket of a deleted topic stays until it is swept; a start in between gives no new
// topic its number.
func TestNumbersOfDeadTopicsAreNotGivenAgain(t *testing.T) {
	o := journalOptions(t)
	s := mustOpen(t, o)
	mustLedger(t, s, "a")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	const dead = 5
	db, err := openWritable(filepath.Join(o.Path, fileName(1)), 0)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		if _, err := tx.CreateBucket(topicKey(dead)); err != nil {
			return err
		}
		return tx.Bucket(bucketDead).Put(topicKey(dead), []byte{})
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, o)
	if s.nextTopic <= dead {
		t.Errorf("the next topic has number %d", s.nextTopic)
	}
	for i := range 8 {
		mustAppend(t, mustLedger(t, s, fmt.Sprint("new", i)), "x")
	}
}
