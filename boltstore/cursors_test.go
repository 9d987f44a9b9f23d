package boltstore

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/bbolt"

	"wayside/edge"
)

// holes is a state with n runs.
func holes(n int64) edge.CursorState {
	s := edge.CursorState{MarkDelete: edge.Position{Ledger: 1, Entry: n}}
	for i := range n {
		s.Holes = append(s.Holes, edge.Run{Ledger: 2, First: 3 * i, Last: 3 * i})
	}
	return s
}

// TestDirtyCursorsRide holds when a cursor that nobody waits for is written: with the
// next commit to its topic, but a large one only when the save interval has passed.
func TestDirtyCursorsRide(t *testing.T) {
	for _, c := range []struct {
		name  string
		size  int64
		rides bool
	}{{"small", 10, true}, {"large", 20_000, false}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := mustOpen(t, testOptions(t))
				l, other := mustLedger(t, s, "a"), mustLedger(t, s, "b")
				saved := func() int64 {
					states, err := l.Cursors()
					if err != nil {
						t.Fatal(err)
					}
					return states["c"].MarkDelete.Entry
				}
				state := func(n int64) func() edge.CursorState {
					return func() edge.CursorState { return holes(n) }
				}
				if err := await(func(done func(error)) { l.SaveCursor("c", state(c.size), done) }); err != nil {
					t.Fatal(err)
				}
				l.SaveCursor("c", state(c.size+1), nil)
				mustAppend(t, other, "x")
				if n := saved(); n != c.size {
					t.Fatalf("a commit to another topic wrote state %d", n)
				}
				mustAppend(t, l, "x")
				if n := saved(); (n == c.size+1) != c.rides {
					t.Fatalf("a commit to the topic leaves state %d", n)
				}
				time.Sleep(s.opts.SaveInterval + time.Millisecond) // fake time
				synctest.Wait()
				if n := saved(); n != c.size+1 {
					t.Fatalf("after the save interval state %d is there", n)
				}
			})
		})
	}
}

// TestSaveIntervalHolds writes a cursor in time while other topics keep the store busy.
func TestSaveIntervalHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := testOptions(t)
		o.CommitDelay = 10 * time.Millisecond
		s := mustOpen(t, o)
		l, busy := mustLedger(t, s, "a"), mustLedger(t, s, "busy")
		start := time.Now()
		l.SaveCursor("c", func() edge.CursorState { return holes(7) }, nil)
		for time.Since(start) < o.SaveInterval+5*o.CommitDelay {
			mustAppend(t, busy, "x")
		}
		if states, err := l.Cursors(); err != nil || states["c"].MarkDelete.Entry != 7 {
			t.Fatalf("cursors %v, %v", states, err)
		}
	})
}

// TestCommitDelay gathers what comes within the delay into one commit.
func TestCommitDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := testOptions(t)
		o.CommitDelay = 50 * time.Millisecond
		s := mustOpen(t, o)
		l := mustLedger(t, s, "a")
		before := s.Stats().Commits
		start := time.Now()
		done := make(chan error, 10)
		for i := range 10 {
			l.Append(edge.Message{Data: fmt.Append(nil, i)}, func(_ edge.Entry, err error) { done <- err })
			time.Sleep(2 * time.Millisecond)
		}
		for range 10 {
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
		if n := s.Stats().Commits - before; n != 1 || time.Since(start) < o.CommitDelay {
			t.Fatalf("%d commits in %v", n, time.Since(start))
		}
	})
}

// TestGroupsGather puts what comes while a sync runs into the next commit.
func TestGroupsGather(t *testing.T) {
	gate, entered := make(chan struct{}), make(chan struct{}, 100)
	var held atomic.Bool
	o := testOptions(t)
	o.hooks.commit = func(tx *bbolt.Tx) error {
		if held.Load() {
			entered <- struct{}{}
			<-gate
		}
		return tx.Commit()
	}
	s := mustOpen(t, o)
	l := mustLedger(t, s, "a")
	before := s.Stats().Commits
	held.Store(true)
	var order []string
	done := make(chan error, 100)
	push := func(i int) {
		text := fmt.Sprint(i)
		l.Append(edge.Message{Data: []byte(text)}, func(_ edge.Entry, err error) {
			order = append(order, text)
			done <- err
		})
	}
	push(0)
	<-entered
	for i := range 49 {
		push(i + 1)
	}
	held.Store(false)
	close(gate)
	for range 50 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if n := s.Stats().Commits - before; n != 2 {
		t.Errorf("%d commits, want 2", n)
	}
	if got := texts(t, l); !slices.Equal(got, order) || len(got) != 50 || got[49] != "49" {
		t.Errorf("stored %q, answered %q", got, order)
	}
}
