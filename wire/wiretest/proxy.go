package wiretest

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"wayside/wire"
)

// ProxyOptions say where a Proxy stands.
type ProxyOptions struct {
	Target string // host:port of the server
	Listen string // host:port for clients; empty means a free port of the loopback
	// Raw forwards bytes as they come, for protocols that are not Pulsar's or not
	// readable, as TLS is not. Frames cannot be told then: Swallow and Watch have
	// no effect, and a connection of which bytes were swallowed stays mute.
	Raw bool
	// Watch is told every frame after it was forwarded. It may be called by several
	// goroutines and must not keep the bytes; nil means nobody.
	Watch func(d Direction, frame []byte)
}

// Proxy stands between clients and a server and meddles on command. All methods
// may be called at any time by any goroutine.
type Proxy struct {
	options ProxyOptions
	addr    string // fixed at start, so that Refuse can be taken back
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex // guards what follows
	ln      net.Listener
	mode    Mode
	rate    int           // bytes a second per connection and direction, 0 none
	changed chan struct{} // closed when mode changes
	links   map[*link]struct{}
	counts  [modes]Counts

	judge   sync.Mutex // guards what follows; one frame is judged at a time
	swallow func(Direction, wire.Frame) bool
}

// StartProxy starts a proxy in mode Pass. It goes on until Close.
func StartProxy(o ProxyOptions) (*Proxy, error) {
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	ln, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return nil, err
	}
	p := &Proxy{
		options: o, addr: ln.Addr().String(),
		changed: make(chan struct{}), links: map[*link]struct{}{},
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listenLocked(ln)
	return p, nil
}

// Addr returns the host:port to give to clients. It stays the same in all modes.
func (p *Proxy) Addr() string { return p.addr }

// SetMode changes what happens to connections, from now on. Leaving Refuse can
// fail when somebody else took the port meanwhile.
func (p *Proxy) SetMode(m Mode) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil {
		return net.ErrClosed
	}
	if m == Refuse && p.ln != nil {
		err := p.ln.Close()
		p.ln = nil
		if err != nil {
			return err
		}
	}
	if m != Refuse && p.ln == nil {
		ln, err := net.Listen("tcp", p.addr)
		if err != nil {
			return err
		}
		p.listenLocked(ln)
	}
	p.mode = m
	close(p.changed)
	p.changed = make(chan struct{})
	for l := range p.links {
		l.enter(m)
	}
	return nil
}

// Mode returns the present mode.
func (p *Proxy) Mode() Mode {
	m, _ := p.state()
	return m
}

// SetRate slows every connection to so many bytes a second in each direction; 0
// takes it back.
func (p *Proxy) SetRate(bytesPerSecond int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rate = bytesPerSecond
}

// Swallow has each frame judged, one at a time, and loses those for which lose
// returns true; the connection goes on. The frame's bytes are only valid during
// the call. nil takes it back.
func (p *Proxy) Swallow(lose func(Direction, wire.Frame) bool) {
	p.judge.Lock()
	defer p.judge.Unlock()
	p.swallow = lose
}

// ResetAll resets the present connections, whatever the mode, and returns how many
// there were.
func (p *Proxy) ResetAll() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.reset()
	}
	return len(p.links)
}

// Open returns how many connections there are at present.
func (p *Proxy) Open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.links)
}

// Close ends all connections and waits for every goroutine.
func (p *Proxy) Close() error {
	p.cancel()
	p.mu.Lock()
	var err error
	if p.ln != nil {
		err = p.ln.Close()
		p.ln = nil
	}
	for l := range p.links {
		l.close()
	}
	p.mu.Unlock()
	p.running.Wait()
	return err
}

func (p *Proxy) listenLocked(ln net.Listener) {
	p.ln = ln
	p.running.Go(func() { p.accept(ln) })
}

func (p *Proxy) accept(ln net.Listener) {
	for {
		conn, err := ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // the client gave up, or files have run out: try again
			select {
			case <-time.After(10 * time.Millisecond):
				continue
			case <-p.ctx.Done():
				return
			}
		}
		p.admit(conn)
	}
}

// admit starts a link for a new connection, or ends it at once.
func (p *Proxy) admit(conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts[p.mode].Accepted++
	switch {
	case p.ctx.Err() != nil, p.mode == AcceptClose:
		conn.Close()
	case p.mode == Reset:
		reset(conn)
	default:
		l := newLink(p, conn)
		p.links[l] = struct{}{}
		p.running.Go(l.run)
	}
}

// state returns the mode and a channel that is closed when it changes.
func (p *Proxy) state() (Mode, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mode, p.changed
}

func (p *Proxy) forget(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

// loses judges a frame by mode, link and Swallow.
func (p *Proxy) loses(d Direction, frame []byte) bool {
	p.judge.Lock()
	defer p.judge.Unlock()
	if p.swallow == nil || p.options.Raw {
		return false
	}
	f, err := wire.SplitFrame(frame)
	return err == nil && p.swallow(d, f)
}
