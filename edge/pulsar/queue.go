package pulsar

import (
	"sync"

	"wayside/edge"
)

// item is a delivery that waits to be written.
type item struct {
	to *consumer
	d  edge.Delivery
}

// cost is what an item counts against the bytes that may wait.
func (i *item) cost() int64 { return int64(len(i.d.Entry.Data)) + entryOverhead }

// queue is a first-in-first-out list of items in pieces, so that what a slow client
// made it hold goes back piece by piece. The zero value needs pieces to be set.
type queue struct {
	pieces     *sync.Pool
	head, tail *piece
	first      int // of head
	next       int // of tail
}

// piece is a part of a queue. A delivery is some hundred bytes.
type piece struct {
	items [8]item
	more  *piece
}

func (q *queue) empty() bool { return q.head == nil }

func (q *queue) push(it item) {
	if q.tail == nil || q.next == len(q.tail.items) {
		p := q.pieces.Get().(*piece)
		if q.tail == nil {
			q.head, q.first = p, 0
		} else {
			q.tail.more = p
		}
		q.tail, q.next = p, 0
	}
	q.tail.items[q.next] = it
	q.next++
}

// pop takes the oldest item out of a queue that is not empty.
func (q *queue) pop() item {
	p := q.head
	it := p.items[q.first]
	p.items[q.first] = item{}
	q.first++
	if last := p == q.tail; last && q.first == q.next || q.first == len(p.items) {
		q.head, q.first = p.more, 0
		if last {
			q.tail = nil
		}
		p.more = nil
		q.pieces.Put(p)
	}
	return it
}
