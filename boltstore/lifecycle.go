package boltstore

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"

	"go.etcd.io/bbolt"

	"wayside/edge"
)

// openOp opens a topic's ledger, in line behind what may still be on its way to it.
type openOp struct {
	s        *Store
	name     edge.TopicName
	reserved []string
	led      *ledger
	done     chan error // capacity 1
}

// openBytes counts for a topic's opening in its group, as if it were created: a group
// then holds so many that its transaction stays small.
const openBytes = 4 * pageSize

// OpenLedger implements edge.Store. It waits for its place in line.
func (s *Store) OpenLedger(name edge.TopicName, reserved []string) (edge.Ledger, error) {
	op := &openOp{s: s, name: name, reserved: reserved, done: make(chan error, 1)}
	s.queue.put(op)
	if err := <-op.done; err != nil {
		return nil, fmt.Errorf("open ledger %s: %w", name, err)
	}
	return op.led, nil
}

func (op *openOp) ledger() *ledger  { return nil }
func (op *openOp) size() int        { return openBytes }
func (op *openOp) finish(err error) { op.done <- err }

func (op *openOp) admit(g *group) error {
	g.needs = true
	return nil
}

func (op *openOp) apply(g *group) error {
	t := g.find(op.name)
	if t == nil {
		return g.create(op)
	}
	if t.bad != nil {
		g.refuse(op, t.bad)
		return nil
	}
	if t.led != nil && !t.led.closed {
		g.refuse(op, edge.ErrExists)
		return nil
	}
	led, err := g.load(t)
	if err != nil {
		g.refuse(op, err)
		return nil
	}
	op.led = led
	g.setLedger(t, led)
	return nil
}

// refuse gives one operation an error of its own while the group goes on.
func (g *group) refuse(op operation, err error) {
	for i := range g.ops {
		if g.ops[i] == op {
			g.errs[i] = err
		}
	}
}

// find looks a topic up, with what the group has created and deleted.
func (g *group) find(name edge.TopicName) *topic {
	if t, ok := g.created[name]; ok {
		return t
	}
	return g.store.topics[name]
}

// create makes a topic with its bucket, its first ledger and the reserved cursors.
func (g *group) create(op *openOp) error {
	s := g.store
	id, err := s.ids.next()
	if err != nil {
		return err
	}
	t := &topic{key: s.nextTopic, name: op.name}
	s.nextTopic++
	if _, err := makeTopicBucket(g.tx, t.key); err != nil {
		return err
	}
	w := g.touch(t)
	w.rec.birth = newBirth()
	w.rec.open = place{span: edge.Span{Ledger: id, Last: -1, Created: g.now}, where: where{file: s.firstFile()}}
	led := &ledger{store: s, topic: t}
	led.setView(nil, &w.rec)
	w.led, op.led = led, led
	g.created[op.name] = t
	g.setLedger(t, led)
	for _, name := range op.reserved {
		state := edge.CursorState{MarkDelete: w.rec.open.span.Start()}
		if err := g.writeCursor(cursorWrite{led: led, name: name, state: &state}); err != nil {
			return err
		}
	}
	return nil
}

// setLedger makes led the open one of a topic, and takes it back if the group fails.
func (g *group) setLedger(t *topic, led *ledger) {
	s := g.store
	s.topicsMu.Lock()
	t.led = led
	s.topicsMu.Unlock()
	if w := g.byTopic[t]; w != nil {
		w.led = led
	}
	g.undo = append(g.undo, func() {
		led.closed = true
		s.topicsMu.Lock()
		t.led = nil
		s.topicsMu.Unlock()
	})
}

// newBirth is random, so that no disk has had it before.
func newBirth() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return binary.LittleEndian.Uint64(b[:])
}

