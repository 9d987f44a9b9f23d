package edgetest

import (
	"fmt"
	"math/bits"
	"sync"

	"wayside/edge"
)

// Twin is a deliberately dumb model of a subscription. A test tells it what it does
// and what is delivered; the twin keeps plain lists and says which of these it broke:
//
//  1. Nothing unacknowledged is lost: at rest, an entry that nobody has waits for a reason.
//  2. Nothing acknowledged comes back but by a seek; of a partly acknowledged batch
//     comes what is left.
//  3. Permits are never exceeded: something comes only while there are any. The last
//     batch may be larger than they are.
//  4. Order holds: on Exclusive and Failover as published since the last rewind; on
//     Shared as published the first time; on Key_Shared so for each slot, and no entry
//     overtakes one of its slot that waits.
//  5. On Shared and Key_Shared an entry has one holder, and a slot its owner; on the
//     others only the active consumer is given anything.
//  6. The mark-delete never retreats but by a seek, stands before the first entry that
//     is not acknowledged and behind all in front of it; the backlog counts the others.
//  7. The redelivery count is how often holders gave the entry back.
//
// Batches have at most 64 messages. What takes something from a consumer is told
// before it is done, so that no delivery is judged by a state that is not yet known;
// the methods that acknowledge and seek do the deed themselves. All methods may be
// called from any goroutine.
type Twin struct {
	mu        sync.Mutex
	kind      edge.SubKind
	unordered bool // Key_Shared with out-of-order delivery
	loose     bool
	limit     int // of unacknowledged messages per consumer, 0 for none
	entries   []*twinEntry
	seats     []*twinSeat // in order of joining
	active    *twinSeat
	last      edge.Position // single kinds: delivered last since the rewind; Shared: farthest
	mark      edge.Position
	slots     twinSlots
	broken    error
}

type twinEntry struct {
	position edge.Position
	slot     uint16
	due      int64  // ms since 1970, 0 for at once
	all      uint64 // a bit for each message
	left     uint64 // of these, not acknowledged
	partly   bool   // by parts
	leaving  bool   // an acknowledgement is under way
	given    bool   // single kinds: since the last rewind; others: ever since all was read anew
	count    uint32
	holder   *twinSeat // on kinds that share
}

type twinSeat struct {
	name    string
	permits int
	stalled bool
}

// NewTwin models a subscription on which nothing is acknowledged.
func NewTwin(limit int) *Twin { return &Twin{mark: edge.Earliest, last: edge.Earliest, limit: limit} }

// Err is the first rule that was broken, nil if none was.
func (w *Twin) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.broken
}

func (w *Twin) object(format string, args ...any) {
	if w.broken == nil {
		w.broken = fmt.Errorf(format, args...)
	}
}

// Loose says that the test acts while deliveries are under way: then it is not judged
// what an entry overtakes, and who owns a slot.
func (w *Twin) Loose(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.loose = on
}

// Published tells of an entry, at the latest before it is acknowledged.
func (w *Twin) Published(p edge.Position, f *edge.Facts) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.entry(p, f)
}

// entry finds an entry, or puts a new one in its place.
func (w *Twin) entry(p edge.Position, f *edge.Facts) *twinEntry {
	at := len(w.entries)
	for at > 0 && !w.entries[at-1].position.Less(p) {
		at--
	}
	if at < len(w.entries) && w.entries[at].position == p {
		return w.entries[at]
	}
	if f == nil {
		return nil
	}
	e := &twinEntry{position: p, slot: f.Slot, due: f.DeliverAt, all: ^uint64(0) >> (64 - f.Messages)}
	e.left = e.all
	w.entries = append(w.entries[:at], append([]*twinEntry{e}, w.entries[at:]...)...)
	return e
}

func (w *Twin) shares() bool { return w.kind == edge.Shared || w.kind == edge.KeyShared }

// Joined tells of a consumer before it subscribes. The first one decides the kind.
func (w *Twin) Joined(o *edge.SubscribeOptions) {
	w.mu.Lock()
	defer w.mu.Unlock()
	seat := &twinSeat{name: o.Consumer}
	if len(w.seats) == 0 {
		w.kind, w.unordered = o.Kind, o.OutOfOrder
		w.slots = twinSlots{sticky: o.Sticky}
		w.rewind()
	}
	w.seats = append(w.seats, seat)
	w.slots.join(o)
	if w.kind == edge.Exclusive {
		w.active = seat
	}
}

// rewind lets everything unacknowledged be read anew.
func (w *Twin) rewind() {
	w.last = edge.Earliest
	for _, e := range w.entries {
		e.given, e.holder = false, nil
	}
}

