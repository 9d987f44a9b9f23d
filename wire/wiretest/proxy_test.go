package wiretest_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"wayside/wire"
	"wayside/wire/pulsarpb"
	"wayside/wire/wiretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestProxyPass(t *testing.T) {
	for _, raw := range []bool{false, true} {
		s := newStage(t, raw)
		for i := range uint64(100) {
			s.say(s.client, i)
			s.say(s.server, i)
			s.hear(s.server, i)
			s.hear(s.client, i)
		}
		if c := s.proxy.Counts(wiretest.Pass); !raw && c.Frames != [2]int64{100, 100} || c.Bytes[0] != c.Bytes[1] || c.Accepted != 1 {
			t.Errorf("%+v", c)
		}
		// An end goes one way; the other direction stays open.
		if err := s.client.Conn().(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if err := s.server.ExpectClose(); err != nil {
			t.Error(err)
		}
		s.say(s.server, 7)
		s.hear(s.client, 7)
		s.server.Close()
		if err := s.client.ExpectClose(); err != nil {
			t.Error(err)
		}
		s.eventually(func() bool { return s.proxy.Open() == 0 }, "link stays")
	}
}

func TestProxyRefuse(t *testing.T) {
	s := newStage(t, false)
	s.mode(wiretest.Refuse)
	if c, err := net.Dial("tcp", s.proxy.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("%v, %v", c, err)
	}
	s.say(s.client, 1)
	s.hear(s.server, 1)
	s.mode(wiretest.Pass)
	c := s.dial()
	s.say(c, 2)
	s.hear(s.accept(), 2)
}

func TestProxyReset(t *testing.T) {
	s := newStage(t, false)
	s.say(s.client, 1)
	s.hear(s.server, 1)
	s.mode(wiretest.Reset)
	for name, p := range map[string]*wiretest.Peer{"client": s.client, "server": s.server} {
		if _, err := p.Next(); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%s: %v", name, err)
		}
	}
	late, err := wiretest.Dial(s.proxy.Addr(), patience)
	if err == nil { // else it was reset while connecting
		defer late.Close()
		_, err = late.Next()
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("new connection: %v", err)
	}
	s.mode(wiretest.Pass)
	c := s.dial()
	s.say(c, 2)
	s.hear(s.accept(), 2)
	for end := time.Now().Add(patience); s.proxy.Open() > 1 && time.Now().Before(end); {
		runtime.Gosched() // those that were reset are on their way out
	}
	if n := s.proxy.ResetAll(); n != 1 {
		t.Errorf("%d connections reset", n)
	}
	if _, err := c.Next(); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("ResetAll: %v", err)
	}
}

func TestProxyAcceptClose(t *testing.T) {
	s := newStage(t, false)
	s.mode(wiretest.AcceptClose)
	if _, err := s.dial().Next(); err != io.EOF && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("new connection: %v", err)
	}
	s.say(s.client, 1)
	s.hear(s.server, 1)
	if c := s.proxy.Counts(wiretest.AcceptClose); c.Accepted != 1 {
		t.Errorf("%+v", c)
	}
}

// TestProxySwallowing: what is said in a mode that swallows never arrives, what
// comes after it does.
func TestProxySwallowing(t *testing.T) {
	for _, c := range []struct {
		mode     wiretest.Mode
		up, down bool // swallowed
	}{
		{wiretest.Blackhole, true, true}, {wiretest.SwallowUp, true, false}, {wiretest.SwallowDown, false, true},
	} {
		s := newStage(t, false)
		s.mode(c.mode)
		s.say(s.client, 1)
		s.say(s.server, 1)
		if !c.up {
			s.hear(s.server, 1)
		}
		if !c.down {
			s.hear(s.client, 1)
		}
		count := map[bool]int64{true: 1}
		s.lost(c.mode, count[c.up], count[c.down])
		s.mode(wiretest.Pass)
		s.say(s.client, 2)
		s.say(s.server, 2)
		s.hear(s.server, 2)
		s.hear(s.client, 2)
	}
}

// TestProxyBlackholeEnd: an end is not told either, until the mode changes.
func TestProxyBlackholeEnd(t *testing.T) {
	s := newStage(t, false)
	s.mode(wiretest.Blackhole)
	s.say(s.client, 1)
	s.client.Close()
	s.lost(wiretest.Blackhole, 1, 0)
	s.say(s.server, 1)
	s.lost(wiretest.Blackhole, 1, 1)
	if err := s.server.ExpectQuiet(50 * time.Millisecond); err != nil {
		t.Error(err)
	}
	lonely := s.dial() // comes nowhere, is not told
	s.say(lonely, 1)
	s.lost(wiretest.Blackhole, 2, 1)
	s.mode(wiretest.Pass)
	if err := s.server.ExpectClose(); err != nil {
		t.Error(err)
	}
	late := s.dial()
	s.say(late, 5)
	s.hear(s.accept(), 5) // the next that the server gets, behind the first
	s.say(lonely, 2)
	s.eventually(func() bool { return s.proxy.Counts(wiretest.Pass).Lost[wiretest.Up] == 1 }, "not swallowed")
}

func TestProxyHalfOpen(t *testing.T) {
	s := newStage(t, false)
	s.mode(wiretest.HalfOpen)
	if err := s.server.ExpectClose(); err != nil {
		t.Error(err)
	}
	s.say(s.client, 1)
	s.lost(wiretest.HalfOpen, 1, 0)
	s.mode(wiretest.Pass)
	s.say(s.client, 2) // still nobody there
	s.lost(wiretest.Pass, 1, 0)
	if err := s.client.ExpectQuiet(50 * time.Millisecond); err != nil {
		t.Error(err)
	}
	s.client.Close()
	s.eventually(func() bool { return s.proxy.Open() == 0 }, "link stays")
}

