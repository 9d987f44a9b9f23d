package uplink

import (
	"context"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"wayside/edge"
	"wayside/wire"
)

// memoryRetry is when to look again for memory that others hold.
const memoryRetry = 200 * time.Millisecond

// maxOpened bounds the room to open entries in that is kept, in messages.
const maxOpened = 1000

// unpack opens entries into the line as long as the window has room. It reports
// whether it did.
func (f *forwarder) unpack(now time.Time) (some bool) {
	w := &f.line.window
	f.thirsty = time.Time{}
	for len(f.packed) > 0 && (w.empty() || w.bytes < f.up.o.WindowBytes || f.line.starved) {
		d := &f.packed[0]
		h := f.hold(d)
		m, err := wire.ParseMessage(d.Entry.Data)
		if err == nil && !f.takeMemory(h, &m, now) {
			return some
		}
		some = true
		f.begin(d.Entry.Index, d.Entry.LastIndex())
		var items []item
		if err != nil {
			items = h.whole(&d.Entry, "cannot be read: "+err.Error())
		} else {
			items = f.split(h, d, &m)
		}
		f.enter(h, unacked(d), items)
		f.packed[0] = edge.Delivery{}
		f.packed = f.packed[1:]
	}
	if len(f.packed) == 0 {
		f.packed = nil
	}
	return some
}

// takeMemory counts what a compressed entry takes beyond its stored bytes. Without
// room the entry waits, unless nothing else is in the line.
func (f *forwarder) takeMemory(h *held, m *wire.Message, now time.Time) bool {
	more := int64(m.UncompressedSize) - int64(len(m.Payload))
	if m.Compression == 0 || more <= 0 || more > int64(f.up.o.MaxMessageSize) {
		return true
	}
	g, ok := f.up.broker.Budget().TryTake(edge.ShareUplink, copiesOfEntry*more)
	if !ok && !f.line.window.empty() {
		f.thirsty = now.Add(memoryRetry)
		return false
	}
	h.more = g
	h.bytes += more
	f.holding.Add(more)
	return true
}

// begin tells the planner of the first entry of a seat.
func (f *forwarder) begin(first, last uint64) {
	if f.begun {
		return
	}
	f.begun = true
	if f.line.begin(first, last) {
		f.up.o.Logger.Warn("the cursor of a topic was set back: what it holds goes again, under a new name",
			"topic", f.name.String(), "route", f.route.Name, "from", first)
	}
}

// enter puts an entry's items into the line, and gives back the permits that the core
// took for what it has no items for.
func (f *forwarder) enter(h *held, permits int, items []item) {
	taken := 0
	for i := range items {
		taken += int(items[i].last - items[i].first + 1)
		f.line.window.add(items[i])
	}
	clear(f.opened)
	if cap(f.opened) > maxOpened {
		f.opened = nil
	}
	h.left = len(items)
	f.flow += permits - taken
	if h.left == 0 {
		f.upTo = &h.position
		f.drop(h)
	}
}

// send hands messages to the producer. After a failure that shows at once the rest is
// not handed over: it ends unanswered like the others.
func (f *forwarder) send(s *step, now time.Time) bool {
	w := &f.line.window
	from := w.sent - s.n
	if w.unanswered == s.n {
		f.watchdog.start(now)
	}
	ctx, cancel := context.WithTimeout(f.session.ctx, f.up.o.ReceiptTimeout)
	defer cancel()
	bytes := 0
	for i := from; i < w.sent && !f.session.broken.Load(); i++ {
		it := &w.items[i]
		m := f.outgoing(it)
		if !s.batch {
			f.aside(it, m)
		}
		bytes += it.size
		f.session.send(ctx, it.first, it.size, m)
	}
	if s.flush && !f.session.broken.Load() {
		f.session.flush()
	}
	f.used = now
	f.counts.handed.Add(int64(bytes))
	f.pace = now.Add(f.up.pace(bytes, now))
	return true
}

// aside lets a message go by itself: with its delivery time, or at once. One with a
// schema shares the batch's way, or its schema version would be lost.
func (f *forwarder) aside(it *item, m *pulsar.ProducerMessage) {
	switch {
	case it.alone:
		m.DeliverAt = time.UnixMilli(it.msg.deliverAt)
	case !it.schema:
		m.DeliverAt = single()
	}
}

// onAnswer takes the outcome of a send.
func (f *forwarder) onAnswer(e *event, now time.Time) {
	if e.session != f.session || f.session == nil {
		return
	}
	if e.err != nil {
		f.sendFailed(e, now)
		return
	}
	it := f.line.window.at(e.index)
	switch f.line.answered(e.index, e.duplicate) {
	case conflict:
		f.conflict(e.index, now)
		return
	case unknown:
		return
	case duplicate:
		f.counts.duplicates.Add(1)
	case stored:
		f.counts.sent.Add(1)
		f.counts.sentBytes.Add(int64(it.size))
	}
	f.fresh += it.size
}

// sendFailed handles the first failure of a session, which is its end.
func (f *forwarder) sendFailed(e *event, now time.Time) {
	kind, reason := classify(e.err), plainWords(e.err, "")
	if kind != poison {
		f.fail(kind, reason, now)
		return
	}
	f.endSession()
	f.refused(e.index, reason, late(e.err))
}

// refused has the planner deal with what the cloud will never take.
func (f *forwarder) refused(index uint64, reason string, late bool) {
	if f.line.refused(index, reason, late) {
		f.counts.conflicts.Add(1)
		f.up.o.Logger.Warn("the cloud refuses a batch: what is open goes again under a new name, in smaller ones",
			"topic", f.name.String(), "route", f.route.Name, "index", index, "reason", reason)
	}
}

// conflict deals with a cloud that calls a message a duplicate which was never sent
// before under this name: somebody else uses the name, or the store is an old copy.
// Nothing is taken for sent on such a word.
func (f *forwarder) conflict(index uint64, now time.Time) {
	f.up.o.Logger.Error("the cloud knows a message that was never sent: another device or a copied store uses this identity; going on under a new name",
		"topic", f.name.String(), "route", f.route.Name, "index", index, "name", f.line.current())
	f.counts.conflicts.Add(1)
	f.endSession()
	f.line.renew()
	f.wait(now, f.up.o.BackoffMax, BackingOff, "the cloud knows a message that was never sent: another device uses this one's id, or the store is an old copy")
}
