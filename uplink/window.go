package uplink

import "sort"

// item is one place in the line: a message, or an entry that is parked whole.
type item struct {
	first, last uint64 // topic-wide index; they differ for an entry that is parked whole
	size        int    // bytes in a batch, header included
	alone       bool   // never shares a batch: it has a delivery time
	group       string // messages of one batch have the same: schema version, ordering key
	schema      bool   // it has one: by itself it goes as a batch of one
	family      string // primitive schema, of which a producer can have but one
	park        string // why it does not go to the cloud; "" for all that do
	whole       bool   // an entry as it is, not a message out of it
	msg         message
	held        *held

	tried    bool // an earlier send of it ended unanswered
	answered bool
}

// window is the line of messages between the core and the cloud, in index order. Its
// head leaves only when settled; what lies before sent is in the producer's hands.
type window struct {
	items      []item
	head, sent int
	unanswered int // of items[head:sent]
	bytes      int // of items[head:]
}

func (w *window) add(it item) {
	w.items = append(w.items, it)
	w.bytes += it.size
}

// empty reports whether nothing is held.
func (w *window) empty() bool { return w.head == len(w.items) }

// unsent are the items that are not in the producer's hands.
func (w *window) unsent() []item { return w.items[w.sent:] }

// send hands n more to the producer.
func (w *window) send(n int) {
	w.sent += n
	w.unanswered += n
}

// at finds the item with an index among those in the producer's hands.
func (w *window) at(index uint64) *item {
	flying := w.items[w.head:w.sent]
	i := sort.Search(len(flying), func(i int) bool { return flying[i].last >= index })
	if i == len(flying) || flying[i].first > index {
		return nil
	}
	return &flying[i]
}

// answer notes a receipt. It returns false for one that is not waited for.
func (w *window) answer(it *item) bool {
	if it == nil || it.answered {
		return false
	}
	it.answered = true
	w.unanswered--
	return true
}

// lost ends all sends without an answer: they go again from the head.
func (w *window) lost() {
	for i := w.head; i < w.sent; i++ {
		w.items[i].tried = true
		w.items[i].answered = false
	}
	w.sent, w.unanswered = w.head, 0
}

// pop lets the head leave.
func (w *window) pop() item {
	it := w.items[w.head]
	w.items[w.head] = item{}
	w.head++
	w.bytes -= it.size
	if w.head == len(w.items) {
		w.items, w.head, w.sent = w.items[:0], 0, 0
	} else if w.head > 256 && w.head > len(w.items)/2 {
		n := copy(w.items, w.items[w.head:])
		clear(w.items[n:])
		w.items, w.sent, w.head = w.items[:n], w.sent-w.head, 0
	}
	return it
}