func TestProxyStall(t *testing.T) {
	s := newStage(t, false)
	s.mode(wiretest.Stall)
	s.say(s.client, 1)
	s.say(s.server, 1)
	late := s.dial()
	s.say(late, 3)
	if err := s.server.ExpectQuiet(50 * time.Millisecond); err != nil {
		t.Error(err)
	}
	s.mode(wiretest.Pass)
	s.hear(s.server, 1)
	s.hear(s.client, 1)
	s.hear(s.accept(), 3)
}

func TestProxySlow(t *testing.T) {
	s := newStage(t, false)
	s.proxy.SetRate(20_000)
	start := time.Now()
	long := &pulsarpb.CommandError{RequestId: proto.Uint64(1), Error: pulsarpb.ServerError_UnknownError.Enum(),
		Message: proto.String(strings.Repeat("x", 4000))}
	if err := s.client.Send(long); err != nil {
		t.Fatal(err)
	}
	if _, err := s.server.Expect(pulsarpb.BaseCommand_ERROR); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took < 150*time.Millisecond {
		t.Errorf("4000 bytes at 20,000 a second took %s", took)
	}
	s.proxy.SetRate(1) // hours; Close ends it
	if err := s.client.Send(long); err != nil {
		t.Fatal(err)
	}
}

func TestProxySwallow(t *testing.T) {
	s := newStage(t, false)
	receipt := func(n int64) {
		t.Helper()
		if err := s.server.SendFrame(wire.AppendSendReceipt(nil, 1, n, 0, 5, n)); err != nil {
			t.Fatal(err)
		}
	}
	s.proxy.Swallow(wiretest.NextOf(2, pulsarpb.BaseCommand_SEND_RECEIPT))
	receipt(0)
	s.say(s.server, 0)
	receipt(1)
	receipt(2)
	s.hear(s.client, 0)
	got, err := s.client.Expect(pulsarpb.BaseCommand_SEND_RECEIPT)
	if err != nil || got.GetSendReceipt().GetSequenceId() != 2 {
		t.Errorf("%v, %v", got, err)
	}
	s.lost(wiretest.Pass, 0, 2)
	s.proxy.Swallow(func(d wiretest.Direction, f wire.Frame) bool {
		return d == wiretest.Up && f.Type == pulsarpb.BaseCommand_SUCCESS
	})
	s.say(s.client, 1)
	s.say(s.server, 1)
	s.hear(s.client, 1)
	s.lost(wiretest.Pass, 1, 2)
	s.proxy.Swallow(nil)
	s.say(s.client, 2)
	s.hear(s.server, 2)
}

// TestProxyRawMute: bytes that were lost from a stream cannot be made good.
func TestProxyRawMute(t *testing.T) {
	s := newStage(t, true)
	s.mode(wiretest.SwallowUp)
	s.say(s.client, 1)
	s.eventually(func() bool { return s.proxy.Counts(wiretest.SwallowUp).LostBytes[wiretest.Up] > 0 }, "nothing lost")
	s.mode(wiretest.Pass)
	s.say(s.client, 2)
	s.say(s.server, 2)
	s.eventually(func() bool {
		c := s.proxy.Counts(wiretest.Pass)
		return c.LostBytes[wiretest.Up] > 0 && c.LostBytes[wiretest.Down] > 0
	}, "not mute")
	c := s.dial()
	s.say(c, 3)
	s.hear(s.accept(), 3)
}

func TestProxyUnreachable(t *testing.T) {
	s := newStage(t, false)
	s.listener.Close()
	if err := s.dial().ExpectClose(); err != nil {
		t.Error(err)
	}
	if c := s.proxy.Counts(wiretest.Pass); c.Unreachable != 1 {
		t.Errorf("%+v", c)
	}
}

func TestProxyWatch(t *testing.T) {
	ln, err := wiretest.Listen(patience)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	lines := make(chan string, 1)
	p, err := wiretest.StartProxy(wiretest.ProxyOptions{Target: ln.Addr(), Watch: func(d wiretest.Direction, frame []byte) {
		lines <- fmt.Sprint(d, " ", wire.Dump(frame))
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	c, err := wiretest.Dial(p.Addr(), patience)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SendFrame([]byte(wire.PingFrame)); err != nil {
		t.Fatal(err)
	}
	if got := <-lines; got != "up PING {}" {
		t.Error(got)
	}
}

func TestProxyClosed(t *testing.T) {
	s := newStage(t, false)
	s.mode(wiretest.Stall)
	s.say(s.client, 1)
	if err := s.proxy.Close(); err != nil {
		t.Error(err)
	}
	if err := s.client.ExpectClose(); err != nil {
		t.Error(err)
	}
	if err := s.proxy.SetMode(wiretest.Pass); err == nil {
		t.Error("a closed proxy takes a mode")
	}
	if _, err := net.Dial("tcp", s.proxy.Addr()); err == nil {
		t.Error("a closed proxy takes connections")
	}
}

func TestModeNames(t *testing.T) {
	for m := wiretest.Pass; m <= wiretest.Stall; m++ {
		if got, err := wiretest.ParseMode(m.String()); err != nil || got != m {
			t.Errorf("%s: %v, %v", m, got, err)
		}
	}
	if _, err := wiretest.ParseMode("vanish"); err == nil {
		t.Error("unknown mode")
	}
}
