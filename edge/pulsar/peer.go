package pulsar

import (
	"context"
	"time"
)

// Address is the client's "ip:port".
func (s *session) Address() string { return s.address }

// Principal is the client's role.
func (s *session) Principal() string { return s.role }

// Version is what the client calls itself.
func (s *session) Version() string { return s.client }

// Alive asks the client for a sign of life with a PING. All who ask at the same time
// share one. Without any the session is ended, and false comes back when nothing of it
// is left in the core. A client that we do not read from counts as alive.
func (s *session) Alive(ctx context.Context) bool {
	p, mine := newProbe(), true
	for !s.src.probe.CompareAndSwap(nil, p) {
		if other := s.src.probe.Load(); other != nil {
			p, mine = other, false
			break
		}
	}
	if mine {
		s.srv.wg.Go(func() { s.judge(p) })
	}
	select {
	case <-p.done:
		return p.live
	case <-ctx.Done():
		return true
	}
}

// judge waits for the sign of life that a probe asked for.
func (s *session) judge(p *probe) {
	s.out.askAlive()
	limit := time.NewTimer(s.srv.opts.LivenessTimeout)
	defer limit.Stop()
	select {
	case <-p.came:
		p.live = true
	case <-limit.C:
		p.live = s.held.Load()
	case <-s.ctx.Done():
	}
	if !p.live {
		s.fail(errMute)
		<-s.removed
	}
	s.src.probe.Store(nil)
	close(p.done)
}
