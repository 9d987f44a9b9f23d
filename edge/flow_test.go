package edge_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"wayside/edge"
)

func TestMessagesArriveInOrderAndOnlyUnackedOnesComeBack(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("flow")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	at := k.publish(p, numbers(0, 10)...)
	c, in := k.subscribe(topic, subscription("s", edge.Exclusive))
	c.Flow(4)
	if got := in.await(t, 4); !slices.Equal(got, numbers(0, 4)) {
		t.Fatalf("got %v", got)
	}
	c.Flow(100)
	in.await(t, 10)
	k.ack(c, at[0], at[1], at[2], at[5])
	c.Close()
	c, in = k.subscribe(topic, subscription("s", edge.Exclusive))
	c.Flow(100)
	if got := in.await(t, 6); !slices.Equal(got, []string{"3", "4", "6", "7", "8", "9"}) {
		t.Fatalf("after the return got %v", got)
	}
	for _, d := range in.all() {
		if d.Redelivered != 0 {
			t.Errorf("%s has redelivery count %d: a new consumer is none", d.Entry.Data, d.Redelivered)
		}
	}
}

func TestPermitsAreCountedInMessages(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("permits")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	for range 4 {
		m := message("batch")
		m.Facts.Messages, m.Facts.Batch = 10, true
		recv(t, send(p, m))
	}
	c, in := k.subscribe(topic, subscription("s", edge.Shared))
	c.Flow(15)
	in.await(t, 2)
	if got := c.Stats().Permits; got != -5 {
		t.Fatalf("permits are %d after two batches of ten for fifteen", got)
	}
	c.Flow(5) // 0: still none
	c.Flow(1)
	in.await(t, 3)
	if n := len(in.all()); n != 3 {
		t.Fatalf("%d batches came", n)
	}
}

func TestAckedPartsOfABatchCostNoPermitsAndAreMarked(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("parts")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	m := message("batch")
	m.Facts.Messages, m.Facts.Batch = 10, true
	at := recv(t, send(p, m)).Position
	c, in := k.subscribe(topic, subscription("s", edge.Shared))
	c.Flow(10)
	in.await(t, 1)
	done := make(chan error, 1)
	c.Ack([]edge.AckPart{{Position: at, Rest: []uint64{0x3DC}}}, false, func(err error) { done <- err })
	if err := recv(t, done); err != nil {
		t.Fatal(err)
	}
	if u := c.Stats().Unacked; u != 7 {
		t.Fatalf("%d messages are unacked after three of ten were acked", u)
	}
	c.Redeliver([]edge.Position{at}, -1)
	c.Flow(7)
	in.await(t, 2)
	d := in.all()[1]
	if d.Redelivered != 1 || !slices.Equal(d.Rest, []uint64{0x3DC}) {
		t.Fatalf("came again with count %d and rest %x", d.Redelivered, d.Rest)
	}
	if got := c.Stats().Permits; got != 0 {
		t.Fatalf("permits are %d", got)
	}
}

func TestExclusiveSeatIsHeldByALivingPeer(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("seat")
	k.subscribe(topic, subscription("s", edge.Exclusive))
	_, err := topic.Subscribe(t.Context(), subscription("s", edge.Exclusive), &inbox{}, &peer{})
	var inUse *edge.InUseError
	if !errors.As(err, &inUse) || inUse.Holder == nil || !errors.Is(err, edge.ErrConsumerBusy) {
		t.Fatalf("second consumer got %v", err)
	}
	_, err = topic.Subscribe(t.Context(), subscription("s", edge.Shared), &inbox{}, &peer{})
	if !errors.Is(err, edge.ErrTypeMismatch) {
		t.Fatalf("another type got %v", err)
	}
}

func TestFailoverHandsOverWithAllUnacked(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("failover")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	at := k.publish(p, numbers(0, 5)...)
	o := subscription("s", edge.Failover)
	o.Consumer, o.Priority = "a", 0
	a, inA := k.subscribe(topic, o)
	o.Consumer, o.Priority = "b", 1
	b, inB := k.subscribe(topic, o)
	a.Flow(100)
	b.Flow(100)
	inA.await(t, 5)
	k.ack(a, at[0], at[1])
	a.Close()
	if got := inB.await(t, 3); !slices.Equal(got, numbers(2, 3)) {
		t.Fatalf("the second got %v", got)
	}
	if !slices.Equal(inA.active, []bool{true}) || !slices.Equal(inB.active, []bool{false, true}) {
		t.Fatalf("told a %v, b %v", inA.active, inB.active)
	}
}

