package boltstore

import (
	"bytes"
	"errors"
	"sort"

	"wayside/edge"
)

// sorted are the topics by name.
func (i *Inspection) sorted() []*topic {
	list := make([]*topic, 0, len(i.s.topics))
	for _, t := range i.s.topics {
		list = append(list, t)
	}
	sort.Slice(list, func(a, b int) bool {
		return list[a].name.String() < list[b].name.String()
	})
	return list
}

// picture is a topic as a start would load it.
type picture struct {
	led    *ledger
	states []edge.CursorState
	broken []string // cursors
	err    error    // why it could not all be read
}

// picture reads a topic's ledgers and cursors, and counts its live bytes.
func (i *Inspection) picture(t *topic) (p picture) {
	var closed []place
	b, err := i.tree.find(topicKey(t.key))
	if err != nil {
		p.err = err
	} else {
		c := i.tree.seek(b, []byte{prefixPlace})
		for ; c.valid(); c.next() {
			if k := c.key(); k[0] != prefixPlace {
				continue
			}
			v, err := c.value(pageSize)
			if err == nil {
				var l place
				if l, err = decodePlace(unbind(t.key, c.key(), v)); err == nil {
					closed = append(closed, l)
				}
			}
			p.err = errors.Join(p.err, err)
		}
		p.err = errors.Join(p.err, c.damage)
	}
	u := i.s.unsaved[t]
	if u != nil {
		for _, l := range u.closed {
			if t.rec.floor.Less(l.span.End()) {
				closed = append(closed, l)
			}
		}
	}
	p.led = &ledger{store: i.s, topic: t}
	p.led.setView(closed, &t.rec)
	var marks []mark
	err = i.cursors(t, func(name string, c edge.CursorState, err error) {
		if err != nil {
			p.broken = append(p.broken, name)
		}
		c = p.led.view.Load().mend(c, err)
		p.states = append(p.states, c)
		marks = append(marks, mark{name: name, at: c.MarkDelete})
	})
	p.err = errors.Join(p.err, err)
	w := &touch{topic: t, led: p.led, rec: t.rec, marks: marks, marked: true}
	t.rec.live = w.liveBytes()
	t.rec.cursors, t.rec.slowest = w.rec.cursors, w.rec.slowest
	return p
}

// cursors visits the states of a topic's cursors, those of the journal first.
func (i *Inspection) cursors(t *topic, visit func(name string, s edge.CursorState, err error)) error {
	newer := i.s.unsavedCursors(t)
	for name, value := range newer {
		if value != nil {
			s, err := decodeCursor(value)
			visit(name, s, err)
		}
	}
	b, err := i.tree.find(topicKey(t.key), bucketCursors)
	if err != nil {
		return err
	}
	c := i.tree.seek(b, nil)
	for ; c.valid(); c.next() {
		k := bytes.Clone(c.key())
		name := string(k[1:])
		if _, ok := newer[name]; ok {
			continue
		}
		s, err := i.cursor(t.key, c, k)
		visit(name, s, err)
	}
	return c.damage
}

func (i *Inspection) cursor(topic uint64, c *treeCursor, key []byte) (edge.CursorState, error) {
	if key[0] == prefixCursor {
		v, err := c.value(maxRescued)
		if err != nil {
			return edge.CursorState{}, err
		}
		return decodeCursor(unbind(topic, key, v))
	}
	x, err := c.bucket()
	if err != nil {
		return edge.CursorState{}, err
	}
	var head []byte
	var pages []cursorPage
	for e := i.tree.seek(x, nil); e.valid(); e.next() {
		if !e.isBucket() {
			head, _ = e.value(maxRescued)
			continue
		}
		if v, err := i.under(e); err == nil && len(v) >= 4 {
			pages = append(pages, cursorPage{bytes.Clone(e.key()), v})
		}
	}
	return decodePaged(unbind(topic, key, head), pages)
}

// under is the one value of a bucket that holds nothing else.
func (i *Inspection) under(e *treeCursor) ([]byte, error) {
	b, err := e.bucket()
	if err != nil {
		return nil, err
	}
	v := i.tree.seek(b, keyValue)
	if !v.valid() || !bytes.Equal(v.key(), keyValue) {
		return nil, errDamaged
	}
	return v.value(maxRescued)
}
