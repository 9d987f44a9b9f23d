package boltstore

import (
	"time"
)

// failure is why changes are refused, and when a repair is tried next.
type failure struct {
	err   error
	since time.Time
	next  time.Time
	pause time.Duration
}

const (
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

func (s *Store) broken() error { return s.failure() }

func (s *Store) setFailure(err error) {
	s.failing.Store(&failure{err: err, since: time.Now(), next: time.Now().Add(repairPause), pause: repairPause})
}

// retryIn tells how long to wait for the next repair.
func (s *Store) retryIn() (time.Duration, bool) {
	f := s.failing.Load()
	if f == nil {
		return 0, false
	}
	return max(0, time.Until(f.next)), true
}

func (s *Store) repairIfDue() bool { return false }
