package pulsar

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"wayside/edge"
	"wayside/wire"
)

// Stages of a session.
const (
	stageStart   int32 = iota
	stageServing       // logged in
)

// session is one client's connection. Its reader goroutine takes frames, looks into
// the tables and hands over to the core what is done in memory; what may wait goes to
// goroutines of the requests. Its writer goroutine empties the outbox, but for what is so
// little that who has delivered it writes it at once (dash.go).
type session struct {
	srv     *Server
	conn    net.Conn
	tls     *tls.Conn // nil on a plain connection
	address string
	ctx     context.Context // ends with the connection
	cancel  context.CancelCauseFunc
	src     source
	slots   *slots
	out     *outbox
	pen     *writer
	stage   atomic.Int32
	held    atomic.Bool   // the reader waits for us, not for the client
	removed chan struct{} // closed when its producers and consumers are out of the core

	requests sync.WaitGroup
	open     chan struct{} // bounds the requests

	// told by CONNECT, fixed from then on
	client   string
	protocol int32
	java     bool
	role     string

	// of the reader alone
	in        *wire.Reader
	producers table[*producer]
	consumers table[*consumer]
	watches   map[uint64]*watch // by the client's ids; nil without any
	resets    []reset           // seeks and unsubscriptions that are being worked on
	loan      edge.Grant        // memory of the frame in hand
	scratch   [512]byte         // the command in hand, if it is short
	send      wire.Send
	again     wire.Redeliver
	positions []edge.Position
}

func newSession(srv *Server, conn net.Conn) *session {
	s := &session{
		srv: srv, conn: conn, address: conn.RemoteAddr().String(),
		src: source{
			conn: conn, pause: srv.opts.FrameTimeout, hurry: srv.opts.Hurry,
			crowded: func() bool { return srv.broker.Budget().Contended(edge.SharePublish) },
		},
		slots:     newSlots(srv.opts.Replies),
		removed:   make(chan struct{}),
		open:      make(chan struct{}, max(srv.opts.Requests, 1)),
		producers: newTable[*producer](srv.opts.Producers, &srv.texts),
		consumers: newTable[*consumer](srv.opts.Consumers, &srv.texts),
	}
	s.tls, _ = conn.(*tls.Conn)
	s.ctx, s.cancel = context.WithCancelCause(srv.run)
	s.out = newOutbox(srv, conn, s.slots)
	s.pen = newWriter(s)
	s.in = wire.NewReader(&s.src, preLogin)
	s.in.SetBuffers(srv.readers)
	return s
}

// serve runs the session until its connection ends. It returns when all its
// goroutines have ended and nothing of it is left in the core.
func (s *session) serve() {
	stop := context.AfterFunc(s.ctx, func() {
		s.conn.Close() //nolint:errcheck // whoever waits on it is told
		s.out.poke()
	})
	defer stop()
	var writing sync.WaitGroup
	writing.Go(s.write)
	s.src.until(time.Now().Add(s.srv.opts.HandshakeTimeout))
	err := s.read()
	if errors.Is(err, errStopped) || errors.Is(err, errRefused) {
		s.windUp()
	}
	s.cancel(err)
	s.in.Release()
	s.loan.Release()
	s.leave()
	s.out.end()
	close(s.removed)
	s.requests.Wait()
	writing.Wait()
	s.explain(context.Cause(s.ctx))
}

// errRefused ends a session whose client was told why it is not let in.
var errRefused = errors.New("refused")

// windUp lets what the client is owed be answered and written. Consumers leave first,
// so that nothing new is delivered.
func (s *session) windUp() {
	for _, c := range s.consumers.entries {
		c.leave()
	}
	if err := s.slots.drain(s.ctx); err != nil {
		return
	}
	s.out.finish()
	<-s.ctx.Done() // the writer ends it
}

// leave takes all producers and consumers out of the core, and lets requests that make
// some undo what they make.
func (s *session) leave() {
	for _, c := range s.consumers.entries {
		c.leave()
		c.hush(s.out)
	}
	for _, p := range s.producers.entries {
		p.leave()
		p.hush(s.out)
	}
	s.consumers.clear()
	s.producers.clear()
}

// fail ends the session. The first reason counts.
func (s *session) fail(err error) { s.cancel(err) }

// explain logs why the session ended, if there is something to tell.
func (s *session) explain(err error) {
	var bad breach
	var foreign *wire.ForeignError
	log := s.srv.opts.Logger
	switch {
	case errors.As(err, &foreign):
		s.complain("connection closed: "+foreign.Error(), nil)
	case errors.As(err, &bad):
		s.complain("connection closed: "+string(bad), nil)
	case errors.Is(err, wire.ErrMalformed), errors.Is(err, wire.ErrTooLarge):
		s.complain("connection closed: malformed data", err)
	case errors.Is(err, errLate):
		s.complain("connection closed: "+errLate.Error(), nil)
	case errors.Is(err, errStuck), errors.Is(err, errMute), errors.Is(err, errHoarding):
		s.complain("connection closed: "+err.Error(), nil)
	case errors.Is(err, errRefused), errors.Is(err, errPanic): // logged where it happened
	case errors.Is(err, io.EOF):
		log.Debug("client left", "peer", s.address, "client", s.client)
	default:
		log.Debug("connection ended", "peer", s.address, "client", s.client, "error", err)
	}
}

func (s *session) complain(what string, err error) {
	args := []any{"peer", s.address}
	if s.client != "" {
		args = append(args, "client", s.client)
	}
	if err != nil {
		args = append(args, "error", err)
	}
	s.srv.complaints.about(host(s.conn), what, args...)
}

// request works on something that may wait on a goroutine of its own. It waits itself
// while too many are at work. What the frame in hand holds of memory is held as long.
func (s *session) request(work func(ctx context.Context)) error {
	return s.requestFor(s.ctx, work)
}

func (s *session) requestFor(ctx context.Context, work func(ctx context.Context)) error {
	select {
	case s.open <- struct{}{}:
	default:
		if err := s.wait(func() error {
			select {
			case s.open <- struct{}{}:
				return nil
			case <-s.ctx.Done():
				return context.Cause(s.ctx)
			}
		}); err != nil {
			return err
		}
	}
	loan := s.loan
	s.loan = edge.Grant{}
	s.requests.Go(func() {
		defer func() {
			loan.Release()
			<-s.open
		}()
		defer s.guard()
		work(ctx)
	})
	return nil
}

// wait marks the reader as held back by us while something waits.
func (s *session) wait(something func() error) error {
	s.held.Store(true)
	defer s.held.Store(false)
	return something()
}

// errPanic ends a session in which a defect of ours came to light.
var errPanic = errors.New("defect")

// guard is the last wall: what panics costs one client its connection and shows as an
// error in the log.
func (s *session) guard() {
	if p := recover(); p != nil {
		s.srv.opts.Logger.Error("defect in the Pulsar front end, connection closed", "peer", s.address, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		s.fail(errPanic)
	}
}
