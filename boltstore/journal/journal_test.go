package journal

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
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

// A failed append counts for nothing, now and after any later start, whatever of it
// reached the disk.
func TestWhatFailedNeverComesBack(t *testing.T) {
	broken := errors.New("broken")
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		fail := 0 // 1: before it is written, 2: torn, 3: at the sync
		r := newRig(t, func(o *Options) {
			o.hooks.write = func(f *os.File, b []byte, at int64) error {
				switch fail {
				case 1:
					return broken
				case 2:
					tear(rnd, f, b, at)
					return broken
				}
				return nil
			}
			o.Sync = func(f *os.File) error {
				if fail == 3 {
					return broken
				}
				return f.Sync()
			}
		})
		for i := range 60 {
			r.add(text(i, rnd.IntN(3000)))
			if rnd.IntN(4) > 0 {
				continue
			}
			fail = 1 + rnd.IntN(3)
			if _, err := r.try(text(-i, rnd.IntN(6000))); !errors.Is(err, broken) {
				t.Fatalf("%v", err)
			}
			if _, err := r.try(text(-i, 10)); !errors.Is(err, broken) {
				t.Fatalf("behind a failure: %v", err)
			}
			if rnd.IntN(3) == 0 {
				if err := r.log.Restart(); !errors.Is(err, broken) {
					t.Fatalf("restart: %v", err)
				}
			}
			fail = 0
			if err := r.log.Restart(); err != nil {
				t.Fatal(err)
			}
			if rnd.IntN(4) == 0 {
				r.reopen()
			}
		}
		r.reopen()
	}
}

// Without space for another segment what fits into the present one is still taken, what
// does not is refused, and all goes on when there is space.
func TestNoSpaceForASegment(t *testing.T) {
	var full atomic.Bool
	r := newRig(t, func(o *Options) {
		o.Spares = 0
		o.hooks.make = func() error {
			if full.Load() {
				return syscall.ENOSPC
			}
			return nil
		}
	})
	r.add(text(1, 1000))
	full.Store(true)
	for i := range 100 {
		if _, err := r.try(text(i, 3000)); err == nil {
			continue
		} else if !errors.Is(err, syscall.ENOSPC) || r.log.Failed() != nil {
			t.Fatalf("%v, failed %v", err, r.log.Failed())
		}
		break
	}
	r.add(text(0, 40)) // which fits still
	if err := r.log.Prepare(); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("prepare: %v", err)
	}
	full.Store(false)
	for i := range 20 {
		r.add(text(i, 3000))
	}
	r.reopen()
}

// However often it is tried on a disk that fails, tries leave no files behind.
func TestTriesLeaveNothing(t *testing.T) {
	var broken atomic.Bool
	r := newRig(t, func(o *Options) {
		o.Sync = func(f *os.File) error {
			if broken.Load() {
				return syscall.EIO
			}
			return f.Sync()
		}
	})
	r.add(text(1, 100))
	broken.Store(true)
	r.try(text(2, 100)) //nolint:errcheck // the disk is bad
	for range 30 {
		if err := r.log.Restart(); !errors.Is(err, syscall.EIO) {
			t.Fatal(err)
		}
	}
	if files, err := os.ReadDir(r.opts.Dir); err != nil || len(files) > 5 {
		t.Errorf("%d files, %v", len(files), err)
	}
	broken.Store(false)
	if err := r.log.Restart(); err != nil {
		t.Fatal(err)
	}
	r.add(text(3, 100))
	r.reopen()
}

// tear writes some sectors of what was to be written.
func tear(rnd *rand.Rand, f *os.File, b []byte, at int64) {
	for from := 0; from < len(b); {
		to := min(len(b), from+512-int(at+int64(from))%512)
		if rnd.IntN(2) == 0 {
			f.WriteAt(b[from:to], at+int64(from)) //nolint:errcheck // a lost write is what is wanted
		}
		from = to
	}
}

// A cut amid a write leaves all before it, and no word of damage.
func TestACutTearsOnlyWhatWasUnderWay(t *testing.T) {
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		cut := false
		r := newRig(t, func(o *Options) {
			o.hooks.write = func(f *os.File, b []byte, at int64) error {
				if cut {
					tear(rnd, f, b, at)
					return errors.New("cut")
				}
				return nil
			}
		})
		for range 1 + rnd.IntN(5) {
			for i := range rnd.IntN(40) {
				r.add(text(i, rnd.IntN(3000)))
			}
			cut = true
			payload := text(-1, rnd.IntN(8000))
			next := r.log.Next()
			r.try(payload) //nolint:errcheck // the power is gone
			cut = false
			seen, gaps := r.open(0)
			if len(gaps) > 0 || strings.Contains(r.said.String(), "level=ERROR") {
				t.Fatalf("seed %d: gaps %v\n%s", seed, gaps, r.said.String())
			}
			if bytes.Equal(seen[next], payload) {
				r.told[next] = payload // all of it arrived
			}
			r.compare(seen)
		}
	}
}

// Whatever byte is rotten: what is sound comes again, what is not is missing and named,
// but for the last group, which is as one that was cut.
func TestEveryByteMayRot(t *testing.T) {
	r := newRig(t, nil)
	for i := range 12 {
		r.add(text(i, 40+1500*(i%4)))
	}
	r.close()
	const groups = 12
	dir := r.opts.Dir
	files, err := filepath.Glob(filepath.Join(dir, "journal-*.seg"))
	if err != nil || len(files) < 3 {
		t.Fatalf("%v %v", files, err)
	}
	step := 23
	if os.Getenv("WAYSIDE_ROT_ALL") != "" {
		step = 1
	}
	for _, file := range files {
		good, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for at := 0; at < len(good); at += step {
			if at == 64 {
				at = headBytes // nothing looks at the rest of the head
			}
			trial := copyDir(t, dir)
			bad := slices.Clone(good)
			bad[at] ^= 1 << (at % 8)
			if err := os.WriteFile(filepath.Join(trial, filepath.Base(file)), bad, 0o600); err != nil {
				t.Fatal(err)
			}
			rotten(t, r, trial, groups, fmt.Sprintf("%s byte %d", filepath.Base(file), at))
			os.RemoveAll(trial) //nolint:errcheck // the test's own directory goes at the end
		}
	}
}

// rotten replays a damaged log and wants every group there or named.
func rotten(t *testing.T, r *rig, dir string, groups uint64, what string) {
	t.Helper()
	o := r.opts
	said := bytes.Buffer{}
	o.Dir, o.Logger = dir, slog.New(slog.NewTextHandler(&said, nil))
	l, err := Open(o)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	defer l.Close() //nolint:errcheck // shown by the leak check
	seen := map[uint64]bool{}
	gaps, err := l.Replay(0, func(g Group) error {
		if !bytes.Equal(g.Data, r.told[g.Commit]) {
			t.Fatalf("%s: commit %d is another", what, g.Commit)
		}
		seen[g.Commit] = true
		return nil
	})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	for n := uint64(1); n < groups; n++ { // the last may be missing without a word
		named := slices.ContainsFunc(gaps, func(g Gap) bool { return g.First <= n && n <= g.Last })
		if seen[n] == named {
			t.Fatalf("%s: commit %d: there %t, named %t (gaps %v)", what, n, seen[n], named, gaps)
		}
	}
	if missing := int(groups) - len(seen); missing > 2 {
		t.Fatalf("%s: one byte costs %d groups", what, missing)
	}
}

func copyDir(t *testing.T, dir string) string {
	t.Helper()
	to, err := os.MkdirTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(to, "d"), os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(to, "d")
}
