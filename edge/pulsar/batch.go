package pulsar

import (
	"slices"

	"wayside/wire"
)

const (
	// batchFrames and batchBytes are how much one write may carry.
	batchFrames = 128
	batchBytes  = 256 << 10
	// copied is the longest entry that is copied behind its head. Longer ones are
	// written from where they are.
	copied = 1 << 10
	// headBytes is room for the head of a MESSAGE, ack_set apart.
	headBytes = 128
)

// longest is the longest entry, in bytes, that can be delivered.
func (s *Server) longest() int { return wire.MaxFrame(s.opts.MaxMessageSize) - headBytes }

// maxWord is what a word of an ack_set takes on the wire at most.
const maxWord = 11

// batch is what one write carries: answers first, then entries with their heads.
type batch struct {
	answers gathered
	lent    []byte   // buf is the pool's
	buf     []byte   // heads and short entries
	cutAt   int      // what of buf is in vec
	vec     [][]byte // what is still to be written
	items   []item
	starts  []int // where the frame of each item begins
	size    int   // bytes in all
	written int
	words   []int64
	msg     wire.MessageHead
	parts   int                       // of whole that are used
	whole   [2*batchFrames + 2][]byte // backs vec
}

func (b *batch) makeRoom(pool *buffers) {
	if b.lent = pool.get(); b.lent != nil {
		b.buf = b.lent
		return
	}
	b.buf = make([]byte, 0, 8*headBytes)
}

func (b *batch) full() bool {
	return len(b.items) == batchFrames || b.size >= batchBytes || b.buf != nil && cap(b.buf)-len(b.buf) < headBytes
}

// add appends the frame of one entry.
func (b *batch) add(it item) {
	data := it.d.Entry.Data
	b.starts = append(b.starts, b.size)
	b.items = append(b.items, it)
	before := len(b.buf)
	b.buf = wire.AppendMessage(b.buf, b.head(&it), len(data))
	b.size += len(b.buf) - before + len(data)
	if len(data) <= copied && cap(b.buf)-len(b.buf) >= len(data) {
		b.buf = append(b.buf, data...)
		return
	}
	b.cut()
	b.vec = append(b.vec, data)
}

// cut moves what is in buf and not yet in vec there.
func (b *batch) cut() {
	if len(b.buf) > b.cutAt {
		b.vec = append(b.vec, b.buf[b.cutAt:])
		b.cutAt = len(b.buf)
	}
}

func (b *batch) head(it *item) *wire.MessageHead {
	d := &it.d
	b.words = b.words[:0]
	if len(d.Entry.Data)+maxWord*len(d.Rest) <= it.to.s.srv.longest() { // otherwise the batch comes whole
		for _, w := range d.Rest {
			b.words = append(b.words, int64(w))
		}
	}
	b.msg = wire.MessageHead{
		ConsumerID: it.to.id,
		Ledger:     d.Entry.Position.Ledger, Entry: d.Entry.Position.Entry,
		Partition:       it.to.partition,
		RedeliveryCount: d.Redelivered,
		AckSet:          b.words,
		ConsumerEpoch:   d.Epoch, HasEpoch: d.Epoch >= 0,
	}
	return &b.msg
}

// retire lets go of the items that are written.
func (b *batch) retire(o *outbox) {
	done := 0
	for done < len(b.items) && b.end(done) <= b.written {
		done++
	}
	freed := int64(0)
	for i := range b.items[:done] {
		freed += b.items[i].cost()
		b.items[i].d.Grant.Release()
	}
	o.free.Add(freed)
	b.items = slices.Delete(b.items, 0, done)
	b.starts = slices.Delete(b.starts, 0, done)
}

// end is where the frame of item i ends.
func (b *batch) end(i int) int {
	if i+1 < len(b.starts) {
		return b.starts[i+1]
	}
	return b.size
}

// shorten takes out of the batch the items whose frames were not begun. What is left
// to be written no longer needs the batch's buffer.
func (b *batch) shorten() []item {
	keep := len(b.items)
	for keep > 0 && b.starts[keep-1] >= b.written {
		keep--
	}
	if keep == 0 && len(b.items) > 0 && b.starts[0] == b.written {
		keep = 1 // something has to be in hand, to see whether the client takes it
	}
	end := b.size
	if keep < len(b.items) {
		end = b.starts[keep]
	}
	back := slices.Clone(b.items[keep:])
	clear(b.items[keep:])
	b.items, b.starts, b.size = b.items[:keep], b.starts[:keep], end
	left := end - b.written
	rest := make([][]byte, 0, 2)
	for _, v := range b.vec {
		v = v[:min(len(v), left)]
		if left -= len(v); len(v) == 0 {
			continue
		}
		if len(v) <= bufferSize { // of the lent buffer, or short enough
			v = slices.Clone(v)
		}
		rest = append(rest, v)
	}
	b.vec = rest
	return back
}
