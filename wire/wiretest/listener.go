package wiretest

import (
	"net"
	"time"
)

// Listener gives a Peer for each connection that a client makes.
type Listener struct {
	ln      net.Listener
	timeout time.Duration
}

// Listen waits for clients on a free port of the loopback.
func Listen(timeout time.Duration) (*Listener, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return &Listener{ln: ln, timeout: timeout}, nil
}

// Addr returns host and port.
func (l *Listener) Addr() string { return l.ln.Addr().String() }

// Accept waits for the next client.
func (l *Listener) Accept() (*Peer, error) {
	if err := l.ln.(*net.TCPListener).SetDeadline(time.Now().Add(l.timeout)); err != nil {
		return nil, err
	}
	conn, err := l.ln.Accept()
	if err != nil {
		return nil, err
	}
	return NewPeer(conn, l.timeout), nil
}

// Close stops listening; peers stay.
func (l *Listener) Close() error { return l.ln.Close() }
