package boltstore

import (
	"fmt"

	"go.etcd.io/bbolt"

	"wayside/edge"
)

// appendOp is a message on its way.
type appendOp struct {
	l    *ledger
	m    edge.Message
	done func(edge.Entry, error)
	at   edge.Position
	n    uint64 // index of its first message
}

// frameOverhead is what an entry takes in a chunk beside its data and variable facts.
const frameOverhead = 80

// Append implements edge.Ledger.
func (l *ledger) Append(m edge.Message, done func(edge.Entry, error)) {
	l.store.queue.put(&appendOp{l: l, m: m, done: done})
}

func (op *appendOp) ledger() *ledger { return op.l }

func (op *appendOp) size() int {
	f := &op.m.Facts
	return len(op.m.Data) + len(f.Key) + len(f.Producer) + len(f.Chunk.UUID) + len(f.Schema) + len(f.Tail) + frameOverhead
}

func (op *appendOp) admit(g *group) error {
	size := op.size()
	switch {
	case op.l.closed || op.l.topic.bad != nil:
		return op.l.usable("append")
	case size-len(op.m.Data) > maxFacts || len(op.m.Data) > maxEntry || !validTail(op.m.Facts.Tail):
		return fmt.Errorf("append to %s: %w", op.l.topic.name, edge.ErrBadRequest)
	}
	g.needs = true
	return nil
}

// maxEntry bounds one entry, far above what a broker accepts.
const maxEntry = 1 << 30 / 2

func (op *appendOp) apply(g *group) error {
	w := g.touch(op.l.topic)
	if err := g.rollIfDue(w, int64(len(op.m.Data))); err != nil {
		return err
	}
	s := &w.rec.open.span
	op.at, op.n = s.End().Next(), uint64(s.MessagesBefore+s.Messages)
	if len(w.pending) == 0 {
		w.first, w.index = op.at, op.n
	}
	w.pending = append(w.pending, op)
	f := &op.m.Facts
	if s.Entries() == 0 || f.Publish > w.rec.open.newest {
		w.rec.open.newest = f.Publish
	}
	s.Last++
	s.Messages += int64(max(f.Messages, 1))
	s.Bytes += int64(len(op.m.Data))
	s.LastTime = f.Publish
	w.rec.lastAppend = g.now
	g.data += int64(len(op.m.Data))
	if op.m.Sequenced && f.Producer != "" {
		w.note(op)
	}
	return nil
}

func (op *appendOp) finish(err error) {
	op.m.Grant.Release()
	if err != nil {
		op.done(edge.Entry{}, err)
		return
	}
	op.done(edge.Entry{Position: op.at, Index: op.n, Facts: op.m.Facts, Data: op.m.Data}, nil)
}

// rollIfDue closes the open ledger when the next entry does not belong into it: it is
// full, or it lies in a file that is not written any more.
func (g *group) rollIfDue(w *touch, size int64) error {
	open := &w.rec.open
	if open.span.Entries() == 0 {
		open.file = g.store.firstFile()
		return nil
	}
	full := open.span.Entries() >= g.store.opts.LedgerEntries || open.span.Bytes+size > g.store.ledgerBytes()
	if !full && (open.file == g.store.main.number || open.file == noFile) {
		return nil
	}
	return g.roll(w)
}

// flushChunk writes the pending entries of a topic into its open ledger.
func (g *group) flushChunk(w *touch) error {
	if g.journal {
		g.recordChunk(w)
		return nil
	}
	if len(w.pending) == 0 {
		return nil
	}
	b, err := g.bucket(w.topic)
	if err != nil {
		return err
	}
	led, err := b.CreateBucketIfNotExists(ledgerKey(w.first.Ledger))
	if err != nil {
		return fmt.Errorf("ledger of %s: %w", w.topic.name, err)
	}
	led.FillPercent = appendFill
	for len(w.pending) > 0 {
		n := min(len(w.pending), maxChunkEntries)
		if err := g.putChunk(led, w.first, w.index, w.pending[:n]); err != nil {
			return fmt.Errorf("chunk of %s: %w", w.topic.name, err)
		}
		w.pending = w.pending[n:]
		if len(w.pending) > 0 {
			w.first, w.index = w.pending[0].at, w.pending[0].n
		}
	}
	w.pending = nil
	w.rec.filed = w.rec.open.span.End().Next()
	return nil
}

func (g *group) putChunk(led *bbolt.Bucket, p edge.Position, index uint64, ops []*appendOp) error {
	s := g.store
	start := len(s.arena)
	s.arena = appendChunk(s.arena, p, index, len(ops), func(i int) (*edge.Facts, []byte) {
		return &ops[i].m.Facts, ops[i].m.Data
	})
	c, err := led.CreateBucket(number(uint64(p.Entry)))
	if err != nil {
		return err
	}
	c.FillPercent = appendFill
	return c.Put(keyValue, s.arena[start:len(s.arena):len(s.arena)])
}

// ledgerBytes is where a ledger is closed: an eighth of the topic's quota, a quarter
// of what the broker's quota leaves to each active topic, never more than the option.
func (s *Store) ledgerBytes() int64 {
	limit := s.opts.LedgerBytes
	if s.opts.TopicQuota > 0 {
		limit = min(limit, s.opts.TopicQuota/8)
	}
	limit = min(limit, s.opts.Quota/(4*max(1, s.active)))
	return max(limit, minLedgerBytes)
}

// minLedgerBytes keeps ledgers from becoming smaller than what they cost.
const minLedgerBytes = 64 << 10
