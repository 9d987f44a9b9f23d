package boltstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// failure is why changes are refused, and when a repair is tried next.
type failure struct {
	err   error
	next  time.Time
	pause time.Duration
}

const (
	// repairPause is the pause before the first try, which doubles up to the second.
	// A failed commit has cost bbolt a walk of its whole file, so the first is no
	// shorter than this.
	repairPause    = time.Second
	repairPauseMax = 30 * time.Second
)

// failure returns why changes are refused, or nil.
func (s *Store) failure() error {
	if f := s.failing.Load(); f != nil {
		return f.err
	}
	return nil
}

// setFailure refuses changes from now on. Reads go on.
func (s *Store) setFailure(err error) {
	s.failing.Store(&failure{err: err, next: time.Now().Add(repairPause), pause: repairPause})
	s.logger().Error("store refuses changes until its file is repaired", "error", err)
}

// present makes sure that the main file still has a name. What is written to one that
// was removed is gone with the process, so nothing of that may be confirmed; what it
// holds stays readable until then, and so it is not closed for a repair.
func (s *Store) present() error {
	st, err := s.space.grower.Stat()
	if err != nil {
		return fmt.Errorf("main file: %w", err)
	}
	if raw, ok := st.Sys().(*syscall.Stat_t); !ok || raw.Nlink > 0 {
		return nil
	}
	err = fmt.Errorf("%s was removed while it was in use", s.main.path)
	s.hopeless = true
	s.failing.Store(&failure{err: err})
	s.logger().Error("store refuses changes until a restart", "error", err)
	return err
}

// retryIn tells how long to wait for the next repair.
func (s *Store) retryIn() (time.Duration, bool) {
	f := s.failing.Load()
	if f == nil || s.hopeless {
		return 0, false
	}
	return max(0, time.Until(f.next)), true
}

// repairIfDue tries to bring a failed main file back, and reports whether it is.
func (s *Store) repairIfDue() bool {
	f := s.failing.Load()
	if time.Now().Before(f.next) || s.hopeless {
		return false
	}
	err := s.repair()
	if err == nil {
		s.failing.Store(nil)
		s.logger().Info("store is repaired")
		return true
	}
	pause := min(2*f.pause, repairPauseMax)
	s.failing.Store(&failure{err: fmt.Errorf("%w; repair: %w", f.err, err), next: time.Now().Add(pause), pause: pause})
	return false
}

// repair closes the main file, takes it back to the last transaction that was
// confirmed, checks it and opens it anew. The pages of that state have not been
// written since, so what the system may have dropped of the failed transaction does
// not matter; nothing of it is called good.
func (s *Store) repair() error {
	if hook := s.opts.hooks.reopen; hook != nil {
		if err := hook(); err != nil {
			return err
		}
	}
	if err := s.main.close(); err != nil {
		s.logger().Warn("closing the failed main file", "error", err)
	}
	if err := s.takeBack(s.main.path); err != nil {
		return err
	}
	if err := s.mountMain(s.main); err != nil {
		return err
	}
	if s.log != nil && s.log.Failed() != nil {
		return s.startLog()
	}
	return nil
}

// takeBack makes the confirmed state of a file its newest and proves that the disk
// takes writes again.
func (s *Store) takeBack(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	var good *metaPage
	for slot := range int64(2) {
		m, err := readMeta(f, slot)
		if err == nil && m.txid == s.confirmed {
			good = &m
		} else if err == nil && m.txid > s.confirmed {
			if err := crossOut(f, slot); err != nil {
				return err
			}
		}
	}
	if good == nil {
		return fmt.Errorf("%s has lost its last confirmed state: %w", filepath.Base(path), errDamaged)
	}
	if _, err := f.WriteAt(good.raw[:], good.slot*pageSize); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return checkState(f, st.Size(), *good)
}

// joinRollback ends a transaction that failed before its commit.
func joinRollback(err error, tx interface{ Rollback() error }) error {
	return errors.Join(err, protect(tx.Rollback))
}
