package journal

import (
	"errors"
	"io"
	"syscall"
)

// Pin keeps a segment from being given back until it is unpinned. It returns nil when
// the segment is gone. Any goroutine may call it.
func (l *Log) Pin(number uint64) *Pinned {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.segments {
		if s.number == number {
			s.pins++
			return &Pinned{l, s}
		}
	}
	return nil
}

// Pinned is a segment that is read.
type Pinned struct {
	log *Log
	seg *segment
}

// ReadAt reads what is durable. What a bad sector hides reads as zeros.
func (p *Pinned) ReadAt(b []byte, at int64) (int, error) {
	if err := p.seg.read(b, at); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Unpin ends it. It is called once.
func (p *Pinned) Unpin() {
	p.log.mu.Lock()
	defer p.log.mu.Unlock()
	p.seg.pins--
}

// Release gives segments back that lie whole before a number, as far as nobody reads
// them; the others go with a later call. The current one stays.
func (l *Log) Release(before uint64) error {
	var free []*segment
	l.mu.Lock()
	for len(l.segments) > 1 && l.segments[0].number < before && l.segments[0].pins == 0 {
		free = append(free, l.segments[0])
		l.segments = l.segments[1:]
	}
	l.mu.Unlock()
	var err error
	for _, s := range free {
		err = errors.Join(err, l.supply.takeBack(s))
	}
	return err
}

// Segments are the numbers of those in use, in order. Any goroutine may call it.
func (l *Log) Segments() []uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([]uint64, len(l.segments))
	for i, s := range l.segments {
		list[i] = s.number
	}
	return list
}

// Used is what the segments in use take on disk. Any goroutine may call it.
func (l *Log) Used() (n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.segments {
		n += s.size
	}
	return n
}

// Bytes is what all files take on disk. Any goroutine may call it.
func (l *Log) Bytes() int64 { return l.Used() + l.supply.bytes() }

// read reads from a segment. What a bad sector hides, and what is behind the end of a
// file that was cut, reads as zeros: it is damage, which the checksums show.
func (s *segment) read(p []byte, at int64) error {
	n, err := s.file.ReadAt(p, at)
	if err == nil {
		return nil
	}
	clear(p[n:])
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.EIO) {
		return nil
	}
	return err
}

// Piece is a segment as it stood when it was frozen: what counts of it are its first
// bytes.
type Piece struct {
	*Pinned
	Name  string // of its file
	Bytes int64
}

// Freeze pins all segments in use. The owner calls it, or somebody while nothing is
// appended; each piece is unpinned by itself.
func (l *Log) Freeze() (list []Piece) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.segments {
		s.pins++
		list = append(list, Piece{&Pinned{l, s}, segmentName(s.number), min(s.end, s.size)})
	}
	return list
}
