package edge

// Non-persistent topics (protocol 3.20). They are topics like all others, with the same
// producers, subscriptions and consumers, on a ledger that keeps nothing: each message
// goes, while its publisher waits for that, to the consumer that each subscription
// chooses, and is dropped for a subscription whose consumer has no permits or no room.
// Receipts and deliveries have the id 0:0. Nothing is redelivered, acknowledgements and
// seeks change nothing. The topic exists from its first client to the unload that
// follows its last one, and no longer.
//
// What is in flight is bounded by the answers that a connection may be owed, which is
// less than the reference lets pass before it drops (1,000), and by the memory for reads.

// fleeting is a ledger without entries. Its done functions run at once, on the caller's
// goroutine and with the locks that this one holds.
type fleeting struct{}

// nothing is what it holds: no entry, the next would be 0:0.
var nothing = Spans{Open: Span{Last: -1}}

func (fleeting) Append(m Message, done func(Entry, error)) {
	m.Grant.Release()
	done(Entry{Facts: m.Facts, Data: m.Data}, nil)
}

func (fleeting) Barrier(done func(error))                     { done(nil) }
func (fleeting) Recover(done func(error))                     { done(nil) }
func (fleeting) Read(want []Range, _, _ int) (Batch, error)   { return Batch{Lost: want}, nil }
func (fleeting) Scan(Range, func(Position, Facts) bool) error { return nil }
func (fleeting) Find(Position, int64) (Position, bool, error) { return Position{}, false, nil }
func (fleeting) Spans() Spans                                 { return nothing }
func (fleeting) BirthID() string                              { return "" }
func (fleeting) Trim(_ Position, done func(error))            { done(nil) }
func (fleeting) Roll(done func(error))                        { done(nil) }
func (fleeting) Sequences() (map[string]SequenceState, error) { return nil, nil }
func (fleeting) DropSequences(_ []string, done func(error))   { done(nil) }
func (fleeting) Properties() ([]byte, error)                  { return nil, nil }
func (fleeting) SetProperties(_ []byte, done func(error))     { done(nil) }
func (fleeting) Cursors() (map[string]CursorState, error)     { return nil, nil }
func (fleeting) DeleteCursor(_ string, done func(error))      { done(nil) }
func (fleeting) Close(done func(error))                       { done(nil) }
func (fleeting) SaveCursor(_ string, _ func() CursorState, done func(error)) {
	if done != nil {
		done(nil)
	}
}

// pass gives a message to all subscriptions of a non-persistent topic. t.mu is held.
func (t *Topic) pass(e *Entry) {
	if e.Facts.Marker != 0 {
		return
	}
	for _, s := range *t.wakes.Load() {
		if !s.pass(e) {
			t.counts.dropped.Add(int64(e.Facts.Messages))
		}
	}
}

// pass gives a message to the consumer whose it is, or drops it and returns false.
func (s *Subscription) pass(e *Entry) bool {
	c := s.passTo(e)
	if c == nil {
		s.counts.dropped.Add(int64(e.Facts.Messages))
		return false
	}
	c.recv.Flush()
	return true
}

// passTo delivers it and returns to whom, nil for nobody.
func (s *Subscription) passTo(e *Entry) *Consumer {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.takerLocked(e)
	if c == nil {
		return nil
	}
	grant, ok := s.topic.broker.budget.TryTake(ShareRead, int64(len(e.Data)))
	if !ok {
		return nil
	}
	v := view{wall: s.topic.broker.opts.Clock().UnixMilli()}
	s.deliverLocked(&v, c, e, nil, 0, &grant)
	grant.Release()
	return c
}

func (s *Subscription) takerLocked(e *Entry) *Consumer {
	if s.closed != nil || s.pause != nil || len(s.consumers) == 0 {
		return nil
	}
	return s.dispatch.taker(e)
}

func (d *single) taker(*Entry) *Consumer {
	if d.active == nil || !d.active.ready() {
		return nil
	}
	return d.active
}

// taker goes round message by message (watched on 4.0.7), or by the key's slot.
func (d *shared) taker(e *Entry) *Consumer {
	if d.keys == nil {
		d.left = 0
		return d.chooseInTurn(int(e.Facts.Messages))
	}
	c, ok := d.keys.owners.owner(e.Facts.Slot)
	if !ok || !c.ready() {
		return nil
	}
	return c
}
