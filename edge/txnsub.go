package edge

import "fmt"

// leftLocked is the rest of an entry that may be delivered, nil for all of it: what is
// neither acknowledged nor in a transaction. none says that it is in some as a whole.
func (s *Subscription) leftLocked(p Position) (rest []uint64, none bool) {
	return s.txns.left(p, s.cursor.Rest(p))
}

// passesLocked reports whether an entry is in transactions as a whole.
func (s *Subscription) passesLocked(p Position) bool {
	if s.txns == nil {
		return false
	}
	_, none := s.leftLocked(p)
	return none
}

// ackedBesides corrects what a plain acknowledgement of a batch has freed by what is in
// transactions; before is what was left until then.
func (s *Subscription) ackedBesides(p Position, before []uint64, out *AckOutcome) {
	if before == nil || out.Entry {
		return
	}
	after, none := s.leftLocked(p)
	out.Left = ones(after)
	out.Freed = ones(before) - out.Left
	out.Entry = none
}

// AckIn acknowledges entries in a transaction: they count as acknowledged when it is
// committed, and come back when it is aborted (protocol 2.12). All of them are taken or,
// with ErrTxnConflict, none. As in the reference a cumulative one does nothing on kinds
// that share, and what does not exist is ignored (watched on 4.0.7). done, which may be
// nil, runs when that is durable.
func (c *Consumer) AckIn(id TxnID, parts []AckPart, cumulative bool, done func(error)) {
	s := c.sub
	s.noteTime(&c.lastAck, &s.lastAck)
	if done == nil {
		done = func(error) {}
	}
	s.mu.Lock()
	set, err := s.joinTxnLocked(c, id, parts, cumulative)
	if set == nil {
		s.mu.Unlock()
		done(err)
		return
	}
	for i := range parts {
		s.holdLocked(c, id, &parts[i], cumulative)
	}
	set.waiting = append(set.waiting, done)
	if !set.writing {
		s.writeAcksLocked(id, set)
	}
	again := s.dispatch.freed()
	s.mu.Unlock()
	if again {
		s.wake()
	}
}

// joinTxnLocked returns the transaction's part in the subscription, nil if there is
// nothing to add to it, or why nothing may be.
func (s *Subscription) joinTxnLocked(c *Consumer, id TxnID, parts []AckPart, cumulative bool) (*txnAckSet, error) {
	switch {
	case s.closed != nil || s.pause != nil || c.gone:
		return nil, ErrGone
	case !s.durable || !s.topic.name.IsPersistent():
		return nil, fmt.Errorf("%w: Server don't support transaction ack", ErrNotAllowed)
	case len(parts) == 0 || cumulative && (len(parts) != 1 || s.kind.shares()):
		return nil, nil
	}
	for i := range parts {
		err := s.txns.conflict(s.cursor, id, &parts[i])
		if cumulative {
			err = s.txns.cumulativeConflict(s.cursor, id, &parts[i])
		}
		if err != nil {
			return nil, err
		}
	}
	key, err := s.topic.broker.txns.mayAck(id, s.topic.name, s.name)
	switch {
	case err != nil:
		return nil, err
	case s.txns == nil:
		s.txns = &txnAcks{}
	case s.txns.full():
		return nil, fmt.Errorf("%w: too much is acknowledged in open transactions", ErrNotAllowed)
	}
	set := s.txns.set(id)
	set.key = key
	return set, nil
}

// holdLocked takes one part into a transaction.
func (s *Subscription) holdLocked(c *Consumer, id TxnID, part *AckPart, cumulative bool) {
	v := s.boundsLocked()
	p := part.Position
	if cumulative {
		s.txns.set(id).upTo = &AckPart{Position: Min(p, v.limit), Rest: part.Rest}
		return
	}
	if v.limit.Less(p) || !v.spans.Contains(p) {
		return
	}
	if s.txns.conflict(s.cursor, id, part) != nil {
		return // a part of the same command
	}
	before, _ := s.leftLocked(p)
	if d, ok := s.dispatch.(*shared); ok {
		d.noteSlot(p)
	}
	rest := part.Rest
	if part.Size == 0 && len(rest) > 0 {
		rest = onlyNew(rest, before)
	}
	s.txns.add(id, p, rest)
	after, none := s.leftLocked(p)
	out := AckOutcome{Changed: true, Freed: -1, Left: ones(after), Entry: none}
	if before != nil {
		out.Freed = ones(before) - out.Left
	}
	s.dispatch.acked(p, out, c)
}

