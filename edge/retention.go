package edge

import (
	"math"
	"time"
)

// spare is the position up to which entries of the topic may go: those that nobody needs
// and that retention does not keep. As in the reference whole closed ledgers are kept
// or not, the oldest go first, and a ledger's age is that of its last entry.
// When the store is full a topic keeps half of what it has.
func (t *Topic) spare(spans Spans, full bool, now time.Time) Position {
	floor := t.floor(spans)
	r := t.policies.Load().Retention
	if !r.keeps() {
		return floor
	}
	_, _, left := spans.Totals()
	most := int64(math.MaxInt64)
	if r.MiB >= 0 {
		most = r.MiB << 20
	}
	if full {
		most = min(most, left/2)
	}
	kept := spans.Start()
	for i := range spans.Closed {
		span := &spans.Closed[i]
		old := r.Minutes >= 0 && now.UnixMilli()-span.LastTime > r.Minutes*60_000
		if !old && left-span.Bytes < most {
			break
		}
		left -= span.Bytes
		kept = span.End()
	}
	return Min(floor, kept)
}

// keeps reports whether anything is kept that is acknowledged.
func (r *Retention) keeps() bool { return r != nil && r.Minutes != 0 && r.MiB != 0 }

// retains reports whether something acknowledged is kept of a topic.
func (c *Catalog) retains(name TopicName) bool {
	return c.someRules() && c.effective(name).Retention.keeps()
}
