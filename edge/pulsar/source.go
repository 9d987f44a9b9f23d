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

	crowded func() bool // whether others wait for the memory that frames take

	// of the reader alone
	lulls    lulls
	pause    time.Duration // how long nothing may come in the middle of a frame
	hurry    time.Duration // how long it may be slower than the least rate when it is crowded
	limit    time.Duration // the rest of the frame has to come within it; 0 between frames
	begun    time.Time     // when it had to be waited for first; zero until then
	last     time.Time     // when something came
	got      int           // bytes since the last look at the clock
	looked   time.Time     // when it was looked how fast it comes
	seen     int           // bytes since then
	deadline time.Time     // as set on the connection

	mu      sync.Mutex // for the order of changes to the connection's deadline
	stopped bool       // no read shall wait any more
}

// errStopped ends a reader whose server is stopping.
var errStopped = errors.New("server is stopping")

// Read reads from the connection. Between frames it waits for as long as it takes.
func (r *source) Read(p []byte) (int, error) {
	for {
		if r.limit > 0 && !r.arm() {
			return 0, os.ErrDeadlineExceeded
		}
		if r.limit == 0 && r.lulls.due(time.Now) {
			time.Sleep(lull)
		}
		n, err := r.conn.Read(p)
		if n > 0 {
			r.got += n
			r.hear()
			return n, nil
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return 0, err
		}
		switch {
		case r.halted():
			return 0, errStopped
		case r.limit > 0: // arm says whether it was long enough
		case r.deadline.IsZero():
			return 0, err
		default:
			r.set(time.Time{}) // left over from an earlier frame
		}
	}
}

// arm gives the next bytes of a frame some time, or reports that it has had enough: the
// pause without anything, its limit in all, or a while at less than the least rate when
// others wait. Half of that while at least is set, so that most reads need no deadline of
// their own; what is set stays behind when the frame is done.
func (r *source) arm() bool {
	now := time.Now()
	if r.begun.IsZero() {
		r.begun, r.last, r.looked, r.got, r.seen = now, now, now, 0, 0
	}
	if r.got > 0 {
		r.last = now
	}
	r.seen += r.got
	r.got = 0
	end := r.begun.Add(r.limit)
	if pause := r.last.Add(r.pause); pause.Before(end) {
		end = pause
	}
	if !now.Before(end) || r.hoards(now) {
		return false
	}
	next := now.Add(r.hurry)
	if next.After(end) {
		next = end
	}
	if r.deadline.Sub(now) < r.hurry/2 || r.deadline.After(end) {
		r.set(next)
	}
	return true
}

// hoards looks, every now and then, whether the frame comes too slowly while others wait
// for what it holds.
func (r *source) hoards(now time.Time) bool {
	took := now.Sub(r.looked)
	if took < r.hurry {
		return false
	}
	slow := tooSlow(r.seen, took)
	r.looked, r.seen = now, 0
	return slow && r.crowded()
}

// tooSlow reports whether so many bytes in a time are less than the least rate.
func tooSlow(bytes int, took time.Duration) bool {
	return time.Duration(bytes)*time.Second/slowestRate < took
}

// begin starts to limit how long reads may take, finish stops it.
func (r *source) begin(limit time.Duration) { r.limit, r.begun = limit, time.Time{} }

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
