package pulsar

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"wayside/edge"
	"wayside/wire"
	"wayside/wire/pulsarpb"
)

func TestCloseAnswersWhatIsOwed(t *testing.T) {
	r := serve(t)
	c := r.connect().producing("stopping").consuming("stopping", "s", exclusive, 1)
	idle := r.connect()
	early := r.dial()
	r.store.Hold()
	for i := range 10 {
		c.publish(1, uint64(i), "m")
	}
	c.say(ackCmd(1, 7, id(1, 0)))
	c.sync()
	closed := make(chan error)
	go func() { closed <- r.server.Close(t.Context()) }()
	idle.closed()
	early.closed()
	if _, err := net.Dial("tcp", r.addr); err == nil {
		t.Error("the listener is still open")
	}
	r.store.Release()
	for range 10 {
		c.hear("SEND_RECEIPT *")
	}
	c.hear("ACK_RESPONSE *")
	c.closed()
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// What has come of a frame when the server stops is owed no answer, and the end does not
// wait for one.
func TestCloseInTheMiddleOfAFrame(t *testing.T) {
	send, err := wire.AppendPayloadCommand(nil, wire.Wrap(&pulsarpb.CommandSend{ProducerId: num(1), SequenceId: num(0)}),
		entryOf(t, 0, 0, make([]byte, 1000)))
	if err != nil {
		t.Fatal(err)
	}
	lookup, err := wire.AppendCommand(nil, wire.Wrap(&pulsarpb.CommandLookupTopic{Topic: proto.String("t"), RequestId: num(1)}))
	if err != nil {
		t.Fatal(err)
	}
	for name, begun := range map[string][]byte{"entry": send[:500], "command": lookup[:len(lookup)-1]} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig, dial func() *client) {
				c := dial()
				if _, err := c.Connect(); err != nil {
					t.Fatal(err)
				}
				c.producing("stopping")
				if err := c.SendFrame(begun); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				start := time.Now()
				go r.server.Close(context.Background()) //nolint:errcheck // the rig's own Close tells
				c.closed()
				if took := time.Since(start); took != 0 {
					t.Errorf("the end took %v", took)
				}
			})
		})
	}
}

func TestCloseCutsAfterItsTime(t *testing.T) {
	r := serve(t)
	c := r.connect().producing("stopping")
	r.store.Hold()
	c.publish(1, 0, "m")
	c.sync()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if err := r.server.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Close: %v", err)
	}
	c.closed()
	if n := r.server.Sessions(); n != 0 {
		t.Errorf("%d sessions are left", n)
	}
	if err := r.server.Serve(brokenListener{}); !errors.Is(err, ErrServerClosed) {
		t.Errorf("Serve after Close: %v", err)
	}
}

// brokenListener has run out of descriptors once, and is closed by somebody then.
type brokenListener struct{ fails chan error }

func (l brokenListener) Accept() (net.Conn, error) { return nil, <-l.fails }
func (l brokenListener) Close() error              { return nil }
func (l brokenListener) Addr() net.Addr            { return &net.TCPAddr{} }

func TestServeBearsPassingFailures(t *testing.T) {
	r := newRig(t)
	l := brokenListener{make(chan error, 3)}
	l.fails <- errors.New("too many open files")
	l.fails <- errors.New("too many open files")
	l.fails <- net.ErrClosed
	if err := r.server.Serve(l); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Serve: %v", err)
	}
	if lines := r.log.with("too many open files"); len(lines) != 1 {
		t.Errorf("want one line, got %q", lines)
	}
}

func TestIdleSessionHoldsLittle(t *testing.T) {
	r := serve(t)
	c := r.connect().producing("idle")
	for i := range 300 {
		c.publish(1, uint64(i), "m")
	}
	for range 300 {
		c.hear("SEND_RECEIPT *")
	}
	c.sync()
	s := r.only()
	s.out.mu.Lock()
	defer s.out.mu.Unlock()
	if s.out.control.lent || !s.out.queue.empty() || cap(s.out.pushed) > 64 {
		t.Error("an idle outbox holds buffers")
	}
	if used, _ := r.broker.Budget().Usage(edge.SharePublish); used != 0 {
		t.Errorf("%d bytes of publishes are held", used)
	}
}
