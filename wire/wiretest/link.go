package wiretest

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"wayside/wire"
)

const (
	// dialTimeout bounds the way to the server.
	dialTimeout = 10 * time.Second
	// slices is in how many writes a second a rate is spread.
	slices = 50
	// rawRead is what raw mode reads at once.
	rawRead = 32 << 10
)

// link is one connection of a client and the one to the server that belongs to it.
// Each direction has a goroutine; the link lives as long as either.
type link struct {
	proxy  *Proxy
	client net.Conn
	ctx    context.Context // ends with the link
	cancel context.CancelFunc

	mu      sync.Mutex // guards what follows
	server  net.Conn   // nil until reached
	severed bool       // the server's side was ended behind the client's back
	mute    bool       // bytes were lost, so that the rest makes no sense
	ended   bool
}

func newLink(p *Proxy, client net.Conn) *link {
	l := &link{proxy: p, client: client}
	l.ctx, l.cancel = context.WithCancel(p.ctx)
	return l
}

func (l *link) run() {
	defer l.proxy.forget(l)
	defer l.close()
	mode := l.hold(func(m Mode) bool { return m == Stall })
	if mode == Blackhole || mode == HalfOpen {
		l.sever() // nothing of it ever arrives
	}
	server, err := l.dial()
	if l.ctx.Err() != nil {
		return
	}
	if err != nil {
		l.proxy.countUnreachable()
		return
	}
	var both sync.WaitGroup
	both.Go(func() { l.pump(Up, l.client, server) })
	if server != nil {
		both.Go(func() { l.pump(Down, server, l.client) })
	}
	both.Wait()
}

// dial reaches the server, unless the link was severed before.
func (l *link) dial() (net.Conn, error) {
	if severed, _ := l.state(); severed {
		return nil, nil
	}
	d := net.Dialer{Timeout: dialTimeout}
	conn, err := d.DialContext(l.ctx, "tcp", l.proxy.options.Target)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		conn.Close()
		return nil, net.ErrClosed
	}
	if l.severed {
		conn.Close()
		return nil, nil
	}
	l.server = conn
	return conn, nil
}

// pump carries one direction until its end, and then passes the end on.
func (l *link) pump(d Direction, from, to net.Conn) {
	next := l.source(from)
	for {
		frame, err := next()
		if len(frame) > 0 && !l.carry(d, frame, to) {
			l.close()
			return
		}
		if err != nil {
			l.passEnd(d, err, to)
			return
		}
	}
}

// source returns a function that reads the next frame or, in raw mode, whatever
// comes. Its result is valid until the next call.
func (l *link) source(from net.Conn) func() ([]byte, error) {
	if l.proxy.options.Raw {
		buf := make([]byte, rawRead)
		return func() ([]byte, error) {
			n, err := from.Read(buf)
			return buf[:n], err
		}
	}
	var buf []byte
	r := wire.NewReader(from, peerLimit)
	return func() ([]byte, error) {
		h, err := r.Next()
		if err != nil {
			return nil, err
		}
		buf, err = readFrame(r, h, buf)
		if err != nil {
			return nil, err
		}
		return buf, nil
	}
}

// carry forwards or loses a frame. It returns false when the link cannot go on.
func (l *link) carry(d Direction, frame []byte, to net.Conn) bool {
	mode := l.hold(func(m Mode) bool { return m == Stall })
	severed, mute := l.state()
	if mode.swallows(d) || severed || mute || l.proxy.loses(d, frame) {
		l.proxy.countFrame(d, len(frame), true)
		if l.proxy.options.Raw {
			l.silence()
		}
		return true
	}
	if err := l.write(to, frame); err != nil {
		// What is written to a side that has just been severed is lost like the rest.
		severed, _ := l.state()
		return severed
	}
	l.proxy.countFrame(d, len(frame), false)
	if watch := l.proxy.options.Watch; watch != nil && !l.proxy.options.Raw {
		watch(d, frame)
	}
	return true
}

// passEnd tells the other side that this one has ended, when it may be told: a
// proper end leaves the other direction open, anything else ends both.
func (l *link) passEnd(d Direction, err error, to net.Conn) {
	severed, mute := l.state()
	if !severed && !mute {
		l.hold(func(m Mode) bool { return m == Stall || m.swallows(d) })
		severed, mute = l.state()
	}
	switch {
	case severed && d == Up:
		l.close()
	case severed || mute:
	case !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		l.reset()
	default:
		if half, ok := to.(interface{ CloseWrite() error }); !ok || half.CloseWrite() != nil {
			l.close()
		}
	}
}

// hold waits as long as the mode is one that blocks, and returns the mode.
func (l *link) hold(blocks func(Mode) bool) Mode {
	for {
		mode, changed := l.proxy.state()
		if !blocks(mode) {
			return mode
		}
		select {
		case <-changed:
		case <-l.ctx.Done():
			return mode
		}
	}
}

// write writes at the rate that is set, looking for a change with each slice.
func (l *link) write(to net.Conn, b []byte) error {
	for len(b) > 0 {
		l.proxy.mu.Lock()
		rate := l.proxy.rate
		l.proxy.mu.Unlock()
		n := len(b)
		if rate > 0 {
			n = min(n, max(rate/slices, 1))
		}
		if _, err := to.Write(b[:n]); err != nil {
			return err
		}
		b = b[n:]
		if rate > 0 {
			select {
			case <-time.After(time.Duration(n) * time.Second / time.Duration(rate)):
			case <-l.ctx.Done():
				return net.ErrClosed
			}
		}
	}
	return nil
}

// enter does what a mode does to a connection that is there. The proxy is locked.
func (l *link) enter(m Mode) {
	switch m {
	case Reset:
		l.reset()
	case HalfOpen:
		l.sever()
	}
}

// sever ends the server's side and swallows the client's from now on.
func (l *link) sever() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.severed = true
	if l.server != nil {
		l.server.Close()
	}
}

// silence swallows both directions from now on; connections stay.
func (l *link) silence() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mute = true
}

func (l *link) state() (severed, mute bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.severed, l.mute
}

func (l *link) close() { l.end(net.Conn.Close) }

func (l *link) reset() { l.end(reset) }

func (l *link) end(how func(net.Conn) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cancel()
	if l.ended {
		return
	}
	l.ended = true
	how(l.client)
	if l.server != nil && !l.severed {
		how(l.server)
	}
}
