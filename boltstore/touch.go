package boltstore

import (
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"wayside/edge"
)

// touch is a topic as the group under way will leave it.
type touch struct {
	topic     *topic
	led       *ledger // nil when the topic is not open
	rec       record
	pending   []*appendOp // behind the last chunk that was written
	first     edge.Position
	index     uint64
	closed    []place                // all closed ledgers, once they changed
	moved     bool                   // closed is meant
	marks     []mark                 // all cursors, once they changed
	marked    bool                   // marks is meant
	sequenced map[string][]*appendOp // appends by producer name, for its sequence
	chunks    []looseChunk           // in the group's payload
	tight     int                    // loose chunks, from the first, that are not loose any more
	events    []func(*unsaved)       // what the main file will have to be told
	deleted   bool
	told      bool // by the payload
}

// touch returns the group's picture of a topic.
func (g *group) touch(t *topic) *touch {
	g.current = t
	if w := g.byTopic[t]; w != nil {
		return w
	}
	w := &touch{topic: t, led: t.led, rec: t.rec}
	g.byTopic[t] = w
	g.touched = append(g.touched, w)
	g.changed = true
	return w
}

// closedPlaces lists the closed ledgers as the group has them by now, as a copy.
func (w *touch) closedPlaces() []place {
	if w.moved {
		return w.closed
	}
	v := w.led.view.Load()
	list := make([]place, len(v.where), len(v.where)+1)
	for i := range list {
		list[i] = v.place(i)
	}
	return list
}

func (w *touch) setClosed(list []place) {
	w.closed, w.moved = list, true
	w.rec.closed = len(list)
	w.rec.first = sums{w.rec.open.span.EntriesBefore, w.rec.open.span.MessagesBefore, w.rec.open.span.BytesBefore}
	w.rec.tail = edge.Position{}
	if len(list) > 0 {
		s := list[0].span
		w.rec.first = sums{s.EntriesBefore, s.MessagesBefore, s.BytesBefore}
		w.rec.tail = list[len(list)-1].span.End()
	}
}

// cursorMarks lists the cursors' marks as the group has them by now, as a copy.
func (w *touch) cursorMarks() []mark {
	if !w.marked {
		w.marks, w.marked = slices.Clone(w.led.marks), true
	}
	return w.marks
}

// bucket is the topic's, which exists.
func (g *group) bucket(t *topic) (*bbolt.Bucket, error) {
	g.current = t
	b := g.tx.Bucket(topicKey(t.key))
	if b == nil {
		return nil, fmt.Errorf("topic %s has no bucket: %w", t.name, errDamaged)
	}
	return b, nil
}

// roll closes the open ledger and starts another in the main file.
func (g *group) roll(w *touch) error {
	if err := g.flushChunk(w); err != nil {
		return err
	}
	old := w.rec.open
	id, err := g.store.ids.next()
	if err != nil {
		return err
	}
	list := append(w.closedPlaces(), old)
	w.rec.open = old.following(id, g.now, g.store.firstFile())
	w.setClosed(list)
	if g.journal {
		g.recordRoll(w, old, id)
		return nil
	}
	b, err := g.bucket(w.topic)
	if err != nil {
		return err
	}
	return putBound(b, w.topic.key, placeKey(old.span.Ledger), old.encode())
}

// flush writes what the group has gathered for a topic.
func (g *group) flush(w *touch) error {
	if w.deleted {
		return nil
	}
	g.current = w.topic
	if err := g.flushChunk(w); err != nil {
		return err
	}
	if err := g.flushSequences(w); err != nil {
		return err
	}
	if err := g.saveTopic(w.topic); err != nil { // what the record counts on
		return err
	}
	w.rec.live = w.liveBytes()
	return g.putRecord(w)
}

func (g *group) putRecord(w *touch) error {
	return putRecord(g.tx, number(w.topic.key), w.rec.encode(w.topic.name))
}

// recordFill leaves records room to grow in their page.
const recordFill = 0.9

// liveBytes are those behind the slowest cursor; without a cursor there are none.
func (w *touch) liveBytes() int64 {
	if w.marked {
		w.rec.cursors, w.rec.slowest = len(w.marks), slowest(w.marks)
	}
	switch {
	case w.rec.cursors == 0:
		return 0
	case w.led == nil:
		return w.rec.live
	}
	spans := edge.Spans{Open: w.rec.open.span}
	if w.moved {
		for i := range w.closed {
			spans.Closed = append(spans.Closed, w.closed[i].span)
		}
	} else {
		spans.Closed = w.led.view.Load().spans.Closed
	}
	return spans.BytesBetween(w.rec.slowest, spans.End())
}

func (w *touch) liveNow() int64 {
	if w.deleted {
		return 0
	}
	return w.rec.live
}

func (w *touch) activeNow() int64 {
	return b2i(!w.deleted && w.rec.open.span.Entries() > 0)
}

// show replaces what readers of the open ledger see.
func (w *touch) show() {
	if w.led == nil || w.deleted || w.topic.led != w.led {
		return
	}
	if w.marked {
		w.led.marks = w.marks
		w.led.store.queue.weigh(w.led, slices.ContainsFunc(w.marks, func(m mark) bool { return m.large }))
	}
	if w.moved {
		w.led.setView(w.closed, &w.rec)
	} else {
		w.led.advanceView(&w.rec)
	}
}
