package pulsar

import (
	"testing"
	"time"

	"wayside/wire/pulsarpb"
)

// The Go client would lose what comes right behind the answer to its SUBSCRIBE or
// PRODUCER: pushed frames wait for its first command about the id, or a short time.
func TestPushedFramesWaitUntilTheClientKnows(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig, dial func() *client) {
		c := dial()
		if _, err := c.Connect(); err != nil {
			t.Fatal(err)
		}
		const active, closeConsumer = "ACTIVE_CONSUMER_CHANGE {consumer_id:1 is_active:true}", "CLOSE_CONSUMER {consumer_id:* request_id:18446744073709551615}"
		c.consuming("known", "a", failover, 1)
		c.sync()
		c.say(flowCmd(1, 10))
		c.hear(active)

		start := time.Now()
		c.consuming("known", "b", failover, 2)
		c.sync()
		c.hear("ACTIVE_CONSUMER_CHANGE {consumer_id:2 is_active:true}")
		if waited := time.Since(start); waited != getsKnown {
			t.Errorf("without a command it came after %v", waited)
		}

		c.consuming("known", "c", shared, 3).producing("known")
		r.unload("known")
		c.hearInAnyOrder(closeConsumer, closeConsumer) // of 1 and 2, which are known
		c.sync()
		c.say(flowCmd(3, 10)) // to an id that is gone already
		c.hear("CLOSE_CONSUMER {consumer_id:3 *")
		c.publish(1, 0, "lost")
		c.hear("CLOSE_PRODUCER {producer_id:1 request_id:18446744073709551615}")
		c.sync()
	})
}

// Of several changes that were not told yet, the last one counts.
func TestPushedChangesAreMerged(t *testing.T) {
	r := serve(t)
	c := r.connect().consuming("merged", "s", shared, 1)
	c.sync()
	s := r.only()
	entry := s.consumers.entries[1]
	s.out.mu.Lock()
	entry.known.Store(true)
	s.out.mu.Unlock()
	s.out.mu.Lock()
	for i := range 5 {
		entry.active = becameInactive
		if i%2 == 0 {
			entry.active = becameActive
		}
		entry.tellLocked(s.out, entry)
	}
	entry.ended = true
	s.out.mu.Unlock()
	s.out.poke()
	c.hear("ACTIVE_CONSUMER_CHANGE {consumer_id:1 is_active:true}")
	c.sync()
}

func TestHeldSubscriptionsOfManyTopics(t *testing.T) {
	r := serve(t)
	c := r.connect()
	const n = 300
	go func() {
		for i := range uint64(n) {
			c.say(subscribeCmd("many", "s"+string(rune('a'+i%26)), pulsarpb.CommandSubscribe_Shared, i, i))
		}
	}()
	seen := map[uint64]bool{}
	for len(seen) < n {
		seen[c.receive().GetSuccess().GetRequestId()] = true
	}
	r.unload("many")
	closed := map[uint64]bool{}
	for len(closed) < n {
		closed[c.receive().GetCloseConsumer().GetConsumerId()] = true
	}
	c.sync()
}
