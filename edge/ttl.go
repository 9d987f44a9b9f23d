package edge

import "slices"

// Time to live (protocol 3.11): what was received longer ago counts as acknowledged on
// every subscription, durable or not, and nobody is told. Rounds of housekeeping see to
// it, so it lasts a few seconds longer.

// expire does so on one topic.
func (t *Topic) expire() {
	ttl := t.policies.Load().TTL
	if ttl == nil || *ttl <= 0 || !t.name.IsPersistent() {
		return
	}
	spans := t.ledger.Spans()
	now := t.broker.opts.Clock().UnixMilli()
	subs := slices.DeleteFunc(slices.Clone(*t.wakes.Load()), func(s *Subscription) bool {
		return s.name == CompactionSubscription // what expires may still be a key's newest
	})
	upTo, ok := t.olderThan(spans, slowestOf(subs, spans), now-*ttl*1000)
	if !ok {
		return
	}
	for _, s := range subs {
		if n := s.dropUpTo(spans, upTo); n > 0 {
			s.expired.Add(n)
			s.lastExpired.Store(now)
		}
	}
}

// olderThan is the last of the entries behind a position that were received before a
// time, up to the first that was not; false if there is none. It reads.
func (t *Topic) olderThan(spans Spans, after Position, ms int64) (last Position, ok bool) {
	if after == spans.End() {
		return Position{}, false
	}
	err := t.ledger.Scan(Range{after.Next(), spans.End()}, func(p Position, f Facts) bool {
		if f.Receive >= ms {
			return false
		}
		last, ok = p, true
		return true
	})
	if err != nil {
		t.broker.opts.Logger.Warn("the age of a backlog cannot be read", "topic", t.name.String(), "error", err)
		return Position{}, false
	}
	return last, ok
}

// openExpired opens some of the topics that nobody uses and in which all has expired:
// the next round drops it.
func (b *Broker) openExpired() {
	if !b.catalog.someRules() {
		return
	}
	now := b.opts.Clock().UnixMilli()
	left := quietAtOnce
	for _, r := range b.Records() {
		if r.LiveBytes == 0 || left == 0 || b.isOpen(r.Name) {
			continue
		}
		ttl := b.catalog.effective(r.Name).TTL
		if ttl == nil || *ttl <= 0 || r.LastAppend >= now-*ttl*1000 {
			continue
		}
		left--
		if _, err := b.Open(b.run, r.Name, false); err != nil {
			b.opts.Logger.Warn("a quiet topic cannot be opened to let its messages expire", "topic", r.Name.String(), "error", err)
		}
	}
}

func (b *Broker) isOpen(name TopicName) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open[name] != nil
}

// someRules reports whether any namespace or topic has rules of its own.
func (c *Catalog) someRules() bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.policies) > 0
}
