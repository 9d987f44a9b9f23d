package pulsar

import (
	"net"
	"sync"
	"sync/atomic"

	"google.golang.org/protobuf/proto"

	"wayside/edge"
	"wayside/wire"
)

// outbox is what waits to be written to one client. Answers and pushed frames go
// first, in the order in which they came; entries follow. So SUCCESS comes before the
// MESSAGEs that it allows, CLOSE_CONSUMER before the SUCCESS of its SEEK, and a
// CLOSE_* has nothing behind it (protocol 1.6).
//
// It is a leaf: whoever holds a lock of the core may call it. Answers are bounded by
// slots, pushed frames by the session's tables, entries by the room that is told.
type outbox struct {
	conn  net.Conn
	slots *slots
	limit int64 // bytes of entries that may wait
	wake  chan struct{}
	free  atomic.Int64 // of limit; far below zero while nothing is welcome

	mu      sync.Mutex
	control control
	queue   queue
	pushed  []pusher    // table entries with something to tell
	starved []*consumer // who were told that there is no room
	ping    bool
	stalled bool // the client takes nothing
	last    bool // when all is written, the connection is closed
	ended   bool // nothing is written any more
}

// pusher is a table entry with something to tell its client.
type pusher interface {
	// pending reports whether there is, frames says all of it. The outbox is locked.
	pending() bool
	frames() []byte
}

// closed is taken off the room while nothing is welcome.
const closed = int64(1) << 40

func newOutbox(srv *Server, conn net.Conn, s *slots) *outbox {
	o := &outbox{conn: conn, slots: s, limit: srv.deliveryBytes, wake: make(chan struct{}, 1)}
	o.control.pool = srv.writers
	o.queue.pieces = &srv.pieces
	o.free.Store(o.limit)
	return o
}

// poke wakes the writer.
func (o *outbox) poke() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// reply queues the answer to a request, whose slot it holds until it is written.
func (o *outbox) reply(answer proto.Message) {
	o.settle(func() proto.Message { return answer })
}

// settle queues the answer that build, called with the outbox locked, gives. Without
// one the slot is free again, and false is returned.
func (o *outbox) settle(build func() proto.Message) bool {
	return o.settleLarge(build, edge.Grant{})
}

// replyLarge is reply for an answer for which memory was taken. It is released when
// the answer is written.
func (o *outbox) replyLarge(answer proto.Message, memory edge.Grant) {
	o.settleLarge(func() proto.Message { return answer }, memory)
}

func (o *outbox) settleLarge(build func() proto.Message, memory edge.Grant) bool {
	agreed, queued := o.tryReply(build, memory)
	if queued {
		o.poke()
	} else {
		memory.Release()
		o.slots.give(1)
	}
	return agreed
}

func (o *outbox) tryReply(build func() proto.Message, memory edge.Grant) (agreed, queued bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.flushLocked()
	answer := build()
	if answer == nil || o.ended {
		return answer != nil, false
	}
	o.addLocked(encode(answer))
	o.control.frames++
	o.control.grant.Join(memory)
	return true, true
}

// addLocked queues a frame without payload.
func (o *outbox) addLocked(frame []byte) {
	o.control.add(frame)
	o.slots.weight.Add(int64(len(frame)))
}

// pushLarge queues a frame that answers nothing, for which memory was taken. Whoever
// calls it looks first at how much waits.
func (o *outbox) pushLarge(m proto.Message, memory edge.Grant) {
	o.mu.Lock()
	ended := o.ended
	if !ended {
		o.addLocked(encode(m))
		o.control.grant.Join(memory)
	}
	o.mu.Unlock()
	if ended {
		memory.Release()
	}
	o.poke()
}

// encode makes a frame of one of our own answers, in which all that is required is set.
func encode(answer proto.Message) []byte {
	frame, err := wire.AppendCommand(nil, wire.Wrap(answer))
	if err != nil {
		panic(err) // a defect; the session's guard ends the connection
	}
	return frame
}

