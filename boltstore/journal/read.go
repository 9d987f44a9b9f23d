package journal

import (
	"errors"
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

// Extent is a segment in use.
type Extent struct {
	Number uint64
	Bytes  int64 // that count in it
}

// Segments lists those in use, in order. Any goroutine may call it.
func (l *Log) Segments() []Extent {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([]Extent, len(l.segments))
	for i, s := range l.segments {
		list[i] = Extent{s.number, s.end}
	}
	return list
}

// Bytes is what all files take on disk. Any goroutine may call it.
func (l *Log) Bytes() int64 {
	n := l.supply.bytes()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.segments {
		n += s.size
	}
	return n
}

// isUnreadable tells errors of a bad place on the disk from those of the whole.
func isUnreadable(err error) bool { return errors.Is(err, syscall.EIO) }

// Used is what the segments in use take. Any goroutine may call it.
func (l *Log) Used() (n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.segments {
		n += s.size
	}
	return n
}
