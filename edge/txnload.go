package edge

import "fmt"

// loadTxns finds out, when a topic is loaded, what transactions have done on it. The
// entries of those that are open are looked for behind the place where the topic ended
// when they took it in.
func (t *Topic) loadTxns() error {
	if !t.name.IsPersistent() {
		return nil
	}
	if f := t.state.Txns; f != nil && f.Aborted != "" {
		if err := t.useTxnsLocked().buf.decode(f.Aborted); err != nil {
			return fmt.Errorf("read topic state: %w", err)
		}
	}
	parts := t.broker.txns.on(t.name)
	var from Position
	open := map[TxnID]*openTxn{}
	for i := range parts {
		if p := &parts[i]; p.published {
			if len(open) == 0 || p.after.Less(from) {
				from = p.after
			}
			open[p.id] = &openTxn{}
		}
	}
	if len(open) == 0 {
		return nil
	}
	err := t.ledger.Scan(Range{from.Next(), t.ledger.Spans().End()}, func(p Position, f Facts) bool {
		if x := open[f.Txn]; x != nil && f.InTxn && f.Marker == 0 {
			x.add(p, lastEntry{})
		}
		return true
	})
	if err != nil {
		return fmt.Errorf("look for open transactions: %w", err)
	}
	return t.holdOpen(open)
}

// holdOpen lets open transactions, whose entries are found, hold back what is behind.
func (t *Topic) holdOpen(open map[TxnID]*openTxn) error {
	for id, x := range open {
		if x.entries.Last.Ledger == 0 {
			continue
		}
		var err error
		if x.before, err = t.newest(x.after); err != nil {
			return err
		}
		b := &t.useTxnsLocked().buf
		if b.open == nil {
			b.open = map[TxnID]*openTxn{}
		}
		b.open[id] = x
		b.find()
	}
	return nil
}

// loadAcks gives the subscriptions back what open transactions have acknowledged.
func (t *Topic) loadAcks() error {
	for _, part := range t.broker.txns.on(t.name) {
		for _, acks := range part.acks {
			s := t.subs[acks.name]
			if s == nil {
				continue
			}
			raw, err := t.broker.txns.value(acks.key)
			if err != nil {
				return err
			}
			if raw == nil {
				continue
			}
			if s.txns == nil {
				s.txns = &txnAcks{}
			}
			if err := s.txns.load(part.id, acks.key, raw); err != nil {
				return err
			}
		}
	}
	return nil
}

// loadLast finds the newest entry that a user published.
func (t *Topic) loadLast() error {
	last, err := t.newest(t.ledger.Spans().End())
	if err == nil && last.position.Ledger != 0 {
		t.last = last
	}
	return err
}

// newestPiece is how many facts are read at once to find the newest entry, when the very
// last is none.
const newestPiece = 64

// newest finds the newest entry up to a position that a user published and nobody has
// aborted, ledger 0 if there is none. It reads.
func (t *Topic) newest(upTo Position) (last lastEntry, err error) {
	spans, piece := t.ledger.Spans(), int64(1)
	for p, ok := spans.AtOrBefore(upTo); ok && last.position.Ledger == 0; piece = newestPiece {
		from := Position{p.Ledger, max(p.Entry-piece+1, 0)}
		err := t.ledger.Scan(Range{from, p}, func(p Position, f Facts) bool {
			if f.Marker == 0 && !t.Aborted(p, &f) {
				last = lastEntry{p, f.Messages, f.Batch}
			}
			return true
		})
		if err != nil {
			return lastEntry{}, fmt.Errorf("look for the newest entry: %w", err)
		}
		p, ok = spans.AtOrBefore(Position{from.Ledger, from.Entry - 1})
	}
	return last, nil
}

// mendLast finds the newest entries anew where what was thought to be one is aborted.
func (t *Topic) mendLast() error {
	x := t.txns.Load()
	seen := map[Position]bool{{}: true}
	for {
		newest := t.newestEntry().position
		x.mu.Lock()
		wrong, ok := x.buf.wrong(newest, seen)
		x.mu.Unlock()
		if !ok {
			return nil
		}
		seen[wrong] = true
		right, err := t.newest(wrong)
		if err != nil {
			return err
		}
		x.mu.Lock()
		for _, o := range x.buf.open {
			if o.before.position == wrong {
				o.before = right
			}
		}
		x.mu.Unlock()
		t.lastMu.Lock()
		if t.last.position == wrong {
			t.last = right
		}
		t.lastMu.Unlock()
	}
}
