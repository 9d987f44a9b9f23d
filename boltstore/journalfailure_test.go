package boltstore

import (
	"bytes"
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
		var tries atomic.Int64
		o := journalOptions(t)
		o.hooks.commit = func(tx *bbolt.Tx) error {
			if broken.Load() {
				tries.Add(1)
				return errors.Join(syscall.EIO, tx.Rollback())
			}
			return tx.Commit()
		}
		s := mustOpen(t, o)
		l := mustLedger(t, s, "a", "c")
		mustAppend(t, l, "one")
		broken.Store(true)
		time.Sleep(saveAfter + 30*time.Second)
		if n := tries.Load(); n == 0 || n > 40 {
			t.Errorf("%d tries in half a minute", n)
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

// A topic whose pages are damaged costs itself, and neither the start nor the others.
func TestADamagedTopicIsGivenUp(t *testing.T) {
	o := journalOptions(t)
	s := mustOpen(t, o)
	a, b := mustLedger(t, s, "a", "c"), mustLedger(t, s, "b", "c")
	mustAppend(t, a, numbered(0, 20)...)
	mustAppend(t, b, numbered(0, 20)...)
	key := s.topics[crashName("a")].key
	copied := copyDir(t, o.Path)
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
	copied := copyDir(t, o.Path)
	b[8000] ^= 1
	o.Path, o.hooks.refuse = copied, new(atomic.Pointer[error])
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

// What the journal has lost may have brought entries to any topic: none goes on in the
// ledger that it had, so that no position is given out twice.
func TestNoPositionTwiceBehindALossInTheJournal(t *testing.T) {
	o := journalOptions(t)
	o.JournalBytes = 4 << 20
	s := mustOpen(t, o)
	a, b := mustLedger(t, s, "a"), mustLedger(t, s, "b")
	mustAppend(t, b, "first of b")
	lost := mustAppend(t, b, "lost of b")[0]
	mustAppend(t, a, "behind it")
	birth := b.BirthID()
	o.Path = copyDir(t, o.Path) // as a crash would leave it
	edit(t, filepath.Join(o.Path, "journal-000001.seg"), func(file []byte) []byte {
		file[bytes.Index(file, []byte("lost of b"))] ^= 1
		return file
	})
	s = mustOpen(t, o)
	if st := s.Stats(); len(st.Remarks) != 1 {
		t.Errorf("remarks %q", st.Remarks)
	}
	wantTexts(t, mustLedger(t, s, "a"), "behind it")
	b = mustLedger(t, s, "b")
	if e := mustAppend(t, b, "new")[0]; e.Position == lost.Position || b.BirthID() == birth {
		t.Errorf("%v again, birth id %s was %s", e.Position, b.BirthID(), birth)
	}
	batch, err := b.Read([]edge.Range{{First: edge.Earliest, Last: edge.Latest}}, 10, 1<<20)
	if err != nil || len(batch.Entries) != 2 || len(batch.Lost) != 1 || batch.Lost[0].First != lost.Position {
		t.Errorf("%d entries, lost %v: %v", len(batch.Entries), batch.Lost, err)
	}
}
