package pulsar

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"wayside/edge"
	"wayside/wire"
)

// Server speaks the Pulsar protocol to clients on behalf of a Broker.
type Server struct {
	broker *edge.Broker
	opts   Options
	boot   uint64

	url, urlTLS   string // what LOOKUP answers
	proxied       bool   // clients stay on the address that they dialled
	deliveryBytes int64
	readers       *wire.Buffers
	writers       *buffers
	pieces        sync.Pool // of queue
	batches       sync.Pool
	acks          sync.Pool
	listing       turn         // to list topics
	watching      atomic.Int64 // watchers of all sessions
	texts         texts        // of producers and consumers
	logins        texts        // of those who are logging in
	complaints    complaints
	coordinating  atomic.Bool     // somebody has asked for the transaction coordinator
	run           context.Context // ends when connections are to be cut
	cut           context.CancelCauseFunc
	wg            sync.WaitGroup // sessions

	mu        sync.Mutex
	listeners map[net.Listener]struct{}
	sessions  map[*session]struct{}
	closing   bool
}

// ErrServerClosed is what Serve returns after Close.
var ErrServerClosed = errors.New("server closed")

// New makes a server for a broker, which stays its caller's. It fails on an address
// that cannot be advertised.
func New(broker *edge.Broker, o Options) (*Server, error) {
	s := &Server{
		broker: broker, opts: o, boot: broker.Options().Boot,
		readers:   wire.NewBuffers(o.Buffers, bufferSize),
		writers:   newBuffers(o.Buffers),
		pieces:    sync.Pool{New: func() any { return new(piece) }},
		batches:   sync.Pool{New: func() any { return new(batch) }},
		acks:      sync.Pool{New: func() any { return new(acks) }},
		listing:   make(turn, 1),
		listeners: map[net.Listener]struct{}{}, sessions: map[*session]struct{}{},
	}
	s.complaints.log = o.Logger
	s.run, s.cut = context.WithCancelCause(context.Background())
	s.deliveryBytes = int64(o.DeliveryBytes)
	if s.deliveryBytes <= 0 {
		_, limit := broker.Budget().Usage(edge.ShareRead)
		s.deliveryBytes = min(max(limit/8, 64<<10), 1<<20)
	}
	s.texts.limit = max(s.deliveryBytes, 1<<20)
	s.logins.limit = max(s.deliveryBytes, 1<<20)
	return s, s.advertise()
}

// Serve accepts clients on l until Close or until l fails, and closes l. It may be
// called for several listeners, which may be those of TLS.
func (s *Server) Serve(l net.Listener) error {
	defer l.Close() //nolint:errcheck // it was only read from
	if !s.watch(l) {
		return ErrServerClosed
	}
	pause := acceptPause
	for {
		conn, err := l.Accept()
		if err == nil {
			pause = acceptPause
			s.welcome(conn)
			continue
		}
		if s.stopping() {
			return ErrServerClosed
		}
		if errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("accept: %w", err)
		}
		// Out of descriptors, most likely: others will be closed.
		s.complaints.about("", "cannot accept connections", "error", err)
		select {
		case <-time.After(pause):
			pause = min(2*pause, maxAcceptPause)
		case <-s.run.Done():
		}
	}
}

// Pauses after a failed accept.
const (
	acceptPause    = 5 * time.Millisecond
	maxAcceptPause = time.Second
)

// watch notes a listener for Close.
func (s *Server) watch(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return false
	}
	s.listeners[l] = struct{}{}
	return true
}

func (s *Server) stopping() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing
}

// welcome starts the session of a new connection, or closes it if there are too many.
func (s *Server) welcome(conn net.Conn) {
	s.mu.Lock()
	full := len(s.sessions) >= s.opts.Connections
	if full || s.closing {
		s.mu.Unlock()
		conn.Close() //nolint:errcheck // nobody is told
		if full {
			s.complaints.about(host(conn), "too many connections, one more closed", "limit", s.opts.Connections)
		}
		return
	}
	c := newSession(s, conn)
	s.sessions[c] = struct{}{}
	s.wg.Go(func() {
		c.serve()
		s.mu.Lock()
		delete(s.sessions, c)
		s.mu.Unlock()
	})
	s.mu.Unlock()
}

// Sessions counts the connected clients.
func (s *Server) Sessions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions)
}

// Close stops in order: no new clients, nothing more is read, what clients are owed is
// answered and written, connections are closed. When ctx ends first the rest is cut.
// It returns when all goroutines have ended, with ctx's error if they were cut.
func (s *Server) Close(ctx context.Context) error {
	s.broker.Stopping()
	s.mu.Lock()
	s.closing = true
	for l := range s.listeners {
		l.Close() //nolint:errcheck // it was only read from
	}
	for c := range s.sessions {
		c.src.stop()
	}
	s.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		s.wg.Wait()
		close(ended)
	}()
	defer s.cut(ErrServerClosed)
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
	}
	s.cut(ErrServerClosed)
	<-ended
	return fmt.Errorf("close clients: %w", ctx.Err())
}

func host(conn net.Conn) string {
	h, _, err := net.SplitHostPort(conn.RemoteAddr().String())
	if err != nil {
		return conn.RemoteAddr().String()
	}
	return h
}
