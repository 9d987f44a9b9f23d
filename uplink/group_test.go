package uplink

import (
	"sync"
	"testing"
)

// Goroutines come and go while somebody waits for none to be left; with a
// sync.WaitGroup this panics.
func TestAGroupIsWaitedForWhileMoreAreStarted(t *testing.T) {
	g := newGroup()
	stop := make(chan struct{})
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					g.Go(func() {})
				}
			}
		})
	}
	for range 1000 {
		g.Wait()
	}
	close(stop)
	both.Wait()
	ended := false
	g.Go(func() { ended = true })
	if g.Wait(); !ended {
		t.Error("did not wait")
	}
}
