package wiretest_test

import (
	"testing"
	"time"

	"wayside/wire/pulsarpb"
	"wayside/wire/wiretest"
)

// patience is how long anything may take.
const patience = 10 * time.Second

// stage is a client, the proxy and a server, and the connection through all.
type stage struct {
	t              *testing.T
	proxy          *wiretest.Proxy
	listener       *wiretest.Listener
	client, server *wiretest.Peer
}

func newStage(t *testing.T, raw bool) *stage {
	t.Helper()
	ln, err := wiretest.Listen(patience)
	if err != nil {
		t.Fatal(err)
	}
	p, err := wiretest.StartProxy(wiretest.ProxyOptions{Target: ln.Addr(), Raw: raw})
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{t: t, proxy: p, listener: ln}
	t.Cleanup(func() {
		p.Close()
		ln.Close()
	})
	s.client = s.dial()
	s.server = s.accept()
	return s
}

func (s *stage) dial() *wiretest.Peer {
	s.t.Helper()
	c, err := wiretest.Dial(s.proxy.Addr(), patience)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	return c
}

func (s *stage) accept() *wiretest.Peer {
	s.t.Helper()
	c, err := s.listener.Accept()
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	return c
}

func (s *stage) mode(m wiretest.Mode) {
	s.t.Helper()
	if err := s.proxy.SetMode(m); err != nil {
		s.t.Fatal(err)
	}
}

// say sends a SUCCESS with a number, hear wants one with that number.
func (s *stage) say(p *wiretest.Peer, n uint64) {
	s.t.Helper()
	if err := p.Send(&pulsarpb.CommandSuccess{RequestId: &n}); err != nil {
		s.t.Fatalf("say %d: %v", n, err)
	}
}

func (s *stage) hear(p *wiretest.Peer, n uint64) {
	s.t.Helper()
	got, err := p.Expect(pulsarpb.BaseCommand_SUCCESS)
	if err != nil {
		s.t.Fatalf("hear %d: %v", n, err)
	}
	if got.GetSuccess().GetRequestId() != n {
		s.t.Fatalf("heard %d, want %d", got.GetSuccess().GetRequestId(), n)
	}
}

// lost waits until so many frames were swallowed.
func (s *stage) lost(m wiretest.Mode, up, down int64) {
	s.t.Helper()
	s.eventually(func() bool { return s.proxy.Counts(m).Lost == [2]int64{up, down} }, "%+v", s.proxy.Counts(m))
}

func (s *stage) eventually(is func() bool, format string, args ...any) {
	s.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !is(); <-tick.C {
		if time.Now().After(end) {
			s.t.Fatalf(format, args...)
		}
	}
}
