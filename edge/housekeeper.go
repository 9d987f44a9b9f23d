package edge

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sort"
	"time"
)

// keepHouse looks after quota, trimming and idle topics until the broker stops.
func (b *Broker) keepHouse() {
	tick := time.NewTicker(b.opts.BacklogCheckInterval)
	defer tick.Stop()
	for {
		select {
		case <-b.run.Done():
			return
		case <-tick.C:
			b.sweep(time.Now())
		}
	}
}

// sweep is one round of housekeeping.
func (b *Broker) sweep(now time.Time) {
	b.tails.age()
	open := b.openTopics()
	b.enforceQuota(open)
	excess, full := b.excess()
	if excess > 0 {
		b.openQuiet()
	}
	b.openExpired()
	for _, t := range open {
		for _, s := range *t.wakes.Load() {
			t.removeIfDone(s, now)
		}
		t.expire()
		t.compactIfDue(now)
		t.enforceBacklog()
		t.trimRetained(full, now)
		if since, idle := t.idle(); idle && now.Sub(since) > b.opts.IdleUnload {
			b.unloadIdle(t, now)
		}
	}
	b.trimOldest(open, excess)
}

// unloadIdle gives the memory of an idle topic back. A client that comes meanwhile
// waits and opens it anew.
func (b *Broker) unloadIdle(t *Topic, now time.Time) {
	s, err := b.take(b.run, t.name, false)
	if err != nil || s == nil {
		return
	}
	if !s.topic.sealIdle(now, b.opts.IdleUnload) {
		b.putBack(t.name, s)
		return
	}
	if err := s.topic.close(context.Background(), ErrUnloaded); err != nil {
		b.opts.Logger.Error("unloading an idle topic failed", "topic", t.name.String(), "error", err)
	}
	b.release(t.name, s)
}

// excess is by how many bytes acknowledged data is more than may be kept; and whether the
// store is so full that what retention keeps has to give way.
func (b *Broker) excess() (excess int64, full bool) {
	var kept, retained, live int64
	for _, r := range b.store.Records() {
		live += r.LiveBytes
		if b.catalog.retains(r.Name) {
			retained += r.Bytes - r.LiveBytes
		} else {
			kept += r.Bytes - r.LiveBytes
		}
	}
	if b.shortage.lasts() {
		return kept, true // what is acknowledged is kept only as long as there is room
	}
	quota := b.store.Stats().Quota
	return kept - b.opts.KeepAcked, retained > 0 && quota > 0 && live+kept+retained >= quota
}

// quietAtOnce bounds how many topics a round opens only to trim them.
const quietAtOnce = 10

// openQuiet opens topics that nobody uses and that hold most acknowledged data: the
// next round trims them, and later they are unloaded again.
func (b *Broker) openQuiet() {
	acked := func(r *TopicRecord) int64 { return r.Bytes - r.LiveBytes }
	b.mu.Lock()
	open := maps.Clone(b.open)
	b.mu.Unlock()
	quiet := slices.DeleteFunc(b.Records(), func(r TopicRecord) bool {
		return acked(&r) <= 0 || open[r.Name] != nil
	})
	sort.Slice(quiet, func(i, j int) bool { return acked(&quiet[i]) > acked(&quiet[j]) })
	for i := range quiet[:min(len(quiet), quietAtOnce)] {
		name := quiet[i].Name
		if _, err := b.Open(b.run, name, false); err != nil {
			b.opts.Logger.Warn("a quiet topic cannot be opened for trimming", "topic", name.String(), "error", err)
		}
	}
}

// quotaRefusal says why no producer is admitted now, nil if one is.
func (b *Broker) quotaRefusal() error {
	if b.opts.WhenFull == WhenFullDropOldest {
		return nil
	}
	st := b.store.Stats()
	if b.shortage.justNow() || st.Quota > 0 && st.LiveBytes >= st.Quota {
		return b.overQuota()
	}
	return nil
}

// overQuota is what producers are told at the quota.
func (b *Broker) overQuota() error {
	if b.opts.WhenFull == WhenFullFail {
		return ErrQuotaFail
	}
	return ErrQuotaHold
}

// enforceQuota closes all producers while live bytes are over the quota, or makes room.
func (b *Broker) enforceQuota(open []*Topic) {
	st := b.store.Stats()
	if st.Quota <= 0 || st.LiveBytes < st.Quota {
		return
	}
	if b.opts.WhenFull == WhenFullDropOldest {
		b.dropOldest(st.LiveBytes - st.Quota/10*9)
		return
	}
	for _, t := range open {
		t.mu.Lock()
		t.kickAllLocked(b.overQuota())
		t.mu.Unlock()
	}
}

// dropOldest advances the slowest cursors of the topics with most live bytes until so
// many bytes are free.
func (b *Broker) dropOldest(excess int64) {
	records := b.Records()
	sort.Slice(records, func(i, j int) bool { return records[i].LiveBytes > records[j].LiveBytes })
	for _, r := range records {
		if excess <= 0 || r.LiveBytes == 0 {
			return
		}
		ctx, cancel := context.WithTimeout(b.run, 10*time.Second)
		t, err := b.Open(ctx, r.Name, false)
		cancel()
		if err != nil {
			continue
		}
		excess -= t.dropOldest(min(excess, r.LiveBytes))
	}
}

// dropOldest acknowledges the oldest entries for every cursor that stands before them,
// about so many bytes, and returns how many bytes that were.
func (t *Topic) dropOldest(bytes int64) int64 {
	spans := t.ledger.Spans()
	from := spans.End()
	for _, s := range *t.wakes.Load() {
		if s.durable { // the others hold nothing that counts for the quota
			from = Min(from, *s.marked.Load())
		}
	}
	upTo := spans.positionAfterBytes(from, bytes)
	var dropped int64
	for _, s := range *t.wakes.Load() {
		dropped += s.dropUpTo(spans, upTo)
	}
	if dropped > 0 {
		t.broker.counts.dropped.Add(dropped)
		t.broker.opts.Logger.Warn("the store is full, oldest messages are dropped", "topic", t.name.String(),
			"entries", dropped, "up to", upTo.String())
	}
	return spans.BytesBetween(from, upTo)
}

// dropUpTo moves a cursor forward and returns how many unacknowledged entries it skipped.
func (s *Subscription) dropUpTo(spans Spans, upTo Position) int64 {
	defer s.wake() // it may have been blocked by what is dropped
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.cursor.Backlog(spans)
	if s.closed != nil || !s.cursor.AckUpTo(spans, upTo, nil) {
		return 0
	}
	s.dispatch.skipTo(upTo)
	s.changedLocked(nil)
	return before - s.cursor.Backlog(spans)
}

// Health says why the broker is not healthy; nothing when it is.
func (b *Broker) Health() []string {
	st := b.store.Stats()
	return b.healthOf(&st)
}

func (b *Broker) healthOf(st *StoreStats) []string {
	var why []string
	if st.Failed != nil {
		why = append(why, fmt.Sprintf("publishing is refused: %v", st.Failed))
	}
	if st.Quota > 0 && st.LiveBytes >= st.Quota {
		why = append(why, fmt.Sprintf("the store is full: %d of %d bytes wait to be acknowledged", st.LiveBytes, st.Quota))
	}
	if b.shortage.lasts() {
		why = append(why, "publishing is refused: the store finds no room on the disk")
	}
	return why
}
