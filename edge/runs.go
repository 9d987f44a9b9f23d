package edge

import "iter"

// Runs is a set of positions kept as runs of neighbours, in order. The zero value
// is empty. It is not safe for concurrent use: the owner's lock guards it.
//
// A run takes 24 bytes. The runs lie in an ordered list of small blocks, so that a
// change in the middle costs the same with ten runs and with 200,000.
type Runs struct {
	list ordered[Run]
	n    int64 // positions
}

// Start and End are the first and the last position of the run.
func (r Run) Start() Position { return Position{r.Ledger, r.First} }

// End is the last position of the run.
func (r Run) End() Position { return Position{r.Ledger, r.Last} }

// Len is the number of positions in the run, 0 for one that ends before it begins.
func (r Run) Len() int64 { return max(0, r.Last-r.First+1) }

// Range is the run as a range.
func (r Run) Range() Range { return Range{r.Start(), r.End()} }

// ending finds the first run that ends at p or behind.
func (r *Runs) ending(p Position) place {
	return r.list.search(func(run *Run) bool {
		return run.Ledger > p.Ledger || run.Ledger == p.Ledger && run.Last >= p.Entry
	})
}

// Add puts p in and reports whether it was not there before.
func (r *Runs) Add(p Position) bool {
	at := r.ending(p)
	next := r.list.at(at)
	if next != nil && !p.Less(next.Start()) {
		return false
	}
	r.n++
	joins := next != nil && next.Ledger == p.Ledger && next.First == p.Entry+1
	prev, _ := r.list.before(at)
	switch follows := prev != nil && prev.Ledger == p.Ledger && prev.Last+1 == p.Entry; {
	case follows && joins:
		prev.Last = next.Last
		r.list.remove(at)
	case follows:
		prev.Last = p.Entry
	case joins:
		next.First = p.Entry
	default:
		r.list.insert(at, Run{p.Ledger, p.Entry, p.Entry})
	}
	return true
}

// AddRun puts all positions of a run in; one that ends before it begins adds nothing.
func (r *Runs) AddRun(run Run) {
	if run.Len() == 0 {
		return
	}
	at := r.ending(run.Start())
	if prev, p := r.list.before(at); prev != nil && prev.Ledger == run.Ledger && prev.Last+1 == run.First {
		at = p
	}
	for {
		old := r.list.at(at)
		if old == nil || old.Ledger != run.Ledger || old.First-1 > run.Last {
			break
		}
		run.First, run.Last = min(run.First, old.First), max(run.Last, old.Last)
		r.n -= old.Len()
		r.list.remove(at)
		at = r.ending(run.Start())
	}
	r.n += run.Len()
	r.list.insert(at, run)
}

// Remove takes p out and reports whether it was there.
func (r *Runs) Remove(p Position) bool {
	at := r.ending(p)
	run := r.list.at(at)
	if run == nil || p.Less(run.Start()) {
		return false
	}
	r.n--
	switch {
	case run.First == run.Last:
		r.list.remove(at)
	case run.First == p.Entry:
		run.First++
	case run.Last == p.Entry:
		run.Last--
	default:
		head := Run{run.Ledger, run.First, p.Entry - 1}
		run.First = p.Entry + 1
		r.list.insert(at, head)
	}
	return true
}

// RemoveUpTo takes out every position that is ≤ p.
func (r *Runs) RemoveUpTo(p Position) {
	at := r.ending(p)
	for _, b := range r.list.blocks[:at.block] {
		r.forget(b)
	}
	if at.i > 0 {
		r.forget(r.list.blocks[at.block][:at.i])
	}
	r.list.removeBefore(at)
	first := r.list.at(place{})
	if first == nil || p.Less(first.Start()) {
		return
	}
	if first.Last == p.Entry {
		r.n -= first.Len()
		r.list.remove(place{})
		return
	}
	r.n -= p.Entry - first.First + 1
	first.First = p.Entry + 1
}

func (r *Runs) forget(runs []Run) {
	for _, run := range runs {
		r.n -= run.Len()
	}
}

// RemoveRange takes out every position that lies in the range.
func (r *Runs) RemoveRange(gone Range) {
	for {
		at := r.ending(gone.First)
		run := r.list.at(at)
		if run == nil || gone.Last.Less(run.Start()) {
			return
		}
		old := *run
		r.n -= old.Len()
		r.list.remove(at)
		if old.Start().Less(gone.First) {
			r.AddRun(Run{old.Ledger, old.First, gone.First.Entry - 1})
		}
		if gone.Last.Less(old.End()) {
			r.AddRun(Run{old.Ledger, gone.Last.Entry + 1, old.Last})
			return
		}
	}
}

// Contains reports whether p is in the set.
func (r *Runs) Contains(p Position) bool {
	run := r.list.at(r.ending(p))
	return run != nil && !p.Less(run.Start())
}

// First returns the lowest position, or false if the set is empty.
func (r *Runs) First() (Position, bool) {
	run := r.list.at(place{})
	if run == nil {
		return Position{}, false
	}
	return run.Start(), true
}

// AtOrAfter returns the first position of the set that is ≥ p, or false if there is none.
func (r *Runs) AtOrAfter(p Position) (Position, bool) {
	run := r.list.at(r.ending(p))
	if run == nil {
		return Position{}, false
	}
	return Max(p, run.Start()), true
}

// Len is the number of positions.
func (r *Runs) Len() int64 { return r.n }

// Count is the number of runs.
func (r *Runs) Count() int { return r.list.n }

// All returns the runs in ascending order; the caller owns the slice.
func (r *Runs) All() []Run { return r.list.all() }

// From visits, in order, the runs that end at p or behind; the first may begin
// before p. The set must not be changed meanwhile.
func (r *Runs) From(p Position) iter.Seq[Run] {
	return func(yield func(Run) bool) {
		for at := r.ending(p); ; at = r.list.next(at) {
			run := r.list.at(at)
			if run == nil || !yield(*run) {
				return
			}
		}
	}
}

// Clear takes everything out.
func (r *Runs) Clear() { *r = Runs{} }

// Pick returns the first count positions as ranges, one for each run, and leaves them in.
func (r *Runs) Pick(count int) []Range {
	var out []Range
	left := int64(count)
	for at := (place{}); left > 0; at = r.list.next(at) {
		run := r.list.at(at)
		if run == nil {
			break
		}
		cut := *run
		cut.Last = min(cut.Last, cut.First+left-1)
		left -= cut.Len()
		out = append(out, cut.Range())
	}
	return out
}
