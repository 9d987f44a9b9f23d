package pulsar

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"wayside/edge"
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

// writer is the goroutine that writes one client's outbox.
type writer struct {
	out      *outbox
	patience patience
	batches  *sync.Pool
	deadline time.Time // as set on the connection
}

// patience is how long a client may take nothing.
type patience struct {
	stall  time.Duration // before entries are given back
	giveUp time.Duration // before the connection is closed
	resume bool          // a write that timed out may be gone on with; not so over TLS
}

// errStuck closes a client that takes nothing.
var errStuck = errors.New("client does not read")

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
	whole   [2*batchFrames + 2][]byte // backs vec
}

// rounds writes until nothing waits.
func (w *writer) rounds() error {
	for {
		b, done := w.gather()
		if b == nil {
			if done {
				return errFinished
			}
			return nil
		}
		err := w.write(b)
		wake := w.settle(b, err == nil)
		if err != nil {
			return err
		}
		for _, c := range wake {
			c.core.Wake()
		}
	}
}

// errFinished ends a writer that has written all there was to be.
var errFinished = errors.New("finished")

// gather takes out of the outbox what the next write carries, nil for nothing. done
// says that nothing comes any more.
func (w *writer) gather() (b *batch, done bool) {
	b, dropped, done := w.collect()
	for _, g := range dropped {
		g.Release()
	}
	return b, done
}

func (w *writer) collect() (b *batch, dropped []edge.Grant, done bool) {
	o := w.out
	o.mu.Lock()
	defer o.mu.Unlock()
	o.flushLocked()
	if len(o.control.buf) == 0 && o.queue.empty() {
		return nil, nil, o.last
	}
	b = w.batches.Get().(*batch)
	b.vec = b.whole[:0]
	b.answers = o.control.take()
	if len(b.answers.buf) > 0 {
		b.vec = append(b.vec, b.answers.buf)
		b.size = len(b.answers.buf)
	}
	dropped = w.loadLocked(b)
	b.cut()
	return b, dropped, false
}

// loadLocked fills a batch with entries. Those of consumers that are closed are
// dropped; their grants are returned.
func (w *writer) loadLocked(b *batch) (dropped []edge.Grant) {
	o := w.out
	freed := int64(0)
	for !o.queue.empty() && !b.full() {
		it := o.queue.pop()
		if it.to.dead {
			freed += it.cost()
			dropped = append(dropped, it.d.Grant)
			continue
		}
		if b.buf == nil {
			b.makeRoom(o.control.pool)
		}
		b.add(it)
	}
	o.free.Add(freed)
	return dropped
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
	for _, w := range d.Rest {
		b.words = append(b.words, int64(w))
	}
	return &wire.MessageHead{
		ConsumerID: it.to.id,
		Ledger:     d.Entry.Position.Ledger, Entry: d.Entry.Position.Entry,
		Partition:       it.to.partition,
		RedeliveryCount: d.Redelivered,
		AckSet:          b.words,
		ConsumerEpoch:   d.Epoch, HasEpoch: d.Epoch >= 0,
	}
}

// write writes a batch. A client that takes nothing for a while costs the batch all
// frames that were not begun; one that goes on so is an error.
func (w *writer) write(b *batch) error {
	var since time.Time
	for {
		now := w.arm()
		if since.IsZero() {
			since = now
		}
		n, err := w.once(b)
		b.written += n
		if err == nil {
			return nil
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return fmt.Errorf("write: %w", err)
		}
		now = time.Now()
		switch {
		case !w.patience.resume:
			return errStuck
		case n > 0:
			since = now
		case now.Sub(since) >= w.patience.giveUp:
			return errStuck
		default:
			w.standStill(b)
		}
	}
}

// once writes until all is written or an error comes, and shortens vec.
func (w *writer) once(b *batch) (int, error) {
	if len(b.vec) == 1 {
		n, err := w.out.conn.Write(b.vec[0])
		b.vec[0] = b.vec[0][n:]
		return n, err
	}
	v := net.Buffers(b.vec)
	n, err := v.WriteTo(w.out.conn)
	b.vec = v
	return int(n), err
}

// arm gives the next write at least the time after which a client stands still. One
// deadline serves several writes.
func (w *writer) arm() time.Time {
	limit := w.patience.stall
	if !w.patience.resume {
		limit = w.patience.giveUp
	}
	now := time.Now()
	if w.deadline.Sub(now) < limit {
		w.deadline = now.Add(2 * limit)
		w.out.conn.SetWriteDeadline(w.deadline) //nolint:errcheck // fails on a closed connection only, which Write reports
	}
	return now
}

// standStill gives back to their subscriptions all entries whose frame was not begun,
// and tells no room until the client takes bytes again. Only the frame in hand is held.
func (w *writer) standStill(b *batch) {
	o := w.out
	b.retire(o)
	back := b.shorten()
	o.mu.Lock()
	if !o.stalled {
		o.stalled = true
		o.free.Add(-closed)
	}
	freed := int64(0)
	for i := range back {
		freed += back[i].cost()
	}
	for !o.queue.empty() {
		it := o.queue.pop()
		freed += it.cost()
		back = append(back, it)
	}
	o.free.Add(freed)
	returned, dropped := sortByConsumer(back)
	o.mu.Unlock()
	if b.lent != nil {
		o.control.pool.put(b.lent)
		b.lent = nil
	}
	for _, g := range dropped {
		g.Release()
	}
	for c, ds := range returned {
		c.core.GiveBack(ds)
	}
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

// sortByConsumer divides items by who they are for. The outbox is locked.
func sortByConsumer(items []item) (returned map[*consumer][]edge.Delivery, dropped []edge.Grant) {
	returned = map[*consumer][]edge.Delivery{}
	for _, it := range items {
		if it.to.dead {
			dropped = append(dropped, it.d.Grant)
			continue
		}
		returned[it.to] = append(returned[it.to], it.d)
	}
	return returned, dropped
}

// settle ends a batch: what it held is free again. It returns who waits for room.
func (w *writer) settle(b *batch, ok bool) []*consumer {
	o := w.out
	freed := int64(0)
	for i := range b.items {
		freed += b.items[i].cost()
		b.items[i].d.Grant.Release()
	}
	o.mu.Lock()
	if freed > 0 {
		o.free.Add(freed)
	}
	if o.stalled && ok {
		o.stalled = false
		o.free.Add(closed)
	}
	wake := o.awakenLocked()
	o.control.release(b.answers)
	o.mu.Unlock()
	o.slots.give(b.answers.frames)
	if b.lent != nil {
		o.control.pool.put(b.lent)
	}
	w.recycle(b)
	return wake
}

// recycle empties a batch for its next use.
func (w *writer) recycle(b *batch) {
	clear(b.items)
	clear(b.whole[:])
	b.answers, b.lent, b.buf, b.vec = gathered{}, nil, nil, nil
	b.items, b.starts = b.items[:0], b.starts[:0]
	b.cutAt, b.size, b.written = 0, 0, 0
	if cap(b.words) > 64 {
		b.words = nil
	}
	w.batches.Put(b)
}
