package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// Group is a group that is replayed.
type Group struct {
	Commit uint64
	At     Place
	Data   []byte // valid until visit returns
	Rotten bool   // Data is not all as it was written, and the commit counts as missing
}

// Gap is a stretch of commits that the log should have and has not. Last is 0 if it is
// not known where it ends.
type Gap struct{ First, Last uint64 }

func (g Gap) String() string {
	if g.Last == 0 {
		return fmt.Sprintf("commits from %d on", g.First)
	}
	return fmt.Sprintf("commits %d to %d", g.First, g.Last)
}

// replay is one walk through the log.
type replay struct {
	visit func(Group) error
	done  uint64
	next  uint64 // the commit that is expected, 0 before the first
	gaps  []Gap
	buf   []byte
}

// Replay visits all groups in order. Commits up to done are known from elsewhere: they
// are visited too if they are there, but not missed. Replay returns what is missing
// behind them, and an error only if visit gave one or the disk does. The log goes on
// behind what was found and behind done.
func (l *Log) Replay(done uint64, visit func(Group) error) ([]Gap, error) {
	ends, err := l.chain()
	if err != nil {
		return nil, fmt.Errorf("replay journal: %w", err)
	}
	r := replay{visit: visit, done: done}
	for i, s := range l.segments {
		if err := r.segment(s, ends[i]); err != nil {
			return nil, fmt.Errorf("replay journal: %w", err)
		}
	}
	l.commit = max(r.next, done+1)
	return r.missing(), nil
}

// missing are the gaps behind what is known from elsewhere.
func (r *replay) missing() (list []Gap) {
	for _, g := range r.gaps {
		if g.First = max(g.First, r.done+1); g.First <= g.Last {
			list = append(list, g)
		}
	}
	if r.next <= r.done && r.done > 0 {
		list = append(list, Gap{First: r.done + 1})
	}
	return list
}

// chain keeps the segments that follow from each other, back from the highest. Those
// between one and the one that its link names were begun by a commit that failed. ends
// holds where each counts to, the file's size where nobody says.
func (l *Log) chain() (ends []int64, err error) {
	var chain, dead []*segment
	rest := l.segments
	end := int64(0)
	for len(rest) > 0 {
		s := rest[len(rest)-1]
		rest = rest[:len(rest)-1]
		if end == 0 {
			end = s.size
		}
		chain, ends = append(chain, s), append(ends, min(end, s.size))
		end = 0
		if s.unlinked {
			continue
		}
		before, _, err := s.readLink()
		if err != nil {
			return nil, err
		}
		for len(rest) > 0 && rest[len(rest)-1].begunAt(before) {
			dead = append(dead, rest[len(rest)-1])
			rest = rest[:len(rest)-1]
		}
		if len(rest) > 0 && rest[len(rest)-1].number == before.before {
			end = before.end
		}
	}
	slices.Reverse(chain)
	slices.Reverse(ends)
	l.segments = chain
	for _, s := range dead {
		if l.supply == nil {
			err = errors.Join(err, s.file.Close())
			continue
		}
		err = errors.Join(err, l.supply.takeBack(s))
	}
	return ends, err
}

// begunAt reports whether a segment was begun where another one has gone on.
func (s *segment) begunAt(before link) bool {
	l, _, err := s.readLink()
	return err == nil && s.number > before.before && l == before
}

// segment replays one segment as far as it goes, up to a limit.
func (r *replay) segment(s *segment, limit int64) error {
	if !s.unlinked {
		_, commit, err := s.readLink()
		if err != nil {
			return err
		}
		r.expect(commit)
	}
	at := headBytes + frameBytes(linkBytes)
	s.end = at
	for at < limit {
		f, data, err := r.frame(s, at, limit)
		if err != nil {
			return err
		}
		if data == nil {
			behind, found := s.search(at+frameAlign, limit)
			if !found {
				break
			}
			if err := r.rotten(s, at, behind); err != nil {
				return err
			}
			at = behind
			continue
		}
		if f.kind == kindGroup {
			r.expect(f.commit)
			if err := r.visit(Group{f.commit, Place{s.number, at + FrameHead}, data, false}); err != nil {
				return err
			}
			r.next++
		}
		at += frameBytes(f.length)
		s.end = at
	}
	return nil
}

// rotten visits a group that is not as it was written, if the next one starts where its
// head says that it ends: most of it may be sound.
func (r *replay) rotten(s *segment, at, behind int64) error {
	f, data, err := r.read(s, at, behind)
	if err != nil || data == nil || f.kind != kindGroup || f.commit != r.next || frameBytes(f.length) != behind-at {
		return err
	}
	return r.visit(Group{f.commit, Place{s.number, at + FrameHead}, data, true})
}

// expect notes a gap if another commit should have come.
func (r *replay) expect(commit uint64) {
	if r.next == 0 {
		r.next = min(commit, r.done+1)
	}
	if commit > r.next {
		r.gaps = append(r.gaps, Gap{r.next, commit - 1})
	}
	r.next = max(r.next, commit)
}

// frame reads the frame at an offset. Without a sound one data is nil.
func (r *replay) frame(s *segment, at, limit int64) (frame, []byte, error) {
	f, data, err := r.read(s, at, limit)
	if data == nil || !f.sound(r.buf) {
		return frame{}, nil, err
	}
	return f, data, nil
}

// read is frame without a look at the checksum.
func (r *replay) read(s *segment, at, limit int64) (frame, []byte, error) {
	if limit-at < FrameHead {
		return frame{}, nil, nil
	}
	r.buf = grow(r.buf, FrameHead)
	if err := s.read(r.buf[:FrameHead], at); err != nil {
		return frame{}, nil, err
	}
	f, ok := parseFrame(r.buf, s.mark, limit-at)
	if !ok || f.commit < r.next {
		return frame{}, nil, nil
	}
	r.buf = grow(r.buf, FrameHead+f.length)
	if err := s.read(r.buf[:FrameHead+f.length], at); err != nil {
		return frame{}, nil, err
	}
	return f, r.buf[FrameHead : FrameHead+f.length : FrameHead+f.length], nil
}

func grow(b []byte, n int) []byte {
	if cap(b) < n {
		b = make([]byte, max(n, 64<<10))
	}
	return b[:cap(b)]
}

// search finds the next sound frame from an offset on.
func (s *segment) search(from, limit int64) (at int64, found bool) {
	var mark [8]byte
	binary.LittleEndian.PutUint64(mark[:], s.mark)
	const piece = 64 << 10
	buf := make([]byte, piece+FrameHead)
	for from = align(from); from < limit; {
		n := min(int64(len(buf)), limit-from)
		if err := s.read(buf[:n], from); err != nil {
			return 0, false
		}
		for i := 0; ; {
			j := bytes.Index(buf[i:n], mark[:])
			if j < 0 {
				break
			}
			if i += j; from+int64(i) == align(from+int64(i)) {
				if s.probe(from+int64(i), limit) {
					return from + int64(i), true
				}
			}
			i++
		}
		if n <= FrameHead {
			break
		}
		from += n - FrameHead
	}
	return 0, false
}

func align(at int64) int64 { return (at + frameAlign - 1) &^ (frameAlign - 1) }

// probe reports whether there is a sound frame at an offset.
func (s *segment) probe(at, limit int64) bool {
	_, data, err := (&replay{}).frame(s, at, limit)
	return err == nil && data != nil
}
