package admin

import (
	"net"
	"sync"
)

// limit makes a listener that has at most n connections open at once. Further ones wait
// in the kernel's queue until one ends; idle ones end by themselves.
func limit(l net.Listener, n int) net.Listener {
	return &limited{Listener: l, room: make(chan struct{}, max(n, 1)), done: make(chan struct{})}
}

type limited struct {
	net.Listener
	room chan struct{}
	once sync.Once
	done chan struct{} // closed with the listener, so that nobody waits for room for ever
}

// Accept waits for room, then for a connection.
func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.room <- struct{}{}:
	case <-l.done:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.room
		return nil, err
	}
	return &counted{Conn: c, free: sync.OnceFunc(func() { <-l.room })}, nil
}

// Close lets a waiting Accept go.
func (l *limited) Close() error {
	l.once.Do(func() { close(l.done) })
	return l.Listener.Close()
}

// counted gives its room back once.
type counted struct {
	net.Conn
	free func()
}

// Close may be called by several.
func (c *counted) Close() error {
	defer c.free()
	return c.Conn.Close()
}
