package edge

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// checkRuns compares a set with its naive twin and looks at its inner order.
func checkRuns(t interface{ Fatalf(string, ...any) }, r *Runs, want map[Position]bool) {
	var got []Position
	var before *Run
	for _, run := range r.All() {
		if run.Len() == 0 {
			t.Fatalf("empty run %v", run)
		}
		if before != nil && !before.End().Next().Less(run.Start()) {
			t.Fatalf("run %v is not apart from %v", run, *before)
		}
		before = &run
		for e := run.First; e <= run.Last; e++ {
			got = append(got, Position{run.Ledger, e})
		}
	}
	if wanted := slices.SortedFunc(maps.Keys(want), Position.Compare); !slices.Equal(got, wanted) {
		t.Fatalf("holds %v, want %v", got, wanted)
	}
	if r.Len() != int64(len(want)) || r.Count() != len(r.All()) {
		t.Fatalf("Len %d, Count %d of %d in %d runs", r.Len(), r.Count(), len(want), len(r.All()))
	}
	for i, b := range r.list.blocks {
		if len(b) == 0 || len(b) > blockLen {
			t.Fatalf("block %d of %d elements", i, len(b))
		}
	}
	if len(want) == 0 && r.list.blocks != nil {
		t.Fatalf("an empty set holds memory")
	}
}

func drawRun(r *rapid.T, entries int64) Run {
	first := rapid.Int64Range(0, entries).Draw(r, "first")
	return Run{rapid.Int64Range(1, 3).Draw(r, "ledger"), first, first + rapid.Int64Range(-1, entries/2).Draw(r, "more")}
}

func TestRunsAgainstMap(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var runs Runs
		want := map[Position]bool{}
		position := func(r *rapid.T) Position { return drawRun(r, 20).Start() }
		removed := func(gone func(Position) bool) {
			maps.DeleteFunc(want, func(p Position, _ bool) bool { return gone(p) })
		}
		r.Repeat(map[string]func(*rapid.T){
			"add": func(r *rapid.T) {
				if p := position(r); runs.Add(p) == want[p] {
					r.Fatalf("Add(%v) = %v", p, want[p])
				} else {
					want[p] = true
				}
			},
			"add run": func(r *rapid.T) {
				run := drawRun(r, 20)
				runs.AddRun(run)
				for e := run.First; e <= run.Last; e++ {
					want[Position{run.Ledger, e}] = true
				}
			},
			"remove": func(r *rapid.T) {
				p := position(r)
				if runs.Remove(p) != want[p] {
					r.Fatalf("Remove(%v) = %v", p, !want[p])
				}
				delete(want, p)
			},
			"remove up to": func(r *rapid.T) {
				p := position(r)
				runs.RemoveUpTo(p)
				removed(func(q Position) bool { return !p.Less(q) })
			},
			"remove range": func(r *rapid.T) {
				gone := Range{position(r), position(r)}
				runs.RemoveRange(gone)
				removed(gone.Contains)
			},
			"clear": func(*rapid.T) {
				runs.Clear()
				clear(want)
			},
			"": func(r *rapid.T) {
				checkRuns(r, &runs, want)
				checkQuestions(r, &runs, want, position(r))
			},
		})
	})
}

