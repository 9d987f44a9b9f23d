package boltstore

import (
	"encoding/binary"
	"fmt"
	"slices"

	"wayside/boltstore/journal"
	"wayside/edge"
)

// A group of what happens all the time, appends and states of cursors, goes to the
// journal: one write and one sync. It is a list of records behind the time of the group:
//
//	time(8) records
//	record: kind(1) topic(uvarint) birth(8) length(4) body
//
// What it changes is kept in memory until it is brought into the main file (settle.go).
const (
	recordChunk  = 1 // ledger and first entry, varints, flags (replaying.go), and a chunk's value
	recordRoll   = 2 // the place that is closed, sealed behind its length, and the id of the next, a varint
	recordCursor = 3 // name and state
	recordGone   = 4 // name of a cursor that was deleted
	recordBig    = 5 // name of a cursor whose state is in the main file
	recordForget = 6 // producers' names, none for all
	recordTopic  = 7 // what a topic is called (rebuilding.go)
)

// groupHead is what stands before the records: room for the journal's own head, the time.
const groupHead = journal.FrameHead + 8

// journals reports whether operations of this kind go to the journal.
func journals(op operation) bool {
	switch op.(type) {
	case *appendOp, *barrierOp, *saveCursorOp, *deleteCursorOp, *closeOp, *rollOp, *dropSequencesOp:
		return true
	}
	return false
}

// beginPayload starts the payload of a group.
func (g *group) beginPayload() {
	g.store.resetArena(g.appends + g.others + groupHead)
	b := append(g.store.arena[:0], make([]byte, journal.FrameHead)...)
	g.store.arena = binary.LittleEndian.AppendUint64(b, uint64(g.now))
}

// record appends one to the payload. body appends its body.
func (g *group) record(kind byte, w *touch, body func(b []byte) []byte) {
	b := append(g.store.arena, kind)
	b = binary.AppendUvarint(b, w.topic.key)
	b = binary.LittleEndian.AppendUint64(b, w.rec.birth)
	at := len(b)
	b = body(append(b, 0, 0, 0, 0))
	binary.LittleEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	g.store.arena = b
}

// journalGroup makes a group durable by the journal.
func (g *group) journalGroup() error {
	if err := g.fileBigCursors(); err != nil {
		return err
	}
	g.beginPayload()
	if err := g.applyAll(); err != nil {
		return err
	}
	s := g.store
	for _, c := range g.cursors {
		g.recordCursor(c)
	}
	for _, w := range g.touched {
		g.recordChunk(w)
		w.rec.live = w.liveBytes()
	}
	if len(s.arena) == groupHead {
		g.publish() // nothing that has to be kept
		return nil
	}
	g.tellTopics()
	at, number, err := s.log.Append(s.arena)
	if err != nil {
		if s.log.Failed() != nil {
			s.setFailure(err)
		}
		return err
	}
	s.commits.Add(1)
	s.syncs.Add(1)
	s.noteCommit(at, number, len(s.arena))
	g.place(at)
	g.publish()
	return nil
}

// recordChunk moves the pending appends of a topic into the payload.
func (g *group) recordChunk(w *touch) {
	for len(w.pending) > 0 {
		ops := w.pending[:min(len(w.pending), maxChunkEntries)]
		w.pending = w.pending[len(ops):]
		first, index := ops[0].at, ops[0].n
		var at int
		g.record(recordChunk, w, func(b []byte) []byte {
			b = binary.AppendVarint(b, first.Ledger)
			b = appendFlags(binary.AppendVarint(b, first.Entry), ops)
			at = len(b)
			return appendChunk(b, first, index, len(ops), func(i int) (*edge.Facts, []byte) { return &ops[i].m.Facts, ops[i].m.Data })
		})
		w.chunks = append(w.chunks, looseChunk{
			ledger: first.Ledger, first: first.Entry, count: int32(len(ops)),
			offset: int64(at - journal.FrameHead), length: int32(len(g.store.arena) - at),
		})
	}
	w.pending = nil
}

