package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"syscall"
)

// Log is a journal. Open, Replay, Start, Append, Restart, Release and Close are for one
// goroutine, its owner; Pin and Bytes are for all.
type Log struct {
	opts   Options
	supply *supply

	// the owner's
	current *segment
	at      int64  // end of what is durable in it
	commit  uint64 // of the next group
	failed  error  // why nothing is appended before Restart
	links   []byte // scratch
	damage  []string

	mu       sync.Mutex // guards segments, and their pins
	segments []*segment // in use, in order; the last is current once it has started
}

// Place is where a group lies.
type Place struct {
	Segment uint64
	Offset  int64 // of its payload
}

// Open takes the files of a directory. What they hold is to be replayed before Start.
func Open(o Options) (*Log, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.Sync == nil {
		o.Sync = func(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }
	}
	l := &Log{opts: o, commit: 1}
	spares, highest, err := l.take()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open journal: %w", err), l.closeSegments())
	}
	if !o.ReadOnly {
		l.supply = newSupply(o, spares, highest)
	}
	return l, nil
}

// take sorts the files of the directory into segments and spares. highest is the highest
// number that a segment has.
func (l *Log) take() (spares []spare, highest uint64, err error) {
	names, err := os.ReadDir(l.opts.Dir)
	if err != nil {
		return nil, 0, err
	}
	for _, e := range names {
		path := filepath.Join(l.opts.Dir, e.Name())
		number, isSegment := numberOf(e.Name(), segmentPrefix)
		_, isSpare := numberOf(e.Name(), sparePrefix)
		switch {
		case strings.HasSuffix(e.Name(), unfinished) && !l.opts.ReadOnly:
			err = os.Remove(path)
		case isSegment:
			highest = max(highest, number)
			isSpare, err = l.admit(path, number)
		}
		if err != nil {
			return nil, 0, err
		}
		if isSpare {
			info, err := e.Info()
			if err != nil {
				return nil, 0, err
			}
			spares = append(spares, spare{path, info.Size()})
		}
	}
	sort.Slice(l.segments, func(i, j int) bool { return l.segments[i].number < l.segments[j].number })
	return spares, highest, nil
}

// admit opens a file as a segment if it is one in use. A spare was made ready and not
// used, or is on its way to its next use.
func (l *Log) admit(path string, number uint64) (isSpare bool, err error) {
	s, err := openSegment(path, number, l.opts.ReadOnly)
	switch {
	case errors.Is(err, ErrDamaged):
		return false, l.setAside(path, err)
	case err != nil:
		return false, err
	}
	if s.number == number && l.inUse(s) {
		l.segments = append(l.segments, s)
		return false, nil
	}
	return true, s.file.Close()
}

// inUse reports whether a segment holds part of the log. A cut in its first write leaves
// no sound frame at all, since the link and the first head share a sector.
func (l *Log) inUse(s *segment) bool {
	_, _, err := s.readLink()
	if err == nil {
		return true
	}
	at, found := s.search(headBytes, s.size)
	if found {
		l.damage = append(l.damage, fmt.Sprintf("%s has lost its beginning, the next group lies at %d", filepath.Base(s.file.Name()), at))
		s.unlinked = true
	}
	return found
}

// setAside keeps a file under another name that cannot be read: something of it may be
// saved by hand.
func (l *Log) setAside(path string, cause error) error {
	if l.opts.ReadOnly {
		l.damage = append(l.damage, cause.Error())
		return nil
	}
	l.damage = append(l.damage, fmt.Sprintf("%v; it is set aside as %s", cause, filepath.Base(path)+".damaged"))
	return os.Rename(path, path+".damaged")
}

// Damage is what Open has found wrong with files. What that costs, as far as it shows, are
// the gaps that Replay returns.
func (l *Log) Damage() []string { return l.damage }

// Start goes on in a new segment, behind where the replay has ended. It returns when
// that is durable. If it fails, Restart may do it later.
func (l *Log) Start() error {
	err := l.follow(frameBytes(0))
	if err == nil {
		l.links = appendLink(l.links[:0], l.current.mark, l.commit, l.linkTo())
		err = l.put(l.links)
	}
	if err != nil {
		l.failed = fmt.Errorf("start journal: %w", err)
		return l.failed
	}
	l.join(l.current)
	l.failed = nil
	return nil
}

// linkTo names the end of the log before the current segment.
func (l *Log) linkTo() link {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.segments); n > 0 {
		last := l.segments[n-1]
		return link{last.number, last.end}
	}
	return link{}
}

// Append writes a group and returns where it lies when it is durable. The payload is
// what stands in buf behind FrameHead bytes, which the log fills in; buf is the caller's
// again. After an error nothing of the group counts; if Failed says so nothing can be
// appended before Restart. Number is that of the commit.
func (l *Log) Append(buf []byte) (at Place, number uint64, err error) {
	if l.failed != nil {
		return Place{}, 0, l.failed
	}
	if len(buf)-FrameHead > MaxGroup {
		return Place{}, 0, fmt.Errorf("journal: group of %d bytes", len(buf)-FrameHead)
	}
	if at, err = l.append(buf); err != nil {
		err = fmt.Errorf("append to journal: %w", err)
		if !errors.Is(err, errNoSegment) {
			l.failed = err
		}
		return Place{}, 0, err
	}
	l.commit++
	return at, l.commit - 1, nil
}

