package boltstore

import (
	"fmt"

	"wayside/edge"
)

// topic is what the store keeps in memory of every topic, open or not.
type topic struct {
	key  uint64 // names its bucket; a topic created anew has another
	name edge.TopicName

	// The committer alone writes these, under Store.topicsMu; others read under it.
	rec record
	led *ledger // nil when it is not open
	// loose are its chunks in the journal, in order. The committer's, readers have views.
	loose []looseChunk

	bad  error  // the committer's: why the topic takes no changes
	told uint64 // the committer's: the segment that tells its name, 0 for none
}

// birthID is the birth id's text.
func (r *record) birthID() string { return fmt.Sprintf("%016x", r.birth) }

func (t *topic) record() edge.TopicRecord {
	r := &t.rec
	entries, bytes := r.stored()
	end := r.end()
	out := edge.TopicRecord{
		Name:          t.name,
		BirthID:       r.birthID(),
		End:           end,
		Entries:       entries,
		Bytes:         bytes,
		LiveBytes:     r.live,
		NextIndex:     uint64(r.open.behind().messages),
		Subscriptions: r.cursors,
		Slowest:       end,
		LastAppend:    r.lastAppend,
	}
	if r.cursors > 0 {
		out.Slowest = r.slowest
	}
	return out
}

// end is the last entry's position, or the one before the first to come.
func (r *record) end() edge.Position {
	if r.open.span.Entries() > 0 || r.closed == 0 {
		return r.open.span.End()
	}
	return r.tail
}