// writeAcksLocked makes durable what a transaction holds. Acknowledgements that come
// meanwhile go with the next write.
func (s *Subscription) writeAcksLocked(id TxnID, set *txnAckSet) {
	dones := set.waiting
	set.waiting, set.writing = nil, true
	s.topic.broker.store.PutValue(set.key, set.encode(), func(err error) {
		if err != nil {
			err = fmt.Errorf("%w: %w", ErrStorage, err)
		}
		s.mu.Lock()
		set.writing = false
		switch {
		case len(set.waiting) == 0:
		case s.txns.sets[id] == set:
			s.writeAcksLocked(id, set)
		default: // it has ended, with them
			dones = append(dones, set.waiting...)
			set.waiting = nil
		}
		s.mu.Unlock()
		for _, done := range dones {
			done(err)
		}
	})
}

// commitAcks acknowledges what a committed transaction holds. done runs when that is
// durable. Doing so again does no harm.
func (s *Subscription) commitAcks(id TxnID, done func(error)) {
	s.mu.Lock()
	if s.closed != nil {
		err := s.closed
		s.mu.Unlock()
		if err == ErrGone { // and its cursor with it
			err = nil
		}
		done(err)
		return
	}
	v := s.boundsLocked()
	changed := false
	if set := s.txns.take(id); set != nil {
		for run := range set.whole.From(Position{}) {
			for p := run.Start(); !run.End().Less(p); p = p.Next() {
				changed = s.ackLocked(&v, nil, p, nil) || changed
			}
		}
		for p, rest := range set.parts { // its holder was freed of them when they came
			out := s.cursor.Ack(v.spans, p, rest)
			if out.Entry {
				s.dispatch.acked(p, out, nil)
			}
			changed = out.Changed || changed
		}
		if up := set.upTo; up != nil {
			changed = s.cursor.AckUpTo(v.spans, Min(up.Position, v.limit), up.Rest) || changed
		}
		s.txns.dropSlots(set)
	}
	s.changedLocked(done)
	again := s.afterAckLocked(&v, changed)
	s.mu.Unlock()
	if again {
		s.wake()
	}
}

// abortAcks gives back what an aborted transaction holds: on kinds that share each entry
// with its count raised, on the others everything is read anew. After a cumulative one
// nothing comes until the client asks, as its library has it do (all watched on 4.0.7).
func (s *Subscription) abortAcks(id TxnID, done func(error)) {
	s.mu.Lock()
	set := s.txns.take(id)
	if set == nil || s.closed != nil {
		s.mu.Unlock()
		done(nil)
		return
	}
	switch d := s.dispatch.(type) {
	case *shared:
		for run := range set.whole.From(Position{}) {
			for p := run.Start(); !run.End().Less(p); p = p.Next() {
				d.comeBack(p)
			}
		}
		for p := range set.parts {
			d.comeBack(p)
		}
		d.unblock()
	case *single:
		if d.active != nil && set.upTo == nil {
			d.rewind()
		}
	}
	s.txns.dropSlots(set)
	s.changedLocked(nil)
	s.mu.Unlock()
	done(nil)
	s.wake()
}

// comeBack lets an entry be delivered again that a transaction had acknowledged. What was
// not read yet comes by itself.
func (d *shared) comeBack(p Position) {
	if d.s.cursor.Acked(p) || !p.Less(d.read) || len(d.s.consumers) == 0 {
		return
	}
	if h, ok := d.pending[p]; ok {
		d.release(p, h)
	}
	d.s.cursor.Raise(p)
	d.requeue(p, d.s.txns.slots[p])
}

func (d *shared) pass(e *Entry, replay bool) {
	if d.keys != nil {
		d.s.txns.setSlot(e.Position, e.Facts.Slot)
	}
	if replay {
		d.unqueue(e.Position)
	} else {
		d.read = e.Position.Next()
	}
}

func (d *single) pass(e *Entry, _ bool) { d.read = e.Position.Next() }

// noteSlot keeps the slot of an entry that is about to be in a transaction.
func (d *shared) noteSlot(p Position) {
	if d.keys == nil {
		return
	}
	if h, ok := d.pending[p]; ok {
		d.s.txns.setSlot(p, h.slot)
	} else if slot, ok := d.keys.waiting[p]; ok {
		d.s.txns.setSlot(p, slot)
	}
}

func (a *txnAcks) setSlot(p Position, slot uint16) {
	if a.slots == nil {
		a.slots = map[Position]uint16{}
	}
	a.slots[p] = slot
}

// dropSlots forgets the slots of what a transaction held and no other one holds.
func (a *txnAcks) dropSlots(set *txnAckSet) {
	for p := range a.slots {
		if _, ok := a.parts[p]; !ok && !a.whole.Contains(p) {
			delete(a.slots, p)
		}
	}
}
