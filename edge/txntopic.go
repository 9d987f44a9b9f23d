package edge

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// topicTxns is a topic's part in transactions, made when it has the first.
type topicTxns struct {
	mu                 sync.Mutex // leaf
	buf                txnBuffer
	committed, aborted int64 // since the load
}

// txnFacts are what a topic keeps of them in its own state.
type txnFacts struct {
	Aborted string `json:"aborted,omitempty"`
}

// readable is the last position that readers may reach: what has arrived, up to the one
// before the first entry of the first open transaction.
func (t *Topic) readable(s Spans) Position {
	t.lastMu.Lock()
	end := Min(s.End(), t.arrived)
	t.lastMu.Unlock()
	x := t.txns.Load()
	if x == nil {
		return end
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.buf.limit(end)
}

// Readable is the last position that readers may reach.
func (t *Topic) Readable() Position { return t.readable(t.ledger.Spans()) }

// Aborted reports whether an entry belongs to a transaction that was aborted: it counts as
// acknowledged by everybody who reaches it.
func (t *Topic) Aborted(p Position, f *Facts) bool {
	x := t.txns.Load()
	if x == nil {
		return false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.buf.aborted(p, f)
}

// txnCounts counts the transactions that are open here, and those that have ended.
func (t *Topic) txnCounts() (open, committed, aborted int64) {
	x := t.txns.Load()
	if x == nil {
		return 0, 0, 0
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return int64(len(x.buf.open)), x.committed, x.aborted
}

// useTxnsLocked is the topic's part in transactions, made if need be. t.mu is held, or
// nobody knows t yet.
func (t *Topic) useTxnsLocked() *topicTxns {
	x := t.txns.Load()
	if x == nil {
		x = &topicTxns{}
		t.txns.Store(x)
	}
	return x
}

// barsTxnLocked says why an entry of a transaction is not taken.
func (t *Topic) barsTxnLocked(id TxnID) error {
	if !t.name.IsPersistent() {
		return fmt.Errorf("%w: a non-persistent topic takes no part in transactions", ErrNotAllowed)
	}
	if err := t.broker.txns.mayPublish(id, t.name); err != nil {
		return err
	}
	x := t.useTxnsLocked()
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.buf.open[id] == nil && x.buf.full() {
		return fmt.Errorf("%w: topic %s remembers too many aborted transactions until what they published is consumed", ErrNotAllowed, t.name)
	}
	return nil
}

// txnComingLocked notes an entry that is about to be handed to the ledger.
func (t *Topic) txnComingLocked(id TxnID) {
	end, last := t.ledger.Spans().End(), t.newestEntry()
	x := t.useTxnsLocked()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.buf.coming(id, end, last)
}

// txnCame runs on the store's goroutine when an entry of a transaction is durable.
func (t *Topic) txnCame(e *Entry) {
	last, x := t.newestEntry(), t.txns.Load()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.buf.came(e.Facts.Txn, e.Position, last)
}

// txnFailed runs on the store's goroutine when one could not be stored.
func (t *Topic) txnFailed(f *Facts) {
	if !f.InTxn {
		return
	}
	x := t.txns.Load()
	x.mu.Lock()
	x.buf.failed(f.Txn)
	x.mu.Unlock()
	t.wakeAll()
}

func (t *Topic) wakeAll() {
	for _, s := range *t.wakes.Load() {
		s.wake()
	}
}

// endTxn ends the topic's part in a transaction that is decided. It may wait.
// ErrUnloaded says that the topic has to be opened anew for it.
func (t *Topic) endTxn(ctx context.Context, part *txnPart) error {
	if part.published {
		var err error
		if part.commit {
			err = t.commitEntries(ctx, part.id)
		} else {
			err = t.abortEntries(ctx, part.id)
		}
		if err != nil {
			return err
		}
		t.wakeAll()
	}
	for i := range part.acks {
		err := wait(ctx, func(done func(error)) { t.endAcks(part, part.acks[i].name, done) })
		if err != nil {
			return err
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed != nil { // another one may have been loaded that knows nothing of this
		return t.closed
	}
	t.broker.txns.finished(part.id, t.name)
	return nil
}

func (t *Topic) endAcks(part *txnPart, name string, done func(error)) {
	t.mu.Lock()
	s := t.subs[name]
	t.mu.Unlock()
	switch {
	case s == nil:
		done(nil)
	case part.commit:
		s.commitAcks(part.id, done)
	default:
		s.abortAcks(part.id, done)
	}
}

// commitEntries lets what a transaction published be read.
func (t *Topic) commitEntries(ctx context.Context, id TxnID) error {
	if err := wait(ctx, func(done func(error)) { t.mark(id, markerCommit, done) }); err != nil {
		return err
	}
	if x := t.txns.Load(); x != nil {
		x.mu.Lock()
		x.buf.end(id)
		x.committed++
		x.mu.Unlock()
	}
	return nil
}

// abortEntries lets what a transaction published never be read.
func (t *Topic) abortEntries(ctx context.Context, id TxnID) error {
	err := wait(ctx, t.ledger.Barrier) // behind all that was admitted
	if errors.Is(err, ErrClosing) || ctx.Err() != nil {
		return err
	}
	if err := wait(ctx, func(done func(error)) { t.saveAborted(id, done) }); err != nil {
		return err
	}
	if err := wait(ctx, func(done func(error)) { t.mark(id, markerAbort, done) }); err != nil {
		return err
	}
	if err := t.mendLast(); err != nil {
		return err
	}
	x := t.txns.Load()
	x.mu.Lock()
	x.buf.end(id)
	x.aborted++
	x.mu.Unlock()
	return nil
}

// saveAborted makes durable that the entries of a transaction are aborted.
func (t *Topic) saveAborted(id TxnID, done func(error)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed != nil {
		done(t.closed)
		return
	}
	x := t.useTxnsLocked()
	x.mu.Lock()
	x.buf.trim(t.ledger.Spans().Start())
	x.buf.abort(id)
	t.state.Txns = &txnFacts{Aborted: x.buf.encode()}
	x.mu.Unlock()
	t.ledger.SetProperties(t.state.encode(), done)
}

// mark writes the marker that ends a transaction's entries, behind all of them. It uses up
// an id as on a real broker and tells nothing else: a disk that does not take it keeps
// nobody from reading what is decided.
func (t *Topic) mark(id TxnID, marker int32, done func(error)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed != nil:
		done(t.closed)
		return
	case t.state.Terminated: // its last entry stays its last
		t.ledger.Barrier(func(error) { done(nil) })
		return
	}
	t.ledger.Append(t.marker(id, marker), func(e Entry, err error) {
		switch {
		case err == nil:
			if x := t.txns.Load(); x != nil && marker == markerAbort {
				x.mu.Lock()
				x.buf.marked(e.Position)
				x.mu.Unlock()
			}
			t.appended(&e)
		case errors.Is(err, ErrClosing):
			done(err)
			return
		default:
			t.failed(err)
		}
		done(nil)
	})
}

func (t *Topic) marker(id TxnID, marker int32) Message {
	o := &t.broker.opts
	now := o.Clock().UnixMilli()
	m := Message{Facts: Facts{Messages: 1, Marker: marker, Txn: id, InTxn: true, Publish: now, Receive: now, Boot: o.Boot}}
	if o.Marker != nil {
		m.Data = o.Marker(&m.Facts)
	}
	return m
}
