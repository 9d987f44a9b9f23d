package pulsar

import (
	"fmt"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"wayside/edge"
	"wayside/wire"
	"wayside/wire/pulsarpb"
	"wayside/wire/wiretest"
)

func probeWithin(d time.Duration) tweak {
	return func(o *Options, _ *edge.Options) { o.LivenessTimeout = d }
}

func TestLivingHolderKeepsItsSeat(t *testing.T) {
	r := serve(t)
	c := r.connect().consuming("seat", "s", exclusive, 4)
	d := r.connect()
	answered := make(chan struct{})
	go func() { // answers the PING
		defer close(answered)
		if err := c.ExpectQuiet(300 * time.Millisecond); err != nil {
			t.Error(err)
		}
	}()
	d.say(subscribeCmd("seat", "s", exclusive, 4, 15))
	d.hear(`ERROR {request_id:15 error:ConsumerBusy message:"Exclusive consumer is already connected"}`)
	d.say(subscribeCmd("seat", "s", shared, 5, 16))
	d.hear(`ERROR {request_id:16 error:ConsumerBusy message:"Subscription is of different type*`)
	<-answered
	c.sync()
}

func TestTrap38And39AMuteHolderLosesItsSeat(t *testing.T) {
	r := serve(t, probeWithin(50*time.Millisecond))
	c := r.connect().consuming("seat", "s", exclusive, 4)
	m := producerCmd("seat", 1, 1)
	m.ProducerName = proto.String("same")
	c.say(m)
	c.hear("PRODUCER_SUCCESS *")
	d := r.connect()
	// Two challengers at once: one probe serves both.
	d.say(subscribeCmd("seat", "s", exclusive, 7, 18), m)
	d.hearInAnyOrder("SUCCESS {request_id:18}", `PRODUCER_SUCCESS {request_id:1 producer_name:"same" *`)
	pings := 0
	for {
		got, err := c.Next()
		if err != nil {
			break
		}
		if got.GetType() == pulsarpb.BaseCommand_PING {
			pings++
		}
	}
	if pings != 1 {
		t.Errorf("the mute holder got %d PINGs, want 1", pings)
	}
}

func TestNameOfALivingProducerIsTaken(t *testing.T) {
	r := serve(t)
	c := r.connect()
	m := producerCmd("seat", 1, 19)
	m.ProducerName = proto.String("same")
	c.say(m)
	c.hear("PRODUCER_SUCCESS *")
	// The same connection counts as a holder like any other.
	m.ProducerId, m.RequestId, m.Epoch = num(2), num(21), num(1)
	c.say(m)
	c.hear(`ERROR {request_id:21 error:ProducerBusy message:"Producer with name 'same' is already connected to topic 'persistent://public/default/seat'"}`)
}

func TestTrap38And39AClosedSocketFreesEverythingAtOnce(t *testing.T) {
	r := serve(t)
	for round := range 10 {
		c := r.connect()
		m := producerCmd("cut", 1, 1)
		m.ProducerName = proto.String("named")
		c.say(m)
		c.hear("PRODUCER_SUCCESS *")
		c.consuming("cut", "ex", exclusive, 2)
		if round%2 == 0 {
			c.Close() //nolint:errcheck // it is meant to end
		} else {
			c.Reset() //nolint:errcheck // as above
		}
	}
}

// A client that we hold back is alive, however mute.
func TestHeldClientCountsAsAlive(t *testing.T) {
	r := serve(t, probeWithin(50*time.Millisecond), func(o *Options, _ *edge.Options) { o.Replies = 2 })
	c := r.connect()
	c.Mute = true
	m := producerCmd("held", 1, 1)
	m.ProducerName = proto.String("same")
	c.say(m)
	c.hear("PRODUCER_SUCCESS *")
	holder := r.only()
	r.store.Hold()
	for i := range 5 {
		c.publish(1, uint64(i), "m")
	}
	eventually(t, "the reader is held", func() bool { return holder.held.Load() })
	d := r.connect()
	d.say(m)
	d.hear("ERROR {request_id:1 error:ProducerBusy *")
	r.store.Release()
	for i := range 5 {
		c.hear(fmt.Sprintf("SEND_RECEIPT {producer_id:1 sequence_id:%d *", i))
	}
}

// pipe is a listener for connections in memory, so that time may be faked.
type pipe struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func newPipe() *pipe { return &pipe{conns: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipe) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipe) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

func (p *pipe) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// inBubble runs a test on a fake clock, with a function that dials.
func inBubble(t *testing.T, test func(t *testing.T, r *rig, dial func() *client)) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		p := newPipe()
		go r.server.Serve(p) //nolint:errcheck // it ends with the server
		test(t, r, func() *client {
			a, b := net.Pipe()
			p.conns <- b
			t.Cleanup(func() { a.Close() }) //nolint:errcheck // as above
			return &client{wiretest.NewPeer(a, time.Hour), t}
		})
	})
}

