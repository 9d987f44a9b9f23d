package edge

import (
	"context"
	"sync"
)

// holdRoom bounds what all topics hold back together to a quarter of the publish memory,
// and one send of each connection that was about to be read: so those below their rates
// find some, for large messages too. Who is beyond it is not read from.
type holdRoom struct {
	mu    sync.Mutex // leaf
	used  int64
	limit int64
	freed chan struct{} // closed when something has gone; nil when nobody waits
}

func (r *holdRoom) add(n int64) {
	r.mu.Lock()
	r.used += n
	r.mu.Unlock()
}

func (r *holdRoom) fits() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.used < r.limit
}

// watch gives a channel that is closed when something goes.
func (r *holdRoom) watch() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.freed == nil {
		r.freed = make(chan struct{})
	}
	return r.freed
}

// tell wakes those who wait.
func (r *holdRoom) tell() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.freed != nil {
		close(r.freed)
		r.freed = nil
	}
}

// TryRoom reports whether another send of the producer may be read: always, unless
// sends of its topic are held back and all that is held takes its part of the publish
// memory.
func (p *Producer) TryRoom() bool {
	h := p.topic.throttle.Load()
	return h == nil || h.count.Load() == 0 || p.topic.broker.holding.fits()
}

// Room waits until TryRoom or the producer's end. The error is the context's.
func (p *Producer) Room(ctx context.Context) error {
	room := &p.topic.broker.holding
	for {
		freed := room.watch()
		if p.TryRoom() || p.isClosed() {
			return nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (p *Producer) isClosed() bool {
	p.topic.mu.Lock()
	defer p.topic.mu.Unlock()
	return p.closed
}
