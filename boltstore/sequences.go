package boltstore

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"iter"
	"slices"
	"sort"
	"strings"

	"go.etcd.io/bbolt"

	"wayside/edge"
)

// A producer's stored sequence has a flag byte, the highest sequence, the store's
// uptime when the name was last used, and the chunked message under way.
const sequenceGenerated = 1

// evictSequences names are forgotten together when a topic knows too many.
const evictSequences = 100

// storedSequence is a sequence with the uptime at its last use, in seconds.
type storedSequence struct {
	edge.SequenceState
	used int64
}

func (q *storedSequence) encode() []byte {
	b := append(make([]byte, 0, 32), byte(bit(q.Generated, sequenceGenerated)))
	b = binary.AppendVarint(b, q.Highest)
	b = binary.AppendVarint(b, q.used)
	b = appendText(b, q.ChunkUUID)
	return seal(binary.AppendVarint(b, int64(q.ChunkID)))
}

func decodeSequence(v []byte) (storedSequence, error) {
	b, err := unseal(v)
	if err != nil || len(b) == 0 {
		return storedSequence{}, fmt.Errorf("sequence: %w", errDamaged)
	}
	d := decoder{b: b[1:]}
	q := storedSequence{}
	q.Generated = b[0]&sequenceGenerated != 0
	q.Highest, q.used = d.varint(), d.varint()
	q.ChunkUUID, q.ChunkID = string(d.text()), int32(d.varint())
	return q, d.err()
}

// note remembers the appends of each producer, to write their last state once.
func (w *touch) note(op *appendOp) {
	if w.sequenced == nil {
		w.sequenced = map[string][]*appendOp{}
	}
	name := op.m.Facts.Producer
	w.sequenced[name] = append(w.sequenced[name], op)
}

// flushSequences writes the producers' sequences that the group moved.
func (g *group) flushSequences(w *touch) error {
	if len(w.sequenced) == 0 {
		return nil
	}
	b, err := g.sub(w.topic, bucketSequences)
	if err != nil {
		return err
	}
	for name, ops := range w.sequenced {
		q := storedSequence{SequenceState: edge.SequenceState{Highest: -1}}
		if v := b.Get([]byte(name)); v == nil {
			w.rec.sequences++
		} else if old, err := decodeSequence(unbind(w.topic.key, []byte(name), v)); err == nil {
			q = old
		}
		for _, op := range ops {
			q.SequenceState = q.Advance(&op.m.Facts)
			q.Generated = op.m.Generated
		}
		q.used = g.store.uptime()
		if err := putBound(b, w.topic.key, []byte(name), q.encode()); err != nil {
			return fmt.Errorf("sequence of %s: %w", w.topic.name, err)
		}
	}
	w.sequenced = nil
	if w.rec.sequences > edge.MaxSequences {
		return g.evictSequences(w, b)
	}
	return nil
}

// sub is a bucket in a topic's bucket, made if an older state lacks it.
func (g *group) sub(t *topic, key []byte) (*bbolt.Bucket, error) {
	b, err := g.bucket(t)
	if err != nil {
		return nil, err
	}
	return b.CreateBucketIfNotExists(key)
}

// evictSequences forgets names of a topic that has too many.
func (g *group) evictSequences(w *touch, b *bbolt.Bucket) error {
	var all []namedSequence
	err := b.ForEach(func(k, v []byte) error {
		q, err := decodeSequence(unbind(w.topic.key, k, v))
		if err != nil {
			q.used, q.Generated = 0, true
		}
		all = append(all, namedSequence{string(k), q})
		return nil
	})
	if err != nil {
		return err
	}
	gone := forgettable(all)
	for _, q := range gone {
		if err := b.Delete([]byte(q.name)); err != nil {
			return err
		}
	}
	w.rec.sequences = len(all) - len(gone)
	return nil
}

type namedSequence struct {
	name string
	storedSequence
}

// forgettable are those that go of too many: the names longest unused, generated ones
// first.
func forgettable(all []namedSequence) []namedSequence {
	sort.Slice(all, func(i, j int) bool {
		a, b := &all[i], &all[j]
		return cmp.Or(cmp.Compare(b2i(b.Generated), b2i(a.Generated)), cmp.Compare(a.used, b.used), strings.Compare(a.name, b.name)) < 0
	})
	return all[:min(len(all), len(all)-edge.MaxSequences+evictSequences)]
}

// Sequences implements edge.Ledger.
func (l *ledger) Sequences() (map[string]edge.SequenceState, error) {
	newer := l.store.unsavedSequences(l.topic) // before the file is read
	stored := map[string]storedSequence{}
	damaged := 0
	err := l.store.viewTopic(l.topic, func(b *bbolt.Bucket) error {
		q := b.Bucket(bucketSequences)
		if q == nil {
			return nil
		}
		return q.ForEach(func(k, v []byte) error {
			s, err := decodeSequence(unbind(l.topic.key, k, v))
			if err != nil {
				damaged++
				return nil
			}
			stored[string(k)] = s
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("sequences of %s: %w", l.topic.name, err)
	}
	if damaged > 0 {
		l.store.logger().Error("sequences of producers are damaged, what these send again is not known as such", "topic", l.topic.name.String(), "count", damaged)
	}
	newer.over(stored)
	now := l.store.uptime()
	states := make(map[string]edge.SequenceState, len(stored))
	for name, q := range stored {
		q.Idle = max(0, now-q.used)
		states[name] = q.SequenceState
	}
	return states, nil
}

// dropSequencesOp forgets producer names.
type dropSequencesOp struct {
	l     *ledger
	all   bool
	names []string
	done  func(error)
}

// DropSequences implements edge.Ledger.
func (l *ledger) DropSequences(names []string, done func(error)) {
	l.store.queue.put(&dropSequencesOp{l, names == nil, slices.Clone(names), done})
}

func (op *dropSequencesOp) ledger() *ledger  { return op.l }
func (op *dropSequencesOp) size() int        { return 0 }
func (op *dropSequencesOp) finish(err error) { answer(op.done, err) }

func (op *dropSequencesOp) admit(g *group) error {
	g.needs = true
	return op.l.usable("drop sequences")
}

func (op *dropSequencesOp) apply(g *group) error {
	w := g.touch(op.l.topic)
	if op.all {
		w.sequenced = nil
	}
	for _, name := range op.names {
		delete(w.sequenced, name)
	}
	switch {
	case g.journal:
		g.recordForget(w, op.names)
		return nil
	case op.all:
		return g.dropSequences(w)
	}
	b, err := g.sub(w.topic, bucketSequences)
	if err != nil {
		return err
	}
	return dropNames(w, b, slices.Values(op.names))
}

// dropSequences forgets all names of a topic.
func (g *group) dropSequences(w *touch) error {
	w.rec.sequences = 0
	b, err := g.bucket(w.topic)
	if err != nil || b.Bucket(bucketSequences) == nil {
		return err
	}
	return b.DeleteBucket(bucketSequences)
}

// dropNames forgets some.
func dropNames(w *touch, b *bbolt.Bucket, names iter.Seq[string]) error {
	for name := range names {
		if b.Get([]byte(name)) == nil {
			continue
		}
		w.rec.sequences--
		if err := b.Delete([]byte(name)); err != nil {
			return err
		}
	}
	return nil
}
