package edge

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// shortageLasts is how long one refusal for want of room counts, while nothing is
	// stored: clients that publish come again much sooner.
	shortageLasts = 30 * time.Second
	// shortagePause is how long no producer is admitted after a refusal. The store asks
	// the disk again only after as long.
	shortagePause = time.Second
	// failurePause is how long further failures of the same kind are only counted.
	failurePause = time.Minute
)

// shortage knows whether the store lately had no room for what was published.
type shortage struct {
	on atomic.Bool // refused, and nothing was stored since

	mu   sync.Mutex
	at   time.Time // of the last refusal
	told quietly
}

// over notes that something was stored.
func (s *shortage) over() {
	if s.on.Load() {
		s.on.Store(false)
	}
}

// lasts reports whether publishing fails for want of room.
func (s *shortage) lasts() bool { return s.on.Load() && s.since() < shortageLasts }

// justNow reports whether a producer would only fail again.
func (s *shortage) justNow() bool { return s.on.Load() && s.since() < shortagePause }

func (s *shortage) since() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.at)
}

// refused notes a refusal, and tells whether it is to be logged and how many were not.
func (s *shortage) refused() (kept int, tell bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = time.Now()
	s.on.Store(true)
	return s.told.again(s.at)
}

// quietly lets a line into the log once in a while. Whoever uses it holds a lock.
type quietly struct {
	until time.Time
	kept  int
}

// again tells whether to log now, and how many times it was not done since the last.
func (q *quietly) again(now time.Time) (kept int, tell bool) {
	if now.Before(q.until) {
		q.kept++
		return 0, false
	}
	kept, q.kept = q.kept, 0
	q.until = now.Add(failurePause)
	return kept, true
}

// tellFailureLocked logs that an append failed: once in a while for each topic, and for
// all together where there was no room. Clients come back several times a second.
func (t *Topic) tellFailureLocked(producers int, cause error) {
	var kept int
	var tell bool
	if errors.Is(cause, ErrStoreFull) {
		kept, tell = t.broker.shortage.refused()
	} else {
		kept, tell = t.failures.again(time.Now())
	}
	if !tell {
		return
	}
	args := []any{"topic", t.name.String(), "producers", producers, "error", cause}
	if kept > 0 {
		args = append(args, "repeated", kept)
	}
	t.broker.opts.Logger.Error("publishing failed, producers are closed and may come again", args...)
}
