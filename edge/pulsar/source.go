package pulsar

import (
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// source is the reading side of a connection. It notes signs of life and sees to it
// that a frame for which memory was taken arrives in time.
type source struct {
	conn  net.Conn
	heard atomic.Uint64 // reads that brought something
	probe atomic.Pointer[probe]

	// of the reader alone
	pause    time.Duration // how long nothing may come in the middle of a frame
	limit    time.Duration // the rest of the frame has to come within it; 0 between frames
	end      time.Time     // when that is; zero until it has to be waited for
	deadline time.Time     // as set on the connection

	mu      sync.Mutex // for the order of changes to the connection's deadline
	stopped bool       // no read shall wait any more
}

// errStopped ends a reader whose server is stopping.
var errStopped = errors.New("server is stopping")

// Read reads from the connection. Between frames it waits for as long as it takes.
func (r *source) Read(p []byte) (int, error) {
	for {
		if r.limit > 0 {
			r.arm()
		}
		n, err := r.conn.Read(p)
		if n > 0 {
			r.hear()
			return n, nil
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return 0, err
		}
		if r.halted() {
			return 0, errStopped
		}
		if r.limit > 0 || r.deadline.IsZero() {
			return 0, err
		}
		r.set(time.Time{}) // left over from an earlier frame
	}
}

// arm gives the next bytes of a frame the pause, or half of it at least, so that most
// reads need no deadline of their own; and the whole frame its limit. What is set stays
// behind when the frame is done.
func (r *source) arm() {
	now := time.Now()
	if r.end.IsZero() {
		r.end = now.Add(r.limit)
	}
	if r.deadline.Sub(now) >= r.pause/2 && !r.deadline.After(r.end) {
		return
	}
	next := now.Add(r.pause)
	if next.After(r.end) {
		next = r.end
	}
	r.set(next)
}

// begin starts to limit how long reads may take, finish stops it.
func (r *source) begin(limit time.Duration) { r.limit, r.end = limit, time.Time{} }

func (r *source) finish() { r.limit = 0 }

// until sets a deadline that holds whatever comes, for the handshake. The reader's
// own begin ends it.
func (r *source) until(t time.Time) {
	r.set(t)
	r.deadline = time.Time{}
}

func (r *source) set(t time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.stopped {
		r.conn.SetReadDeadline(t) //nolint:errcheck // fails on a closed connection only, which Read reports
		r.deadline = t
	}
}

// stop lets the reader come back from a wait between frames and end. What was begun
// may be finished if it has arrived.
func (r *source) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = true
	r.conn.SetReadDeadline(time.Unix(1, 0)) //nolint:errcheck // as above
}

func (r *source) halted() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stopped
}

func (r *source) hear() {
	r.heard.Add(1)
	if p := r.probe.Load(); p != nil {
		p.answer()
	}
}

// probe is one question for a sign of life.
type probe struct {
	once sync.Once
	came chan struct{} // closed when something was received
	done chan struct{} // closed when alive is known
	live bool
}

func newProbe() *probe {
	return &probe{came: make(chan struct{}), done: make(chan struct{})}
}

func (p *probe) answer() { p.once.Do(func() { close(p.came) }) }
