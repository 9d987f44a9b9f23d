package boltstore

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"wayside/edge"
)

// TestCrash kills a child that appends, saves cursors, trims, deletes and turns files
// over, at random moments, and looks at what is left:
//
//  1. Every entry that the child saw confirmed is there, in order and unchanged,
//     unless it lies before a trim that was asked for.
//  2. No position is used twice, not over crashes and not over deletions.
//  3. A cursor stands where it was confirmed to stand, or where a later save or a
//     trim put it.
//  4. A producer's sequence is that of its last entry.
//
// WAYSIDE_CRASH_ROUNDS sets the number of kills, WAYSIDE_CRASH_SEED their moments.
func TestCrash(t *testing.T) {
	rounds := envNumber("WAYSIDE_CRASH_ROUNDS", 10)
	seed := envNumber("WAYSIDE_CRASH_SEED", 1)
	r := rand.New(rand.NewPCG(uint64(seed), 0))
	o := crashOptions(t.TempDir())
	topics := map[string]*crashTopic{}
	confirmed := 0
	for round := range rounds {
		confirmed += crashRound(t, o.Path, topics, time.Duration(20+r.IntN(400))*time.Millisecond)
		s, err := Open(o)
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if st := s.Stats(); len(st.Remarks) > 0 {
			t.Fatalf("round %d: a kill is no damage: %v", round, st.Remarks)
		}
		for name, w := range topics {
			w.verify(t, s, name)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d rounds, %d entries confirmed", rounds, confirmed)
	if confirmed < rounds {
		t.Fatalf("only %d entries in %d rounds: the test tests nothing", confirmed, rounds)
	}
}

// TestCrashJournal does the same on a store with a journal of few, small segments.
func TestCrashJournal(t *testing.T) {
	t.Setenv(crashJournal, smallJournal)
	TestCrash(t)
}

func envNumber(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

func crashOptions(dir string) Options {
	o := DefaultOptions()
	o.Path = dir
	o.Quota = 32 << 20
	o.VolumeBytes = 1 << 20
	o.LedgerEntries = 300
	o.SaveInterval = 20 * time.Millisecond
	o.JournalBytes = int64(envNumber(crashJournal, 0))
	o.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	return o
}

// crashRound runs the child for a while, kills it and notes what it said.
func crashRound(t *testing.T, dir string, topics map[string]*crashTopic, life time.Duration) (confirmed int) {
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), crashDir+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var kill *time.Timer
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if err == io.EOF {
			break // a torn last line says nothing
		}
		if err != nil {
			t.Fatal(err)
		}
		if line == "open\n" {
			kill = time.AfterFunc(life, func() { cmd.Process.Kill() })
			continue
		}
		if noteCrash(t, topics, line) {
			confirmed++
		}
	}
	if kill == nil {
		t.Fatalf("the child did not open the store: %v", cmd.Wait())
	}
	kill.Stop()
	if err := cmd.Wait(); err == nil {
		t.Fatal("the child ended by itself")
	}
	return confirmed
}

// crashTopic is what the child said of a topic, over all rounds.
type crashTopic struct {
	birth    string
	entries  []edge.Entry // confirmed, or seen after a crash
	trimmed  edge.Position
	asked    edge.Position // last save of the cursor that was asked for
	saved    edge.Position // and that was confirmed
	deleting bool
	used     map[edge.Position]string
}

func (w *crashTopic) reset() {
	*w = crashTopic{used: w.used}
}

// noteCrash notes one line: what it is, topic, and numbers.
func noteCrash(t *testing.T, topics map[string]*crashTopic, line string) (entry bool) {
	var what, name, birth string
	var p edge.Position
	var index uint64
	var seq int64
	if _, err := fmt.Sscan(line, &what, &name, &birth, &p.Ledger, &p.Entry, &index, &seq); err != nil {
		t.Fatalf("line %q: %v", line, err)
	}
	w := topics[name]
	if w == nil {
		w = &crashTopic{used: map[edge.Position]string{}}
		topics[name] = w
	}
	switch what {
	case "birth":
		if w.birth != birth {
			w.reset()
			w.birth = birth
		}
	case "append":
		e := edge.Entry{Position: p, Index: index, Facts: edge.Facts{Sequence: seq, Messages: 1}}
		w.use(t, name, e)
		w.entries = append(w.entries, e)
		return true
	case "ask":
		w.asked = p
	case "saved":
		w.saved = p
	case "trim":
		w.trimmed = edge.Max(w.trimmed, p)
	case "delete":
		w.deleting = true
	case "deleted":
		w.reset()
	default:
		t.Fatalf("line %q", line)
	}
	return false
}

func (w *crashTopic) use(t *testing.T, name string, e edge.Entry) {
	content := fmt.Sprint(w.birth, e.Facts.Sequence)
	if was, ok := w.used[e.Position]; ok && was != content {
		t.Fatalf("%s: position %v is used for %s and for %s", name, e.Position, was, content)
	}
	w.used[e.Position] = content
}

// verify compares a store with what is known of a topic.
func (w *crashTopic) verify(t *testing.T, s *Store, name string) {
	t.Helper()
	found := false
	for _, r := range s.Records() {
		found = found || r.Name.Local == name
	}
	if !found {
		if !w.deleting && w.birth != "" {
			t.Fatalf("%s is gone", name)
		}
		w.reset()
		return
	}
	led, err := s.OpenLedger(crashName(name), nil)
	if err != nil {
		t.Fatal(err)
	}
	if led.BirthID() != w.birth {
		w.reset() // created, but not told of any more
		w.birth = led.BirthID()
	}
	w.deleting = false
	w.verifyEntries(t, led, name)
	w.verifyState(t, led, name)
}

func (w *crashTopic) verifyEntries(t *testing.T, led edge.Ledger, name string) {
	t.Helper()
	got := readAllEntries(t, led)
	at := map[edge.Position]edge.Entry{}
	for i, e := range got {
		if string(e.Data) != crashData(name, e.Facts.Sequence) {
			t.Fatalf("%s: entry %v has other data", name, e.Position)
		}
		if i > 0 && (e.Index != got[i-1].Index+1 || e.Facts.Sequence != got[i-1].Facts.Sequence+1) {
			t.Fatalf("%s: entry %v, index %d, sequence %d follows %v, %d, %d", name, e.Position, e.Index, e.Facts.Sequence,
				got[i-1].Position, got[i-1].Index, got[i-1].Facts.Sequence)
		}
		at[e.Position] = e
		w.use(t, name, e)
	}
	for _, e := range w.entries {
		g, ok := at[e.Position]
		switch {
		case !ok && e.Position.Less(w.trimmed) && !led.Spans().Start().Less(e.Position):
		case !ok:
			t.Fatalf("%s: confirmed entry %v is gone", name, e.Position)
		case g.Index != e.Index || g.Facts.Sequence != e.Facts.Sequence:
			t.Fatalf("%s: entry %v changed", name, e.Position)
		}
	}
	w.entries = got
}

func (w *crashTopic) verifyState(t *testing.T, led edge.Ledger, name string) {
	t.Helper()
	cursors, err := led.Cursors()
	if err != nil {
		t.Fatal(err)
	}
	if c := cursors["c"].MarkDelete; w.asked != (edge.Position{}) && (c.Less(w.saved) || edge.Max(w.asked, w.trimmed).Less(c)) {
		t.Fatalf("%s: cursor at %v, confirmed at %v, asked for %v, trimmed before %v", name, c, w.saved, w.asked, w.trimmed)
	} else {
		w.saved, w.asked = c, edge.Max(c, w.asked)
	}
	sequences, err := led.Sequences()
	if err != nil {
		t.Fatal(err)
	}
	if n := len(w.entries); n > 0 && sequences["p"].Highest != w.entries[n-1].Facts.Sequence {
		t.Fatalf("%s: sequence %d behind entry %+v", name, sequences["p"].Highest, w.entries[n-1].Facts)
	}
}

func readAllEntries(t testing.TB, led edge.Ledger) (all []edge.Entry) {
	t.Helper()
	return readEntries(t, led, led.Spans().Start())
}

// readEntries reads all from a position on.
func readEntries(t testing.TB, led edge.Ledger, next edge.Position) (all []edge.Entry) {
	t.Helper()
	for {
		b, err := led.Read([]edge.Range{{First: next, Last: edge.Latest}}, 500, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if len(b.Lost) > 0 {
			t.Fatalf("lost %v", b.Lost)
		}
		if len(b.Entries) == 0 {
			return all
		}
		all = append(all, b.Entries...)
		next = all[len(all)-1].Position.Next()
	}
}

func crashName(local string) edge.TopicName {
	return edge.TopicName{Domain: edge.Persistent, Tenant: "public", Namespace: "default", Local: local}
}

// crashData is entry seq of a topic. Those of t2 are large, so that files turn over.
func crashData(name string, seq int64) string {
	size := int(seq * 37 % 900)
	if name == "t2" {
		size *= 15
	}
	return fmt.Sprintf("%s %d %*s", name, seq, size, "")
}
