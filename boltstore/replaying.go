package boltstore

import (
	"encoding/binary"
	"fmt"
	"math"

	"wayside/boltstore/journal"
	"wayside/edge"
)

// openJournal replays what the main file does not know, and saves it.
func (s *Store) openJournal() error {
	if there, err := journal.Exists(s.opts.Path); err != nil || s.opts.JournalBytes == 0 && !there {
		return err
	}
	o := journal.DefaultOptions()
	o.Dir, o.Logger, o.SegmentBytes = s.opts.Path, s.opts.Logger, s.opts.JournalSegment
	o.Sync = s.opts.hooks.sync
	if o.SegmentBytes == 0 {
		o.SegmentBytes = minJournalSegment
	}
	var err error
	if s.log, err = journal.Open(o); err != nil {
		return err
	}
	for _, what := range s.log.Damage() {
		s.remark("journal: " + what)
		s.doubtful = true
	}
	if s.bereft {
		if err := s.rebuild(); err != nil {
			return err
		}
	}
	if err := s.replay(); err != nil {
		return err
	}
	if err := s.startLog(); isFull(err) {
		s.setFailure(err) // tried again until there is space
	} else if err != nil {
		return err
	}
	for len(s.unsaved) > 0 || s.saving != nil || s.settled+1 < s.log.Next() {
		if err := s.saveStep(); isFull(err) {
			break // it is in memory, and saved when there is space
		} else if err != nil {
			return err
		}
	}
	s.queue.parts = s.opts.JournalBytes > 0
	return nil
}

// startLog goes on in a new segment of the journal, for which a full disk is given back all
// but what a commit takes.
func (s *Store) startLog() error {
	err := s.log.Start()
	if isFull(err) && s.cutTail(commitPages*pageSize) {
		err = s.log.Start()
	}
	return err
}

// fileIfAsked files all of the journal where the options want none, or ids may come back.
func (s *Store) fileIfAsked() error {
	if s.log == nil || s.queue.parts && !s.doubtful {
		return nil
	}
	return s.fileAll()
}

// fileAll empties the journal, and does away with it if it is not wanted.
func (s *Store) fileAll() error {
	for len(s.loosened) > 0 {
		if s.turning {
			if _, err := s.finishStep(); err != nil {
				return err
			}
			continue
		}
		if err := s.file(s.looseTopics(math.MaxUint64), math.MaxUint64); err != nil {
			return err
		}
	}
	if s.opts.JournalBytes > 0 {
		return s.releaseFiled()
	}
	err := s.log.Remove()
	s.log = nil
	if err != nil {
		return err
	}
	return s.change(func(g *group) error {
		g.changed = true
		return g.tx.Bucket(bucketMeta).Delete(metaSettled)
	})
}

// releaseFiled gives back all segments but the current one, when the main file knows all
// that is in them: the next start need not meet what is damaged there.
func (s *Store) releaseFiled() error {
	list := s.log.Segments()
	if len(list) == 0 || len(s.unsaved) > 0 || s.saving != nil || s.settled+1 < s.log.Next() || s.failure() != nil {
		return nil
	}
	for _, number := range list[:len(list)-1] {
		delete(s.ends, number)
	}
	return s.log.Release(list[len(list)-1])
}

// replaying is the journal on its way into memory.
type replaying struct {
	s      *Store
	topics map[uint64]*topic
	names  interned
}

func (s *Store) replay() error {
	r := replaying{s: s, topics: map[uint64]*topic{}}
	for _, t := range s.topics {
		r.topics[t.key] = t
	}
	gaps, err := s.log.Replay(s.settled, r.group)
	if err != nil {
		return err
	}
	for _, gap := range gaps {
		s.remark(fmt.Sprintf("the journal has lost %s: what they brought is missing", gap))
		s.doubtful = true
	}
	s.active = 0
	for _, t := range s.topics {
		s.active += b2i(t.rec.open.span.Entries() > 0)
	}
	return nil
}

func (r *replaying) group(g journal.Group) error {
	if !g.Rotten {
		r.s.ends[g.At.Segment] = g.Commit
	}
	now := timeOf(g)
	err := eachRecord(g, func(kind byte, key, birth uint64, body decoder, offset int64) {
		t := r.topics[key]
		if t == nil || t.rec.birth != birth {
			return // the topic is gone
		}
		if g.Rotten && kind != recordChunk {
			return // of the others not all is under a checksum of its own
		}
		at := g.At
		at.Offset += offset
		r.record(kind, t, body, g.Commit > r.s.settled, at, now)
	})
	if err != nil && !g.Rotten {
		r.s.logger().Error("a group of the journal cannot be understood", "commit", g.Commit)
	}
	return nil
}

// timeOf is when a group was written, ms since 1970.
func timeOf(g journal.Group) int64 {
	d := decoder{b: g.Data}
	return int64(d.uint64())
}

// eachRecord visits the records of a group, with the offset of each one's body in it.
func eachRecord(g journal.Group, visit func(kind byte, key, birth uint64, body decoder, offset int64)) error {
	d := decoder{b: g.Data}
	d.uint64()
	for len(d.b) > 0 && !d.bad {
		kind := d.take(1)
		key, birth := d.uvarint(), d.uint64()
		n := d.take(4)
		if d.bad {
			break
		}
		if body := d.take(int(binary.LittleEndian.Uint32(n))); !d.bad {
			visit(kind[0], key, birth, decoder{b: body}, int64(len(g.Data)-len(d.b)-len(body)))
		}
	}
	return d.err()
}

