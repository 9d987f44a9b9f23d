package boltstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"go.etcd.io/bbolt"

	"wayside/boltstore/journal"
	"wayside/edge"
)

// Every segment of the journal tells the names of the topics that it has records of, so
// that topics whose main file was lost come back with what the journal has of them:
// recordTopic is told once in a segment, with the topic as it stood before that group.
// Entries that lay in the lost file are lost, acknowledgements that were only there are
// forgotten, and a topic that was deleted not long ago comes back.
//
// Its body is the four parts of the name, the open ledger, and names and mark-deletes of
// cursors, as far as maxTold allows.

// maxTold bounds what is told of a topic's cursors, bytes.
const maxTold = 8 << 10

// tellTopics adds to the payload what its segment does not tell yet.
func (g *group) tellTopics() {
	s := g.store
	turns := s.log.Left() < int64(len(s.arena)+toldBytes*len(g.touched))
	for _, w := range g.touched {
		if turns || s.telling == 0 || w.topic.told != s.telling {
			g.record(recordTopic, w, w.tell)
			w.told = true
		}
	}
}

// toldBytes is about what is told of a topic.
const toldBytes = 256

// tell appends the body of a recordTopic.
func (w *touch) tell(b []byte) []byte {
	b = appendPlace(appendName(b, w.topic.name), &w.topic.rec.open)
	if w.led == nil {
		return b
	}
	from := len(b)
	for _, m := range w.led.marks {
		if len(b)-from > maxTold {
			break
		}
		b = appendText(b, m.name)
		b = binary.AppendVarint(binary.AppendVarint(b, m.at.Ledger), m.at.Entry)
	}
	return b
}

// toldTopic is what the journal tells of one that the main file does not know.
type toldTopic struct {
	topic
	marks []mark
}

// rebuilding gathers topics that the main file has lost.
type rebuilding struct {
	known map[uint64]bool
	told  map[uint64]*toldTopic
	next  uint64 // number that no topic has had
}

// group looks for topics in a group.
func (r *rebuilding) group(g journal.Group) error {
	if g.Rotten {
		return nil
	}
	return eachRecord(g, func(kind byte, key, birth uint64, body decoder, _ int64) {
		r.next = max(r.next, key+1)
		if kind != recordTopic || r.known[key] || r.told[key] != nil {
			return
		}
		t := toldTopic{topic: topic{key: key, name: body.name()}}
		open := body.place()
		for len(body.b) > 0 && !body.bad {
			m := mark{name: string(body.text())}
			m.at = edge.Position{Ledger: body.varint(), Entry: body.varint()}
			t.marks = append(t.marks, m)
		}
		if body.bad {
			return
		}
		t.rec = beheaded(open)
		t.rec.birth = birth
		r.told[key] = &t
	})
}

// beheaded is the record of a topic whose entries up to now are lost.
func beheaded(open place) (rec record) {
	s := &open.span
	if s.Last >= 0 {
		rec.floor = s.End()
	}
	b := open.behind()
	s.EntriesBefore, s.MessagesBefore, s.BytesBefore = b.entries, b.messages, b.bytes
	s.First, s.Messages, s.Bytes = s.Last+1, 0, 0
	open.where = where{file: noFile, newest: math.MinInt64}
	rec.open, rec.first = open, b
	rec.filed = edge.Position{Ledger: s.Ledger, Entry: s.First}
	return rec
}

// rebuild makes topics anew that the main file has lost and the journal knows.
func (s *Store) rebuild() error {
	r := rebuilding{known: map[uint64]bool{}, told: map[uint64]*toldTopic{}}
	names := map[edge.TopicName]bool{}
	for _, t := range s.topics {
		r.known[t.key], names[t.name] = true, true
	}
	if _, err := s.log.Replay(0, r.group); err != nil {
		return err
	}
	s.nextTopic = max(s.nextTopic, r.next)
	keys := sortedKeys(r.told)
	slices.Reverse(keys) // of topics with one name the newest counts
	var list []*toldTopic
	for _, key := range keys {
		if t := r.told[key]; !names[t.name] {
			names[t.name] = true
			list = append(list, t)
		}
	}
	for batch := range slices.Chunk(list, turnTopics) {
		if err := s.makeTold(batch); err != nil {
			return fmt.Errorf("rebuild topics from the journal: %w", err)
		}
	}
	if len(list) > 0 {
		s.remark(fmt.Sprintf("%d topics were rebuilt from the journal, without what was in the lost file", len(list)))
	}
	return nil
}

// makeTold writes topics into the main file.
func (s *Store) makeTold(batch []*toldTopic) error {
	err := s.change(func(g *group) error {
		g.changed = true
		for _, t := range batch {
			b, err := makeTopicBucket(g.tx, t.key)
			if err != nil {
				return err
			}
			for _, m := range t.marks {
				state := edge.CursorState{MarkDelete: edge.Max(m.at, t.rec.floor)}
				if _, err := putCursor(b.Bucket(bucketCursors), t.key, m.name, &state); err != nil {
					return err
				}
			}
			t.rec.cursors, t.rec.slowest = len(t.marks), t.rec.floor
			if err := putRecord(g.tx, number(t.key), t.rec.encode(t.name)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, t := range batch {
		s.topics[t.name] = &t.topic
		s.ids.start(t.rec.open.span.Ledger + 1)
	}
	return nil
}

// makeTopicBucket makes the bucket of a topic with all that lies in it.
func makeTopicBucket(tx *bbolt.Tx, key uint64) (*bbolt.Bucket, error) {
	b, err := tx.CreateBucket(topicKey(key))
	if err != nil {
		return nil, err
	}
	for _, sub := range [][]byte{bucketCursors, bucketSequences, bucketProps} {
		if _, serr := b.CreateBucket(sub); serr != nil {
			err = errors.Join(err, serr)
		}
	}
	return b, err
}
