package boltstore

import (
	"sync/atomic"
	"testing"

	"wayside/edge"
	"wayside/edge/edgetest"
)

// testOptions are small, so that tests meet every limit.
func testOptions(t testing.TB) Options {
	t.Helper()
	o := DefaultOptions()
	o.Path = t.TempDir()
	o.Quota = 64 << 20
	o.LedgerEntries = rollAfter
	o.hooks.refuse = new(atomic.Pointer[error])
	return o
}

const rollAfter = 500

func mustOpen(t testing.TB, o Options) *Store {
	t.Helper()
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestContract(t *testing.T) {
	edgetest.TestStore(t, harness(func(*Options) {}))
}

// harness opens stores whose options change sets.
func harness(change func(*Options)) edgetest.Harness {
	open := func(t testing.TB, o Options) edge.Store {
		s, err := Open(o)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	return edgetest.Harness{
		Open: func(t *testing.T) edge.Store {
			o := testOptions(t)
			change(&o)
			return open(t, o)
		},
		Reopen:    func(t *testing.T, s edge.Store) edge.Store { return open(t, s.(*Store).opts) },
		Fail:      func(s edge.Store, err error) { s.(*Store).failCommits(err) },
		RollAfter: rollAfter,
	}
}

// TestContractJournal runs the contract on a store with a journal, of which little stays.
func TestContractJournal(t *testing.T) {
	edgetest.TestStore(t, harness(func(o *Options) { o.JournalBytes = 64 << 20 }))
}

func TestContractSmallJournal(t *testing.T) {
	edgetest.TestStore(t, harness(func(o *Options) {
		o.JournalBytes, o.JournalSegment = 128<<10, 64<<10
		o.VolumeBytes = 1 << 20
		o.GroupBytes = 64 << 10
	}))
}

// failCommits lets groups fail before they change anything.
func (s *Store) failCommits(err error) {
	if err == nil {
		s.opts.hooks.refuse.Store(nil)
		return
	}
	s.opts.hooks.refuse.Store(&err)
}

// TestContractTurningOver runs the contract on a store whose main file is small, so
// that data moves into volumes all the time.
func TestContractTurningOver(t *testing.T) {
	edgetest.TestStore(t, harness(func(o *Options) {
		o.VolumeBytes = 1 << 20
		o.GroupBytes = 64 << 10
	}))
}
