package edge

import (
	"fmt"
	"time"
)

// How producers come to their end: by their client, by us, or by a write that failed.

// failed runs on the store's goroutine after an append that failed: all producers of
// the topic are closed, so that nothing overtakes what failed, and the ledger may go on.
func (t *Topic) failed(cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failing {
		return
	}
	t.failing = true
	t.arrive(Latest) // of what has failed something may be found
	t.ledger.Recover(func(error) {
		t.mu.Lock()
		t.failing = false
		t.mu.Unlock()
	})
	for _, s := range t.sequences {
		s.fallBack()
	}
	all := t.allProducersLocked()
	t.queue, t.owner = nil, nil
	t.tellFailureLocked(len(all), cause)
	for _, p := range all {
		p.reason = fmt.Errorf("%w: %w", ErrStorage, cause)
		t.removeProducerLocked(p)
		if !p.unborn {
			p.end.Closed(p.reason)
		}
	}
}

// Close ends the producer for its client. done runs behind all its answers, and so the
// end waits for what is held back. With nil for done the client is gone: what is held
// back is dropped.
func (p *Producer) Close(done func()) {
	t := p.topic
	t.mu.Lock()
	defer t.mu.Unlock()
	if done != nil && p.held > 0 && !p.leaving {
		p.leaving = true
		t.throttle.Load().put(held{p: p, left: done})
		return
	}
	p.closeLocked(done)
}

func (p *Producer) closeLocked(done func()) {
	t := p.topic
	t.removeProducerLocked(p)
	if done == nil {
		done = func() {}
	}
	t.ledger.Barrier(func(error) { done() })
}

// kickLocked closes a producer from our side, behind the answers that it is owed. Whoever
// is still adding it has the reason as its error.
func (t *Topic) kickLocked(p *Producer, reason error) {
	if p.closed {
		return
	}
	p.reason = reason
	t.removeProducerLocked(p)
	if !p.unborn {
		t.ledger.Barrier(func(error) { p.end.Closed(reason) })
	}
}

// kickAllLocked closes every producer; none that waits takes a turn.
func (t *Topic) kickAllLocked(reason error) {
	all := t.allProducersLocked()
	t.queue, t.owner = nil, nil
	for _, p := range all {
		t.kickLocked(p, reason)
	}
}

// removeProducerLocked takes a producer out of the topic and lets the next in the
// queue become exclusive.
func (t *Topic) removeProducerLocked(p *Producer) {
	if p.closed {
		return
	}
	p.closed = true
	t.used = time.Now()
	if p.held > 0 {
		t.throttle.Load().drop(p)
	}
	if p.seq != nil {
		p.seq.let()
	}
	if t.producers[p.name] == p {
		delete(t.producers, p.name)
	}
	for i, q := range t.queue {
		if q == p {
			t.queue = append(t.queue[:i], t.queue[i+1:]...)
			break
		}
	}
	if t.owner == p {
		t.owner = nil
	}
	t.nextOwnerLocked()
}

func (t *Topic) allProducersLocked() []*Producer {
	all := make([]*Producer, 0, len(t.producers)+len(t.queue))
	for _, p := range t.producers {
		all = append(all, p)
	}
	return append(all, t.queue...)
}