func (l *Log) append(buf []byte) (Place, error) {
	need := frameBytes(len(buf) - FrameHead)
	if l.at+need <= l.current.size {
		seal(buf, l.current.mark, l.commit, kindGroup)
		at := l.at
		return Place{l.current.number, at + FrameHead}, l.put(buf)
	}
	end := link{l.current.number, l.at}
	if err := l.follow(need); err != nil {
		return Place{}, err
	}
	// Link and group are one write: a crash leaves both, or the log ends before them.
	s := l.current
	seal(buf, s.mark, l.commit, kindGroup)
	l.links = append(appendLink(l.links[:0], s.mark, l.commit, end), buf...)
	at := Place{s.number, l.at + frameBytes(linkBytes) + FrameHead}
	if err := l.put(l.links); err != nil {
		return Place{}, err
	}
	if cap(l.links) > 64<<10 {
		l.links = nil
	}
	l.join(s)
	return at, nil
}

// put writes frames behind what is durable, and syncs them.
func (l *Log) put(b []byte) error {
	s := l.current
	if err := l.present(); err != nil {
		return err
	}
	if hook := l.opts.hooks.write; hook != nil {
		if err := hook(s.file, b, l.at); err != nil {
			return err
		}
	}
	if _, err := s.file.WriteAt(b, l.at); err != nil {
		return err
	}
	if err := l.opts.Sync(s.file); err != nil {
		return fmt.Errorf("sync %s: %w", filepath.Base(s.file.Name()), err)
	}
	l.at += frameBytes(len(b) - FrameHead)
	l.mu.Lock()
	s.end = l.at
	l.mu.Unlock()
	return nil
}

// present makes sure that the segment still has a name: what is written to a file that
// was removed is gone with the process.
func (l *Log) present() error {
	st, err := l.current.file.Stat()
	if err != nil {
		return err
	}
	if raw, ok := st.Sys().(*syscall.Stat_t); ok && raw.Nlink == 0 {
		return fmt.Errorf("%s was removed while it was in use", filepath.Base(l.current.file.Name()))
	}
	return nil
}

// follow makes a new segment with so much room the current one.
func (l *Log) follow(need int64) error {
	need += headBytes + frameBytes(linkBytes)
	s, err := l.supply.get(need)
	if err != nil {
		return fmt.Errorf("%w: %w", errNoSegment, err)
	}
	failed := l.current
	l.current, l.at = s, headBytes
	if failed != nil && failed.end == 0 { // it was never joined, and tries on a bad disk are many
		return l.supply.takeBack(failed)
	}
	return nil
}

// join takes the current segment into the log.
func (l *Log) join(s *segment) {
	l.mu.Lock()
	l.segments = append(l.segments, s)
	l.mu.Unlock()
	l.supply.wake()
}

// Restart ends the state after a failed Append: it goes on in a new segment, whose link
// leaves out what has failed.
func (l *Log) Restart() error { return l.Start() }

// errNoSegment says that no further segment could be made. Nothing was written.
var errNoSegment = errors.New("no new segment")

// Failed says why nothing is appended before Restart, nil if there is nothing.
func (l *Log) Failed() error { return l.failed }

// Room is how much more fits into what is ready: the current segment and the one that is
// to follow.
func (l *Log) Room() int64 {
	if l.current == nil {
		return 0
	}
	return l.current.size - l.at + l.supply.ahead()
}

// Left is how much more fits into the current segment.
func (l *Log) Left() int64 {
	if l.current == nil {
		return 0
	}
	return l.current.size - l.at
}

// Next is the number of the next commit.
func (l *Log) Next() uint64 { return l.commit }

// Close closes all files. Nothing is pinned any more.
func (l *Log) Close() error {
	if l.supply == nil {
		return l.closeSegments()
	}
	err := errors.Join(l.supply.close(), l.closeSegments())
	if s := l.current; s != nil && s.end == 0 {
		err = errors.Join(err, s.file.Close())
	}
	return err
}

func (l *Log) closeSegments() (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.segments {
		err = errors.Join(err, s.file.Close())
	}
	l.segments = nil
	return err
}

// Prepare makes the segment ready that is to follow, if it is not.
func (l *Log) Prepare() error { return l.supply.prepare() }

// Exists reports whether a directory holds a journal.
func Exists(dir string) (bool, error) {
	names, err := os.ReadDir(dir)
	if err != nil {
		return false, err
	}
	for _, e := range names {
		if _, ok := numberOf(e.Name(), segmentPrefix); ok {
			return true, nil
		}
	}
	return false, nil
}

// Remove closes the journal and deletes its files. It ends the log as Close does.
func (l *Log) Remove() error {
	err := l.Close() // first: until then segments are made ready
	names, listed := os.ReadDir(l.opts.Dir)
	err = errors.Join(err, listed)
	for _, e := range names {
		_, isSegment := numberOf(e.Name(), segmentPrefix)
		_, isSpare := numberOf(e.Name(), sparePrefix)
		if isSegment || isSpare {
			err = errors.Join(err, os.Remove(filepath.Join(l.opts.Dir, e.Name())))
		}
	}
	return err
}
