package boltstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"wayside/edge"
)

// BenchmarkAppend measures durable publishes of 1 KiB in groups against the limit of
// the disk: one write and one fdatasync of a group's bytes into a file that is
// already written, in the same run, turn by turn. "ratio" is what of the limit is
// reached, by medians. The store is in its steady state: what was consumed is trimmed, and its
// pages are written again. BenchmarkGrow is the same on a file that grows.
func BenchmarkAppend(b *testing.B) { benchGroups(b, true) }

func BenchmarkGrow(b *testing.B) { benchGroups(b, false) }

func benchGroups(b *testing.B, steady bool) {
	for _, form := range []struct {
		name    string
		journal int64
	}{{"journal", 48 << 20}, {"bbolt", 0}} {
		for _, group := range []int{1, 10, 100} {
			b.Run(fmt.Sprintf("%s/group=%d", form.name, group), func(b *testing.B) {
				benchAppend(b, form.journal, group, 1024, steady)
			})
		}
	}
}

func benchAppend(b *testing.B, journal int64, group, size int, steady bool) {
	o := DefaultOptions()
	o.Path = b.TempDir()
	o.Quota = 4 << 30
	o.JournalBytes = journal
	s := mustOpen(b, o)
	l, err := s.OpenLedger(edge.TopicName{Domain: edge.Persistent, Tenant: "public", Namespace: "default", Local: "bench"}, []string{"sub"})
	if err != nil {
		b.Fatal(err)
	}
	limit := newLimit(b, group*size)
	if steady {
		warm(b, l)
	}
	m := edge.Message{Facts: edge.Facts{Producer: "bench", Messages: 1, Publish: 1}, Data: make([]byte, size)}
	before := s.Stats()
	written, counts := deviceBytes(b, o.Path)
	var mine, best []time.Duration
	b.SetBytes(int64(group * size))
	b.ResetTimer()
	for n := 0; b.Loop(); n += group * size {
		if steady && n > 4<<20 {
			n = 0
			l.Roll(func(error) {})
			l.Trim(edge.Latest, func(error) {})
		}
		start := time.Now()
		answers := make(chan error, group)
		appendTogether(l.(*ledger), m, group, answers)
		for range group {
			if err := <-answers; err != nil {
				b.Fatal(err)
			}
		}
		mine = append(mine, time.Since(start))
		best = append(best, limit.write())
	}
	commits := float64(s.Stats().Commits - before.Commits)
	b.ReportMetric(float64(median(best))/float64(median(mine)), "ratio")
	b.ReportMetric(float64(s.Stats().Syncs-before.Syncs)/commits, "flushes/commit")
	b.ReportMetric(commits/float64(b.N), "commits/op")
	if counts {
		now, _ := deviceBytes(b, o.Path)
		b.ReportMetric(float64(now-written-limit.written)/float64(b.N*group*size), "device/payload")
	}
	b.ReportMetric(float64(median(best).Microseconds()), "limit-µs")
}

// median tells more than a mean where other programs use the same disk.
func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// deviceBytes is what the disk of a folder was told to write, if that is a loop device,
// which nobody else uses: TMPDIR names a folder there. Pages are not counted in the
// process, since a kernel counts larger pieces than it writes.
func deviceBytes(b *testing.B, dir string) (n int64, counts bool) {
	var st syscall.Stat_t
	if err := syscall.Stat(dir, &st); err != nil {
		b.Fatal(err)
	}
	const loop = 7 // major number
	if st.Dev>>8 != loop {
		return 0, false
	}
	syscall.Sync()
	raw, err := os.ReadFile(fmt.Sprintf("/sys/dev/block/%d:%d/stat", loop, st.Dev&0xff))
	if err != nil {
		b.Skip(err)
	}
	const written, sector = 6, 512
	if _, err := fmt.Sscan(strings.Fields(string(raw))[written], &n); err != nil {
		b.Fatal(err)
	}
	return n * sector, true
}

