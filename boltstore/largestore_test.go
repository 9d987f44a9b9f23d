package boltstore

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wayside/edge"
)

// TestRotInALargeStore does to a store of several volumes what TestEveryByteOfASmallStore
// does to a small one, at random places: a bit, a page of zeros, a page from elsewhere.
// WAYSIDE_ROT_ROUNDS sets how many, WAYSIDE_ROT_MIB the size of the store.
func TestRotInALargeStore(t *testing.T) {
	large := newLargeStore(t, envNumber("WAYSIDE_ROT_MIB", 4))
	r := rand.New(rand.NewPCG(uint64(envNumber("WAYSIDE_ROT_SEED", 1)), 5))
	names, sum := large.names(), rotSum{}
	for range envNumber("WAYSIDE_ROT_ROUNDS", 40) {
		name := names[r.IntN(len(names))]
		bad := bytes.Clone(large.files[name])
		if len(bad) < pageSize {
			continue
		}
		at := r.IntN(len(bad)/pageSize) * pageSize
		page, what := bad[at:][:pageSize], fmt.Sprint("page ", at/pageSize)
		switch r.IntN(4) {
		case 0:
			clear(page)
			what += " cleared"
		case 1:
			from := r.IntN(len(bad)/pageSize) * pageSize
			copy(page, large.files[name][from:])
			what += fmt.Sprint(" from ", from/pageSize)
		case 2: // where elements are
			i := r.IntN(256)
			page[i] ^= 1 << r.IntN(8)
			what += fmt.Sprint(" byte ", i)
		default:
			i := r.IntN(pageSize)
			page[i] ^= 1 << r.IntN(8)
			what += fmt.Sprint(" byte ", i)
		}
		sum.add(t, large, name, bad, what)
	}
	t.Logf("%d files: %+v of %d entries", len(names), sum, large.entries())
}

// newLargeStore makes a store of so many MiB of entries, in volumes of one.
func newLargeStore(t *testing.T, mib int) *smallStore {
	t.Helper()
	o := testOptions(t)
	o.Quota, o.VolumeBytes, o.GroupBytes = 1<<30, 1<<20, 64<<10
	o.JournalBytes, o.JournalSegment = 256<<10, 64<<10
	large := &smallStore{o: o, files: map[string][]byte{}, topics: map[string]*smallTopic{}}
	s := mustOpen(t, o)
	const entry = 4 << 10
	names, ledgers := []string{"a", "b", "c"}, []edge.Ledger{}
	for _, name := range names {
		large.topics[name] = &smallTopic{}
		ledgers = append(ledgers, mustLedger(t, s, name, "c"))
	}
	for i := range mib * (1 << 20) / entry {
		name, l := names[i%3], ledgers[i%3]
		m := edge.Message{Data: fmt.Appendf(nil, "%s %d %*s", name, i, entry-20, ""), Facts: edge.Facts{Messages: 1}}
		if err := await(func(done func(error)) {
			l.Append(m, func(e edge.Entry, err error) {
				large.topics[name].entries = append(large.topics[name].entries, e)
				done(err)
			})
		}); err != nil {
			t.Fatal(err)
		}
	}
	mustAppend(t, mustLedger(t, s, "z"), "the last group of the journal, which may be missing without a word")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	volumes := 0
	paths, err := filepath.Glob(filepath.Join(o.Path, "*"))
	for _, path := range paths {
		b, rerr := os.ReadFile(path)
		if rerr != nil {
			err = rerr
		}
		large.files[filepath.Base(path)] = b
		volumes += int(b2i(strings.HasSuffix(path, fileSuffix)))
	}
	if err != nil || volumes < 3 {
		t.Fatalf("%d files: %v", volumes, err)
	}
	return large
}
