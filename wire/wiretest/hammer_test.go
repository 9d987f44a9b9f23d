package wiretest_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"wayside/wire/pulsarpb"
	"wayside/wire/wiretest"
)

// TestProxyHammer changes modes at random under load: nothing hangs, nothing is
// left behind, and what arrives is what was said, in order, only with gaps.
func TestProxyHammer(t *testing.T) {
	s := newStage(t, false)
	s.client.Close()
	random := rand.New(rand.NewPCG(1, 2))
	var all sync.WaitGroup
	done := make(chan struct{})
	all.Go(func() { serveCounting(t, s.listener) })
	for range 4 {
		all.Go(func() { talkCounting(s.proxy.Addr(), done) })
	}
	for range 300 {
		m := wiretest.Mode(random.IntN(9))
		if err := s.proxy.SetMode(m); err != nil {
			t.Fatalf("%s: %v", m, err)
		}
		s.proxy.Open()
	}
	s.mode(wiretest.Pass)
	close(done)
	s.listener.Close()
	s.proxy.Close()
	all.Wait()
}

// talkCounting says 1, 2, 3 … on one connection after another.
func talkCounting(addr string, done <-chan struct{}) {
	for n := uint64(1); ; {
		select {
		case <-done:
			return
		default:
		}
		c, err := wiretest.Dial(addr, 100*time.Millisecond)
		if err != nil {
			continue
		}
		for err == nil && n%50 > 0 {
			err = c.Send(&pulsarpb.CommandSuccess{RequestId: &n})
			n++
		}
		n++
		c.Close()
	}
}

// serveCounting wants numbers to grow on each connection.
func serveCounting(t *testing.T, ln *wiretest.Listener) {
	var all sync.WaitGroup
	defer all.Wait()
	for {
		p, err := ln.Accept()
		if err != nil {
			return
		}
		all.Go(func() {
			defer p.Close()
			for last := uint64(0); ; {
				got, err := p.Next()
				if err != nil {
					return
				}
				if n := got.GetSuccess().GetRequestId(); n <= last {
					t.Errorf("%d behind %d", n, last)
				} else {
					last = n
				}
			}
		})
	}
}
