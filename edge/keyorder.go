package edge

import (
	"errors"
	"iter"
)

// keyOrder keeps the order of each key on Key_Shared (protocol 3.8): a slot's entries
// go to its owner, one consumer at a time, and none overtakes an earlier one of its slot.
type keyOrder struct {
	owners     slotOwners[*Consumer]
	sticky     bool
	outOfOrder bool
	waiting    map[Position]uint16 // entries of the replay set
	perSlot    map[uint16]int      // how many of them have a slot
	held       map[uint16]holding  // slots with delivered, unacknowledged entries
	stuck      map[uint16]struct{} // slots whose entry could not go in this round
	opened     bool                // since it was asked, a slot was freed that others wait for
	idle       bool                // of the replay set nothing can go, until somebody is ready that was not, or a slot is free
}

type holding struct {
	c       *Consumer
	entries int
}

func newKeyOrder(sticky, outOfOrder bool) *keyOrder {
	return &keyOrder{
		sticky: sticky, outOfOrder: outOfOrder,
		waiting: map[Position]uint16{}, perSlot: map[uint16]int{},
		held: map[uint16]holding{}, stuck: map[uint16]struct{}{},
	}
}

func (k *keyOrder) join(c *Consumer) error {
	k.idle = false
	if !k.sticky {
		return k.owners.split(c)
	}
	err := k.owners.stick(c, c.opts.Ranges)
	var conflict *slotConflict[*Consumer]
	if errors.As(err, &conflict) {
		return &InUseError{ErrSticky, "Range conflict with consumer " + conflict.holder.opts.Consumer, conflict.holder.peer}
	}
	return err
}

func (k *keyOrder) leave(c *Consumer) {
	k.owners.remove(c)
	k.idle = false
}

// wait notes that an entry of the replay set has a slot.
func (k *keyOrder) wait(p Position, slot uint16) {
	if _, ok := k.waiting[p]; !ok {
		k.waiting[p] = slot
		k.perSlot[slot]++
	}
}

func (k *keyOrder) unwait(p Position) {
	slot, ok := k.waiting[p]
	if !ok {
		return
	}
	delete(k.waiting, p)
	if k.perSlot[slot]--; k.perSlot[slot] == 0 {
		delete(k.perSlot, slot)
	}
}

func (k *keyOrder) unwaitIn(r Range) {
	for at := range k.waiting {
		if r.Contains(at) {
			k.unwait(at)
		}
	}
}

// hold and free count what the owner of a slot has not acknowledged.
func (k *keyOrder) hold(slot uint16, c *Consumer) {
	h := k.held[slot]
	h.c = c
	h.entries++
	k.held[slot] = h
}

func (k *keyOrder) free(slot uint16) {
	h := k.held[slot]
	if h.entries--; h.entries <= 0 {
		delete(k.held, slot)
		if k.perSlot[slot] > 0 {
			k.idle, k.opened = false, true
		}
		return
	}
	k.held[slot] = h
}

// taker is the consumer that may have an entry of the slot now, nil if none.
func (k *keyOrder) taker(slot uint16) *Consumer {
	c, ok := k.owners.owner(slot)
	if !ok {
		return nil
	}
	if !c.ready() {
		c.short = true
		return nil
	}
	if h, ok := k.held[slot]; ok && h.c != c && !k.outOfOrder {
		return nil
	}
	return c
}

// choose is taker for one entry, which may not overtake another of its slot.
func (k *keyOrder) choose(p Position, slot uint16, replay bool) *Consumer {
	if !k.outOfOrder {
		if _, ok := k.stuck[slot]; ok {
			return nil
		}
		if !replay && k.perSlot[slot] > 0 {
			return nil
		}
	}
	c := k.taker(slot)
	if c == nil {
		k.stuck[slot] = struct{}{}
	}
	return c
}

// pick returns up to n entries of the replay set that could go now. It begins a round.
func (k *keyOrder) pick(replay *Runs, n int) []Range {
	clear(k.stuck)
	if k.idle {
		return nil
	}
	var picked []Range
	for p := range positions(replay) {
		if len(picked) >= n {
			break
		}
		slot := k.waiting[p]
		if _, ok := k.stuck[slot]; ok {
			continue
		}
		if k.taker(slot) == nil {
			k.stuck[slot] = struct{}{}
			continue
		}
		if last := len(picked) - 1; last >= 0 && picked[last].Last.Next() == p {
			picked[last].Last = p
		} else {
			picked = append(picked, Range{p, p})
		}
	}
	clear(k.stuck)
	k.idle = picked == nil
	return picked
}

// positions goes through a set in order.
func positions(r *Runs) iter.Seq[Position] {
	return func(yield func(Position) bool) {
		for run := range r.From(Position{}) {
			for e := run.First; e <= run.Last; e++ {
				if !yield(Position{run.Ledger, e}) {
					return
				}
			}
		}
	}
}

func (k *keyOrder) clear() {
	clear(k.waiting)
	clear(k.perSlot)
	clear(k.held)
	clear(k.stuck)
	k.idle = false
}
