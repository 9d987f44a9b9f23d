package journal

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a log in a directory, and what was confirmed of it.
type rig struct {
	t     *testing.T
	opts  Options
	log   *Log
	told  map[uint64][]byte
	where map[uint64]uint64 // segments of groups
	said  bytes.Buffer
}

func newRig(t *testing.T, tweak func(*Options)) *rig {
	r := &rig{t: t, opts: DefaultOptions(), told: map[uint64][]byte{}, where: map[uint64]uint64{}}
	r.opts.Dir, r.opts.SegmentBytes = t.TempDir(), minSegment
	r.opts.Logger = slog.New(slog.NewTextHandler(&r.said, nil))
	if tweak != nil {
		tweak(&r.opts)
	}
	r.open(0)
	t.Cleanup(func() { r.close() })
	return r
}

func (r *rig) close() {
	r.t.Helper()
	if r.log == nil {
		return
	}
	if err := r.log.Close(); err != nil {
		r.t.Errorf("close: %v", err)
	}
	r.log = nil
}

// open opens and replays the log, and wants to see all that was confirmed.
func (r *rig) open(done uint64) (seen map[uint64][]byte, gaps []Gap) {
	r.t.Helper()
	r.close()
	l, err := Open(r.opts)
	if err != nil {
		r.t.Fatal(err)
	}
	r.log = l
	seen = map[uint64][]byte{}
	last := uint64(0)
	gaps, err = l.Replay(done, func(g Group) error {
		if g.Commit <= last {
			r.t.Fatalf("commit %d behind %d", g.Commit, last)
		}
		last = g.Commit
		seen[g.Commit] = bytes.Clone(g.Data)
		r.readsAs(g.At, g.Data)
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
	if err := l.Start(); err != nil {
		r.t.Fatal(err)
	}
	return seen, gaps
}

// readsAs wants a group's bytes where it lies.
func (r *rig) readsAs(at Place, want []byte) {
	r.t.Helper()
	pin := r.log.Pin(at.Segment)
	if pin == nil {
		r.t.Fatalf("segment %d is gone", at.Segment)
	}
	defer pin.Unpin()
	got := make([]byte, len(want))
	if _, err := pin.ReadAt(got, at.Offset); err != nil || !bytes.Equal(got, want) {
		r.t.Fatalf("%v reads otherwise: %v", at, err)
	}
}

// reopen wants exactly what was confirmed.
func (r *rig) reopen() {
	r.t.Helper()
	seen, gaps := r.open(0)
	if len(gaps) > 0 {
		r.t.Fatalf("gaps: %v", gaps)
	}
	r.compare(seen)
}

func (r *rig) compare(seen map[uint64][]byte) {
	r.t.Helper()
	for n, want := range r.told {
		if !bytes.Equal(seen[n], want) {
			r.t.Fatalf("commit %d: %d bytes, want %d", n, len(seen[n]), len(want))
		}
	}
	if len(seen) != len(r.told) {
		r.t.Fatalf("%d groups, want %d", len(seen), len(r.told))
	}
}

func (r *rig) try(payload []byte) (Place, error) {
	at, n, err := r.log.Append(append(make([]byte, FrameHead), payload...))
	if err == nil {
		r.told[n], r.where[n] = payload, at.Segment
	}
	return at, err
}

func (r *rig) add(payload []byte) Place {
	r.t.Helper()
	at, err := r.try(payload)
	if err != nil {
		r.t.Fatal(err)
	}
	r.readsAs(at, payload)
	return at
}

// text is a payload of n bytes that shows its number.
func text(i, n int) []byte {
	b := bytes.Repeat([]byte(fmt.Sprintf("%d.", i)), n/2+1)
	return b[:n]
}

func TestWhatIsAppendedComesAgain(t *testing.T) {
	r := newRig(t, nil)
	r.reopen()
	for i := range 400 {
		r.add(text(i, i*7%900))
		if i%97 == 0 {
			r.reopen()
		}
	}
	r.reopen()
	if n := len(r.log.Segments()); n < 10 {
		t.Errorf("%d segments: nothing was tested", n)
	}
}

func TestALargeGroupHasASegmentOfItsOwn(t *testing.T) {
	r := newRig(t, nil)
	r.add(text(1, 100))
	r.add(text(2, 300_000))
	r.add(text(3, 100))
	r.reopen()
	if err := r.log.Release(r.log.Segments()[len(r.log.Segments())-1]); err != nil {
		t.Fatal(err)
	}
	if n := r.log.Bytes(); n > 4*minSegment {
		t.Errorf("%d bytes are kept of it", n)
	}
}

// Groups that are larger than a segment come among others, and segments go.
func TestGroupsOfAllSizes(t *testing.T) {
	for seed := range uint64(4) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		r := newRig(t, nil)
		for i := range 150 {
			size := rnd.IntN(2000)
			if rnd.IntN(4) == 0 {
				size = rnd.IntN(3 * minSegment)
			}
			at := r.add(text(i, size))
			if rnd.IntN(10) == 0 {
				if err := r.log.Release(at.Segment); err != nil {
					t.Fatal(err)
				}
				oldest := r.log.Segments()[0]
				for n := range r.told {
					if r.where[n] < oldest {
						delete(r.told, n)
					}
				}
			}
			if rnd.IntN(20) == 0 {
				seen, gaps := r.open(r.log.Next() - 1)
				if len(gaps) > 0 {
					t.Fatalf("seed %d: %v", seed, gaps)
				}
				for n, want := range r.told {
					if !bytes.Equal(seen[n], want) {
						t.Fatalf("seed %d: commit %d: %d bytes, want %d", seed, n, len(seen[n]), len(want))
					}
				}
			}
		}
	}
}

func TestReleasedSegmentsAreUsedAgain(t *testing.T) {
	r := newRig(t, nil)
	const rounds = 300
	for i := range rounds {
		at := r.add(text(i, 3000))
		if err := r.log.Release(at.Segment); err != nil {
			t.Fatal(err)
		}
	}
	if n := r.log.Bytes(); n > 6*minSegment {
		t.Errorf("%d bytes on disk", n)
	}
	files, _ := os.ReadDir(r.opts.Dir)
	if len(files) > 6 {
		t.Errorf("%d files", len(files))
	}
	oldest := uint64(0)
	seen, gaps := r.open(rounds)
	for n := range seen {
		oldest = max(oldest, n)
		if !bytes.Equal(seen[n], r.told[n]) {
			t.Errorf("commit %d is another", n)
		}
	}
	if oldest != rounds || len(gaps) > 0 {
		t.Errorf("the newest is %d, gaps %v", oldest, gaps)
	}
}

func TestAPinnedSegmentStays(t *testing.T) {
	r := newRig(t, nil)
	first := r.add(text(1, 1000))
	pin := r.log.Pin(first.Segment)
	var last Place
	for i := range 100 {
		last = r.add(text(i, 1000))
	}
	if err := r.log.Release(last.Segment); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 1000)
	if _, err := pin.ReadAt(got, first.Offset); err != nil || !bytes.Equal(got, text(1, 1000)) {
		t.Errorf("read: %v", err)
	}
	pin.Unpin()
	if err := r.log.Release(last.Segment); err != nil {
		t.Fatal(err)
	}
	if r.log.Pin(first.Segment) != nil {
		t.Error("it is there still")
	}
}
