package edge

import (
	"context"
	"fmt"
)

// AccessMode is how a producer wants to have its topic (protocol 3.10).
type AccessMode int

// The modes, numbered as on the wire.
const (
	AccessShared AccessMode = iota
	AccessExclusive
	AccessWait
	AccessFence
)

// String is the name that stats show.
func (m AccessMode) String() string {
	return [...]string{"Shared", "Exclusive", "WaitForExclusive", "ExclusiveWithFencing"}[m]
}

// accessLocked admits a producer by its mode, or puts it into the queue. becoming is
// set when it is to be the owner, whose epoch has to be written first.
func (t *Topic) accessLocked(p *Producer) error {
	taken := t.owner != nil || len(t.queue) > 0
	switch p.opts.Access {
	case AccessShared:
		if taken {
			return fmt.Errorf("%w: Topic has an existing exclusive producer: %s", ErrProducerBusy, t.ownerName())
		}
		t.producers[p.name] = p
		p.epoch = t.state.Epoch - 1 // shared ones are told it too (watched on 4.0.7)
		return nil
	case AccessExclusive:
		if taken {
			return fmt.Errorf("%w: Topic has an existing exclusive producer: %s", ErrFenced, t.ownerName())
		}
		if len(t.producers) > 0 {
			return fmt.Errorf("%w: Topic has existing shared producers", ErrFenced)
		}
	case AccessWait:
		if taken || len(t.producers) > 0 {
			t.queue = append(t.queue, p)
			return nil
		}
	case AccessFence:
		if err := t.epochAllowsLocked(p); err != nil {
			return err
		}
		t.kickAllLocked(fmt.Errorf("%w: Fenced out", ErrFenced))
	default:
		return fmt.Errorf("%w: unknown access mode %d", ErrBadRequest, int(p.opts.Access))
	}
	return t.claimLocked(p)
}

// ownerName is what 4.0.7 calls the owner, "null" while there are only waiters.
func (t *Topic) ownerName() string {
	if t.owner == nil {
		return "null"
	}
	return t.owner.name
}

func (t *Topic) epochAllowsLocked(p *Producer) error {
	if current := t.state.Epoch - 1; p.opts.HasTopicEpoch && p.opts.TopicEpoch < current {
		return fmt.Errorf("%w: Topic epoch has already moved. Current epoch: %d, Producer epoch: %d", ErrFenced, current, p.opts.TopicEpoch)
	}
	return nil
}

// claimLocked makes a producer the owner; become has to follow outside the lock.
func (t *Topic) claimLocked(p *Producer) error {
	if err := t.epochAllowsLocked(p); err != nil {
		return err
	}
	if p.opts.HasTopicEpoch {
		t.state.Epoch = p.opts.TopicEpoch + 1
	} else {
		t.state.Epoch++
	}
	p.epoch = t.state.Epoch - 1
	p.becoming = true
	t.owner = p
	t.producers[p.name] = p
	return nil
}

// become writes the new epoch; the owner may publish once it is durable.
func (t *Topic) become(ctx context.Context, p *Producer) error {
	err := t.saveState(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	p.becoming, p.unborn = false, false
	if p.reason != nil {
		return p.reason
	}
	if err != nil {
		t.removeProducerLocked(p)
	}
	return err
}

// nextOwnerLocked lets the first of the queue become the owner.
func (t *Topic) nextOwnerLocked() {
	if t.owner != nil || t.closed != nil || t.state.Terminated || len(t.producers) > 0 {
		return
	}
	for len(t.queue) > 0 {
		p := t.queue[0]
		t.queue = t.queue[1:]
		if err := t.claimLocked(p); err != nil {
			t.kickLocked(p, err)
			continue
		}
		t.ledger.SetProperties(t.state.encode(), func(err error) { t.succeed(p, err) })
		return
	}
}

// succeed finishes, on the store's goroutine, the turn of a producer that waited.
func (t *Topic) succeed(p *Producer, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p.becoming = false
	switch {
	case p.closed: // told already
	case err != nil:
		t.kickLocked(p, fmt.Errorf("%w: %w", ErrStorage, err))
	default:
		p.end.Ready(p.epoch)
	}
}
