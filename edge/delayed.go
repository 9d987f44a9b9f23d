package edge

import (
	"cmp"
	"sort"
)

// maxDelayed bounds the delayed entries of a subscription that are held one by one:
// in two lists they take half a megabyte.
const maxDelayed = 10_000

// Delayed keeps entries that are not to be delivered before their time (protocol
// 3.17): the soonest maxDelayed ones themselves, of the others the earliest due time
// per ledger. Those come back by a scan of the ledger's facts, when Refill asks for
// it. Due times are ms since 1970. The zero value is empty; the subscription's lock
// guards it.
type Delayed struct {
	byDue      ordered[delayedEntry]
	byPosition ordered[delayedEntry]
	noted      map[int64]int64 // ledger → earliest due time of an entry that is not held
}

type delayedEntry struct {
	due      int64
	position Position
}

func (e *delayedEntry) compareDue(f delayedEntry) int {
	return cmp.Or(cmp.Compare(e.due, f.due), e.position.Compare(f.position))
}

// Add puts an entry in that is due at the given time; one that is held already gets
// the new time. If there are too many, full is true and out is not held any more, or
// was not taken.
func (d *Delayed) Add(p Position, due int64) (out Position, full bool) {
	d.Remove(p)
	e := delayedEntry{due, p}
	if d.Len() >= maxDelayed {
		_, at := d.byDue.before(place{len(d.byDue.blocks), 0})
		latest := *d.byDue.at(at)
		if latest.compareDue(e) <= 0 {
			d.Note(p.Ledger, due)
			return p, true
		}
		d.Remove(latest.position)
		d.Note(latest.position.Ledger, latest.due)
		out, full = latest.position, true
	}
	d.byDue.insert(d.dueAt(e), e)
	d.byPosition.insert(d.positionAt(p), e)
	return out, full
}

// Note says that some entry of the ledger is due then and is not held: for a ledger
// that Refill has given and that could not be scanned.
func (d *Delayed) Note(ledger, due int64) {
	if old, ok := d.noted[ledger]; ok && old <= due {
		return
	}
	if d.noted == nil {
		d.noted = make(map[int64]int64)
	}
	d.noted[ledger] = due
}

// Remove takes an entry out, due or not, if it is held.
func (d *Delayed) Remove(p Position) {
	at := d.positionAt(p)
	e := d.byPosition.at(at)
	if e == nil || e.position != p {
		return
	}
	d.byDue.remove(d.dueAt(*e))
	d.byPosition.remove(at)
}

// Due takes out up to limit entries whose time has come, the soonest ones, and returns
// their positions in ascending order.
func (d *Delayed) Due(now int64, limit int) []Position {
	var out []Position
	for len(out) < limit {
		e := d.byDue.at(place{})
		if e == nil || e.due > now {
			break
		}
		out = append(out, e.position)
		d.Remove(e.position)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Less(out[j]) })
	return out
}

// Next is the time when Due or Refill has something to give, or false if nothing is
// delayed.
func (d *Delayed) Next() (due int64, ok bool) {
	if e := d.byDue.at(place{}); e != nil {
		due, ok = e.due, true
	}
	for _, noted := range d.noted {
		if !ok || noted < due {
			due, ok = noted, true
		}
	}
	return due, ok
}

// Refill returns, ascending, the ledgers with noted entries that are due before all
// that are held, and forgets what it knew of them. Of such a ledger every entry that
// still waits for its time has to be added again; those that are held do not mind.
// Called again after the scan it may return more, at last none.
func (d *Delayed) Refill() []int64 {
	due, ok := d.Next()
	if e := d.byDue.at(place{}); !ok || e != nil && e.due == due {
		return nil
	}
	var out []int64
	for ledger, next := range d.noted {
		if next == due {
			out = append(out, ledger)
			delete(d.noted, ledger)
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i] < out[j] })
	return out
}

// Clear forgets everything.
func (d *Delayed) Clear() { *d = Delayed{} }

// Len is the number of entries that are held.
func (d *Delayed) Len() int { return d.byDue.n }

func (d *Delayed) dueAt(e delayedEntry) place {
	return d.byDue.search(func(f *delayedEntry) bool { return f.compareDue(e) >= 0 })
}

func (d *Delayed) positionAt(p Position) place {
	return d.byPosition.search(func(f *delayedEntry) bool { return !f.position.Less(p) })
}
