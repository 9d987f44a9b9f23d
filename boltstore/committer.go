package boltstore

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"wayside/edge"
)

// choreEvery is how many commits of a busy store pass between two steps of what is
// done beside: giving back pages, writing ahead, moving ledgers out of volumes.
const choreEvery = 8

// run is the committer: the only goroutine that changes files. It ends when the queue
// is closed and empty.
func (s *Store) run() {
	defer close(s.done)
	for {
		work, save, closed := s.queue.next(s.opts.SaveInterval)
		switch {
		case work || save == 0 || closed && save > 0:
			s.commitGroup()
		case closed:
			s.saveAll()
			return
		case s.chore():
		default:
			s.rest(save)
		}
	}
}

// commitGroup takes one group through.
func (s *Store) commitGroup() {
	if d := s.opts.CommitDelay; d > 0 {
		s.gather(d)
	}
	// Those who were answered just now run first and put their next messages in line:
	// groups of publishers that wait for receipts nearly double.
	runtime.Gosched()
	ops, saves := s.queue.take(s.opts.GroupBytes, s.opts.SaveInterval)
	if s.log != nil && len(saves) > 0 && len(ops) > 0 && !journals(ops[0]) {
		s.newGroup(nil, saves).run() // cursors go to the journal, these operations do not
		saves = nil
	}
	s.newGroup(ops, saves).run()
	if s.log != nil && s.pushed() {
		s.settleStep()
	}
	clear(ops) // the line shares the array, and would keep what is done
	if s.groups++; s.groups%choreEvery == 0 {
		s.chore()
	}
}

// gather lets a group grow for the commit delay.
func (s *Store) gather(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.closing:
	}
}

// rest waits for work, for the next save (none if negative), or for a retry.
func (s *Store) rest(save time.Duration) {
	wait := save
	if retry, ok := s.retryIn(); ok && (wait < 0 || retry < wait) {
		wait = retry
	}
	if due := s.saveIn(); due >= 0 && (wait < 0 || due < wait) {
		wait = due
	}
	if wait < 0 {
		<-s.queue.wake
		return
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-s.queue.wake:
	case <-t.C:
	}
}

// chore does one bounded step of what waits beside commits, and reports whether
// there was one.
func (s *Store) chore() bool {
	switch {
	case s.failure() != nil:
		return s.repairIfDue()
	case s.freezeStep():
		return true
	case s.log != nil && s.settleStep():
		return true
	case s.sweeping:
		if err := s.sweep(); err != nil {
			s.logger().Warn("giving back pages failed", "error", err)
		}
		return true
	case s.writeAhead():
		return true
	}
	return s.compactStep()
}

// commit makes a transaction durable. After an error that leaves the file's state in
// doubt the store refuses changes until it has been repaired.
func (s *Store) commit(tx *bbolt.Tx) error {
	id := tx.ID()
	commit := tx.Commit
	if hook := s.opts.hooks.commit; hook != nil {
		commit = func() error { return hook(tx) }
	}
	err := protect(commit)
	if tx.DB() != nil {
		err = joinRollback(err, tx) // a panic left it open
	}
	if err == nil {
		s.confirmed = uint64(id)
		s.commits.Add(1)
		s.syncs.Add(syncsPerCommit)
		s.notedMeta()
		return s.measure()
	}
	if errors.Is(err, berrors.ErrMaxSizeReached) {
		return errors.Join(errNoPiece, s.measure())
	}
	err = fmt.Errorf("commit: %w", err)
	s.setFailure(err)
	return err
}

// errNoPiece says that a transaction did not fit into the file. Nothing was written.
var errNoPiece = fmt.Errorf("%w: no piece large enough", edge.ErrStoreFull)

// syncsPerCommit is what bbolt does: the pages, then the meta page that names them.
const syncsPerCommit = 2
