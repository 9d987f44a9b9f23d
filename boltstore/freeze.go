package boltstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"wayside/edge"
)

// A running store is backed up as it stands behind one commit. The committer holds it
// still for one bounded step, in which it copies a small main file beside itself, opens
// the volumes and pins the journal; a large main file becomes a volume first, so that
// only what is not entries is left. All else is copied by whoever asked.

// freeze is asked of the committer.
type freeze struct {
	b    *backup
	done chan error // capacity 1
}

const (
	// smallMain is the largest main file, bytes in use, that one step copies, but for what
	// its topics take.
	smallMain = 8 << 20
	// frozenName is the copy of the main file in the directory, which a start removes.
	frozenName = filePrefix + "frozen" + tempSuffix
)

// Backup copies the store as it stands to target, as Inspection.Backup does. ErrBackupBusy
// says that another one is under way.
func (s *Store) Backup(ctx context.Context, target string, rate int64, tell Progress) error {
	if !s.backing.TryLock() {
		return ErrBackupBusy
	}
	defer s.backing.Unlock()
	select {
	case <-s.closing:
		return edge.ErrClosing
	default:
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-s.closing:
			cancel(edge.ErrClosing)
		case <-ctx.Done():
		}
	}()
	defer func() {
		cancel(nil)
		<-watched
	}()
	b, err := newBackup(ctx, s.opts.Path, target, rate, tell)
	if err != nil {
		return err
	}
	err = s.freeze(b)
	if err == nil {
		err = b.make()
	}
	err = errors.Join(err, b.letAll())
	s.queue.signal() // the journal's segments can go
	if err != nil {
		return fmt.Errorf("back up store: %w", err)
	}
	return nil
}

// freeze has the committer note what belongs to the backup.
func (s *Store) freeze(b *backup) error {
	f := &freeze{b: b, done: make(chan error, 1)}
	s.freezing.Store(f)
	s.queue.signal()
	ctx := b.pace.ctx
	select {
	case err := <-f.done:
		return err
	case <-ctx.Done():
	case <-s.done:
	}
	if s.freezing.CompareAndSwap(f, nil) {
		return errors.Join(context.Cause(ctx), edge.ErrClosing)
	}
	return errors.Join(<-f.done, context.Cause(ctx)) // it is being answered
}

// freezeStep does one step towards what is asked, and reports whether there was one.
func (s *Store) freezeStep() bool {
	f := s.freezing.Load()
	if f == nil {
		return false
	}
	ready, err := s.shrinkMain()
	if err == nil && !ready {
		return true
	}
	if !s.freezing.CompareAndSwap(f, nil) {
		return true // given up meanwhile
	}
	if err == nil {
		err = s.hold(f.b)
	}
	f.done <- err
	return true
}

// smallEnough is what the main file may have in use for one step.
func (s *Store) smallEnough() int64 {
	return cmp.Or(s.opts.hooks.small, smallMain) + int64(len(s.topics))*turnTopicBytes
}

// shrinkMain makes a main file that is too large a volume, after what belongs to its
// ledgers has come in from the journal.
func (s *Store) shrinkMain() (ready bool, err error) {
	if s.space.high <= s.smallEnough() {
		return true, nil
	}
	if c := s.compaction; c != nil && c.move != nil && c.move.after > 0 {
		s.compactStep() // the ledger that is being moved comes in first
		return false, nil
	}
	if s.partial() != nil {
		s.turning = true
		_, err := s.finishStep()
		return false, err
	}
	was := s.main.number
	if err := s.turnOver(); err != nil {
		return false, err
	}
	if s.main.number == was || s.space.high > s.smallEnough() {
		return false, fmt.Errorf("%w: the main file cannot be made small enough to be held still", edge.ErrStoreFull)
	}
	return true, nil
}

// hold notes the files of a backup as they stand.
func (s *Store) hold(b *backup) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, b.letAll())
		}
	}()
	b.main, b.lease = s.main.number, s.ids.end
	if s.log != nil { // first: it is wanted again
		b.addJournal(s.log.Freeze(), s.hurryJournal)
	}
	if err := s.holdMain(b); err != nil {
		return err
	}
	return b.addVolumes(s)
}

// holdMain copies the main file in the directory: the target's disk may be slow.
func (s *Store) holdMain(b *backup) error {
	path := filepath.Join(s.opts.Path, frozenName)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	b.parts = append(b.parts, part{name: s.main.name(), from: f, bytes: s.space.high, let: func() error {
		return errors.Join(f.Close(), os.Remove(path))
	}})
	_, err = io.CopyBuffer(struct{ io.Writer }{f}, io.NewSectionReader(s.space.grower, 0, s.space.high), make([]byte, pacePiece))
	return err
}

// hurryJournal lets a backup copy the journal without regard to its rate while segments
// have to go, and fails it before appends find no room: it is what holds them.
func (s *Store) hurryJournal() (now bool, err error) {
	used := s.log.Used()
	if used > s.opts.JournalBytes+s.opts.JournalSegment {
		return true, errors.New("the journal was needed again before it was copied: the target is slower than what is published, name another")
	}
	return used > s.opts.JournalBytes, nil
}