func (w *Twin) seat(name string) *twinSeat {
	for _, s := range w.seats {
		if s.name == name {
			return s
		}
	}
	return nil
}

// Left tells of a consumer before it leaves. With unloading the topic goes as well,
// and redelivery counts stay.
func (w *Twin) Left(name string, unloading bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	seat := w.seat(name)
	for i, s := range w.seats {
		if s == seat {
			w.seats = append(w.seats[:i:i], w.seats[i+1:]...)
			break
		}
	}
	w.slots.leave(name)
	if w.active == seat {
		w.active = nil
	}
	for _, e := range w.entries {
		if e.holder == seat {
			e.holder = nil
		}
		if len(w.seats) == 0 && w.shares() && !unloading {
			e.count = 0
		}
	}
	if len(w.seats) == 0 {
		w.rewind()
	}
}

// ActiveChanged tells which consumer of a Failover subscription is the active one.
func (w *Twin) ActiveChanged(name string, active bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if seat := w.seat(name); active && w.active != seat {
		w.active = seat
		w.rewind()
	}
}

// Flowed tells of permits before they are given, Stalled whether there is room.
func (w *Twin) Flowed(name string, permits int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seat(name).permits += permits
}

// Stalled tells whether the consumer's receiver has no room.
func (w *Twin) Stalled(name string, on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seat(name).stalled = on
}

// Acked acknowledges parts by do. A cumulative one has one part.
func (w *Twin) Acked(parts []edge.AckPart, cumulative bool, do func()) {
	w.mu.Lock()
	cumulative = cumulative && len(parts) == 1
	hit := map[*twinEntry]edge.AckPart{}
	for _, part := range parts {
		for _, e := range w.entries {
			switch {
			case e.position == part.Position:
				hit[e] = part
			case cumulative && e.position.Less(part.Position):
				hit[e] = edge.AckPart{}
			}
		}
	}
	if cumulative && w.shares() {
		hit = nil
	}
	for e := range hit {
		e.leaving = true
	}
	w.mu.Unlock()
	do()
	w.mu.Lock()
	defer w.mu.Unlock()
	for e, part := range hit {
		e.leaving = false
		e.ack(part.Rest)
	}
}

func (e *twinEntry) ack(rest []uint64) {
	if e.left == 0 {
		return
	}
	switch len(rest) {
	case 0:
		e.left = 0
	default:
		e.left, e.partly = e.left&rest[0], true
	}
	if e.left == 0 {
		e.holder, e.count = nil, 0
	}
}

// Nacked tells that a consumer gives entries back, nil for all, before it does.
func (w *Twin) Nacked(name string, ids []edge.Position) {
	w.mu.Lock()
	defer w.mu.Unlock()
	seat := w.seat(name)
	if !w.shares() {
		if w.active == seat {
			w.rewind()
		}
		return
	}
	for _, e := range w.entries {
		named := ids == nil
		for _, p := range ids {
			named = named || p == e.position
		}
		if named && e.holder == seat {
			e.holder = nil
			e.count++
		}
	}
}

// GaveBack tells of deliveries that never reached the client, before they go back.
func (w *Twin) GaveBack(name string, ds []edge.Delivery) {
	w.mu.Lock()
	defer w.mu.Unlock()
	seat := w.seat(name)
	for _, d := range ds {
		e := w.entry(d.Entry.Position, nil)
		seat.permits += messagesOf(&d)
		switch {
		case w.shares() && e.holder == seat:
			e.holder = nil
		case !w.shares() && w.active == seat && !w.last.Less(e.position):
			w.takeBack(e.position)
		}
	}
}

// takeBack lets the single kinds read from p again.
func (w *Twin) takeBack(p edge.Position) {
	w.last = edge.Earliest
	for _, e := range w.entries {
		if !e.position.Less(p) {
			e.given = false
		} else {
			w.last = e.position
		}
	}
}

func messagesOf(d *edge.Delivery) int {
	if d.Rest == nil {
		return int(d.Entry.Facts.Messages)
	}
	return ones(d.Rest...)
}

func ones(words ...uint64) int {
	n := 0
	for _, w := range words {
		n += bits.OnesCount64(w)
	}
	return n
}

// Sought moves the subscription by do: next is the first entry that is wanted again,
// with a rest of it. Nothing else may be going on.
func (w *Twin) Sought(next edge.Position, rest []uint64, do func()) {
	w.mu.Lock()
	w.mark = edge.Earliest
	w.rewind()
	for _, e := range w.entries {
		e.left, e.partly, e.count = e.all, false, 0
		switch {
		case e.position.Less(next):
			e.left = 0
		case e.position == next && len(rest) > 0:
			e.ack(rest)
		}
	}
	w.mu.Unlock()
	do()
}
