package edge

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestDelayedInPositionOrder(t *testing.T) {
	var d Delayed
	if _, ok := d.Next(); ok || d.Due(99, 9) != nil || d.Refill() != nil {
		t.Error("nothing is delayed")
	}
	for p, due := range map[Position]int64{{1, 4}: 30, {1, 1}: 50, {2, 0}: 10, {1, 7}: 20, {1, 9}: 20} {
		d.Add(p, due)
	}
	d.Add(Position{1, 7}, 40) // once more: the later word counts
	d.Remove(Position{1, 9})
	d.Remove(Position{1, 9})
	if due, ok := d.Next(); due != 10 || !ok || d.Len() != 4 {
		t.Errorf("next %d %v, %d held", due, ok, d.Len())
	}
	if got := d.Due(9, 9); got != nil {
		t.Errorf("early: %v", got)
	}
	if got, want := d.Due(40, 2), []Position{{1, 4}, {2, 0}}; !slices.Equal(got, want) {
		t.Errorf("the two soonest: %v, want %v", got, want)
	}
	if got, want := d.Due(60, 9), []Position{{1, 1}, {1, 7}}; !slices.Equal(got, want) || d.Len() != 0 {
		t.Errorf("the others: %v, want %v", got, want)
	}
	d.Add(Position{1, 1}, 5)
	d.Note(3, 6)
	d.Clear()
	if _, ok := d.Next(); ok || d.Len() != 0 {
		t.Error("something is left after Clear")
	}
}

func TestDelayedNotes(t *testing.T) {
	var d Delayed
	for i := range int64(maxDelayed) {
		d.Add(Position{1, i}, 1000+i)
	}
	d.Add(Position{2, 0}, 500_000) // too late to be held
	d.Add(Position{3, 0}, 10)      // sooner than all: the latest has to go
	if d.Len() != maxDelayed {
		t.Fatalf("%d held", d.Len())
	}
	if due, _ := d.Next(); due != 10 {
		t.Errorf("next %d, want 10", due)
	}
	if got := d.Refill(); got != nil {
		t.Errorf("refill of %v while sooner ones are held", got)
	}
	d.Due(1000+maxDelayed-2, maxDelayed) // all that are held
	if due, _ := d.Next(); due != 1000+maxDelayed-1 || d.Len() != 0 {
		t.Errorf("next %d with %d held", due, d.Len())
	}
	if got := d.Refill(); !slices.Equal(got, []int64{1}) {
		t.Errorf("refill of %v, want ledger 1", got)
	}
	d.Note(1, 20_000) // could not be scanned
	if got := d.Refill(); !slices.Equal(got, []int64{1}) {
		t.Errorf("refill of %v, want ledger 1 again", got)
	}
	d.Add(Position{1, maxDelayed - 1}, 1000+maxDelayed-1)
	if got := d.Refill(); got != nil {
		t.Errorf("refill of %v while a sooner one is held", got)
	}
}

// Entries that are all due at once do not make Refill ask for ever.
func TestDelayedSameDue(t *testing.T) {
	var d Delayed
	waiting := map[Position]int64{}
	for i := range int64(2*maxDelayed + 5) {
		waiting[Position{1, i}] = 7
	}
	for p, due := range waiting {
		d.Add(p, due)
	}
	drain(t, &d, waiting, 7)
	if len(waiting) > 0 {
		t.Errorf("%d are left", len(waiting))
	}
}

// drain takes what is due, scanning ledgers when asked, and fails on anything early,
// unknown or endless.
func drain(t *testing.T, d *Delayed, waiting map[Position]int64, now int64) {
	for rounds := 0; ; rounds++ {
		if rounds > 10_000 {
			t.Fatalf("no end: %d held, notes %v", d.Len(), d.noted)
		}
		scanned := d.Refill()
		for _, ledger := range scanned {
			for p, due := range waiting {
				if p.Ledger == ledger {
					d.Add(p, due)
				}
			}
		}
		got := d.Due(now, 1000)
		for _, p := range got {
			due, ok := waiting[p]
			if !ok || due > now {
				t.Fatalf("at %d came %v, due %d, %v", now, p, due, ok)
			}
			delete(waiting, p)
		}
		if len(scanned) == 0 && len(got) == 0 {
			return
		}
	}
}

// However many are delayed, at any time exactly those come whose time has come.
func TestDelayedAgainstMap(t *testing.T) {
	for seed := range uint64(4) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var d Delayed
		waiting := map[Position]int64{}
		var now, next int64
		for range 5 {
			for range []int{10, maxDelayed / 2, maxDelayed}[rnd.IntN(3)] {
				p := Position{1 + next/4000, next % 4000}
				next++
				waiting[p] = now + rnd.Int64N(1000)
				d.Add(p, waiting[p])
			}
			for p := range waiting {
				if rnd.IntN(50) == 0 {
					d.Remove(p) // acknowledged
					delete(waiting, p)
				}
			}
			now += rnd.Int64N(1500)
			drain(t, &d, waiting, now)
			for p, due := range waiting {
				if due <= now {
					t.Fatalf("seed %d: at %d %v is late, due %d", seed, now, p, due)
				}
			}
			if due, ok := d.Next(); len(waiting) > 0 && (!ok || due > slices.Min(slices.Collect(maps.Values(waiting)))) {
				t.Fatalf("seed %d: next %d, %v", seed, due, ok)
			}
			if d.Len() > maxDelayed {
				t.Fatalf("seed %d: %d held", seed, d.Len())
			}
		}
	}
}
