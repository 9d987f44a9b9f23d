package edge

import (
	"fmt"
	"slices"
	"sort"
)

// keySlots is the number of hash slots of Key_Shared (protocol 3.8).
const keySlots = 65536

// SlotRange is a piece of the slots of Key_Shared, First to Last, both included.
// Clients and stats may name a slot 65536, which no key has.
type SlotRange struct{ First, Last int }

// slotOwners tells which consumer owns which of Key_Shared's slots. Consumers either
// all split or all stick; a consumer that is in already must not come again. The
// zero value has no owners. The subscription's lock guards it.
type slotOwners[C comparable] struct {
	sticky bool
	owned  []ownedSlots[C] // ascending, apart from each other; after a split without gaps
}

type ownedSlots[C comparable] struct {
	SlotRange
	owner C
}

// slotError is a refused wish for slots, in the reference's own sentence.
type slotError string

// Error is that sentence.
func (e slotError) Error() string { return string(e) }

// Unwrap gives the sentinel.
func (e slotError) Unwrap() error { return ErrSticky }

// slotConflict says who owns slots that another consumer wants for itself.
type slotConflict[C comparable] struct{ holder C }

// Error is the reference's sentence, with the consumer as it prints itself.
func (e *slotConflict[C]) Error() string {
	return fmt.Sprintf("Range conflict with consumer %v", e.holder)
}

// Unwrap gives the sentinel.
func (e *slotConflict[C]) Unwrap() error { return ErrSticky }

// split gives c the lower half of the biggest range, of equal ones the lowest
// (AUTO_SPLIT by range halving). It fails with ErrSticky if none can be halved.
func (o *slotOwners[C]) split(c C) error {
	o.sticky = false
	if len(o.owned) == 0 {
		o.owned = []ownedSlots[C]{{SlotRange{0, keySlots}, c}}
		return nil
	}
	biggest, size, lower := 0, 0, 0
	for i, r := range o.owned {
		// Slot 0, which no key has, does not count: ranges are (lower, upper].
		if n := r.Last - lower; n > size {
			biggest, size = i, n
		}
		lower = r.Last
	}
	if size <= 1 {
		return slotError("No range is left to be split.")
	}
	r := &o.owned[biggest]
	half := ownedSlots[C]{SlotRange{r.First, r.Last - size/2}, c}
	r.First = half.Last + 1
	o.owned = slices.Insert(o.owned, biggest, half)
	return nil
}

// stick gives c exactly the ranges that it asks for (STICKY), or nothing. The error
// wraps ErrSticky; it is a slotConflict if another consumer owns some of them.
func (o *slotOwners[C]) stick(c C, ranges []SlotRange) error {
	if len(ranges) == 0 {
		return slotError("Ranges for KeyShared policy must not be empty.")
	}
	for _, r := range ranges {
		if r.First > r.Last {
			return slotError(fmt.Sprintf("Fixed hash range start > end for range: [%d,%d]", r.First, r.Last))
		}
		if i := o.search(r.First); i < len(o.owned) && o.owned[i].First <= r.Last {
			return &slotConflict[C]{o.owned[i].owner}
		}
	}
	o.sticky = true
	for _, r := range union(ranges) {
		o.owned = append(o.owned, ownedSlots[C]{r, c})
	}
	sort.Slice(o.owned, func(i, j int) bool { return o.owned[i].First < o.owned[j].First })
	return nil
}

// union returns what the ranges cover of the slots, ascending and apart from each
// other; so a consumer's ranges are bounded, however many it names.
func union(ranges []SlotRange) []SlotRange {
	sorted := slices.Clone(ranges)
	sort.Slice(sorted, func(i, j int) bool { return sorted[i].First < sorted[j].First })
	out := sorted[:0]
	for _, r := range sorted {
		r.First, r.Last = max(r.First, 0), min(r.Last, keySlots)
		switch n := len(out); {
		case r.First > r.Last:
		case n > 0 && r.First <= out[n-1].Last:
			out[n-1].Last = max(out[n-1].Last, r.Last)
		default:
			out = append(out, r)
		}
	}
	return out
}

// remove takes c out. After a split the next higher neighbour takes its range over,
// or of the highest range the next lower one; ranges that were asked for stay free.
func (o *slotOwners[C]) remove(c C) {
	kept := o.owned[:0]
	first := 0
	for _, r := range o.owned {
		if r.owner == c {
			continue
		}
		if !o.sticky {
			r.First, first = first, r.Last+1
		}
		kept = append(kept, r)
	}
	clear(o.owned[len(kept):])
	o.owned = kept
	if n := len(kept); n > 0 && !o.sticky {
		kept[n-1].Last = keySlots
	}
}

// owner returns the consumer that owns a slot, or false if nobody does.
func (o *slotOwners[C]) owner(slot uint16) (C, bool) {
	i := o.search(int(slot))
	if i == len(o.owned) || o.owned[i].First > int(slot) {
		var none C
		return none, false
	}
	return o.owned[i].owner, true
}

// search returns the index of the first range that ends at the slot or behind.
func (o *slotOwners[C]) search(slot int) int {
	return sort.Search(len(o.owned), func(i int) bool { return o.owned[i].Last >= slot })
}

// ranges returns what c owns, ascending.
func (o *slotOwners[C]) ranges(c C) []SlotRange {
	var out []SlotRange
	for _, r := range o.owned {
		if r.owner == c {
			out = append(out, r.SlotRange)
		}
	}
	return out
}
