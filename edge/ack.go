package edge

// AckPart is an entry that a client acknowledges.
type AckPart struct {
	Position Position
	// Rest are the messages of a batch that stay unacknowledged, bit i for message i,
	// least significant first. Nil acknowledges the whole entry.
	Rest []uint64
	Size int // messages of the batch, 0 if the client does not say
}

// Ack acknowledges entries (protocol 3.9). Whoever holds them, of whatever consumer of
// the subscription, is freed; what is acknowledged already or does not exist is
// ignored. A cumulative one has one part, and is ignored on kinds that share. done
// may be nil; with one a commit is brought on, and done runs behind it.
func (c *Consumer) Ack(parts []AckPart, cumulative bool, done func(error)) {
	s := c.sub
	s.noteTime(&c.lastAck, &s.lastAck)
	s.mu.Lock()
	if s.closed != nil || s.pause != nil || c.gone {
		s.mu.Unlock()
		if done != nil {
			done(ErrGone)
		}
		return
	}
	v := s.boundsLocked()
	changed := s.ackBelowLocked(&v, parts, cumulative)
	changed = s.ackPartsLocked(&v, c, parts, cumulative) || changed
	if changed || done != nil {
		s.changedLocked(done)
	}
	again := s.afterAckLocked(&v, changed)
	s.mu.Unlock()
	if again {
		s.wake()
	}
}

func (s *Subscription) ackPartsLocked(v *view, c *Consumer, parts []AckPart, cumulative bool) bool {
	if !cumulative {
		changed := false
		for i := range parts {
			changed = s.ackLocked(v, c, parts[i].Position, parts[i].Rest) || changed
		}
		return changed
	}
	if len(parts) != 1 || s.kind.shares() {
		return false
	}
	// A position that nobody was given would acknowledge what nobody has seen.
	p := parts[0].Position
	return !v.limit.Less(p) && s.cursor.AckUpTo(v.spans, p, parts[0].Rest)
}

// ackLocked acknowledges one entry, or all of it but rest.
func (s *Subscription) ackLocked(v *view, c *Consumer, p Position, rest []uint64) bool {
	if v.limit.Less(p) {
		return false
	}
	var before []uint64
	if s.txns != nil {
		before, _ = s.leftLocked(p)
	}
	out := s.cursor.Ack(v.spans, p, rest)
	changed := out.Changed
	if s.txns != nil && changed {
		s.ackedBesides(p, before, &out)
	}
	if changed {
		s.dispatch.acked(p, out, c)
	}
	return changed
}

// afterAckLocked does what a moved cursor asks for. It reports whether dispatch may
// go on where it had to wait.
func (s *Subscription) afterAckLocked(v *view, changed bool) bool {
	if !changed {
		return false
	}
	if s.topic.terminatedNow.Load() {
		s.tellEndLocked(v)
	}
	return s.paused != "" || s.dispatch.freed()
}

// Plan is the small state that an uplink keeps with its cursor; nil at first.
func (c *Consumer) Plan() []byte {
	c.sub.mu.Lock()
	defer c.sub.mu.Unlock()
	return c.sub.cursor.Plan()
}

// SavePlan replaces that state and, with upTo, acknowledges everything up to there, in
// one durable write. done runs behind it; without done it is written within the store's
// save interval.
func (c *Consumer) SavePlan(plan []byte, upTo *Position, done func(error)) {
	s := c.sub
	s.mu.Lock()
	if s.closed != nil || s.pause != nil || c.gone {
		s.mu.Unlock()
		if done != nil {
			done(ErrGone)
		}
		return
	}
	s.cursor.SetPlan(plan)
	v := s.boundsLocked()
	acked := upTo != nil && s.cursor.AckUpTo(v.spans, Min(*upTo, v.limit), nil)
	s.changedLocked(done)
	again := s.afterAckLocked(&v, acked)
	s.mu.Unlock()
	if again {
		s.wake()
	}
}