// load reads what an open ledger keeps in memory: its closed ledgers and where its
// cursors stand.
func (g *group) load(t *topic) (*ledger, error) {
	rec := &t.rec
	if w := g.byTopic[t]; w != nil {
		rec = &w.rec
	}
	b, err := g.bucket(t)
	if err != nil {
		return nil, err
	}
	led := &ledger{store: g.store, topic: t}
	if err := g.saveTopic(t); err != nil {
		return nil, err
	}
	closed, err := closedPlaces(b, t.key)
	if err != nil {
		return nil, err
	}
	if len(closed) < rec.closed {
		g.store.logger().Error("ledgers of a topic are damaged and lost", "topic", t.name.String(), "count", rec.closed-len(closed))
	}
	for what, key := range map[string][]byte{"subscriptions": bucketCursors, "properties": bucketProps, "sequences of producers": bucketSequences} {
		if b.Bucket(key) == nil {
			g.store.logger().Error(what+" of a topic are damaged and lost", "topic", t.name.String())
		}
	}
	led.setView(closed, rec)
	led.marks, err = loadMarks(b, t.key, led.view.Load())
	return led, err
}

// closedPlaces reads the list of closed ledgers. One that is damaged is left out: its
// entries are lost.
func closedPlaces(b *bbolt.Bucket, topic uint64) (list []place, err error) {
	err = eachNumbered(b, prefixPlace, func(id uint64, v []byte) error {
		if p, err := decodePlace(unbind(topic, placeKey(int64(id)), v)); err == nil {
			list = append(list, p)
		}
		return nil
	})
	return list, err
}

// closeOp lets an open ledger go, behind its last dirty cursors.
type closeOp struct {
	l    *ledger
	done func(error)
}

// Close implements edge.Ledger.
func (l *ledger) Close(done func(error)) { l.store.queue.put(&closeOp{l, done}) }

func (op *closeOp) ledger() *ledger    { return op.l }
func (op *closeOp) size() int          { return 0 }
func (op *closeOp) apply(*group) error { return nil }

func (op *closeOp) admit(g *group) error {
	op.l.closed = true
	return nil
}

func (op *closeOp) finish(err error) {
	op.l.shut()
	answer(op.done, err)
}

// shut forgets a closed ledger, so that its topic can be opened again.
func (l *ledger) shut() {
	s := l.store
	s.topicsMu.Lock()
	defer s.topicsMu.Unlock()
	if l.topic.led == l {
		l.topic.led = nil
	}
}

// deleteOp removes a topic.
type deleteOp struct {
	s    *Store
	name edge.TopicName
	done func(error)
}

// DeleteLedger implements edge.Store.
func (s *Store) DeleteLedger(name edge.TopicName, done func(error)) {
	s.queue.put(&deleteOp{s, name, done})
}

func (op *deleteOp) ledger() *ledger  { return nil }
func (op *deleteOp) size() int        { return pageSize }
func (op *deleteOp) finish(err error) { answer(op.done, err) }

func (op *deleteOp) admit(g *group) error {
	if t := g.store.topics[op.name]; t != nil && t.led != nil {
		t.led.closed = true
	}
	g.needs = true
	return nil
}

func (op *deleteOp) apply(g *group) error {
	t := g.find(op.name)
	if t == nil {
		return nil
	}
	w := g.touch(t)
	w.pending, w.deleted = nil, true
	g.created[op.name] = nil
	places, err := g.allPlaces(w)
	if err != nil {
		return err
	}
	for _, p := range places {
		if err := g.leaveVolume(&p); err != nil {
			return err
		}
	}
	if err := g.tx.Bucket(bucketRecords).Delete(number(t.key)); err != nil {
		return err
	}
	return g.bury(topicKey(t.key))
}

// allPlaces lists a topic's ledgers with the open one. A damaged topic's are not
// known: its volumes then keep a count that is too high, and stay.
func (g *group) allPlaces(w *touch) ([]place, error) {
	if w.topic.bad != nil {
		return nil, nil
	}
	b, err := g.bucket(w.topic)
	if err != nil {
		return nil, err
	}
	places, err := closedPlaces(b, w.topic.key)
	return append(places, w.rec.open), err
}
