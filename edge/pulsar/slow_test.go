package pulsar

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"wayside/edge"
	"wayside/wire"
)

// slowly runs a test on a fake clock, over connections that buffer nothing: a topic has
// n entries of a size, and the slow client, consumer 1 of a Shared subscription, has
// permits for all and does not read.
func slowly(t *testing.T, n, size int, test func(t *testing.T, r *rig, slow *client, dial func() *client)) {
	inBubble(t, func(t *testing.T, r *rig, dial func() *client) {
		login := filled(t, dial, "slow", n, size)
		slow := login().consuming("slow", "s", shared, 1)
		slow.say(flowCmd(1, 10_000))
		synctest.Wait()
		test(t, r, slow, login)
	})
}

// filled publishes n entries of a size to a topic, and returns what logs a client in.
func filled(t *testing.T, dial func() *client, topic string, n, size int) (login func() *client) {
	login = func() *client {
		c := dial()
		if _, err := c.Connect(); err != nil {
			t.Fatal(err)
		}
		return c
	}
	p := login().producing(topic)
	for i := range n {
		p.publish(1, uint64(i), string(make([]byte, size)))
		p.hear("SEND_RECEIPT *")
	}
	p.Close() //nolint:errcheck // it has done its work
	return login
}

// reads is what is held of the share of reads.
func (r *rig) reads() int64 {
	used, _ := r.broker.Budget().Usage(edge.ShareRead)
	return used
}

func TestStandstillHoldsLittleAndGoesOn(t *testing.T) {
	const n, size = 100, 16 << 10
	slowly(t, n, size, func(t *testing.T, r *rig, slow *client, _ func() *client) {
		limit := r.server.deliveryBytes
		if held := r.reads(); held < limit/2 || held > limit+256<<10 {
			t.Errorf("%d bytes wait for the client, want about %d", held, limit)
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if held := r.reads(); held > size+1<<10 {
			t.Errorf("%d bytes are held for a client that takes nothing", held)
		}
		slow.hearEntries(1, 0, n-1)
		synctest.Wait()
		if held := r.reads(); held != 0 {
			t.Errorf("%d bytes are still held", held)
		}
	})
}

func TestWhatASlowClientDoesNotTakeGoesToOthers(t *testing.T) {
	const n, size = 100, 1 << 10
	slowly(t, n, size, func(t *testing.T, r *rig, slow *client, dial func() *client) {
		time.Sleep(3 * time.Second)
		other := dial().consuming("slow", "s", shared, 1)
		other.say(flowCmd(1, 10_000))
		other.hearEntries(1, 1, n-1) // all but the one in hand
		slow.hearEntries(1, 0, 0)
		slow.say(closeConsumerCmd(1, 7))
		slow.hear("SUCCESS {request_id:7}")
		other.hearEntries(1, 0, 0)
	})
}

func TestClientThatNeverReadsIsClosed(t *testing.T) {
	slowly(t, 100, 16<<10, func(t *testing.T, r *rig, slow *client, dial func() *client) {
		time.Sleep(29 * time.Second)
		synctest.Wait()
		if r.server.Sessions() != 1 {
			t.Fatal("closed too early")
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if r.server.Sessions() != 0 || r.reads() != 0 {
			t.Fatalf("%d sessions left, %d bytes held", r.server.Sessions(), r.reads())
		}
		other := dial().consuming("slow", "s", shared, 1)
		other.say(flowCmd(1, 10_000))
		other.hearEntries(1, 0, 99)
		if lines := r.log.with("does not read"); len(lines) != 1 {
			t.Errorf("want one line about it, got %q", lines)
		}
	})
}

// A seek while the client stands still: nothing of before comes behind CLOSE_CONSUMER.
func TestTrap35NothingComesBehindASeekAmidAStandstill(t *testing.T) {
	slowly(t, 50, 16<<10, func(t *testing.T, r *rig, slow *client, dial func() *client) {
		other := dial().consuming("slow", "s", shared, 2)
		sought := make(chan struct{})
		go func() {
			defer close(sought)
			m := seekTo(2, 3, 1, 20)
			other.say(m)
			other.hear("CLOSE_CONSUMER {consumer_id:2 *", "SUCCESS {request_id:3}")
		}()
		<-sought
		taken := 0 // those that were in hand come first: one write's worth
		for got := slow.receive(); got.GetCloseConsumer() == nil; got = slow.receive() {
			if taken++; got.GetMessage() == nil || taken > batchBytes/(16<<10) {
				t.Fatalf("unexpected frame\n%s", slow.story())
			}
		}
		slow.sync()
		if held := r.reads(); held != 0 {
			t.Errorf("%d bytes are still held", held)
		}
	})
}

func TestSlowClientDelaysNobody(t *testing.T) {
	slowly(t, 100, 16<<10, func(t *testing.T, r *rig, slow *client, dial func() *client) {
		d := dial().consuming("slow", "d", shared, 1)
		d.say(flowCmd(1, 10_000))
		d.hearEntries(1, 0, 99)
		d.producing("slow")
		d.publish(1, 100, "m")
		d.hearInAnyOrder("SEND_RECEIPT *", "MESSAGE {consumer_id:1 message_id {ledgerId:* entryId:100 *")
	})
}

// Over TCP, where one write takes several entries at once.
func TestDeliveryIsBoundedAndComplete(t *testing.T) {
	const most = 1500
	for _, size := range []int{10, copied - 100, 2 * copied, 100 << 10} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			n := min(most, 8<<20/(size+1))
			r := serve(t, func(o *Options, _ *edge.Options) { o.DeliveryBytes = 64 << 10 })
			c := r.connect().producing("bounded")
			go func() {
				for i := range n {
					c.publish(1, uint64(i), string(make([]byte, size)))
				}
			}()
			for range n {
				c.hear("SEND_RECEIPT *")
			}
			c.consuming("bounded", "s", exclusive, 1)
			c.say(flowCmd(1, uint32(n)))
			for i := range n {
				m, err := wire.ParseMessage(c.receive().Entry)
				if err != nil || m.SequenceID != int64(i) {
					t.Fatalf("message %d: got %d, %v\n%s", i, m.SequenceID, err, c.story())
				}
			}
			if free := r.only().out.free.Load(); free > 64<<10 {
				t.Errorf("%d bytes free of %d", free, 64<<10)
			}
		})
	}
}
