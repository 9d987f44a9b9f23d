package edgetest

import (
	"slices"
	"time"

	"wayside/edge"
)

// Delivered judges a delivery.
func (w *Twin) Delivered(name string, d *edge.Delivery, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	seat, e := w.seat(name), w.entry(d.Entry.Position, &d.Entry.Facts)
	if seat == nil {
		if !w.loose {
			w.object("%s has left and is given %v", name, e.position)
		}
		return
	}
	if seat.permits <= 0 {
		w.object("%s has %d permits and is given %v", name, seat.permits, e.position)
	}
	seat.permits -= messagesOf(d)
	w.judgeEntry(e, d)
	if w.shares() {
		w.judgeShared(seat, e, now)
		e.holder = seat
	} else {
		w.judgeSingle(seat, e)
	}
	e.given = true
	w.last = edge.Max(w.last, e.position)
}

// judgeEntry looks at what comes, whoever gets it.
func (w *Twin) judgeEntry(e *twinEntry, d *edge.Delivery) {
	count := e.count
	if !w.shares() {
		count = 0
	}
	var rest []uint64
	if e.partly {
		rest = []uint64{e.left}
	}
	switch {
	case e.left == 0:
		w.object("%v is acknowledged and comes again", e.position)
	case d.Redelivered != count:
		w.object("%v comes with count %d, was given back %d times", e.position, d.Redelivered, count)
	case !e.leaving && !slices.Equal(d.Rest, rest):
		w.object("of %v comes %x, left is %x", e.position, d.Rest, rest)
	}
}

func (w *Twin) judgeSingle(seat *twinSeat, e *twinEntry) {
	switch {
	case seat != w.active:
		w.object("%s is not active and is given %v", seat.name, e.position)
	case !w.last.Less(e.position):
		w.object("%v comes behind %v", e.position, w.last)
	}
}

func (w *Twin) judgeShared(seat *twinSeat, e *twinEntry, now time.Time) {
	switch {
	case e.holder != nil:
		w.object("%s is given %v, which %s has", seat.name, e.position, e.holder.name)
	case e.due > now.UnixMilli():
		w.object("%v is %d ms early", e.position, e.due-now.UnixMilli())
	case w.kind == edge.Shared && !e.given && e.due == 0 && e.position.Less(w.last):
		w.object("%v comes for the first time behind %v", e.position, w.last)
	case w.kind == edge.KeyShared:
		w.judgeKey(seat, e)
	}
}

func (w *Twin) judgeKey(seat *twinSeat, e *twinEntry) {
	if owner := w.slots.owner(e.slot); !w.loose && owner != seat.name {
		w.object("%s is given %v, whose slot %d is %q's", seat.name, e.position, e.slot, owner)
	}
	if w.unordered {
		return
	}
	for _, o := range w.entries {
		switch {
		case o == e || o.slot != e.slot || o.left == 0 || o.leaving:
		case o.holder != nil && o.holder != seat:
			w.object("%s is given %v, but %s has %v of its slot", seat.name, e.position, o.holder.name, o.position)
		case o.holder == nil && o.due == 0 && o.position.Less(e.position) && !w.loose:
			w.object("%v overtakes %v of its slot", e.position, o.position)
		}
	}
}

// twinLate is how late a delayed entry may come.
const twinLate = 100 * time.Millisecond

// Trimmed tells that nothing is stored any more up to a position.
func (w *Twin) Trimmed(upTo edge.Position) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.entries = slices.DeleteFunc(w.entries, func(e *twinEntry) bool {
		gone := !upTo.Less(e.position)
		if gone && e.left != 0 {
			w.object("%v was trimmed away and is not acknowledged", e.position)
		}
		return gone
	})
}

