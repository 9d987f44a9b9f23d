package journal

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

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
		if g.Rotten {
			if was := r.told[g.Commit]; was == nil || len(was) != len(g.Data) {
				t.Fatalf("%s: commit %d has %d bytes, was %d", what, g.Commit, len(g.Data), len(was))
			}
			return nil
		}
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

// A segment whose head is that of an earlier use, which a disk gives back that has lost a
// write, is known by its link; one whose link is of that use too is set aside and named.
func TestTheHeadOfAnEarlierUse(t *testing.T) {
	for _, linked := range []bool{true, false} {
		r := newRig(t, nil)
		for i := range 30 {
			r.add(text(i, 3000))
		}
		last := r.log.segments[len(r.log.segments)-1]
		lost := 0
		earlier := segment{number: last.number - 3, mark: newMark()}
		bad := earlier.head()
		if !linked {
			bad = appendLink(bad, earlier.mark, 1, link{})
			for _, number := range r.where {
				lost += map[bool]int{true: 1}[number == last.number]
			}
		}
		if _, err := last.file.WriteAt(bad, 0); err != nil {
			t.Fatal(err)
		}
		seen, gaps := r.open(0)
		if len(seen) != len(r.told)-lost || len(gaps) > 0 {
			t.Errorf("linked %t: %d groups of %d, gaps %v", linked, len(seen), len(r.told), gaps)
		}
		if damage := r.log.Damage(); len(damage) != map[bool]int{false: 1}[linked] {
			t.Errorf("linked %t: damage %q", linked, damage)
		}
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