func TestSharedSpreadsAndReturnsWhatALeaverHeld(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("shared")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	k.publish(p, numbers(0, 50)...) // more than one consumer gets at a turn
	a, inA := k.subscribe(topic, subscription("s", edge.Shared))
	b, inB := k.subscribe(topic, subscription("s", edge.Shared))
	a.Flow(20)
	b.Flow(100)
	eventually(t, "all delivered", func() bool { return len(inA.all())+len(inB.all()) == 50 })
	if len(inA.all()) == 0 || len(inB.all()) == 0 {
		t.Fatalf("one got %d, the other %d", len(inA.all()), len(inB.all()))
	}
	held := inA.bodies()
	before := len(inB.all())
	a.Close()
	got := inB.await(t, 50)[before:]
	if !slices.Equal(got, held) {
		t.Fatalf("the leaver held %v, the other got %v", held, got)
	}
	for _, d := range inB.all() {
		if d.Redelivered != 0 {
			t.Errorf("%s: leaving raised the count to %d", d.Entry.Data, d.Redelivered)
		}
	}
}

func TestNackCountsAndSurvivesTheTopicsUnload(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("nack")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	at := k.publish(p, "a", "b")
	c, in := k.subscribe(topic, subscription("s", edge.Shared))
	c.Flow(100)
	in.await(t, 2)
	c.Redeliver([]edge.Position{at[1]}, -1)
	in.await(t, 3)
	if d := in.all()[2]; string(d.Entry.Data) != "b" || d.Redelivered != 1 {
		t.Fatalf("got %s with count %d", d.Entry.Data, d.Redelivered)
	}
	if s, one := topic.Stats().Subscriptions["s"].Redelivered, c.Stats().Redelivered; s != 1 || one != 1 {
		t.Fatalf("statistics count %d and %d redeliveries", s, one)
	}
	if err := k.broker.Unload(t.Context(), topic.Name()); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(in.reason(), edge.ErrUnloaded) {
		t.Fatalf("the consumer was told %v", in.reason())
	}
	topic = k.topic("nack")
	c, in = k.subscribe(topic, subscription("s", edge.Shared))
	c.Flow(100)
	in.await(t, 2)
	if d := in.all()[1]; d.Redelivered != 1 {
		t.Fatalf("after the reload the count is %d", d.Redelivered)
	}
}

func TestUnackedLimitBlocksAndOpensAtHalf(t *testing.T) {
	k := newKit(t, func(o *edge.Options) { o.UnackedPerConsumer = 10 })
	topic := k.topic("limit")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	at := k.publish(p, numbers(0, 30)...)
	c, in := k.subscribe(topic, subscription("s", edge.Shared))
	c.Flow(100)
	in.await(t, 10)
	k.ack(c, at[:4]...)
	if st := c.Stats(); !st.Blocked || st.Unacked != 6 || len(in.all()) != 10 {
		t.Fatalf("blocked %t, unacked %d, delivered %d", st.Blocked, st.Unacked, len(in.all()))
	}
	k.ack(c, at[4])
	in.await(t, 15)
	if st := c.Stats(); st.Unacked != 10 {
		t.Fatalf("topped up to %d", st.Unacked)
	}
}

func TestGivenBackEntriesComeAgainUncounted(t *testing.T) {
	for _, kind := range []edge.SubKind{edge.Exclusive, edge.Shared} {
		t.Run(kind.String(), func(t *testing.T) {
			k := newKit(t, nil)
			topic := k.topic("back")
			p, _ := k.producer(topic, edge.ProducerOptions{})
			k.publish(p, numbers(0, 3)...)
			c, in := k.subscribe(topic, subscription("s", kind))
			c.Flow(3)
			in.await(t, 3)
			c.GiveBack(in.all()[1:])
			if got := in.await(t, 5)[3:]; !slices.Equal(got, []string{"1", "2"}) {
				t.Fatalf("came again: %v", got)
			}
			if st := c.Stats(); st.Permits != 0 {
				t.Fatalf("permits are %d", st.Permits)
			}
			if d := in.all()[4]; d.Redelivered != 0 {
				t.Fatalf("count %d", d.Redelivered)
			}
		})
	}
}

func TestNoRoomHoldsDispatchUntilWoken(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("room")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	k.publish(p, numbers(0, 5)...)
	in := &inbox{room: 2}
	c, err := topic.Subscribe(t.Context(), subscription("s", edge.Shared), in, &peer{})
	if err != nil {
		t.Fatal(err)
	}
	c.Flow(100)
	in.await(t, 2)
	in.mu.Lock()
	if len(in.got) != 2 {
		t.Errorf("%d came into room for two", len(in.got))
	}
	in.room = -1
	in.mu.Unlock()
	c.Wake()
	in.await(t, 5)
}

