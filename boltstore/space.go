package boltstore

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"wayside/edge"
)

const (
	// commitPages is what a commit writes beside chunks: meta, the paths to what it
	// changes, records; topicPages the same for each topic that it touches.
	commitPages = 32
	topicPages  = 4

	// fullBackoff is the pause after the disk refused space, before it is asked again.
	fullBackoff = time.Second
)

// space is what the committer knows of the main file's room, bytes.
type space struct {
	written int64 // size of the file, all of it written
	high    int64 // the pages up to there have been used
	free    int64 // of these, given back
	reserve int64 // left to everything but appends
	step    int64 // by which the file grows
	retry   time.Time
	grower  *os.File // the main file, for writing zeros behind its end
}

func (p *space) tail() int64      { return p.written - p.high }
func (p *space) available() int64 { return p.tail() + p.free }

// measure takes the main file's state after a transaction.
func (s *Store) measure() error {
	tx, err := s.main.db.Begin(false)
	if err != nil {
		return err
	}
	s.space.high = tx.Size()
	if err := tx.Rollback(); err != nil {
		return err
	}
	st := s.main.db.Stats()
	s.space.free = int64(st.FreePageN+st.PendingPageN) * pageSize
	return nil
}

// mainLimit is how large the main file may become. It has to fit into the map, which
// is short on 32-bit machines.
func (s *Store) mainLimit() int64 {
	limit := s.opts.FileLimit - s.volumeBytes() - s.journalBytes()
	if is32bit {
		return min(limit, 512<<20)
	}
	return limit
}

// fits reports whether appends that take need bytes leave the reserve. Where the file
// cannot grow any more a long free list is trusted to have the pieces.
func (p *space) fits(need int64, growable bool) bool {
	if p.available()-need < p.reserve {
		return false
	}
	return p.tail() >= need || !growable && p.free >= 2*need
}

// makeRoom has as much written space as appends of that many bytes to that many topics
// need, or returns edge.ErrStoreFull.
func (s *Store) makeRoom(bytes, topics int64) error {
	need := bytes + bytes/16 + (commitPages+topicPages*topics)*pageSize
	if err := s.turnOverIfDue(need); err != nil {
		return err
	}
	p := &s.space
	if p.fits(need, true) {
		return nil
	}
	want := p.high + max(need, need+p.reserve-p.free) + p.step
	limit := s.mainLimit()
	err := s.growTo(min(want, limit))
	if p.fits(need, want <= limit && err == nil) {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: files take %d of %d bytes", edge.ErrStoreFull, s.fileBytes(), s.opts.FileLimit)
}

// makeTail grows the file, if it can, when what is not an append may not find pieces
// large enough. It needs no success: then the reserve has to do.
func (s *Store) makeTail(bytes int64) {
	p := &s.space
	need := bytes + commitPages*pageSize
	if p.tail() >= need || p.free >= p.reserve+2*need {
		return
	}
	if err := s.growTo(min(p.high+need+p.step, s.mainLimit())); err != nil {
		s.logger().Debug("main file does not grow", "error", err)
	}
}

// growTo writes zeros behind the end of the main file up to a size.
func (s *Store) growTo(size int64) error {
	p := &s.space
	size = size / pageSize * pageSize
	if size <= p.written {
		return nil
	}
	if time.Now().Before(p.retry) {
		return fmt.Errorf("%w: the disk is full", edge.ErrStoreFull)
	}
	if st, err := p.grower.Stat(); err != nil {
		return fmt.Errorf("grow main file: %w", err)
	} else {
		p.written = max(p.written, st.Size()/pageSize*pageSize) // never over what is there
	}
	err := s.writeZeros(p.grower, p.written, size)
	if st, serr := p.grower.Stat(); serr == nil {
		p.written = st.Size() / pageSize * pageSize
	}
	s.main.size.Store(p.written)
	s.main.db.MaxSize = int(p.written) + allocSize
	if err == nil {
		return nil
	}
	p.retry = time.Now().Add(fullBackoff)
	if isFull(err) {
		return fmt.Errorf("%w: %w", edge.ErrStoreFull, err)
	}
	return fmt.Errorf("grow main file: %w", err)
}

// cutTail gives back what the main file has written ahead, but for so many bytes. The map
// and bbolt never look behind the pages in use.
func (s *Store) cutTail(keep int64) bool {
	p := &s.space
	size := max(p.high+keep, startBytes)
	if p.written <= size || p.grower.Truncate(size) != nil {
		return false
	}
	p.written = size
	s.main.size.Store(size)
	s.main.db.MaxSize = int(size) + allocSize
	p.retry = time.Now().Add(fullBackoff)
	return true
}

// writeZeros fills a file from one offset up to another.
func (s *Store) writeZeros(f *os.File, from, to int64) error {
	if grow := s.opts.hooks.grow; grow != nil {
		return grow(f, to)
	}
	for from < to {
		n := min(to-from, int64(len(s.zeros)))
		if _, err := f.WriteAt(s.zeros[:n], from); err != nil {
			return err
		}
		from += n
	}
	return nil
}

// isFull tells errors of a full disk from those of a broken one.
func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, edge.ErrStoreFull)
}

// writeAhead grows the file by a step when little written space is left in front of
// a file that has been growing. It reports whether it did.
func (s *Store) writeAhead() bool {
	p := &s.space
	if p.tail() >= 2*p.step || p.free > p.step || time.Now().Before(p.retry) {
		return false
	}
	size := min(p.written+p.step, s.mainLimit(), s.opts.VolumeBytes+s.opts.VolumeBytes/4)
	if size <= p.written {
		return false
	}
	return s.growTo(size) == nil
}

// fileBytes is what all files take.
func (s *Store) fileBytes() int64 { return s.main.size.Load() + s.volumeBytes() + s.journalBytes() }

func (s *Store) journalBytes() int64 {
	if s.log == nil {
		return 0
	}
	return s.log.Bytes()
}
