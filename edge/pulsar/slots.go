package pulsar

import (
	"context"
	"sync/atomic"
)

// slots bound what a connection may be owed. One goroutine takes, any gives. A slot is
// held until the answer has been written, so that answers never have to wait.
type slots struct {
	limit  int64
	used   atomic.Int64
	wanted atomic.Bool   // somebody waits
	freed  chan struct{} // of capacity one
}

func newSlots(limit int) *slots {
	return &slots{limit: int64(max(limit, 1)), freed: make(chan struct{}, 1)}
}

// tryTake takes one if one is free.
func (s *slots) tryTake() bool {
	if s.used.Add(1) <= s.limit {
		return true
	}
	s.used.Add(-1)
	return false
}

// take waits for one.
func (s *slots) take(ctx context.Context) error {
	for !s.tryTake() {
		if err := s.wait(ctx, s.limit-1); err != nil {
			return err
		}
	}
	return nil
}

// drain waits until all are home.
func (s *slots) drain(ctx context.Context) error {
	for s.used.Load() > 0 {
		if err := s.wait(ctx, 0); err != nil {
			return err
		}
	}
	return nil
}

// wait returns when at most so many are used, or may be: the caller looks again.
func (s *slots) wait(ctx context.Context, most int64) error {
	s.wanted.Store(true)
	defer s.wanted.Store(false)
	if s.used.Load() <= most {
		return nil
	}
	select {
	case <-s.freed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// give returns n of them.
func (s *slots) give(n int) {
	if n == 0 {
		return
	}
	s.used.Add(-int64(n))
	if s.wanted.Load() {
		select {
		case s.freed <- struct{}{}:
		default:
		}
	}
}
