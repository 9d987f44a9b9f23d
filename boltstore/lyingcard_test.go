package boltstore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"wayside/edge"
)

// lieDepth is how many of a file's last synced writes a lying card may lose.
const lieDepth = 40

// slowStart is what a start may take on damaged files of this size, at most.
const slowStart = 10 * time.Second

// TestLyingCard cuts the power of a card that has said "synced" of what it has not kept:
// of each file some of the last writes are lost, whole or by pages, or all from one on.
// That may cost data, and what nothing stands behind may be missing without a word: it
// looks like an older state. But the store starts, soon, serves only what was stored at
// its place, tells readers what is missing between what is there, and when it has noticed
// damage and the file of ids is whole it gives no position out again. WAYSIDE_LYING_CUTS sets the number of cuts.
func TestLyingCard(t *testing.T) {
	cuts := envNumber("WAYSIDE_LYING_CUTS", 30)
	seed := uint64(envNumber("WAYSIDE_POWER_SEED", 1))
	total := lies{}
	perRecord := min(500, (cuts+1)/2)
	for round := uint64(0); cuts > 0; round++ {
		n := min(cuts, perRecord)
		cuts -= n
		d := newDisk()
		d.lies = lieDepth
		total.ids = round%2 == 1
		if total.ids {
			d.honest = idsName
		}
		if _, err := cutRecord(rand.New(rand.NewPCG(seed, round)), recordChild(t), n, d, total.look); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%+v", total)
	if total.Named == 0 {
		t.Error("no lie was noticed: the test tests nothing")
	}
}

// TestLyingCardJournal does the same on a store with a journal.
func TestLyingCardJournal(t *testing.T) {
	t.Setenv(crashJournal, smallJournal)
	TestLyingCard(t)
}

// lies counts what became of cuts.
type lies struct {
	Cuts, Named, Losing, Silent, Reused int
	ids                                 bool // are kept
}

// look opens what a lying card has left.
func (l *lies) look(dir string, known *crashKnown) error {
	s, said, err := startSoon(dir)
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // the second of two, or behind a failure
	missing, err := known.verifyServed(s)
	named := said.damage(s)
	if err != nil && (named == nil || !errors.Is(err, errUntold)) {
		return errors.Join(err, named)
	}
	l.Cuts++
	l.Named += int(b2i(named != nil))
	l.Losing += int(b2i(missing > 0))
	l.Silent += int(b2i(missing > 0 && named == nil))
	if reused := known.reused(s); reused != nil {
		l.Reused++
		if doubt := s.Stats().Remarks; len(lasting(doubt)) > 0 && l.ids {
			return fmt.Errorf("%w, behind %q", reused, doubt)
		}
	}
	if err := s.Close(); err != nil {
		return err
	}
	again, _, err := startSoon(dir)
	if err != nil {
		return fmt.Errorf("second start: %w", err)
	}
	if now, err := known.verifyServed(again); err != nil && !errors.Is(err, errUntold) || now > missing {
		return errors.Join(fmt.Errorf("second start: %d entries are missing, were %d: %w", now, missing, err), again.Close())
	}
	if remarks := lasting(again.Stats().Remarks); len(remarks) > 0 {
		return errors.Join(fmt.Errorf("second start: remarks again: %q", remarks), again.Close())
	}
	return again.Close()
}

// lasting leaves out what is missing for good and casts no doubt on the rest.
func lasting(remarks []string) []string {
	return slices.DeleteFunc(remarks, func(r string) bool { return strings.HasPrefix(r, "volume ") || strings.Contains(r, "damaged records") })
}

func startSoon(dir string) (*Store, *listener, error) {
	start := time.Now()
	s, said, err := openListening(dir)
	if took := time.Since(start); err == nil && took > slowStart {
		return nil, nil, errors.Join(fmt.Errorf("the start took %v", took), s.Close())
	}
	return s, said, err
}

// verifyServed wants that what is served was stored where it is, and that readers are told
// of what is missing up to a topic's end. It counts confirmed entries that are missing.
func (k *crashKnown) verifyServed(s *Store) (missing int, err error) {
	var untold error
	there := map[string]bool{}
	for _, r := range s.Records() {
		name := r.Name.Local
		there[name] = true
		led, err := s.OpenLedger(r.Name, nil)
		if err != nil {
			if errors.Is(err, edge.ErrStorage) {
				continue // given up, and named
			}
			return 0, fmt.Errorf("%s: %w", name, err)
		}
		n, err := k.verifyTopicServed(led, name)
		missing += n
		if errors.Is(err, errUntold) {
			untold, err = fmt.Errorf("%s: %w", name, err), nil
		}
		if err := errors.Join(err, await(led.Close)); err != nil {
			return 0, fmt.Errorf("%s: %w", name, err)
		}
	}
	for name, w := range k.topics {
		if !there[name] && !w.deleting {
			missing += len(w.entries)
		}
	}
	err = errors.Join(err, s.ScanValues("", func(key string, value []byte) bool {
		if _, ok := k.values[key]; ok && crashValueVersion(key, value) == 0 {
			err = fmt.Errorf("value %s is not its own: %.40q", key, value)
		}
		return err == nil
	}))
	return missing, errors.Join(err, untold)
}

func (k *crashKnown) verifyTopicServed(led edge.Ledger, name string) (missing int, err error) {
	got, lost, err := collectServed(led)
	if err != nil {
		return 0, err
	}
	for _, e := range got {
		if string(e.Data) != crashData(name, e.Facts.Sequence) {
			return 0, fmt.Errorf("entry %v has other data: %.40q, was %q; %v", e.Position, e.Data, k.used[e.Position], led.Spans())
		}
		if was := strings.Fields(k.used[e.Position]); len(was) > 0 && (was[0] != name || was[2] != fmt.Sprint(e.Facts.Sequence)) {
			return 0, fmt.Errorf("entry %v is %d, was %v", e.Position, e.Facts.Sequence, was)
		}
	}
	var untold error
	if w := k.topics[name]; w != nil && !w.deleting {
		missing, untold = w.missing(led, got, lost)
	}
	states, err := led.Cursors()
	if err != nil {
		return missing, err
	}
	for cursor, state := range states {
		if of := state.Properties["of"]; of != "" && of != name+" "+cursor {
			return missing, fmt.Errorf("cursor %s is that of %s", cursor, of)
		}
	}
	if value, err := led.Properties(); err == nil && value != nil && crashValueVersion(name, value) == 0 {
		return missing, fmt.Errorf("properties are not its own: %.40q", value)
	}
	return missing, untold
}

// missing counts confirmed entries that are not served. Those before the topic's end have
// to be among what is lost.
func (w *crashTopic) missing(led edge.Ledger, got []edge.Entry, lost []edge.Range) (n int, err error) {
	at := map[edge.Position]bool{}
	for _, e := range got {
		at[e.Position] = true
	}
	end := led.Spans().End()
	for _, e := range w.entries {
		if at[e.Position] || e.Position.Less(w.trimmed) {
			continue
		}
		n++
		told := false
		for _, r := range lost {
			told = told || !e.Position.Less(r.First) && !r.Last.Less(e.Position)
		}
		if !told && !end.Less(e.Position) {
			err = fmt.Errorf("%w: %v, before %v, lost are %v", errUntold, e.Position, end, lost)
		}
	}
	return n, err
}

// errUntold says that readers are not told of what is missing between what is there.
var errUntold = errors.New("an entry is missing, and not among what is lost")

// collectServed reads all that is there, and what is told of what is not.
func collectServed(led edge.Ledger) (all []edge.Entry, lost []edge.Range, err error) {
	next := edge.Earliest
	for {
		b, err := led.Read([]edge.Range{{First: next, Last: edge.Latest}}, 500, 1<<20)
		if err != nil {
			return nil, nil, err
		}
		if len(b.Entries)+len(b.Lost) == 0 {
			return all, lost, nil
		}
		all, lost = append(all, b.Entries...), append(lost, b.Lost...)
		before := next
		for _, e := range b.Entries {
			next = edge.Max(next, e.Position.Next())
		}
		for _, r := range b.Lost {
			next = edge.Max(next, r.Last.Next())
		}
		if next == before {
			return nil, nil, fmt.Errorf("reading at %v does not go on", next)
		}
	}
}

// reused appends to all topics and is an error if a position was used before.
func (k *crashKnown) reused(s *Store) error {
	for name := range k.topics {
		led, err := s.OpenLedger(crashName(name), nil)
		if err != nil {
			continue
		}
		e, err := appendCrash(led, name, 1<<20)
		if err == nil {
			if was, ok := k.used[e.Position]; ok {
				err = fmt.Errorf("%s: position %v was used for %q", name, e.Position, was)
			}
			k.used[e.Position] = fmt.Sprint(name, " ", led.BirthID(), " ", int64(1<<20))
		}
		if err := errors.Join(err, await(led.Close)); err != nil {
			return err
		}
	}
	return nil
}
