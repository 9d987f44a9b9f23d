package boltstore

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// leftOut are syncs that a broken store would leave out, by what breaks without them.
var leftOut = []struct {
	name        string
	journalOnly bool
	left        func(ev event, meta bool) bool // meta: the file's last write was of a meta page
}{
	{"journal frames", true, func(ev event, _ bool) bool { return ev.kind == eventSync && strings.HasPrefix(ev.name, "journal-") }},
	{"journal heads", true, func(ev event, _ bool) bool {
		return ev.kind == eventSync && (strings.HasPrefix(ev.name, "next") || strings.HasPrefix(ev.name, "spare-"))
	}},
	{"main file", false, func(ev event, _ bool) bool { return ofMain(ev) }},
	{"pages of the main file", false, func(ev event, meta bool) bool { return ofMain(ev) && !meta }},
	{"meta pages of the main file", false, func(ev event, meta bool) bool { return ofMain(ev) && meta }},
	{"directory", false, func(ev event, _ bool) bool { return ev.kind == eventSyncDir }},
	{"files before they get their names", false, func(ev event, _ bool) bool {
		return ev.kind == eventSync && strings.HasSuffix(ev.name, tempSuffix)
	}},
}

func ofMain(ev event) bool { return ev.kind == eventSync && strings.HasSuffix(ev.name, fileSuffix) }

// TestPowerCutFindsWhatIsBroken leaves some syncs out of the record of a store, and wants
// the power cuts of TestPowerCut to find what that breaks, within 100 of them.
func TestPowerCutFindsWhatIsBroken(t *testing.T) {
	rec := recordChild(t)
	journal := envNumber(crashJournal, 0) > 0
	for _, c := range leftOut {
		if c.journalOnly && !journal {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			broken := rec.without(c.left)
			if n := len(rec.events) - len(broken.events); n == 0 {
				t.Fatal("there is no such sync")
			} else {
				t.Logf("%d syncs are left out of %d events", n, len(rec.events))
			}
			seed := uint64(envNumber("WAYSIDE_POWER_SEED", 1))
			cuts, err := cutRecord(rand.New(rand.NewPCG(seed, 3)), broken, 100, newDisk(), startAfterCut)
			if err == nil {
				t.Fatalf("%d cuts found nothing", cuts)
			}
			t.Logf("cut %d: %.300s", cuts, err.Error())
		})
	}
}

// TestPowerCutJournalFindsWhatIsBroken does the same on a store with a journal.
func TestPowerCutJournalFindsWhatIsBroken(t *testing.T) {
	t.Setenv(crashJournal, smallJournal)
	TestPowerCutFindsWhatIsBroken(t)
}

// without is the record of a child that has left syncs out.
func (rec *recording) without(left func(ev event, meta bool) bool) *recording {
	broken := &recording{dir: rec.dir}
	meta := map[string]bool{}
	for _, ev := range rec.events {
		if ev.kind == eventWrite {
			meta[ev.name] = ev.ofMeta()
		}
		if !left(ev, meta[ev.name]) {
			broken.events = append(broken.events, ev)
		}
	}
	return broken
}
