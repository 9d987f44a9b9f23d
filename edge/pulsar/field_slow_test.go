package pulsar

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"wayside/edge"
	"wayside/wire/pulsarpb"
)

// Cases that people met with other brokers, by the numbers that they have among ours:
// clients that do not read, and a disk that is slow.

// MG-05: many subscriptions that catch up at once read more from the store than memory
// holds.
func TestFieldMG05ManyThatDoNotReadShareOneBudget(t *testing.T) {
	const n, size, subs = 40, 50 << 10, 60
	inBubble(t, func(t *testing.T, r *rig, dial func() *client) {
		login := filled(t, dial, "mg05", n, size)
		slow := make([]*client, subs)
		for i := range slow {
			slow[i] = login().consuming("mg05", fmt.Sprint("s", i), exclusive, 1)
			slow[i].say(flowCmd(1, 1000))
			synctest.Wait()
		}
		_, limit := r.broker.Budget().Usage(edge.ShareRead)
		if wanted := int64(subs * n * size); wanted < 4*limit {
			t.Fatalf("%d bytes are no trial for a share of %d", wanted, limit)
		}
		// Each read may bring an entry more than it has asked memory for.
		most := limit + int64(r.broker.Options().ConcurrentReads*(size+1<<10))
		for range 5 {
			if held := r.reads(); held > most {
				t.Errorf("%d bytes are held of a share of %d", held, limit)
			}
			time.Sleep(time.Second)
			synctest.Wait()
		}
		var reading sync.WaitGroup
		for i, c := range slow {
			reading.Go(func() {
				for next := uint64(0); next < n; {
					got, err := c.Next()
					switch {
					case err != nil: // it was cut for the sake of others, and comes again as clients do
						c, next = login().consuming("mg05", fmt.Sprint("s", i), exclusive, 1), 0
						c.say(flowCmd(1, 1000))
					case got.GetType() == pulsarpb.BaseCommand_PING:
						c.say(&pulsarpb.CommandPong{})
					case got.GetMessage().GetMessageId().GetEntryId() != next:
						t.Errorf("subscription %d: %v where %d should come", i, got.GetMessage(), next)
						return
					default:
						next++
					}
				}
			})
		}
		reading.Wait()
		synctest.Wait()
		if held := r.reads(); held != 0 {
			t.Errorf("%d bytes are still held", held)
		}
	})
}

// ES-05: under load the broker stops taking new connections, because the disk is slow. Here
// it does not answer at all meanwhile.
func TestFieldES05NewcomersConnectWhileTheDiskIsBusy(t *testing.T) {
	const clients, each = 100, 10
	r := serve(t)
	var all []*client
	for range clients {
		all = append(all, r.connect().producing("es05"))
	}
	r.store.Hold()
	for _, c := range all {
		for i := range uint64(each) {
			c.publish(1, i, "m")
		}
	}
	for range 10 {
		begin := time.Now()
		r.connect().sync()
		if st := r.broker.Stats(); st.Producers != clients {
			t.Errorf("%d producers", st.Producers)
		}
		if took := time.Since(begin); took > 2*time.Second {
			t.Errorf("a newcomer waited %s", took)
		}
	}
	r.store.Release()
	for _, c := range all {
		for range each {
			c.hear("SEND_RECEIPT *")
		}
	}
}