func TestKeepAlive(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig, dial func() *client) {
		start := time.Now()
		since := func() time.Duration { return time.Since(start) }
		silent, mute, lively := dial(), dial(), dial()
		for _, c := range []*client{mute, lively} {
			if _, err := c.Connect(); err != nil {
				t.Fatal(err)
			}
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			silent.closed()
			if since() != 30*time.Second {
				t.Errorf("who never logged in was closed after %v", since())
			}
		})
		wg.Go(func() {
			for i := 1; i <= 3; i++ {
				got, err := lively.Next()
				if err != nil || got.GetType() != pulsarpb.BaseCommand_PING || since() != time.Duration(i)*30*time.Second {
					t.Errorf("after %v: %v, %v; want PING", since(), got, err)
					return
				}
				lively.say(&pulsarpb.CommandPong{})
			}
		})
		got, err := mute.Next()
		if err != nil || got.GetType() != pulsarpb.BaseCommand_PING || since() != 30*time.Second {
			t.Errorf("after %v: %v, %v; want PING", since(), got, err)
		}
		mute.closed()
		if since() != 60*time.Second {
			t.Errorf("who was mute was closed after %v", since())
		}
		wg.Wait()
	})
}

func TestAnythingReceivedIsASignOfLife(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig, dial func() *client) {
		c := dial()
		if _, err := c.Connect(); err != nil {
			t.Fatal(err)
		}
		for range 4 {
			got, err := c.Next()
			if err != nil || got.GetType() != pulsarpb.BaseCommand_PING {
				t.Fatalf("%v, %v", got, err)
			}
			c.say(flowCmd(9, 1))
		}
	})
}

func TestHeldClientIsNotTimedOut(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig, dial func() *client) {
		c := dial()
		if _, err := c.Connect(); err != nil {
			t.Fatal(err)
		}
		c.producing("held")
		r.store.Hold()
		r.only().slots.limit = 1
		c.publish(1, 0, "taken")
		written := make(chan struct{})
		go func() { // the second is not read
			defer close(written)
			c.publish(1, 1, "waits")
		}()
		for range 4 {
			got, err := c.Next()
			if err != nil || got.GetType() != pulsarpb.BaseCommand_PING {
				t.Fatalf("%v, %v", got, err)
			}
		}
		r.store.Release()
		c.hear("SEND_RECEIPT {producer_id:1 sequence_id:0 *", "SEND_RECEIPT {producer_id:1 sequence_id:1 *")
		<-written
	})
}

// A client may be slow within a frame, but not silent, and not slower than the least rate.
func TestPausesWithinAFrame(t *testing.T) {
	const size = 1 << 20 // has 10 s and 16 s more
	inBubble(t, func(t *testing.T, r *rig, dial func() *client) {
		for _, test := range []struct {
			name  string
			pause time.Duration
			parts int
			lives bool
		}{
			{"steady", 4 * time.Second, 5, true},
			{"silent", 11 * time.Second, 2, false},
			{"trickling", 4 * time.Second, 40, false},
		} {
			c := dial()
			if _, err := c.Connect(); err != nil {
				t.Fatal(err)
			}
			c.producing(test.name)
			frame, err := wire.AppendPayloadCommand(nil, wire.Wrap(&pulsarpb.CommandSend{ProducerId: num(1), SequenceId: num(0)}), entryOf(t, 0, 0, make([]byte, size)))
			if err != nil {
				t.Fatal(err)
			}
			answer := make(chan pulsarpb.BaseCommand_Type, 1) // of the frame; 0 if closed
			go func() {
				for {
					got, err := c.Next()
					switch {
					case err != nil:
						answer <- 0
						return
					case got.GetType() != pulsarpb.BaseCommand_PING:
						answer <- got.GetType()
						return
					}
				}
			}()
			for i := range test.parts {
				from, to := i*len(frame)/test.parts, (i+1)*len(frame)/test.parts
				if _, err = c.Conn().Write(frame[from:to]); err != nil {
					break
				}
				time.Sleep(test.pause)
			}
			if got := <-answer; (got == pulsarpb.BaseCommand_SEND_RECEIPT) != test.lives {
				t.Errorf("%s: answered by %s", test.name, got)
			}
			c.Close() //nolint:errcheck // closed by the other side, often
			synctest.Wait()
			if used, _ := r.broker.Budget().Usage(edge.SharePublish); used != 0 {
				t.Errorf("%s: %d bytes are held", test.name, used)
			}
		}
	})
}
