package edge

import (
	"fmt"
	"time"
)

// Backlog quotas of topics and namespaces (protocol 3.11). The store's own quota stands
// in housekeeper.go. Until a round of housekeeping sees that a quota is exceeded
// producers go on; a new one is looked at when it comes. What is evicted by age is what
// is too old, where the reference drops whole closed ledgers only.

// quotas are the limits in bytes and seconds, −1 for none.
func (p *Policies) quotas() (size, seconds int64) {
	size, seconds = -1, -1
	if p.BacklogSize != nil && p.BacklogSize.Size >= 0 {
		size = p.BacklogSize.Size
	}
	if p.BacklogAge != nil && p.BacklogAge.Time > 0 {
		seconds = p.BacklogAge.Time
	}
	return size, seconds
}

// slowest is the mark-delete of the slowest durable subscription, the end without any.
func (t *Topic) slowest(spans Spans) Position {
	at := spans.End()
	for _, s := range *t.wakes.Load() {
		if s.durable {
			at = Min(at, *s.marked.Load())
		}
	}
	return at
}

// overSize is how many bytes of backlog there are beyond nine tenths of the topic's
// quota; false if the quota is kept.
func (t *Topic) overSize(q *BacklogQuota) (excess int64, over bool) {
	if q == nil || q.Size < 0 {
		return 0, false
	}
	spans := t.ledger.Spans()
	have := spans.BytesBetween(t.slowest(spans), spans.End())
	return have - q.Size/10*9, have >= q.Size
}

// overAge reports whether the oldest entry that is not acknowledged is too old. It reads.
func (t *Topic) overAge(q *BacklogQuota, now time.Time) (over bool, err error) {
	if q == nil || q.Time <= 0 {
		return false, nil
	}
	spans := t.ledger.Spans()
	p, ok := spans.After(t.slowest(spans))
	if !ok {
		return false, nil
	}
	err = t.ledger.Scan(Range{p, p}, func(_ Position, f Facts) bool {
		over = f.Receive < now.UnixMilli()-q.Time*1000
		return false
	})
	return over, err
}

// refusal is what producers are told by the quota's policy, nil if they are not.
func (q *BacklogQuota) refusal() error {
	switch q.Policy {
	case QuotaHold:
		return ErrQuotaHold
	case QuotaFail:
		return ErrQuotaFail
	}
	return nil
}

// backlogRefusal says why the topic admits no producer now, nil if it does. It may read.
func (t *Topic) backlogRefusal() error {
	rules := t.policies.Load()
	if _, over := t.overSize(rules.BacklogSize); over {
		if err := rules.BacklogSize.refusal(); err != nil {
			return err
		}
	}
	over, err := t.overAge(rules.BacklogAge, t.broker.opts.Clock())
	switch {
	case err != nil:
		return fmt.Errorf("%w: age of the backlog: %w", ErrStorage, err)
	case over:
		return rules.BacklogAge.refusal()
	}
	return nil
}

// enforceBacklog closes all producers of a topic that is over its quota, or drops what
// is too much.
func (t *Topic) enforceBacklog() {
	rules := t.policies.Load()
	if rules.BacklogSize == nil && rules.BacklogAge == nil || !t.name.IsPersistent() {
		return
	}
	if q := rules.BacklogSize; q != nil && q.Policy == QuotaEvict {
		if excess, over := t.overSize(q); over {
			t.dropOldest(excess)
		}
	}
	if q := rules.BacklogAge; q != nil && q.Policy == QuotaEvict && q.Time > 0 {
		t.dropOlder(t.broker.opts.Clock().UnixMilli() - q.Time*1000)
	}
	if err := t.backlogRefusal(); err != nil {
		t.mu.Lock()
		t.kickAllLocked(err)
		t.mu.Unlock()
	}
}

// dropOlder acknowledges for all subscriptions what was received before a time, ms since
// 1970, as far as it lies in front of the first entry that was not.
func (t *Topic) dropOlder(ms int64) {
	spans := t.ledger.Spans()
	upTo, ok := t.olderThan(spans, t.slowest(spans), ms)
	if !ok {
		return
	}
	for _, s := range *t.wakes.Load() {
		s.dropUpTo(spans, upTo)
	}
}

// hasRoom says why a producer is not admitted for what the broker or the topic holds.
func (t *Topic) hasRoom() error {
	err := t.broker.quotaRefusal()
	if err == nil {
		err = t.backlogRefusal()
	}
	if err != nil {
		return fmt.Errorf("%w: cannot create producer on topic %s", err, t.name)
	}
	return nil
}
