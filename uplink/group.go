package uplink

import "sync"

// group counts goroutines. Unlike a sync.WaitGroup it may be waited for while more are
// started, even when none is left: a delivery starts a forwarder's goroutine at any time.
type group struct {
	mu    sync.Mutex
	n     int
	empty sync.Cond
}

// Go runs f on a goroutine of the group.
func (g *group) Go(f func()) {
	g.mu.Lock()
	g.n++
	g.mu.Unlock()
	go func() {
		defer g.done()
		f()
	}()
}

func (g *group) done() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.n--; g.n == 0 {
		g.empty.Broadcast()
	}
}

// Wait returns when none is left, which need not last.
func (g *group) Wait() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.n > 0 {
		g.empty.Wait()
	}
}

func newGroup() *group {
	g := &group{}
	g.empty.L = &g.mu
	return g
}
