package edge_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"wayside/edge"
)

func withSlot(body string, slot uint16) edge.Message {
	m := message(body)
	m.Facts.Slot = slot
	return m
}

// A slot that was held up is free again though what waited for it is acknowledged.
func TestASlotThatWaitedInVainIsFreeAgain(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("slots")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	put := func(body string, slot uint16) edge.Position { return recv(t, send(p, withSlot(body, slot))).Position }
	a, inA := k.subscribe(topic, subscription("s", edge.KeyShared))
	a.Flow(100)
	put("x1", 1)
	y1 := put("y1", 2)
	inA.await(t, 2)
	b, inB := k.subscribe(topic, subscription("s", edge.KeyShared)) // owns both slots now
	b.Flow(100)
	waiting := func(n int64) func() bool {
		return func() bool { return topic.Stats().Subscriptions["s"].Replay == n }
	}
	put("x2", 1)
	eventually(t, "x2 waits", waiting(1))
	y2 := put("y2", 2)
	eventually(t, "y2 waits", waiting(2))
	k.ack(b, y2)
	k.ack(a, y1)
	put("y3", 2)
	if got := inB.await(t, 1); got[0] != "y3" {
		t.Fatalf("got %v", got)
	}
}

// Whoever leaves while a read is under way, each key's messages come in order, and the
// first ones are not left out.
func TestFieldSH05KeysKeepTheirOrderWhenTheirOwnerLeavesAmidARead(t *testing.T) {
	for seed := range uint64(40) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		k := newKit(t, nil)
		topic := k.topic("amid")
		p, _ := k.producer(topic, edge.ProducerOptions{})
		var all []edge.Message
		for i := range 40 {
			all = append(all, withSlot(fmt.Sprint(i), uint16(1+i%2*60_000)))
		}
		a, inA := k.subscribe(topic, subscription("s", edge.KeyShared))
		a.Flow(5 + rnd.IntN(20))
		k.publishAll(p, all[:20]...)
		inA.await(t, 5)
		b, inB := k.subscribe(topic, subscription("s", edge.KeyShared))
		var reads atomic.Int64
		at := rnd.Int64N(4)
		read := func([]edge.Range) error {
			if reads.Add(1)-1 == at {
				a.Close()
			}
			return nil
		}
		k.broker.DropTail()
		k.hooks.read.Store(&read)
		b.Flow(1_000)
		k.publishAll(p, all[20:]...)
		a.Close()
		eventually(t, "all came", func() bool { return inB.count() >= 40 })
		byKey := map[uint16][]string{}
		for _, d := range inB.all() {
			byKey[d.Entry.Facts.Slot] = append(byKey[d.Entry.Facts.Slot], string(d.Entry.Data))
		}
		for slot, got := range byKey {
			var want []string
			for i, m := range all {
				if m.Facts.Slot == slot {
					want = append(want, fmt.Sprint(i))
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d, slot %d: %v", seed, slot, got)
			}
		}
		k.stop()
	}
}

// roomFor is a receiver that has room only for what it is asked the given times.
type roomFor struct {
	*inbox
	asked atomic.Int32
	none  func(asked int32) bool
}

func (r *roomFor) Room() int {
	if r.none(r.asked.Add(1)) {
		return 0
	}
	return 1 << 20
}

// Room that comes back amid a round lets no entry overtake another of its slot that
// has just been put off.
func TestRoomThatComesBackLetsNothingOvertake(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("room")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	k.publishAll(p, messages(4, func(_ int, m *edge.Message) { m.Facts.Slot = 7 })...)
	r := &roomFor{inbox: &inbox{room: -1}, none: func(asked int32) bool { return asked == 2 || asked == 8 }} // the first offer of each round
	c, err := topic.Subscribe(t.Context(), subscription("s", edge.KeyShared), r, &peer{})
	if err != nil {
		t.Fatal(err)
	}
	c.Flow(10)
	eventually(t, "both rounds are over", func() bool { return r.asked.Load() >= 8 })
	c.Wake()
	if got := r.await(t, 4); !slices.Equal(got, numbers(0, 4)) {
		t.Fatalf("got %v", got)
	}
}
