package boltstore

import (
	"errors"
	"fmt"
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

// A sync of the journal that fails refuses changes until the store goes on in another
// segment; what had failed is not there, then and after a start.
func TestJournalSyncFails(t *testing.T) { synctest.Test(t, testJournalSyncFails) }

func testJournalSyncFails(t *testing.T) {
	o := journalOptions(t)
	var broken atomic.Bool
	o.hooks.sync = func(f *os.File) error {
		if broken.Load() {
			return syscall.EIO
		}
		return f.Sync()
	}
	s := mustOpen(t, o)
	l := mustLedger(t, s, "a", "c")
	mustAppend(t, l, "one")
	broken.Store(true)
	if _, err := tryAppend(l, "lost"); !errors.Is(err, edge.ErrStorage) || !errors.Is(err, syscall.EIO) {
		t.Fatalf("append on a broken disk: %v", err)
	}
	if s.Stats().Failed == nil {
		t.Error("the store says that all is well")
	}
	wantTexts(t, l, "one")
	broken.Store(false)
	time.Sleep(2 * repairPause) // fake time
	if err := s.Stats().Failed; err != nil {
		t.Fatalf("not repaired: %v", err)
	}
	if err := await(l.Recover); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, "two")
	wantTexts(t, l, "one", "two")
	s = reopened(t, s, o)
	wantTexts(t, mustLedger(t, s, "a"), "one", "two")
}

// A store whose main file fails for a while tries again in pauses. One that did not would
// keep this clock from going on.
func TestSavingFailsInPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var broken atomic.Bool
		tries := 0
		o := journalOptions(t)
		o.hooks.commit = func(tx *bbolt.Tx) error {
			if broken.Load() {
				tries++
				return errors.Join(syscall.EIO, tx.Rollback())
			}
			return tx.Commit()
		}
		s := mustOpen(t, o)
		l := mustLedger(t, s, "a", "c")
		mustAppend(t, l, "one")
		broken.Store(true)
		time.Sleep(saveAfter + 30*time.Second)
		if tries == 0 || tries > 40 {
			t.Errorf("%d tries in half a minute", tries)
		}
		broken.Store(false)
		time.Sleep(2 * repairPauseMax)
		if err := s.Stats().Failed; err != nil {
			t.Error(err)
		}
		mustAppend(t, l, "two")
		wantTexts(t, l, "one", "two")
	})
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

// A topic whose pages are damaged costs itself, and neither the start nor the others.
func TestADamagedTopicIsGivenUp(t *testing.T) {
	o := journalOptions(t)
	s := mustOpen(t, o)
	a, b := mustLedger(t, s, "a", "c"), mustLedger(t, s, "b", "c")
	mustAppend(t, a, numbered(0, 20)...)
	mustAppend(t, b, numbered(0, 20)...)
	key := s.topics[crashName("a")].key
	copied := filepath.Join(t.TempDir(), "s")
	if err := os.CopyFS(copied, os.DirFS(o.Path)); err != nil {
		t.Fatal(err)
	}
	db, err := openWritable(filepath.Join(copied, fileName(1)), 0)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error { return tx.DeleteBucket(topicKey(key)) })
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	o.Path = copied
	damaged := mustOpen(t, o)
	if st := damaged.Stats(); len(st.Remarks) != 1 || !strings.Contains(st.Remarks[0], "default/a") {
		t.Errorf("remarks %q", st.Remarks)
	}
	wantTexts(t, mustLedger(t, damaged, "b"), numbered(0, 20)...)
	if _, err := damaged.OpenLedger(crashName("a"), nil); !errors.Is(err, edge.ErrStorage) {
		t.Errorf("the damaged one: %v", err)
	}
	l := mustLedger(t, damaged, "new", "c")
	for range 40 { // segments go, also those with something of the damaged one
		mustAppend(t, l, strings.Repeat("x", 20_000))
	}
	if n := damaged.log.Used(); n > 2*o.JournalBytes {
		t.Errorf("the journal takes %d bytes", n)
	}
}

// A rotten place in the journal costs what lies there and is named; the rest is served.
func TestRotInTheJournal(t *testing.T) {
	o := journalOptions(t)
	o.JournalBytes = 4 << 20
	s := mustOpen(t, o)
	l := mustLedger(t, s, "a", "c")
	mustAppend(t, l, numbered(0, 100)...)
	s.opts.hooks.refuse.Store(new(error)) // the clean end must not save what the test is about
	path := filepath.Join(o.Path, "journal-000001.seg")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	copied := t.TempDir()
	if err := os.CopyFS(filepath.Join(copied, "s"), os.DirFS(o.Path)); err != nil {
		t.Fatal(err)
	}
	b[8000] ^= 1
	o.Path, o.hooks.refuse = filepath.Join(copied, "s"), new(atomic.Pointer[error])
	if err := os.WriteFile(filepath.Join(o.Path, filepath.Base(path)), b, 0o600); err != nil {
		t.Fatal(err)
	}
	damaged := mustOpen(t, o)
	if st := damaged.Stats(); len(st.Remarks) != 1 || !strings.Contains(st.Remarks[0], "the journal has lost commits") {
		t.Errorf("remarks %q", st.Remarks)
	}
	d := mustLedger(t, damaged, "a")
	batch, err := d.Read([]edge.Range{{First: d.Spans().Start(), Last: edge.Latest}}, 1000, 1<<20)
	if err != nil || len(batch.Entries) != 99 || len(batch.Lost) != 1 {
		t.Errorf("%d entries, lost %v: %v", len(batch.Entries), batch.Lost, err)
	}
	s.opts.hooks.refuse.Store(nil)
	mustAppend(t, d, "behind")
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
