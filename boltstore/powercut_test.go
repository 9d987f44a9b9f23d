package boltstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// TestPowerCut records every write of a working child with strace and cuts the power
// at many moments of the record: what was not synced then is dropped, kept or torn at
// random, sector by sector, and names that were not synced come and go. Each time the
// store has to start without a word about damage and to hold every receipt, as in
// TestCrash. WAYSIDE_POWER_CUTS sets the number of cuts.
func TestPowerCut(t *testing.T) {
	cuts := envNumber("WAYSIDE_POWER_CUTS", 80)
	seed := uint64(envNumber("WAYSIDE_POWER_SEED", 1))
	const perRecord = 2000
	for round := uint64(0); cuts > 0; round++ {
		n := min(cuts, perRecord)
		cuts -= n
		rec := recordChild(t)
		if _, err := cutRecord(rand.New(rand.NewPCG(seed, round)), rec, n, newDisk(), startAfterCut); err != nil {
			t.Fatal(err)
		}
		t.Logf("%d cuts in %d events, %d names given", n, len(rec.events), rec.count(eventRename))
	}
}

// TestPowerCutJournal does the same on a store with a journal of few, small segments: PL-09
// of the cases that people met with other brokers, what was confirmed before it was saved.
func TestPowerCutJournal(t *testing.T) {
	t.Setenv(crashJournal, smallJournal)
	TestPowerCut(t)
}

// recordChild runs the crash child under strace until it ends by itself.
func recordChild(t *testing.T) *recording {
	t.Helper()
	if raced {
		t.Skip("a record takes minutes to play with the race detector: scripts/crash does it without")
	}
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed")
	}
	dir, log := t.TempDir(), filepath.Join(t.TempDir(), "strace")
	cmd := exec.Command(strace, "-f", "-qq", "-y", "-xx", "-s", "67108864", "-o", log,
		"-e", "trace=pwrite64,write,fdatasync,fsync,ftruncate,rename,renameat,unlink,unlinkat,openat", os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), crashDir+"="+dir, crashLife+"=1200ms")
	if out, err := cmd.CombinedOutput(); err != nil && !bytes.Contains(out, []byte("open\n")) {
		t.Skipf("strace does not work here: %v: %.200s", err, out)
	}
	return parseRecord(t, dir, log)
}

// cutRecord cuts at n moments in the order of the record and shows look what is left, and
// what was said by then. It returns the first error of look, and how many cuts there were.
func cutRecord(r *rand.Rand, rec *recording, n int, disk *disk, look func(dir string, known *crashKnown) error) (cuts int, err error) {
	known := newKnown()
	next := 0
	for _, cut := range moments(r, rec, n) {
		for ; next < cut; next++ {
			ev := rec.events[next]
			if ev.kind != eventSay {
				disk.apply(ev)
			} else if line := string(ev.data); line != "open\n" {
				if err := known.note(line); err != nil {
					return cuts, err
				}
			}
		}
		cuts++
		dir, err := os.MkdirTemp("", "powercut")
		if err == nil {
			err = disk.cut(r, dir)
		}
		if err == nil {
			err = look(dir, known.clone())
		}
		if err = errors.Join(err, os.RemoveAll(dir)); err != nil {
			return cuts, fmt.Errorf("cut at %d of %d: %w", cut, len(rec.events), err)
		}
	}
	if known.receipts == 0 {
		return cuts, errors.New("nothing was confirmed: the test tests nothing")
	}
	return cuts, nil
}

// count counts events of a kind.
func (rec *recording) count(kind eventKind) (n int) {
	for _, ev := range rec.events {
		n += int(b2i(ev.kind == kind))
	}
	return n
}

// moments chooses where to cut: a quarter of them soon behind a main file's name, where it
// is made or turned over, a quarter soon behind any new name, a quarter where a meta page
// has been written and is not synced, the others anywhere.
func moments(r *rand.Rand, rec *recording, n int) []int {
	var mains, names, metas []int
	for i, ev := range rec.events {
		switch {
		case ev.ofMeta():
			metas = append(metas, i+1)
		case ev.kind == eventRename && strings.HasSuffix(ev.to, fileSuffix):
			mains = append(mains, i)
		}
		if ev.kind == eventRename {
			names = append(names, i)
		}
	}
	const soon = 12
	at := make([]int, n)
	for i := range at {
		at[i] = r.IntN(len(rec.events) + 1)
		switch list := [][]int{mains, names, metas, nil}[i%4]; {
		case len(list) == 0:
		case i%4 == 2:
			at[i] = list[r.IntN(len(list))]
		default:
			at[i] = min(list[r.IntN(len(list))]+r.IntN(soon), len(rec.events))
		}
	}
	slices.Sort(at)
	return at
}

// ofMeta tells writes of a main file's meta pages.
func (ev event) ofMeta() bool {
	return ev.kind == eventWrite && strings.HasSuffix(ev.name, fileSuffix) && ev.offset < 2*pageSize
}

// startAfterCut wants a store that starts as if nothing had happened, holds what was
// confirmed, goes on with positions that were never used, and starts again.
func startAfterCut(dir string, known *crashKnown) error {
	s, said, err := openListening(dir)
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // the second of two, or behind a failure
	if err := errors.Join(said.damage(s), known.verify(s), known.goOn(s), s.Close()); err != nil {
		return err
	}
	again, said, err := openListening(dir)
	if err != nil {
		return fmt.Errorf("second start: %w", err)
	}
	if err := errors.Join(said.damage(again), known.verify(again), again.Close()); err != nil {
		return fmt.Errorf("second start: %w", err)
	}
	return nil
}

// openListening opens a store of the crash tests and keeps what it says of damage.
func openListening(dir string) (*Store, *listener, error) {
	said := &listener{}
	o := crashOptions(dir)
	o.Logger = said.logger()
	s, err := Open(o)
	return s, said, err
}

// listener is a log that keeps errors only.
type listener struct {
	mu   sync.Mutex
	said []string
}

func (l *listener) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelError }
func (l *listener) WithAttrs([]slog.Attr) slog.Handler               { return l }
func (l *listener) WithGroup(string) slog.Handler                    { return l }

func (l *listener) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := r.Message
	r.Attrs(func(a slog.Attr) bool {
		text += " " + a.String()
		return true
	})
	l.said = append(l.said, text)
	return nil
}

func (l *listener) logger() *slog.Logger { return slog.New(l) }

// all is what was said, once.
func (l *listener) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.said)
}

// damage is an error if the store or its log have named any.
func (l *listener) damage(s *Store) error {
	if said := append(s.Stats().Remarks, l.all()...); len(said) > 0 {
		return fmt.Errorf("a power cut is no damage: %q", said)
	}
	return nil
}