// recordRoll notes that the open ledger was closed.
func (g *group) recordRoll(w *touch, old place, next int64) {
	g.record(recordRoll, w, func(b []byte) []byte {
		return binary.AppendVarint(appendText(b, old.encode()), next)
	})
	w.events = append(w.events, func(u *unsaved) { u.closed = append(u.closed, old) })
}

func (g *group) recordCursor(c cursorWrite) {
	w := g.touch(c.led.topic)
	name := c.name
	switch {
	case c.state == nil:
		w.unmark(name)
		g.record(recordGone, w, func(b []byte) []byte { return appendText(b, name) })
		w.events = append(w.events, func(u *unsaved) { u.cursor(name, nil) })
	case c.value == nil:
		w.mark(mark{name, c.state.MarkDelete, true})
		g.record(recordBig, w, func(b []byte) []byte { return appendText(b, name) })
		w.events = append(w.events, func(u *unsaved) { delete(u.cursors, name) })
	default:
		w.mark(mark{name, c.state.MarkDelete, false})
		g.record(recordCursor, w, func(b []byte) []byte { return appendText(appendText(b, name), c.value) })
		w.events = append(w.events, func(u *unsaved) { u.cursor(name, c.value) })
	}
}

// recordForget notes that producers' names are forgotten, all for nil.
func (g *group) recordForget(w *touch, names []string) {
	g.record(recordForget, w, func(b []byte) []byte {
		for _, name := range names {
			b = appendText(b, name)
		}
		return b
	})
	w.events = append(w.events, func(u *unsaved) { u.forget(names) })
}

// fileBigCursors writes states that are too large for the journal into the main file
// first, so that a record can say that they are there.
func (g *group) fileBigCursors() error {
	var big []cursorWrite
	for i := range g.cursors {
		c := &g.cursors[i]
		if c.state == nil {
			continue
		}
		if value, fits := encodeCursor(c.state); fits {
			c.value = value
		} else {
			big = append(big, *c)
		}
	}
	if len(big) == 0 {
		return nil
	}
	g.store.makeTail(int64(len(big)) * bigCursor)
	err := g.store.change(func(f *group) error {
		for _, c := range big {
			if _, err := f.touchAny(c.led.topic); err != nil {
				return err
			}
			if err := f.writeCursor(c); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("large cursor: %w", err)
	}
	return nil
}

// bigCursor is about what a state in pages changes in a file.
const bigCursor = 64 << 10

// place notes where a group lies.
func (g *group) place(at journal.Place) {
	g.store.telling = at.Segment
	for _, w := range g.touched {
		if w.told {
			w.topic.told = at.Segment
		}
		for i := range w.chunks {
			w.chunks[i].segment = at.Segment
			w.chunks[i].offset += at.Offset
		}
	}
}

// keep notes in memory what the main file does not know yet. It is a part of publish.
func (g *group) keep(w *touch) {
	s := g.store
	if len(w.chunks) > 0 {
		s.loose += len(w.chunks)
		w.topic.loose = append(w.topic.loose, w.chunks...)
		s.loosened[w.topic] = struct{}{}
	}
	if len(w.events)+len(w.chunks) == 0 {
		return
	}
	u := s.unsavedOf(w.topic)
	for _, event := range w.events {
		event(u)
	}
	uptime := s.uptime()
	for _, ops := range w.sequenced { // of names that were forgotten, those behind it
		for _, op := range ops {
			u.note(&op.m.Facts, op.m.Generated, uptime)
		}
	}
}

// tighten removes the first n of a topic's loose chunks.
func (s *Store) tighten(t *topic, n int) {
	s.loose -= n
	if t.loose = slices.Clone(t.loose[n:]); len(t.loose) == 0 {
		t.loose = nil
		delete(s.loosened, t)
	}
}
