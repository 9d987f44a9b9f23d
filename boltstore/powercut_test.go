package boltstore

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// TestPowerCut records every write of a working child with strace and cuts the power
// at many moments of the record: what was not synced then is dropped, kept or torn at
// random, sector by sector, and names that were not synced come and go. Each time the
// store has to start without a word about damage and to hold every receipt, as in
// TestCrash. WAYSIDE_POWER_CUTS sets the number of cuts.
func TestPowerCut(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed")
	}
	cuts := envNumber("WAYSIDE_POWER_CUTS", 80)
	seed := uint64(envNumber("WAYSIDE_POWER_SEED", 1))
	const perRecord = 2000
	for round := uint64(0); cuts > 0; round++ {
		n := min(cuts, perRecord)
		cuts -= n
		cutRecord(t, rand.New(rand.NewPCG(seed, round)), recordChild(t, strace), n)
	}
}

// TestPowerCutJournal does the same on a store with a journal of few, small segments.
func TestPowerCutJournal(t *testing.T) {
	t.Setenv(crashJournal, smallJournal)
	TestPowerCut(t)
}

// recordChild runs the crash child under strace until it ends by itself.
func recordChild(t *testing.T, strace string) *recording {
	dir, log := t.TempDir(), filepath.Join(t.TempDir(), "strace")
	cmd := exec.Command(strace, "-f", "-qq", "-y", "-xx", "-s", "67108864", "-o", log,
		"-e", "trace=pwrite64,write,fdatasync,fsync,ftruncate,rename,renameat,unlink,unlinkat,openat", os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), crashDir+"="+dir, crashLife+"=1200ms")
	if out, err := cmd.CombinedOutput(); err != nil && !bytes.Contains(out, []byte("open\n")) {
		t.Skipf("strace does not work here: %v: %.200s", err, out)
	}
	return parseRecord(t, dir, log)
}

// cutRecord cuts at n moments in the order of the record.
func cutRecord(t *testing.T, r *rand.Rand, rec *recording, n int) {
	at := moments(r, rec, n)
	disk := newDisk()
	topics := map[string]*crashTopic{}
	next, receipts := 0, 0
	for _, cut := range at {
		for ; next < cut; next++ {
			ev := rec.events[next]
			if ev.kind != eventSay {
				disk.apply(ev)
				continue
			}
			if line := string(ev.data); line != "open\n" && noteCrash(t, topics, line) {
				receipts++
			}
		}
		startAfterCut(t, disk.cut(r, t.TempDir()), topics, cut)
	}
	t.Logf("%d cuts in %d events, %d names given, %d receipts at the last", n, len(rec.events), rec.count(eventRename), receipts)
	if receipts == 0 {
		t.Fatal("nothing was confirmed: the test tests nothing")
	}
}

// count counts events of a kind.
func (rec *recording) count(kind eventKind) (n int) {
	for _, ev := range rec.events {
		n += int(b2i(ev.kind == kind))
	}
	return n
}

// moments chooses where to cut: half of them soon behind a file's new name, where a
// main file is made or turned over, the others anywhere.
func moments(r *rand.Rand, rec *recording, n int) []int {
	var renames []int
	for i, ev := range rec.events {
		if ev.kind == eventRename {
			renames = append(renames, i)
		}
	}
	const soon = 12
	at := make([]int, n)
	for i := range at {
		at[i] = r.IntN(len(rec.events) + 1)
		if i%2 == 0 && len(renames) > 0 {
			at[i] = min(renames[r.IntN(len(renames))]+r.IntN(soon), len(rec.events))
		}
	}
	slices.Sort(at)
	return at
}

// startAfterCut opens what a cut has left and verifies it. What is known of topics
// stays as it was before: the record goes on without this cut.
func startAfterCut(t *testing.T, dir string, topics map[string]*crashTopic, cut int) {
	t.Helper()
	defer os.RemoveAll(dir)
	s, err := Open(crashOptions(dir))
	if err != nil {
		t.Fatalf("cut at %d: %v", cut, err)
	}
	defer s.Close()
	if st := s.Stats(); len(st.Remarks) > 0 {
		t.Fatalf("cut at %d: a power cut is no damage: %v", cut, st.Remarks)
	}
	for name, w := range topics {
		known := *w
		known.used = maps.Clone(w.used)
		known.entries = slices.Clone(w.entries)
		known.verify(t, s, name)
	}
}

// disk is what a recorded child has written: to files, some of it synced, and to
// their directory.
type disk struct {
	names   map[string]*diskFile // durable
	pending []event              // on names, since the directory was synced
	now     map[string]*diskFile // as the child sees it
}

type diskFile struct {
	synced  []byte
	pending []event // writes and truncations since
}

func newDisk() *disk {
	return &disk{names: map[string]*diskFile{}, now: map[string]*diskFile{}}
}

func (d *disk) apply(ev event) {
	switch ev.kind {
	case eventWrite, eventTruncate:
		if f := d.now[ev.name]; f != nil {
			f.pending = append(f.pending, ev)
		}
	case eventSync:
		if f := d.now[ev.name]; f != nil {
			for _, p := range f.pending {
				f.synced = p.on(f.synced)
			}
			f.pending = nil
		}
	case eventSyncDir:
		d.names, d.pending = maps.Clone(d.now), nil
	default:
		d.pending = append(d.pending, ev)
		onNames(d.now, &d.pending[len(d.pending)-1])
	}
}

// onNames changes names as an event does. A file that an event makes is the same one
// whenever the event is applied.
func onNames(names map[string]*diskFile, ev *event) {
	switch ev.kind {
	case eventCreate:
		if names[ev.name] == nil {
			if ev.file == nil {
				ev.file = &diskFile{}
			}
			names[ev.name] = ev.file
		}
	case eventRename:
		if f := names[ev.name]; f != nil {
			names[ev.to] = f
			delete(names, ev.name)
		}
	case eventUnlink:
		delete(names, ev.name)
	}
}

// cut writes what a power cut may leave into a directory.
func (d *disk) cut(r *rand.Rand, dir string) string {
	names := maps.Clone(d.names)
	for i := range r.IntN(len(d.pending) + 1) { // a journal keeps their order
		onNames(names, &d.pending[i])
	}
	for name, f := range names {
		b := bytes.Clone(f.synced)
		for _, i := range r.Perm(len(f.pending)) {
			b = f.pending[i].torn(r, b)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			panic(err)
		}
	}
	return dir
}

// on applies an event to a file's bytes.
func (ev event) on(b []byte) []byte {
	if ev.kind == eventTruncate {
		if int(ev.offset) <= len(b) {
			return b[:ev.offset]
		}
		return append(b, make([]byte, int(ev.offset)-len(b))...)
	}
	if end := int(ev.offset) + len(ev.data); end > len(b) {
		b = append(b, make([]byte, end-len(b))...)
	}
	copy(b[ev.offset:], ev.data)
	return b
}

// torn applies some of an event, or nothing, or all.
func (ev event) torn(r *rand.Rand, b []byte) []byte {
	const sector = 512
	switch r.IntN(3) {
	case 0:
		return b
	case 1:
		return ev.on(b)
	}
	for at := 0; at < len(ev.data); at += sector {
		if r.IntN(2) == 0 {
			part := ev
			part.offset += int64(at)
			part.data = ev.data[at:min(at+sector, len(ev.data))]
			b = part.on(b)
		}
	}
	return b
}
