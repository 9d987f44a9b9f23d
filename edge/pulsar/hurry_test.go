package pulsar

import (
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"wayside/edge"
	"wayside/wire"
	"wayside/wire/pulsarpb"
)

// soonEnough is when others have to have what slow clients kept from them.
const soonEnough = 5 * time.Second

// A frame that comes slowly holds memory. It may, until others have to wait for it.
func TestSlowSendersGiveWay(t *testing.T) {
	const size = 1 << 20
	inBubble(t, func(t *testing.T, r *rig, dial func() *client) {
		login := func(topic string) *client {
			c := dial()
			if _, err := c.Connect(); err != nil {
				t.Fatal(err)
			}
			return c.producing(topic)
		}
		frame, err := wire.AppendPayloadCommand(nil, wire.Wrap(&pulsarpb.CommandSend{ProducerId: num(1), SequenceId: num(0)}), entryOf(t, 0, 0, make([]byte, size)))
		if err != nil {
			t.Fatal(err)
		}
		other := login("other")
		trickle := func(i int) *client {
			c := login(fmt.Sprint("slow", i))
			quick := 100 + i%2*size/2 // what comes at once earns no patience for later
			go func() {
				if c.SendFrame(frame[:quick]) != nil {
					return
				}
				for k := quick; ; k++ {
					time.Sleep(time.Second)
					if _, err := c.Conn().Write(frame[k : k+1]); err != nil {
						return
					}
				}
			}()
			return c
		}
		var slow []*client
		for i := range 6 {
			slow = append(slow, trickle(i))
		}
		time.Sleep(2 * soonEnough)
		synctest.Wait()
		if n := r.server.Sessions(); n != 7 {
			t.Fatalf("%d sessions are left though nobody had to wait", n)
		}
		slow = append(slow, trickle(6)) // for which there is no memory
		synctest.Wait()
		start := time.Now()
		other.publish(1, 0, "m")
		other.hear("SEND_RECEIPT *")
		if took := time.Since(start); took > soonEnough {
			t.Errorf("others waited for %v", took)
		}
		for _, c := range slow {
			c.Close() //nolint:errcheck // closed by the other side, often
		}
		time.Sleep(2 * time.Second) // the trickles end
		synctest.Wait()
		if used, _ := r.broker.Budget().Usage(edge.SharePublish); used != 0 {
			t.Errorf("%d bytes are held", used)
		}
		if lines := r.log.with("client was too slow"); len(lines) == 0 {
			t.Error("nothing was logged")
		}
	})
}

// A client that takes a large entry slowly holds memory too.
func TestSlowReadersGiveWay(t *testing.T) {
	const size = 1 << 20
	for _, drip := range []int{0, 1} {
		slowly(t, 1, size, func(t *testing.T, r *rig, first *client, dial func() *client) {
			consume := func(topic string, i int) *client {
				c := dial().consuming(topic, fmt.Sprint("slow", i), exclusive, 1)
				c.say(flowCmd(1, 10))
				return c
			}
			all := []*client{first}
			for i := range 5 {
				all = append(all, consume("slow", i))
			}
			for i, c := range all {
				go func() {
					// What is taken at once earns no patience for later.
					if quick := i % 2 * size / 2; quick > 0 {
						if _, err := io.ReadFull(c.Conn(), make([]byte, quick)); err != nil {
							return
						}
					}
					for b := make([]byte, drip); drip > 0; time.Sleep(time.Second) {
						if _, err := c.Conn().Read(b); err != nil {
							return
						}
					}
				}()
			}
			time.Sleep(2 * soonEnough)
			synctest.Wait()
			if n := r.server.Sessions(); n != len(all) {
				t.Fatalf("%d sessions are left though nobody had to wait", n)
			}
			all = append(all, consume("slow", 5)) // for whom there is no memory
			synctest.Wait()
			p := dial().producing("other")
			other := dial().consuming("other", "s", exclusive, 1)
			other.say(flowCmd(1, 10))
			start := time.Now()
			p.publish(1, 0, "m")
			other.hearEntries(1, 0, 0)
			if took := time.Since(start); took > soonEnough {
				t.Errorf("others waited for %v", took)
			}
			time.Sleep(soonEnough)
			if lines := r.log.with("reads too slowly"); len(lines) == 0 {
				t.Error("nobody has given way")
			}
			for _, c := range append(all, p, other) {
				c.Close() //nolint:errcheck // closed by the other side, often
			}
			time.Sleep(2 * time.Second) // the drips end
			synctest.Wait()
			if held := r.reads(); held != 0 {
				t.Errorf("%d bytes are held", held)
			}
		})
	}
}
