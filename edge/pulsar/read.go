package pulsar

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"wayside/edge"
	"wayside/wire"
)

// errLate ends a session whose login or frame did not come in time.
var errLate = errors.New("client was too slow")

// read takes frames until the connection ends, and says why it did.
func (s *session) read() (err error) {
	defer func() {
		if p := recover(); p != nil {
			func() {
				defer s.guard()
				panic(p)
			}()
			err = errPanic
		}
	}()
	for {
		h, err := s.in.Next()
		if err == nil {
			err = s.frame(h)
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return fmt.Errorf("%w: %w", errLate, err)
		}
		if err != nil {
			return err
		}
	}
}

// frame handles one frame.
func (s *session) frame(h wire.Header) error {
	c := commandFor(h.Type)
	s.src.lulls.took(c.payload)
	switch {
	case c.refusal == unknownToUs: // its number is the client's choice, and no part of what is said but once
		return fmt.Errorf("%s %s: %w", h.Type, c.refusal, wire.ErrMalformed)
	case c.refusal != "":
		return breach(fmt.Sprintf("%s %s", h.Type, c.refusal))
	case s.stage.Load() != stageServing && !c.early:
		return breach(fmt.Sprintf("%s before login", h.Type))
	case h.Command > maxCommand:
		return fmt.Errorf("%s of %d bytes, limit %d: %w", h.Type, h.Command, maxCommand, wire.ErrTooLarge)
	}
	if c.payload {
		return s.handleSend(h)
	}
	if c.answered {
		if err := s.takeSlot(); err != nil {
			return err
		}
	}
	cmd, err := s.command(h.Command)
	switch {
	case err != nil && c.answered:
		s.slots.give(1) // nobody answers what did not come
	case err != nil:
	case c.scan != nil:
		err = c.scan(s, cmd)
	default:
		err = s.decoded(h, cmd, c)
	}
	s.loan.Release()
	s.loan = edge.Grant{}
	return err
}

// decoded handles a command that is read by the generated code.
func (s *session) decoded(h wire.Header, cmd []byte, c command) error {
	m, err := wire.Decode(cmd)
	if err != nil {
		return err
	}
	if m.GetType() != h.Type { // said twice, in different ways
		return fmt.Errorf("%s that is %s too: %w", h.Type, m.GetType(), wire.ErrMalformed)
	}
	return c.handle(s, m)
}

// command reads the command of the frame in hand. It stays valid until the next one.
func (s *session) command(size int) ([]byte, error) {
	switch {
	case size <= len(s.scratch):
		buf := s.scratch[:size]
		return buf, s.fill(buf)
	case s.stage.Load() != stageServing:
		return s.slowly(size)
	}
	if err := s.takeMemory(2 * size); err != nil { // twice, since it is going to be decoded
		return nil, err
	}
	buf := make([]byte, size)
	return buf, s.fill(buf)
}

// shortLogin is what each may send who is not logged in, in bytes. Longer logins, with
// large tokens, share what there is for them.
const shortLogin = 4 << 10

// slowly reads a command of somebody who is not logged in. Memory is made only for
// what has come; the share of publishers is not touched.
func (s *session) slowly(size int) ([]byte, error) {
	if size > shortLogin {
		if !s.srv.logins.take(2 * int64(size)) { // twice, since it grows
			return nil, breach("too many long logins at once")
		}
		defer s.srv.logins.take(-2 * int64(size))
	}
	buf := make([]byte, 0, len(s.scratch))
	for len(buf) < size {
		n := min(size-len(buf), max(len(buf), len(s.scratch)))
		buf = append(buf, make([]byte, n)...)
		if err := s.in.ReadBody(buf[len(buf)-n:]); err != nil {
			return nil, err
		}
	}
	return buf, nil
}

// fill reads bytes of the frame in hand. After the login they have to come in time;
// before, the handshake's deadline holds.
func (s *session) fill(buf []byte) error {
	if s.stage.Load() != stageServing {
		return s.in.ReadBody(buf)
	}
	s.src.begin(s.srv.opts.FrameTimeout + time.Duration(len(buf))*time.Second/slowestRate)
	defer s.src.finish()
	return s.in.ReadBody(buf)
}

// takeMemory takes a grant for the frame in hand. While there is none, this client is
// not read from: that is what holds it back.
func (s *session) takeMemory(n int) error {
	budget := s.srv.broker.Budget()
	grant, ok := budget.TryTake(edge.SharePublish, int64(n))
	if ok {
		s.loan = grant
		return nil
	}
	return s.wait(func() (err error) {
		s.loan, err = budget.Take(s.ctx, edge.SharePublish, int64(n))
		return err
	})
}

// takeRoom takes memory for an answer of so many bytes, of the share of what waits for
// clients. While there is none, this client is not read from.
func (s *session) takeRoom(n int) (grant edge.Grant, err error) {
	err = s.wait(func() (err error) {
		grant, err = s.srv.broker.Budget().Take(s.ctx, edge.ShareRead, int64(n))
		return err
	})
	return grant, err
}

// takeSlot takes the slot of an answer. While there is none, this client is not read
// from; nor is one that has gone, whatever it has sent before.
func (s *session) takeSlot() error {
	if s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	if s.slots.tryTake() {
		return nil
	}
	return s.wait(func() error { return s.slots.take(s.ctx) })
}
