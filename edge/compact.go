package edge

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// CompactionStatus tells of a topic's compaction (protocol 5.2).
type CompactionStatus struct {
	Running bool
	Ran     bool  // since the topic was loaded
	Err     error // of the last one

	Removed           int64 // messages taken out by the last that succeeded
	Succeeded, Failed int64 // when, ms since 1970, 0 for never
	Took              time.Duration
}

// compactionWork is the compaction of one topic. The topic's lock guards it.
type compactionWork struct {
	CompactionStatus
	cancel  context.CancelFunc // set while it runs
	done    chan struct{}      // closed when it has ended
	retryAt time.Time          // not before by itself, after a failure
}

// compactRetry is the pause behind a compaction that failed before the next one that
// nobody asks for.
const compactRetry = time.Minute

// Compact has the topic compacted up to its present end. It does not wait for it. ErrExists
// if that goes on already.
func (t *Topic) Compact() error {
	switch {
	case !t.name.IsPersistent():
		return fmt.Errorf("%w: a non-persistent topic holds nothing to compact", ErrNotAllowed)
	case t.broker.opts.Opener == nil:
		return fmt.Errorf("%w: this broker cannot look into messages", ErrNotAllowed)
	}
	if err := t.claimCompaction(); err != nil {
		return err
	}
	if !t.broker.compactor.add(t.broker, t) {
		t.compactionEnded(0, 0, ErrClosing)
		return ErrClosing
	}
	return nil
}

func (t *Topic) claimCompaction() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed != nil {
		return t.closed
	}
	if t.compaction == nil {
		t.compaction = &compactionWork{}
	}
	if t.compaction.Running {
		return fmt.Errorf("%w: Compaction already in progress", ErrExists)
	}
	t.compaction.Running, t.compaction.done = true, make(chan struct{})
	return nil
}

// Compaction tells how the topic's compaction stands.
func (t *Topic) Compaction() CompactionStatus {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.compaction == nil {
		return CompactionStatus{}
	}
	return t.compaction.CompactionStatus
}

// stopCompaction ends one that runs or waits, and waits for that. The topic is closed to
// newcomers.
func (t *Topic) stopCompaction(ctx context.Context) error {
	t.mu.Lock()
	w := t.compaction
	if w == nil || !w.Running {
		t.mu.Unlock()
		return nil
	}
	if w.cancel != nil {
		w.cancel()
	}
	t.mu.Unlock()
	if t.broker.compactor.drop(t) {
		t.compactionEnded(0, 0, ErrUnloaded)
	}
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// compact does the work, on the compactor's goroutine.
func (t *Topic) compact(run context.Context) {
	ctx, cancel := context.WithCancel(run)
	defer cancel()
	t.mu.Lock()
	t.compaction.cancel = cancel
	closed := t.closed
	t.mu.Unlock()
	if closed != nil {
		t.compactionEnded(0, 0, closed)
		return
	}
	began := time.Now()
	r := compacting{t: t, ctx: ctx, opener: t.broker.opts.Opener}
	err := r.all()
	if err != nil && ctx.Err() == nil {
		t.broker.opts.Logger.Error("compacting a topic failed", "topic", t.name.String(), "error", err)
	}
	t.compactionEnded(r.removed, time.Since(began), err)
}

func (t *Topic) compactionEnded(removed int64, took time.Duration, err error) {
	now := t.broker.opts.Clock().UnixMilli()
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.compaction
	w.Running, w.Ran, w.Err, w.cancel = false, true, err, nil
	if err != nil {
		w.Failed, w.retryAt = now, time.Now().Add(compactRetry)
	} else {
		w.Succeeded, w.Removed, w.Took = now, removed, took
	}
	t.used = time.Now()
	close(w.done)
}

// compactIfDue has the topic compacted whose rules ask for it: more than the threshold
// is not compacted yet. A subscription for it, made before, keeps that from being
// trimmed away.
func (t *Topic) compactIfDue(now time.Time) {
	threshold := t.policies.Load().CompactionThreshold
	if threshold == nil || *threshold <= 0 || !t.name.IsPersistent() || t.broker.opts.Opener == nil {
		return
	}
	t.mu.Lock()
	s, w := t.subs[CompactionSubscription], t.compaction
	waits := t.closed != nil || w != nil && (w.Running || now.Before(w.retryAt))
	t.mu.Unlock()
	if waits {
		return
	}
	if s == nil {
		if err := t.ensureSubscription(t.broker.run, CompactionSubscription); err != nil && !errors.Is(err, ErrUnloaded) {
			t.broker.opts.Logger.Warn("a topic cannot be prepared for compaction", "topic", t.name.String(), "error", err)
		}
		return // the next round sees to it
	}
	spans := t.ledger.Spans()
	if spans.BytesBetween(*s.marked.Load(), spans.End()) > *threshold {
		_ = t.Compact() // or it is closing, or somebody was quicker
	}
}

// compactedTo makes a compacted form the topic's, and the old one go.
func (t *Topic) compactedTo(ctx context.Context, s *Subscription, state compactedState, l Ledger) error {
	next := newCompacted(t, state, l)
	err := wait(ctx, func(done func(error)) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.closed != nil {
			done(s.closed)
			return
		}
		s.kind, s.typed = Exclusive, s.typed || len(s.consumers) == 0 // as the reference's own reader leaves it
		s.cursor.SetPlan(state.encode())
		s.cursor.AckUpTo(t.ledger.Spans(), state.Horizon, nil)
		s.changedLocked(done)
	})
	if err != nil {
		return fmt.Errorf("note the compacted form: %w", err)
	}
	if old := t.compacted.Swap(next); old != nil {
		old.retire()
	}
	return nil
}

// dropCompacted lets the topic's compacted form go: its subscription was deleted.
func (t *Topic) dropCompacted() {
	if old := t.compacted.Swap(nil); old != nil {
		old.retire()
	}
}
