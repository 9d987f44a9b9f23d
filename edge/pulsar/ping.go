package pulsar

// PING, PONG (protocol version 1 on).
//
// PING is answered by PONG at any time, before the login too. The broker sends its own
// in a steady interval once the client is logged in (before, the Go and C++ clients
// would take it for a failed login), and to ask for a sign of life. Everything that is
// received counts as one, not only PONG. A client from which nothing came in a whole
// interval after a PING is closed, except while the broker itself does not read from it.
//
// Deviations: none.

import (
	"errors"
	"sync/atomic"
	"time"

	"wayside/wire"
	"wayside/wire/pulsarpb"
)

// errMute ends a session whose client shows no sign of life.
var errMute = errors.New("client shows no sign of life")

func (s *session) handlePing(*pulsarpb.BaseCommand) error {
	s.out.frame([]byte(wire.PongFrame))
	return nil
}

func (s *session) handlePong(*pulsarpb.BaseCommand) error { return nil }

// write is the goroutine that writes the outbox and keeps the connection alive.
func (s *session) write() {
	defer s.guard()
	w := s.pen
	defer w.quit()
	var due atomic.Bool // one channel for all that wakes it: to wait on several costs half as much as a write
	tick := time.AfterFunc(s.srv.opts.KeepAlive, func() { due.Store(true); s.out.poke() })
	defer tick.Stop()
	var life vital
	for range s.out.wake {
		if s.ctx.Err() != nil {
			return
		}
		if due.Swap(false) {
			if !s.alive(&life) {
				s.fail(errMute)
				return
			}
			tick.Reset(s.srv.opts.KeepAlive)
		}
		if err := w.rounds(); err != nil {
			s.fail(err)
			return
		}
	}
}

// vital is what was last known of a client's life.
type vital struct {
	asked bool
	heard uint64 // when it was asked
}

// alive asks for the next sign of life and reports whether there was one since the
// last time it did.
func (s *session) alive(v *vital) bool {
	if s.stage.Load() != stageServing {
		return true // the handshake's deadline rules
	}
	heard := s.src.heard.Load()
	if v.asked && v.heard == heard && !s.held.Load() {
		return false
	}
	v.asked, v.heard = true, heard
	s.out.askAlive()
	return true
}
