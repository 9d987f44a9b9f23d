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

// TestCrash kills a child that appends, saves, seeks and deletes cursors, trims, deletes
// topics, sets values and turns files over, at random moments, and looks at what is left:
//
//  1. Every entry that the child saw confirmed is there, in order and unchanged,
//     unless it lies before a trim that was asked for.
//  2. No position is used twice, not over crashes and not over deletions.
//  3. A cursor is as it was confirmed to be, or as a later save, deletion or trim made
//     it: with its holes, rests and counts, and never ahead of what was asked for. So
//     are properties and values.
//  4. A producer's sequence is that of its last entry.
//
// WAYSIDE_CRASH_ROUNDS sets the number of kills, WAYSIDE_CRASH_SEED their moments.
func TestCrash(t *testing.T) {
	rounds := envNumber("WAYSIDE_CRASH_ROUNDS", 10)
	seed := envNumber("WAYSIDE_CRASH_SEED", 1)
	r := rand.New(rand.NewPCG(uint64(seed), 0))
	o := crashOptions(t.TempDir())
	known := newKnown()
	for round := range rounds {
		crashRound(t, o.Path, known, time.Duration(20+r.IntN(400))*time.Millisecond)
		s, err := Open(o)
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if st := s.Stats(); len(st.Remarks) > 0 {
			t.Fatalf("round %d: a kill is no damage: %v", round, st.Remarks)
		}
		if err := known.verify(s); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d rounds, %d entries confirmed", rounds, known.receipts)
	if known.receipts < rounds {
		t.Fatalf("only %d entries in %d rounds: the test tests nothing", known.receipts, rounds)
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
func crashRound(t *testing.T, dir string, known *crashKnown, life time.Duration) {
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
		if err := known.note(line); err != nil {
			t.Fatal(err)
		}
	}
	if kill == nil {
		t.Fatalf("the child did not open the store: %v", cmd.Wait())
	}
	kill.Stop()
	if err := cmd.Wait(); err == nil {
		t.Fatal("the child ended by itself")
	}
}

func readAllEntries(t testing.TB, led edge.Ledger) (all []edge.Entry) {
	t.Helper()
	return readEntries(t, led, led.Spans().Start())
}

// readEntries reads all from a position on.
func readEntries(t testing.TB, led edge.Ledger, next edge.Position) []edge.Entry {
	t.Helper()
	all, err := collectEntries(led, next)
	if err != nil {
		t.Fatal(err)
	}
	return all
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