func TestDelayedEntriesWaitAndHoldNobodyUp(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("delay")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	c, in := k.subscribe(topic, subscription("s", edge.Shared))
	c.Flow(100)
	m := message("later")
	due := time.Now().Add(50 * time.Millisecond)
	m.Facts.DeliverAt = due.UnixMilli()
	recv(t, send(p, m))
	k.publish(p, "now")
	if got := in.await(t, 1); got[0] != "now" {
		t.Fatalf("first came %v", got)
	}
	in.await(t, 2)
	if time.Now().UnixMilli() < due.UnixMilli() {
		t.Fatal("the delayed message came early")
	}
}

func TestFollowerReadsOnlyWhatTheOtherAcknowledged(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("follow")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	at := k.publish(p, numbers(0, 4)...)
	lead, _ := k.subscribe(topic, subscription("lead", edge.Shared))
	o := subscription("tail", edge.Exclusive)
	o.Follow = "lead"
	c, in := k.subscribe(topic, o)
	c.Flow(100)
	k.ack(lead, at[1], at[0])
	if got := in.await(t, 2); !slices.Equal(got, []string{"0", "1"}) {
		t.Fatalf("got %v", got)
	}
	k.ack(lead, at[3]) // a hole at 2
	k.ack(lead, at[2])
	if got := in.await(t, 4); !slices.Equal(got, numbers(0, 4)) {
		t.Fatalf("got %v", got)
	}
}

func TestKeysKeepTheirOrderWhenConsumersComeAndGo(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("keys")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	put := func(slot uint16, body string) {
		m := message(body)
		m.Facts.Slot = slot
		recv(t, send(p, m))
	}
	a, inA := k.subscribe(topic, subscription("s", edge.KeyShared))
	a.Flow(100)
	put(1, "1a")
	put(60000, "2a")
	inA.await(t, 2)
	b, inB := k.subscribe(topic, subscription("s", edge.KeyShared)) // takes the lower half
	b.Flow(100)
	put(1, "1b")
	put(60000, "2b")
	inA.await(t, 3)
	if n := len(inB.all()); n != 0 {
		t.Fatalf("the new owner got %v while the old one holds the key", inB.bodies())
	}
	k.ack(a, inA.all()[0].Entry.Position)
	if got := inB.await(t, 1); got[0] != "1b" {
		t.Fatalf("then it got %v", got)
	}
	b.Close()
	if got := inA.await(t, 4)[3]; got != "1b" {
		t.Fatalf("after the leave came %s", got)
	}
}

func TestDamagedEntriesAreSkippedOnceByEveryKind(t *testing.T) {
	for _, kind := range []edge.SubKind{edge.Exclusive, edge.Shared, edge.KeyShared} {
		t.Run(kind.String(), func(t *testing.T) {
			k := newKit(t, nil)
			topic := k.topic("damaged")
			p, _ := k.producer(topic, edge.ProducerOptions{})
			at := k.publish(p, numbers(0, 5)...)
			c, in := k.subscribe(topic, subscription("s", kind))
			c.Flow(5)
			in.await(t, 5)
			k.store.Damage(topic.Name(), at[1])
			k.store.Damage(topic.Name(), at[2])
			c.Redeliver([]edge.Position{at[1], at[3]}, -1) // all of them on Exclusive
			c.Flow(5)
			want := map[edge.SubKind]int{edge.Exclusive: 8, edge.Shared: 6, edge.KeyShared: 6}[kind]
			in.await(t, want)
			eventually(t, "the damage is skipped", func() bool { return topic.Stats().Subscriptions["s"].Backlog <= 4 })
			st := topic.Stats().Subscriptions["s"]
			if st.Replay != 0 || len(in.all()) != want {
				t.Fatalf("replay %d, delivered %v", st.Replay, in.bodies())
			}
		})
	}
}

func TestManyDelayedEntriesAllCome(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("delays")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	const n = 12_000 // more than are held one by one
	due := time.Now().Add(300 * time.Millisecond).UnixMilli()
	var last <-chan answer
	for i := range n {
		m := message("x")
		m.Facts.DeliverAt = due + int64(i%50)
		last = send(p, m)
	}
	recv(t, last)
	c, in := k.subscribe(topic, subscription("s", edge.Shared))
	c.Flow(2 * n)
	in.await(t, n)
	if got := len(in.all()); got != n {
		t.Fatalf("%d of %d came", got, n)
	}
}
