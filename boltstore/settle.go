package boltstore

import (
	"fmt"
	"time"

	"wayside/edge"
)

// What the journal holds is brought into the files in two ways, both in steps between
// commits. Saving writes what a start would have to find out again: cursors, sequences,
// ledgers and records; it is due when much of that is new, and before a segment can go.
// Filing moves chunks from the oldest segment into the main file, when the journal has
// reached its size; those of ledgers that were trimmed meanwhile never touch it.
const (
	saveBytes  = 8 << 20 // of journal between two savings
	saveAfter  = time.Minute
	saveTopics = 128       // in one transaction
	maxUnsaved = 4096      // topics
	fileBytes  = 512 << 10 // moved in one transaction
	fileTopics = 64        // in one transaction
	maxLoose   = 48 << 10
	// mergedBytes is where chunks that are put together end, wholeBytes where one is not
	// put together with others.
	mergedBytes = 256 << 10
	wholeBytes  = 16 << 10
)

// saveDue reports whether it is time to save.
func (s *Store) saveDue() bool {
	return s.fresh >= saveBytes || s.fresh > 0 && time.Since(s.since) >= saveAfter || len(s.unsaved) >= maxUnsaved
}

// saveIn is how long it is until then, negative for ever. After a failure of the store it
// comes with the repair.
func (s *Store) saveIn() time.Duration {
	if s.log == nil || s.fresh == 0 || s.failure() != nil {
		return -1
	}
	return max(0, saveAfter-time.Since(s.since), time.Until(s.pause))
}

// fileDue reports whether chunks have to leave the journal.
func (s *Store) fileDue() bool {
	return s.log.Used() > s.opts.JournalBytes || s.loose > maxLoose
}

// pushed reports whether settling cannot wait until the store is quiet.
func (s *Store) pushed() bool {
	return s.turning || s.saving != nil || s.fresh >= 2*saveBytes || s.fileDue()
}

// settleStep does one step of saving or filing, if one is due, and reports whether it did.
func (s *Store) settleStep() (did bool) {
	if s.failure() != nil || time.Now().Before(s.pause) {
		return false
	}
	var err error
	if s.turning {
		did, err = s.finishStep()
	}
	switch {
	case did || err != nil:
	case s.saving != nil || s.saveDue():
		did, err = true, s.saveStep()
	case s.fileDue():
		did, err = s.fileStep()
	}
	if err != nil {
		s.pause = time.Now().Add(settlePause)
		s.logger().Warn("bringing the journal into the files failed", "error", err)
		return false
	}
	return did
}

// settlePause is how long settling waits after a failure.
const settlePause = time.Second

// saveAll leaves nothing for a replay.
func (s *Store) saveAll() {
	if s.log == nil || s.failure() != nil {
		return
	}
	for len(s.unsaved) > 0 || s.saving != nil {
		if err := s.saveStep(); err != nil {
			s.logger().Warn("state stays in the journal", "error", err)
			return
		}
	}
}

// roomAhead sees to it that appends leave acknowledgements some room even if the disk
// gives no further segment.
func (s *Store) roomAhead(appends int) error {
	reserve := s.opts.JournalSegment / 8
	if s.log.Room() >= int64(appends)+reserve {
		return nil
	}
	err := s.log.Prepare()
	for i := 0; i < sweepsWhenFull && isFull(err) && s.giveWay(); i++ {
		err = s.log.Prepare()
	}
	if isFull(err) {
		return fmt.Errorf("%w: no room for another segment of the journal: %w", edge.ErrStoreFull, err)
	}
	return nil
}

// giveWay gives something of the disk back for another segment: what the main file has
// written ahead, or what the oldest segment takes once nothing in it is needed. It reports
// whether it did some of that.
func (s *Store) giveWay() bool {
	if s.cutTail(s.space.step) {
		return true
	}
	did, err := s.fileStep()
	return did && err == nil
}

// journalRoom says why appends have no room in the journal.
func (s *Store) journalRoom(appends int) error {
	if appends == 0 {
		return nil
	}
	if err := s.roomAhead(appends); err != nil {
		return err
	}
	limit := s.opts.JournalBytes + 2*max(s.opts.JournalSegment, int64(appends))
	for range sweepsWhenFull {
		if s.log.Used() <= limit {
			return nil
		}
		if !s.settleStep() {
			break
		}
	}
	// What is only behind, or has its oldest segment in a reader's hands, catches up.
	if s.failure() == nil && !time.Now().Before(s.pause) {
		limit *= 2
	}
	if s.log.Used() <= limit {
		return nil
	}
	return fmt.Errorf("%w: the journal takes %d bytes and cannot be brought into the files", edge.ErrStoreFull, s.log.Used())
}