// record applies one record. One that the main file knows counts only for its chunk.
func (r *replaying) record(kind byte, t *topic, d decoder, fresh bool, at journal.Place, now int64) {
	if kind == recordChunk {
		r.chunk(t, d, fresh, at, now)
		return
	}
	if !fresh {
		return
	}
	u := r.s.unsavedOf(t)
	switch kind {
	case recordRoll:
		place, err := decodePlace(d.text())
		if next := d.varint(); err == nil && !d.bad {
			r.roll(t, place, next, now)
		}
	case recordCursor:
		name, value := string(d.text()), d.text()
		if !d.bad {
			u.cursor(name, append([]byte(nil), value...))
		}
	case recordGone:
		u.cursor(string(d.text()), nil)
	case recordBig:
		delete(u.cursors, string(d.text()))
	case recordForget:
		var names []string
		for len(d.b) > 0 && !d.bad {
			names = append(names, string(d.text()))
		}
		u.forget(names)
	}
}

// roll closes a topic's open ledger, if the main file does not know that.
func (r *replaying) roll(t *topic, old place, next, now int64) {
	if t.rec.open.span.Ledger != old.span.Ledger {
		return
	}
	old.file = t.rec.open.file
	u := r.s.unsavedOf(t)
	u.closed = append(u.closed, old)
	if t.rec.closed == 0 {
		t.rec.first = sums{old.span.EntriesBefore, old.span.MessagesBefore, old.span.BytesBefore}
	}
	t.rec.closed++
	t.rec.tail = old.span.End()
	t.rec.open = old.following(next, now, noFile)
	r.s.ids.start(next + 1)
}

// chunk notes where a chunk lies, and what its entries changed.
func (r *replaying) chunk(t *topic, d decoder, fresh bool, at journal.Place, now int64) {
	whole := len(d.b)
	ledger, first := d.varint(), d.varint()
	flags := d.take(1)
	if d.bad {
		return
	}
	var each []byte
	if flags[0] == mixedFlags {
		each = d.text()
	}
	value := d.b
	c, err := openChunk(ledger, first, mapped(value))
	if d.bad || err != nil {
		r.s.logger().Error("entries in the journal are damaged and lost", "topic", t.name.String(), "entry", edge.Position{Ledger: ledger, Entry: first}.String(), "error", err)
		return
	}
	l := looseChunk{
		ledger: ledger, first: first, count: int32(c.count),
		segment: at.Segment, offset: at.Offset + int64(whole-len(value)), length: int32(len(value)),
	}
	if rec := &t.rec; !l.last().Less(rec.filed) && rec.floor.Less(l.last()) {
		t.loose = append(t.loose, l)
		r.s.loose++
		r.s.loosened[t] = struct{}{}
	}
	if fresh {
		r.entries(t, &c, flags[0], each, now)
	}
}

// entries counts those of a chunk.
func (r *replaying) entries(t *topic, c *chunk, flags byte, each []byte, now int64) {
	u := r.s.unsavedOf(t)
	open := &t.rec.open
	grows := c.ledger == open.span.Ledger && c.last() > open.span.Last
	if grows && open.span.Entries() == 0 {
		open.newest = math.MinInt64
	}
	walk := c.at(c.first)
	for i := 0; walk.more(); i++ {
		f, ok := walk.read()
		if !ok {
			continue
		}
		e, err := c.open(f, &r.names)
		if err != nil {
			continue
		}
		if grows && f.entry > open.span.Last {
			open.span.Bytes += int64(len(e.Data))
			open.span.LastTime = e.Facts.Publish
			open.newest = max(open.newest, e.Facts.Publish)
		}
		if i < len(each) {
			flags = each[i]
		}
		if flags&flagSequenced != 0 {
			u.note(&e.Facts, flags&flagGenerated != 0, r.s.uptimeBase)
		}
	}
	if grows {
		open.span.Last = c.last()
		open.span.Messages = int64(c.index+c.messages) - open.span.MessagesBefore
		t.rec.lastAppend = now
	}
}

// Flags of the entries of a chunk in the journal: one byte for all if they are the same,
// or mixedFlags and one for each, behind their number.
const (
	flagSequenced = 1
	flagGenerated = 2
	mixedFlags    = 0xff
)

func flagsOf(op *appendOp) (f byte) {
	if op.m.Sequenced && op.m.Facts.Producer != "" {
		f = flagSequenced
		if op.m.Generated {
			f |= flagGenerated
		}
	}
	return f
}

func appendFlags(b []byte, ops []*appendOp) []byte {
	f := flagsOf(ops[0])
	for _, op := range ops[1:] {
		if flagsOf(op) != f {
			b = binary.AppendUvarint(append(b, mixedFlags), uint64(len(ops)))
			for _, op := range ops {
				b = append(b, flagsOf(op))
			}
			return b
		}
	}
	return append(b, f)
}