// receipt queues a SEND_RECEIPT, like reply.
func (o *outbox) receipt(producer uint64, sequence, highest int64, at edge.Position) {
	const longest = 80
	o.mu.Lock()
	if o.ended {
		o.mu.Unlock()
		o.slots.give(1)
		return
	}
	o.control.grow(longest)
	before := len(o.control.buf)
	o.control.buf = wire.AppendSendReceipt(o.control.buf, producer, sequence, highest, at.Ledger, at.Entry)
	o.control.frames++
	o.slots.weight.Add(int64(len(o.control.buf) - before))
	o.mu.Unlock()
	o.poke()
}

// frame queues a whole frame, like reply.
func (o *outbox) frame(frame []byte) {
	o.mu.Lock()
	if o.ended {
		o.mu.Unlock()
		o.slots.give(1)
		return
	}
	o.flushLocked()
	o.addLocked(frame)
	o.control.frames++
	o.mu.Unlock()
	o.poke()
}

// askAlive queues a PING, unless one waits already.
func (o *outbox) askAlive() {
	o.mu.Lock()
	o.ping = true
	o.mu.Unlock()
	o.poke()
}

// pushLocked lists a table entry that has something to tell. The caller holds o.mu,
// sees to it that no entry is listed twice, and pokes.
func (o *outbox) pushLocked(p pusher) { o.pushed = append(o.pushed, p) }

// flushLocked turns all that is pushed into frames.
func (o *outbox) flushLocked() {
	if o.ping {
		o.ping = false
		o.addLocked([]byte(wire.PingFrame))
	}
	for _, p := range o.pushed {
		o.addLocked(p.frames())
	}
	clear(o.pushed)
	o.pushed = o.pushed[:0]
	if cap(o.pushed) > 64 { // after an unload of many topics
		o.pushed = nil
	}
}

// deliver queues an entry for a consumer. Its grant is released once it is written. The
// writer is not woken.
func (o *outbox) deliver(c *consumer, d edge.Delivery) {
	it := item{c, d}
	o.mu.Lock()
	if o.ended || c.dead {
		o.mu.Unlock()
		d.Grant.Release()
		return
	}
	o.queue.push(it)
	o.free.Add(-it.cost())
	o.mu.Unlock()
}

// room is how many bytes of entries are welcome. A consumer that is told none is woken
// when that has changed.
func (o *outbox) room(c *consumer) int {
	if free := o.free.Load(); free > 0 {
		return int(free)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	free := o.free.Load()
	if free <= 0 && !o.ended && !c.starved {
		c.starved = true
		o.starved = append(o.starved, c)
	}
	return int(max(free, 0))
}

// awakenLocked returns who is to be woken, once half of the room is free again: so
// that they find enough of it to read for.
func (o *outbox) awakenLocked() []*consumer {
	if len(o.starved) == 0 || o.free.Load() < o.limit/2 {
		return nil
	}
	list := o.starved
	o.starved = nil
	for _, c := range list {
		c.starved = false
	}
	return list
}

// finish lets the writer close the connection when all that waits is written.
func (o *outbox) finish() {
	o.mu.Lock()
	o.last = true
	o.mu.Unlock()
	o.poke()
}

// end drops all that waits and whatever comes later. The core's consumers are closed
// already, so entries need not be given back.
func (o *outbox) end() {
	o.mu.Lock()
	if !o.ended {
		o.ended = true
		o.free.Add(-closed)
	}
	g := o.control.take()
	o.control.release(g)
	var grants []edge.Grant
	for !o.queue.empty() {
		grants = append(grants, o.queue.pop().d.Grant)
	}
	o.pushed, o.starved = nil, nil
	o.mu.Unlock()
	o.slots.written(g.frames, len(g.buf))
	g.grant.Release()
	for _, g := range grants {
		g.Release()
	}
}
