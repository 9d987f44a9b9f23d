package edge

import (
	"context"
	"fmt"
	"sort"
	"time"
)

// spareLedger is one whose entries are all acknowledged.
type spareLedger struct {
	topic *Topic
	end   Position
	bytes int64
	open  bool
	last  int64 // publish time of its last entry or of one before, ms since 1970
}

// trimOldest lets ledgers go that nobody needs, the oldest of all topics first, up to so
// many bytes. One that is still written is closed, and goes with the
// next round.
func (b *Broker) trimOldest(topics []*Topic, excess int64) {
	if excess <= 0 {
		return
	}
	var spare []spareLedger
	for _, t := range topics {
		spare = t.appendSpare(spare)
	}
	sort.SliceStable(spare, func(i, j int) bool { return spare[i].last < spare[j].last })
	upTo := map[*Topic]Position{}
	for i := range spare {
		l := &spare[i]
		if l.bytes > excess {
			break // without it less would be kept than should be
		}
		excess -= l.bytes
		if l.open {
			l.topic.ledger.Roll(func(error) {})
		} else {
			upTo[l.topic] = l.end
		}
	}
	for t, end := range upTo {
		t.ledger.Trim(end.Next(), t.trimmed)
	}
}

// appendSpare adds the topic's ledgers that nobody needs, in order.
func (t *Topic) appendSpare(list []spareLedger) []spareLedger {
	if t.policies.Load().Retention.keeps() {
		return list
	}
	spans := t.ledger.Spans()
	floor := t.floor(spans)
	last := int64(0) // a producer's clock may go back, the order of a topic's ledgers may not
	for i := range spans.Len() {
		s := spans.At(i)
		if open := i == len(spans.Closed); open && s.Entries() <= 0 || floor.Less(s.End()) {
			break
		}
		last = max(last, s.LastTime)
		list = append(list, spareLedger{t, s.End(), s.Bytes, i == len(spans.Closed), last})
	}
	return list
}

// trimRetained lets ledgers go that retention keeps no longer.
func (t *Topic) trimRetained(full bool, now time.Time) {
	if !t.policies.Load().Retention.keeps() {
		return
	}
	if spans := t.ledger.Spans(); len(spans.Closed) > 0 {
		t.ledger.Trim(t.spare(spans, full, now).Next(), t.trimmed)
	}
}

// TrimNow lets go at once what nobody needs and retention does not keep, also of the
// ledger that is still written, without waiting until space is needed.
func (t *Topic) TrimNow(ctx context.Context) error {
	if err := wait(ctx, t.ledger.Roll); err != nil {
		return fmt.Errorf("close the ledger of %s: %w", t.name, err)
	}
	upTo := t.spare(t.ledger.Spans(), false, t.broker.opts.Clock())
	err := wait(ctx, func(done func(error)) {
		t.ledger.Trim(upTo.Next(), func(err error) {
			t.trimmed(err)
			done(err)
		})
	})
	if err != nil {
		return fmt.Errorf("trim %s: %w", t.name, err)
	}
	return nil
}

// floor is the position up to which nobody needs an entry: neither a durable cursor
// nor a reader that is connected or expected back.
func (t *Topic) floor(spans Spans) Position { return slowestOf(*t.wakes.Load(), spans) }

// slowestOf is the least mark-delete, the end without subscriptions.
func slowestOf(subs []*Subscription, spans Spans) Position {
	floor := spans.End()
	for _, s := range subs {
		floor = Min(floor, *s.marked.Load())
	}
	return floor
}

// trimmed runs on the store's goroutine: what is gone counts as acknowledged.
func (t *Topic) trimmed(err error) {
	if err != nil {
		return // the next round tries again
	}
	spans := t.ledger.Spans()
	for _, s := range *t.wakes.Load() {
		s.mu.Lock()
		s.cursor.Follow(spans)
		s.noteMarkLocked()
		s.mu.Unlock()
	}
}
