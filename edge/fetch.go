package edge

import "time"

// What dispatch reads, and with what memory.

// fetch brings what is planned: the newest entries from memory, all else from the ledger.
func (s *Subscription) fetch(v *view, p *readPlan) (Batch, Grant, error) {
	b := s.topic.broker
	var entries []Entry
	var bytes int64
	ok := false
	if p.form == nil {
		s.hand.entries, bytes, ok = b.tails.read(s.hand.entries[:0], s.topic, p.ranges, p.entries, readBytes)
		entries = s.hand.entries
	}
	if !ok {
		return s.read(p, s.expected(v, p.ranges[0].First))
	}
	grant, ok := b.budget.TryTake(ShareRead, bytes)
	if !ok {
		s.hand.leave()
		var err error
		if grant, err = b.budget.Take(b.run, ShareRead, bytes); err != nil {
			return Batch{}, Grant{}, err
		}
	}
	return Batch{Entries: entries}, grant, nil
}

// keptEntries is the room for entries that a hand keeps.
const keptEntries = 32

// forget lets go of what was read, but for some room for the next.
func (h *hand) forget() {
	h.batch, h.grant = Batch{}, Grant{}
	clear(h.entries)
	h.entries = h.entries[:0]
	if cap(h.entries) > keptEntries {
		h.entries = nil
	}
}

// expected is about how many bytes a read from a position brings: where entries are
// large one alone is more than is asked for.
func (s *Subscription) expected(v *view, from Position) int64 {
	one := v.spans.BytesBetween(from.Before(), from) // the average of its ledger
	return min(max(one, readBytes), int64(max(s.topic.broker.opts.MaxMessageSize, readBytes)))
}

// read asks the ledger, with memory for what it is expected to bring. What came beyond
// that overdraws the share at once, so that further readers wait.
func (s *Subscription) read(p *readPlan, bytes int64) (batch Batch, grant Grant, err error) {
	b := s.topic.broker
	err = s.reading(func() error {
		if grant, err = b.budget.Take(b.run, ShareRead, bytes); err != nil {
			return err
		}
		batch, err = s.bring(p)
		brought := int64(0)
		for i := range batch.Entries {
			brought += int64(len(batch.Entries[i].Data))
		}
		grant.raise(brought)
		return err
	})
	if err != nil {
		grant.Release()
		return Batch{}, Grant{}, err
	}
	return batch, grant, nil
}

// reading does something within the broker's bound of concurrent reads.
func (s *Subscription) reading(do func() error) error {
	b := s.topic.broker
	s.hand.leave()
	select {
	case b.reads <- struct{}{}:
	case <-b.run.Done():
		return ErrClosing
	}
	defer func() { <-b.reads }()
	return do()
}

// readFailed notes a failed read and tries again later.
func (s *Subscription) readFailed(err error) {
	if s.topic.broker.run.Err() != nil {
		return
	}
	s.topic.broker.opts.Logger.Error("reading a topic failed, trying again",
		"topic", s.topic.name.String(), "subscription", s.name, "error", err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wakeAtLocked(time.Now().Add(readRetry), time.Now())
}
