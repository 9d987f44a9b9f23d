package pulsar

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"wayside/edge"
)

// writer writes one client's outbox: a goroutine of its own, and for little, whoever has
// handed over deliveries. Who holds the pen writes.
type writer struct {
	out      *outbox
	patience patience
	crowded  func() bool // whether others wait for the memory that batches hold
	batches  *sync.Pool
	guard    func() // deferred: contains a panic

	pen      sync.Mutex
	deadline time.Time // as set on the connection
	direct   socket
	carry    *batch // was begun by who did not wait
	gone     bool   // nothing is written any more
}

// patience is how long a client may take nothing.
type patience struct {
	stall  time.Duration // before entries are given back
	hurry  time.Duration // before it has to keep to the least rate when others wait
	giveUp time.Duration // before the connection is closed
	resume bool          // a write that timed out may be gone on with; not so over TLS
}

// errStuck closes a client that takes nothing, errHoarding one that takes too little
// while others wait for the memory that this costs.
var (
	errStuck    = errors.New("client does not read")
	errHoarding = errors.New("client reads too slowly while others wait for memory")
)

// little is what a client may hold as slowly as it likes, in bytes: a page for each
// connection is less than the share.
const little = 4 << 10

func newWriter(s *session) *writer {
	o := s.srv.opts
	w := &writer{
		out: s.out, batches: &s.srv.batches, guard: s.guard,
		patience: patience{stall: o.StallTimeout, hurry: o.Hurry, giveUp: o.WriteTimeout, resume: s.tls == nil},
		crowded:  func() bool { return s.srv.broker.Budget().Contended(edge.ShareRead) },
	}
	w.direct.open(s.conn)
	return w
}

// rounds writes until nothing waits.
func (w *writer) rounds() error {
	w.pen.Lock()
	defer w.pen.Unlock()
	for {
		b, done := w.carry, false
		if w.carry = nil; b == nil {
			b, done = w.gather()
		}
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

// quit ends the writing. What was begun is let go of.
func (w *writer) quit() {
	w.pen.Lock()
	defer w.pen.Unlock()
	w.gone = true
	if b := w.carry; b != nil {
		w.carry = nil
		w.settle(b, false)
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
	b.parts = len(b.vec)
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

// write writes a batch. A client that takes nothing for a while costs the batch all
// frames that were not begun; one that goes on so is an error.
func (w *writer) write(b *batch) error {
	var begun, since time.Time
	for {
		armed := w.arm()
		if since.IsZero() {
			begun, since = armed, armed
		}
		n, err := w.once(b)
		b.written += n
		if err == nil {
			return nil
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return fmt.Errorf("write: %w", err)
		}
		now := time.Now()
		switch {
		case !w.patience.resume:
			return errStuck
		case b.size > little && now.Sub(begun) >= w.patience.hurry && tooSlow(n, now.Sub(armed)) && w.crowded():
			return errHoarding
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
	o.slots.written(b.answers.frames, len(b.answers.buf))
	b.answers.grant.Release()
	if b.lent != nil {
		o.control.pool.put(b.lent)
	}
	w.recycle(b)
	return wake
}

// recycle empties a batch for its next use.
func (w *writer) recycle(b *batch) {
	clear(b.items)
	clear(b.whole[:b.parts])
	b.answers, b.lent, b.buf, b.vec = gathered{}, nil, nil, nil
	b.items, b.starts = b.items[:0], b.starts[:0]
	b.cutAt, b.size, b.written = 0, 0, 0
	if cap(b.words) > 64 {
		b.words = nil
	}
	w.batches.Put(b)
}