// warm writes and trims 96 MiB, so that there are free pages and segments to recycle.
func warm(b *testing.B, l edge.Ledger) {
	fillBytes(b, l, 96<<20)
	err := errors.Join(await(l.Roll), await(func(done func(error)) { l.Trim(edge.Latest, done) }))
	if err != nil {
		b.Fatal(err)
	}
}

// appendTogether puts a group in line as one, so that it is committed as one.
func appendTogether(l *ledger, m edge.Message, n int, answers chan<- error) {
	q := l.store.queue
	q.mu.Lock()
	for range n {
		q.putLocked(&appendOp{l: l, m: m, done: func(_ edge.Entry, err error) { answers <- err }})
	}
	q.mu.Unlock()
	q.signal()
}

// limit is a file of zeros that is written round and round.
type limit struct {
	b    *testing.B
	f    *os.File
	data []byte
	at   int64

	written int64 // bytes, in whole pages
}

const limitSize = 16 << 20

func newLimit(b *testing.B, size int) *limit {
	f, err := os.Create(filepath.Join(b.TempDir(), "limit"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { f.Close() })
	if _, err := f.Write(make([]byte, limitSize)); err != nil {
		b.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		b.Fatal(err)
	}
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(i)
	}
	return &limit{b: b, f: f, data: data}
}

func (l *limit) write() time.Duration {
	if l.at+int64(len(l.data)) > limitSize {
		l.at = 0
	}
	start := time.Now()
	if _, err := l.f.WriteAt(l.data, l.at); err != nil {
		l.b.Fatal(err)
	}
	if err := syscall.Fdatasync(int(l.f.Fd())); err != nil {
		l.b.Fatal(err)
	}
	took := time.Since(start)
	first, last := l.at/pageSize, (l.at+int64(len(l.data))-1)/pageSize
	l.written += (last - first + 1) * pageSize
	l.at += int64(len(l.data))
	return took
}

// BenchmarkRead reads a backlog as a dispatcher does, in batches of 100.
func BenchmarkRead(b *testing.B) {
	o := DefaultOptions()
	o.Path = b.TempDir()
	s := mustOpen(b, o)
	l := mustLedger(b, s, "a", "sub")
	const n = 50_000
	answers := make(chan error, n)
	m := edge.Message{Facts: edge.Facts{Producer: "bench", Messages: 1, Publish: 1}, Data: make([]byte, 128)}
	for range n {
		l.Append(m, func(_ edge.Entry, err error) { answers <- err })
	}
	for range n {
		if err := <-answers; err != nil {
			b.Fatal(err)
		}
	}
	next := l.Spans().Start()
	b.ReportAllocs()
	entries := 0
	for b.Loop() {
		batch, err := l.Read([]edge.Range{{First: next, Last: edge.Latest}}, 100, 1<<20)
		if err != nil {
			b.Fatal(err)
		}
		if len(batch.Entries) == 0 {
			next = l.Spans().Start()
			continue
		}
		entries += len(batch.Entries)
		next = batch.Entries[len(batch.Entries)-1].Position.Next()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(entries), "ns/entry")
}

// BenchmarkPublishers has many publishers that wait for each receipt.
func BenchmarkPublishers(b *testing.B) {
	for _, n := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			o := DefaultOptions()
			o.Path = b.TempDir()
			s := mustOpen(b, o)
			l := mustLedger(b, s, "a", "sub")
			warm(b, l)
			b.SetParallelism(max(1, n/runtime.GOMAXPROCS(0)))
			before := s.Stats().Commits
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				m := edge.Message{Facts: edge.Facts{Producer: "bench", Messages: 1, Publish: 1}, Data: make([]byte, 1024)}
				done := make(chan error, 1)
				for pb.Next() {
					l.Append(m, func(_ edge.Entry, err error) { done <- err })
					if err := <-done; err != nil {
						b.Error(err)
					}
				}
			})
			b.ReportMetric(float64(b.N)/float64(s.Stats().Commits-before), "messages/commit")
		})
	}
}
