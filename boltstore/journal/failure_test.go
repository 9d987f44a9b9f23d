package journal

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
)

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
			if damage := r.log.Damage(); len(gaps)+len(damage) > 0 || strings.Contains(r.said.String(), "level=ERROR") {
				t.Fatalf("seed %d: gaps %v, damage %q\n%s", seed, gaps, damage, r.said.String())
			}
			if bytes.Equal(seen[next], payload) {
				r.told[next] = payload // all of it arrived
			}
			r.compare(seen)
		}
	}
}