func checkQuestions(r *rapid.T, runs *Runs, want map[Position]bool, p Position) {
	sorted := slices.SortedFunc(maps.Keys(want), Position.Compare)
	if runs.Contains(p) != want[p] {
		r.Fatalf("Contains(%v) = %v", p, !want[p])
	}
	if first, ok := runs.First(); ok != (len(sorted) > 0) || ok && first != sorted[0] {
		r.Fatalf("First() = %v, %v", first, ok)
	}
	i, _ := slices.BinarySearchFunc(sorted, p, Position.Compare)
	if q, ok := runs.AtOrAfter(p); ok != (i < len(sorted)) || ok && q != sorted[i] {
		r.Fatalf("AtOrAfter(%v) = %v, %v", p, q, ok)
	}
	from := slices.Collect(runs.From(p))
	all := runs.All()
	if want := all[len(all)-len(from):]; !slices.Equal(from, want) {
		r.Fatalf("From(%v) = %v of %v", p, from, all)
	}
	if len(from) < len(all) && !all[len(all)-len(from)-1].End().Less(p) || len(from) > 0 && from[0].End().Less(p) {
		r.Fatalf("From(%v) = %v of %v", p, from, all)
	}
	limit := rapid.IntRange(0, 12).Draw(r, "limit")
	var picked []Position
	for _, g := range runs.Pick(limit) {
		for q := g.First; g.Contains(q); q = q.Next() {
			picked = append(picked, q)
		}
	}
	if want := sorted[:min(limit, len(sorted))]; !slices.Equal(picked, want) {
		r.Fatalf("Pick(%d) = %v, want %v", limit, picked, want)
	}
}

// With thousands of runs the blocks split, join and shrink.
func TestRunsInManyBlocks(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var runs Runs
	want := map[Position]bool{}
	position := func() Position { return Position{1 + rnd.Int64N(2), rnd.Int64N(6000)} }
	steps := []func(){
		func() { p := position(); runs.Add(p); want[p] = true },
		func() { p := position(); runs.Remove(p); delete(want, p) },
	}
	for round := range 8 {
		for range 8000 {
			more := rnd.IntN(10) < 7 // grow in even rounds, shrink in odd ones
			steps[(round+map[bool]int{true: 0, false: 1}[more])%2]()
		}
		checkRuns(t, &runs, want)
		if round == 6 && len(runs.list.blocks) < 4 {
			t.Fatalf("%d runs in %d blocks: nothing was split", runs.Count(), len(runs.list.blocks))
		}
		p := Position{1, int64(round) * 100}
		runs.RemoveUpTo(p)
		maps.DeleteFunc(want, func(q Position, _ bool) bool { return !p.Less(q) })
		checkRuns(t, &runs, want)
	}
	for p := range want {
		runs.Remove(p)
	}
	checkRuns(t, &runs, nil)
}

// A set that was large once holds little memory afterwards.
func TestRunsShrink(t *testing.T) {
	var runs Runs
	const n = 100_000
	for i := range int64(n) {
		runs.Add(Position{1, 2 * i})
	}
	for i := range int64(n) {
		if i%1000 != 0 {
			runs.Remove(Position{1, 2 * i})
		}
	}
	room := 0
	for _, b := range runs.list.blocks {
		room += cap(b)
	}
	if runs.Count() != n/1000 || room > 20*runs.Count() {
		t.Fatalf("%d runs hold room for %d", runs.Count(), room)
	}
}

func BenchmarkRunsAppend(b *testing.B) {
	var runs Runs
	for i := range int64(b.N) {
		runs.Add(Position{1, 2 * i}) // a run of its own each
		if runs.Count() == 200_000 {
			runs.Clear()
		}
	}
}

// One op removes a member of a set of 200,000 in one run, in random order, so that
// up to 67,000 runs stand between.
func BenchmarkRunsRemoveRandom(b *testing.B) {
	const n = 200_000
	order := rand.New(rand.NewPCG(1, 2)).Perm(n)
	var runs Runs
	for i := range b.N {
		if i%n == 0 {
			runs.Clear()
			runs.AddRun(Run{1, 0, n - 1})
		}
		runs.Remove(Position{1, int64(order[i%n])})
	}
}

func BenchmarkRunsAddRandom(b *testing.B) {
	const n = 200_000
	order := rand.New(rand.NewPCG(1, 2)).Perm(n)
	var runs Runs
	for i := range b.N {
		if i%n == 0 {
			runs.Clear()
		}
		runs.Add(Position{1, int64(order[i%n])})
	}
}

func BenchmarkRunsContains(b *testing.B) {
	var runs Runs
	for i := range int64(maxHoles) {
		runs.Add(Position{1, 2 * i})
	}
	i := int64(0)
	for b.Loop() {
		runs.Contains(Position{1, i * 7919 % (2 * maxHoles)})
		i++
	}
}
