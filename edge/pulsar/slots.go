package pulsar

import (
	"context"
	"sync/atomic"
)

// heavy is how many bytes of answers may wait to be written before no more requests are
// read: receipts for some hundred messages. What they hold comes on top, at most one
// large answer, for which memory is taken.
const heavy = 32 << 10

// slots bound what a connection may be owed. One goroutine takes, any gives. A slot is
// held until the answer has been written, so that answers never have to wait.
type slots struct {
	limit  int64
	used   atomic.Int64
	weight atomic.Int64  // bytes of answers that wait to be written
	wanted atomic.Bool   // somebody waits
	freed  chan struct{} // of capacity one
}

func newSlots(limit int) *slots {
	return &slots{limit: int64(max(limit, 1)), freed: make(chan struct{}, 1)}
}

// tryTake takes one if one is free, and not too much waits to be written.
func (s *slots) tryTake() bool {
	if s.weight.Load() > heavy {
		return false
	}
	if s.used.Add(1) <= s.limit {
		return true
	}
	s.used.Add(-1)
	return false
}

// take waits for one.
func (s *slots) take(ctx context.Context) error {
	for !s.tryTake() {
		if err := s.wait(ctx, func() bool { return s.used.Load() < s.limit && s.weight.Load() <= heavy }); err != nil {
			return err
		}
	}
	return nil
}

// drain waits until all are home.
func (s *slots) drain(ctx context.Context) error {
	home := func() bool { return s.used.Load() <= 0 }
	for !home() {
		if err := s.wait(ctx, home); err != nil {
			return err
		}
	}
	return nil
}

// wait returns when enough is true, or may be: the caller looks again.
func (s *slots) wait(ctx context.Context, enough func() bool) error {
	s.wanted.Store(true)
	defer s.wanted.Store(false)
	if enough() {
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
func (s *slots) give(n int) { s.written(n, 0) }

// written returns n of them, whose answers had so many bytes.
func (s *slots) written(n, bytes int) {
	if n == 0 && bytes == 0 {
		return
	}
	s.weight.Add(-int64(bytes))
	s.used.Add(-int64(n))
	if s.wanted.Load() {
		select {
		case s.freed <- struct{}{}:
		default:
		}
	}
}