// Settled judges a subscription at rest, by its mark-delete and backlog.
func (w *Twin) Settled(mark edge.Position, backlog int64, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if mark.Less(w.mark) {
		w.object("mark-delete went from %v back to %v", w.mark, mark)
	}
	w.mark = mark
	open := int64(0)
	for _, e := range w.entries {
		switch {
		case e.left != 0:
			open++
			if !mark.Less(e.position) {
				w.object("mark-delete %v passes %v", mark, e.position)
			}
		case open == 0 && mark.Less(e.position):
			w.object("mark-delete %v stays in front of %v", mark, e.position)
		}
	}
	if open != backlog {
		w.object("backlog is %d, %d entries are not acknowledged", backlog, open)
	}
	for _, e := range w.entries {
		if e.left != 0 && e.holder == nil && (!w.shares() || e.due <= now.Add(-twinLate).UnixMilli()) {
			w.judgeWaiting(e, now)
		}
	}
}

// judgeWaiting objects to an entry that nobody has though somebody could.
func (w *Twin) judgeWaiting(e *twinEntry, now time.Time) {
	var taker *twinSeat
	switch {
	case w.kind == edge.KeyShared:
		taker = w.seat(w.slots.owner(e.slot))
		if w.hindered(e, taker, now) {
			return
		}
	case w.kind == edge.Shared:
		for _, s := range w.seats {
			if w.able(s) {
				taker = s
			}
		}
	case e.given:
		return
	case !w.last.Less(e.position):
		w.object("%v was left out", e.position)
	default:
		taker = w.active
	}
	if taker != nil && w.able(taker) {
		w.object("%v waits though %s could have it", e.position, taker.name)
	}
}

// hindered reports whether another entry of the slot has to be seen to first.
func (w *Twin) hindered(e *twinEntry, taker *twinSeat, now time.Time) bool {
	if w.unordered {
		return false
	}
	for _, o := range w.entries {
		if o.slot != e.slot || o.left == 0 || o.due > now.UnixMilli() && o.holder == nil {
			continue
		}
		if o.holder != nil && o.holder != taker || o.holder == nil && o.position.Less(e.position) {
			return true
		}
	}
	return false
}

// able reports whether a consumer has to be given something.
func (w *Twin) able(s *twinSeat) bool {
	held := 0
	for _, e := range w.entries {
		if e.holder == s {
			held += ones(e.left)
		}
	}
	return s.permits > 0 && !s.stalled && (w.limit == 0 || held <= w.limit/2)
}

// twinSlots says who owns a slot of Key_Shared, by walking a list.
type twinSlots struct {
	sticky bool
	list   []twinSlot // ascending
}

type twinSlot struct {
	first, last int // a split's first is the last of the one before, which it does not include
	name        string
}

func (s *twinSlots) join(o *edge.SubscribeOptions) {
	if s.sticky {
		for _, r := range o.Ranges {
			s.list = append(s.list, twinSlot{r.First, r.Last, o.Consumer})
		}
		return
	}
	if len(s.list) == 0 {
		s.list = []twinSlot{{0, 65536, o.Consumer}}
		return
	}
	big := 0
	for i, r := range s.list {
		if r.last-r.first > s.list[big].last-s.list[big].first {
			big = i
		}
	}
	r := s.list[big]
	middle := r.last - (r.last-r.first)/2
	s.list[big].first = middle
	s.list = slices.Insert(s.list, big, twinSlot{r.first, middle, o.Consumer})
}

func (s *twinSlots) leave(name string) {
	for i := 0; i < len(s.list); i++ {
		r := s.list[i]
		if r.name != name {
			continue
		}
		s.list = slices.Delete(s.list, i, i+1)
		switch {
		case s.sticky:
		case i < len(s.list):
			s.list[i].first = r.first
		case i > 0:
			s.list[i-1].last = r.last
		}
		i--
	}
}

func (s *twinSlots) owner(slot uint16) string {
	for _, r := range s.list {
		if int(slot) <= r.last && (int(slot) > r.first || s.sticky && int(slot) == r.first || slot == 0 && r.first == 0) {
			return r.name
		}
	}
	return ""
}
