package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// supply has segments ready before they are needed: one with its head written, and some
// files to make others of. It has a goroutine, which ends with close.
type supply struct {
	opts Options
	need chan struct{} // capacity 1
	done chan struct{}
	wg   sync.WaitGroup

	making sync.Mutex // held while a segment is made, so that numbers are used in order

	mu     sync.Mutex // guards what follows; not held while files are written
	spares []spare    // files that are written through
	named  uint64     // the highest name that a spare has
	ready  *segment   // whose head is durable
	number uint64     // the highest that a segment has
	asked  bool       // a segment was asked for: there is a log
	ended  bool
}

// spare is a file that can become a segment.
type spare struct {
	path string
	size int64
}

// newSupply goes on behind the highest number that a segment has.
func newSupply(o Options, spares []spare, highest uint64) *supply {
	p := &supply{opts: o, spares: spares, number: highest, need: make(chan struct{}, 1), done: make(chan struct{})}
	for _, f := range spares {
		if n, ok := numberOf(filepath.Base(f.path), sparePrefix); ok {
			p.named = max(p.named, n)
		}
	}
	p.wg.Go(p.work)
	return p
}

// work makes segments ready until it is over.
func (p *supply) work() {
	for {
		select {
		case <-p.done:
			return
		case <-p.need:
		}
		if err := p.prepare(); err != nil {
			p.opts.Logger.Warn("no journal segment could be made ready", "error", err)
		}
	}
}

func (p *supply) wake() {
	select {
	case p.need <- struct{}{}:
	default:
	}
}

func (p *supply) prepare() error {
	p.making.Lock()
	defer p.making.Unlock()
	p.mu.Lock()
	skip := p.ready != nil || !p.asked || p.ended
	p.mu.Unlock()
	if skip {
		return nil
	}
	s, err := p.make(p.opts.SegmentBytes, max(p.opts.SegmentBytes/8, minSegment)) // one that is only for what cannot wait is made then
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ready = s
	return err
}

// get hands out a segment that is not shorter than size.
func (p *supply) get(size int64) (*segment, error) {
	p.making.Lock()
	defer p.making.Unlock()
	p.mu.Lock()
	p.asked = true
	s := p.ready
	p.ready = nil
	p.mu.Unlock()
	if s != nil && size > s.size { // numbers are used in order
		if err := p.takeBack(s); err != nil {
			return nil, err
		}
		s = nil
	}
	if s == nil {
		return p.make(max(size, p.opts.SegmentBytes), size)
	}
	return s, nil
}

// make makes a segment whose head is durable.
func (p *supply) make(size, least int64) (*segment, error) {
	if hook := p.opts.hooks.make; hook != nil {
		if err := hook(); err != nil {
			return nil, err
		}
	}
	path, err := p.blank(size, least)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.number++
	s := &segment{number: p.number, mark: newMark(), file: f}
	p.mu.Unlock()
	if err := s.mount(p.opts.Dir, path); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return s, nil
}

// mount writes the head and gives the file its name in the log.
func (s *segment) mount(dir, path string) error {
	st, err := s.file.Stat()
	if err != nil {
		return err
	}
	s.size = st.Size() / headBytes * headBytes
	if _, err := s.file.WriteAt(s.head(), 0); err != nil {
		return err
	}
	// What an earlier use left where the link will be is not one: it bears another mark.
	if err := s.file.Sync(); err != nil {
		return err
	}
	name := filepath.Join(dir, segmentName(s.number))
	if err := os.Rename(path, name); err != nil {
		return err
	}
	return SyncDir(dir)
}

// blank is a file of so many bytes, all of them written: a spare, if one is large enough.
// Where the disk is nearly full it may be smaller, but not than least.
func (p *supply) blank(size, least int64) (path string, err error) {
	if path := p.takeSpare(size); path != "" {
		return path, nil
	}
	for range 8 {
		if path, err = p.zeros(size); !errors.Is(err, syscall.ENOSPC) {
			return path, err
		}
		if short := p.takeSpare(least); short != "" {
			return short, nil
		}
		if size /= 2; size < least {
			break
		}
	}
	return path, err
}

// takeSpare takes one that is as large, and not far larger.
func (p *supply) takeSpare(size int64) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, f := range p.spares {
		if f.size >= size && f.size <= 2*max(size, p.opts.SegmentBytes) {
			p.spares = append(p.spares[:i], p.spares[i+1:]...)
			return f.path
		}
	}
	return ""
}

// zeros makes a file of zeros that are on the disk.
func (p *supply) zeros(size int64) (string, error) {
	size = (size + headBytes - 1) / headBytes * headBytes
	path := filepath.Join(p.opts.Dir, "next"+unfinished)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return "", err
	}
	zeros := make([]byte, min(size, 256<<10))
	for at := int64(0); at < size && err == nil; at += int64(len(zeros)) {
		_, err = f.WriteAt(zeros[:min(size-at, int64(len(zeros)))], at)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(fmt.Errorf("write zeros: %w", err), os.Remove(path))
	}
	return path, nil
}

// takeBack makes a spare of a segment that is not needed, or deletes it if there are
// enough, or it is one that a full disk had made short.
func (p *supply) takeBack(s *segment) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	path := filepath.Join(p.opts.Dir, segmentName(s.number))
	if err := s.file.Close(); err != nil {
		p.opts.Logger.Warn("closing a journal segment", "error", err)
	}
	if len(p.spares) >= p.opts.Spares || s.size > 2*p.opts.SegmentBytes || s.size < p.opts.SegmentBytes {
		return os.Remove(path)
	}
	p.named++
	name := filepath.Join(p.opts.Dir, fmt.Sprintf("%s%06d%s", sparePrefix, p.named, suffix))
	if err := os.Rename(path, name); err != nil {
		return err
	}
	p.spares = append(p.spares, spare{name, s.size})
	return nil
}

// ahead is the size of what the next segment can be without a write of zeros.
func (p *supply) ahead() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ready != nil {
		return p.ready.size
	}
	for _, f := range p.spares {
		if f.size >= p.opts.SegmentBytes {
			return f.size
		}
	}
	return 0
}

// bytes is what spares and the ready segment take.
func (p *supply) bytes() (n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ready != nil {
		n = p.ready.size
	}
	for _, f := range p.spares {
		n += f.size
	}
	return n
}

func (p *supply) close() error {
	p.mu.Lock()
	ended := p.ended
	p.ended = true
	p.mu.Unlock()
	if !ended {
		close(p.done)
	}
	p.wg.Wait()
	if p.ready == nil {
		return nil
	}
	err := p.ready.file.Close()
	p.ready = nil
	return err
}

// SyncDir makes the names in a directory durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}
