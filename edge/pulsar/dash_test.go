package pulsar

import (
	"net"
	"testing"
	"time"

	"wayside/edge"
	"wayside/wire"
)

// overTCP is a session of a server whose writer does not run, and what its client sees.
// buffer, if not 0, is what each side's socket holds, about.
func overTCP(tb testing.TB, server *Server, buffer int) (*session, *net.TCPConn) {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // it served its one connection
	far, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		tb.Fatal(err)
	}
	near, err := l.Accept()
	if err != nil {
		tb.Fatal(err)
	}
	if buffer > 0 {
		near.(*net.TCPConn).SetWriteBuffer(buffer) //nolint:errcheck // shown by what is taken
		far.(*net.TCPConn).SetReadBuffer(buffer)   //nolint:errcheck // as above
	}
	tb.Cleanup(func() {
		far.Close()  //nolint:errcheck // the test has ended
		near.Close() //nolint:errcheck // as above
	})
	return newSession(server, near), far.(*net.TCPConn)
}

// offer hands one entry over, as a hand of the crew does.
func offer(c *consumer, id int64, size int) {
	c.Deliver(edge.Delivery{Entry: edge.Entry{Position: edge.Position{Ledger: 1, Entry: id}, Data: make([]byte, size)}, Epoch: -1})
	c.Flush()
}

// arrived reads the entries that come next and wants them in order.
func arrived(t *testing.T, in *wire.Reader, from, to int64) {
	t.Helper()
	for want := from; want < to; want++ {
		h, err := in.Next()
		if err != nil {
			t.Fatalf("entry %d of %d: %v", want, to, err)
		}
		body := make([]byte, h.Body())
		if err := in.ReadBody(body); err != nil {
			t.Fatalf("entry %d of %d: %v", want, to, err)
		}
		cmd, err := wire.Decode(body[:h.Command])
		if err != nil {
			t.Fatal(err)
		}
		if got := int64(cmd.GetMessage().GetMessageId().GetEntryId()); got != want {
			t.Fatalf("entry %d came instead of %d", got, want)
		}
	}
}

func TestDeliveriesGoOutWithoutTheWriter(t *testing.T) {
	s, far := overTCP(t, newRig(t).server, 0)
	c := &consumer{s: s, place: place{id: 1}}
	far.SetReadDeadline(time.Now().Add(patientFor)) //nolint:errcheck // shown by a test that hangs
	in := wire.NewReader(far, 1<<20)
	for i := range int64(10) {
		offer(c, i, 100)
		arrived(t, in, i, i+1)
	}
	if len(s.out.wake) > 0 {
		t.Error("the writer was woken for nothing")
	}
}

// A socket takes what it has room for; the writer goes on with the rest of the frame.
func TestTheWriterFinishesWhatWasBegun(t *testing.T) {
	const size = 3000
	s, far := overTCP(t, newRig(t).server, 4<<10)
	c := &consumer{s: s, place: place{id: 1}}
	n := int64(0)
	for ; s.pen.carry == nil; n++ {
		if n == 10_000 {
			t.Fatal("the socket takes all")
		}
		offer(c, n, size)
	}
	for range 50 { // behind it
		offer(c, n, size)
		n++
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		s.write()
	}()
	far.SetReadDeadline(time.Now().Add(patientFor)) //nolint:errcheck // shown by a test that hangs
	arrived(t, wire.NewReader(far, 1<<20), 0, n)
	s.fail(errStopped)
	s.out.poke()
	<-written
}

// What was begun when a session ends is let go of, and nothing is begun after.
func TestNothingIsHeldWhenASessionEnds(t *testing.T) {
	s, _ := overTCP(t, newRig(t).server, 4<<10)
	c := &consumer{s: s, place: place{id: 1}}
	for n := int64(0); s.pen.carry == nil && n < 10_000; n++ {
		offer(c, n, 3000)
	}
	s.fail(errStopped)
	s.out.poke()
	s.write()
	if s.pen.carry != nil {
		t.Error("a batch is held")
	}
	s.out.end()
	offer(c, 1, 3000)
	if s.pen.carry != nil || !s.out.queue.empty() {
		t.Error("something is held after the end")
	}
}

// A connection that broke is the writer's to find out.
func TestADashIntoABrokenConnectionIsNoMatter(t *testing.T) {
	s, _ := overTCP(t, newRig(t).server, 0)
	s.conn.Close() //nolint:errcheck // as a client that left
	c := &consumer{s: s, place: place{id: 1}}
	offer(c, 1, 100)
	if s.pen.carry == nil {
		t.Fatal("the delivery is gone")
	}
	s.write() // ends by itself
	if s.ctx.Err() == nil {
		t.Error("the session goes on")
	}
}

func BenchmarkDash(b *testing.B) {
	s, far := overTCP(b, benchRig(b).server, 0)
	c := &consumer{s: s, place: place{id: 1}}
	buf := make([]byte, 64<<10)
	b.ReportAllocs()
	for b.Loop() {
		offer(c, 1, 100)
		if _, err := far.Read(buf); err != nil {
			b.Fatal(err)
		}
	}
}
