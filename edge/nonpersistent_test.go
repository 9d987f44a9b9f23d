package edge_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"wayside/edge"
)

const fleeting = "non-persistent://public/default/np"

func TestANonPersistentTopicGivesAtOnceOrDrops(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic(fleeting)
	p, _ := k.producer(topic, edge.ProducerOptions{Name: "p", Deduplicate: true})
	if at := k.publish(p, "nobody listens"); at[0] != (edge.Position{}) {
		t.Fatalf("the receipt has %v", at[0])
	}
	one, inOne := k.subscribe(topic, subscription("a", edge.Exclusive))
	two, inTwo := k.subscribe(topic, subscription("b", edge.Shared))
	three, inThree := k.subscribe(topic, subscription("b", edge.Shared))
	k.publish(p, "no permits")
	for _, c := range []*edge.Consumer{one, two, three} {
		c.Flow(2)
	}
	k.publish(p, "1", "2", "3", "4", "5")
	for name, x := range map[string]struct {
		in   *inbox
		want []string
	}{"one": {inOne, []string{"1", "2"}}, "two": {inTwo, []string{"1", "3"}}, "three": {inThree, []string{"2", "4"}}} {
		if got := x.in.bodies(); !slices.Equal(got, x.want) {
			t.Errorf("%s was given %q, not %q", name, got, x.want)
		}
		if at := x.in.all()[0].Entry.Position; at != (edge.Position{}) {
			t.Errorf("%s was given %v", name, at)
		}
	}
	st := topic.Stats()
	if a, b := st.Subscriptions["a"], st.Subscriptions["b"]; a.Dropped != 4 || b.Dropped != 2 || st.Dropped != 6 {
		t.Errorf("dropped %d and %d, %d in all", a.Dropped, b.Dropped, st.Dropped)
	}
	if st.Entries != 0 || st.MsgIn != 7 || st.MsgOut != 6 {
		t.Errorf("%d entries are stored, %d came, %d went", st.Entries, st.MsgIn, st.MsgOut)
	}
}

func TestOnANonPersistentTopicNothingComesBack(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic(fleeting)
	p, _ := k.producer(topic, edge.ProducerOptions{})
	c, in := k.subscribe(topic, subscription("s", edge.Shared))
	c.Flow(10)
	at := k.publish(p, "a", "b")
	k.ack(c, at[0])
	c.Redeliver(nil, -1)
	if err := c.Seek(t.Context(), edge.SeekTarget{Position: edge.Earliest}); err != nil {
		t.Fatal(err)
	}
	if id := c.LastID(); id.Last != edge.Earliest {
		t.Errorf("the last id is %v", id.Last)
	}
	k.publish(p, "c")
	if got := in.bodies(); !slices.Equal(got, []string{"a", "b", "c"}) || in.reason() != nil {
		t.Errorf("%q came, closed for %v", got, in.reason())
	}
	if topic.Stats().Subscriptions["s"].Durable {
		t.Error("the subscription is called durable")
	}
	if st := c.Stats(); st.Permits != 7 || st.Unacked != 0 {
		t.Errorf("%d permits and %d unacknowledged", st.Permits, st.Unacked)
	}
}

func TestANonPersistentTopicKeepsAKeyTogetherAndABatchWhole(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic(fleeting)
	p, _ := k.producer(topic, edge.ProducerOptions{})
	one, inOne := k.subscribe(topic, subscription("s", edge.KeyShared))
	two, inTwo := k.subscribe(topic, subscription("s", edge.KeyShared))
	one.Flow(1)
	two.Flow(100)
	batch := message("batch")
	batch.Facts.Messages, batch.Facts.Batch, batch.Facts.Slot = 5, true, 65_000
	low, high := message("low"), message("high")
	low.Facts.Slot, high.Facts.Slot = 1, 65_000
	for _, m := range []edge.Message{batch, high, low} {
		recv(t, send(p, m))
	}
	if got := append(inOne.bodies(), inTwo.bodies()...); !slices.Equal(got, []string{"batch", "low"}) {
		t.Errorf("%q came", got) // the batch went beyond its consumer's only permit
	}
}

func TestANonPersistentTopicLivesAsLongAsItsClients(t *testing.T) {
	k := newKit(t, nil)
	name := k.name(fleeting)
	topic := k.topic(fleeting)
	p, pe := k.producer(topic, edge.ProducerOptions{})
	if names := k.broker.Names("public/default"); !slices.Contains(names, name) {
		t.Fatalf("it is not among %v", names)
	}
	if err := k.broker.Unload(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(pe.reason(), edge.ErrUnloaded) || k.broker.Exists(name) {
		t.Fatalf("unloaded: the producer was told %v", pe.reason())
	}
	if a := recv(t, send(p, message("late"))); !errors.Is(a.err, edge.ErrGone) {
		t.Fatalf("a late message: %v", a.err)
	}
	p, _ = k.producer(k.topic(fleeting), edge.ProducerOptions{})
	if err := k.broker.Delete(t.Context(), name, false); !errors.Is(err, edge.ErrTopicInUse) {
		t.Fatalf("deleted under its producer: %v", err)
	}
	p.Close(nil)
	k.broker.Sweep(3 * time.Minute)
	if k.broker.Exists(name) {
		t.Error("it outlives its clients")
	}
	k.restart(nil)
	if k.broker.Exists(name) {
		t.Error("it outlives the broker")
	}
}

func TestWhatANonPersistentTopicHandsOutIsBoundedByMemory(t *testing.T) {
	k := newKit(t, func(o *edge.Options) { o.Budget = edge.NewBudget(4 << 20) })
	topic := k.topic(fleeting)
	p, _ := k.producer(topic, edge.ProducerOptions{})
	hoard := &hoarder{}
	c, err := topic.Subscribe(t.Context(), subscription("s", edge.Exclusive), hoard, &peer{})
	if err != nil {
		t.Fatal(err)
	}
	c.Flow(1_000)
	for range 100 {
		m := message("")
		m.Data = make([]byte, 64<<10)
		recv(t, send(p, m))
	}
	_, limit := k.broker.Budget().Usage(edge.ShareRead)
	if n := len(hoard.got); n == 0 || n*64<<10 > int(limit) {
		t.Errorf("%d messages of 64 KiB were handed out, the limit is %d bytes", n, limit)
	}
	for _, d := range hoard.got {
		d.Grant.Release()
	}
}

// hoarder takes everything and gives no memory back.
type hoarder struct {
	inbox
	got []edge.Delivery
}

func (h *hoarder) Room() int { return 1 << 20 }
func (*hoarder) Flush()      {}

func (h *hoarder) Deliver(d edge.Delivery) { h.got = append(h.got, d) }

// Clients of all kinds come and go while others publish: what was taken goes to nobody
// twice, in the order of its publisher, and all memory comes back.
func TestANonPersistentTopicUnderLoad(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic(fleeting)
	const publishers, each = 4, 500
	var work sync.WaitGroup
	for i := range publishers {
		p, _ := k.producer(topic, edge.ProducerOptions{})
		work.Go(func() {
			for n := range each {
				m := message(fmt.Sprintf("%d %d", i, n))
				m.Facts.Slot = uint16(i)
				<-send(p, m)
			}
			p.Close(nil)
		})
	}
	steady, in := k.subscribe(topic, subscription("steady", edge.Exclusive))
	steady.Flow(1 << 20)
	for _, kind := range []edge.SubKind{edge.Exclusive, edge.Shared, edge.Failover, edge.KeyShared} {
		work.Go(func() {
			for n := range 50 {
				c, err := topic.Subscribe(t.Context(), subscription(fmt.Sprint(kind, n%2), kind), &inbox{room: -1}, &peer{})
				if err != nil {
					continue // its seat is not free yet
				}
				c.Flow(10)
				c.Redeliver(nil, -1)
				c.Close()
			}
		})
	}
	work.Wait()
	last := map[int]int{}
	for _, body := range in.bodies() {
		var i, n int
		if _, err := fmt.Sscanf(body, "%d %d", &i, &n); err != nil {
			t.Fatal(err)
		}
		if before, ok := last[i]; ok && n <= before {
			t.Fatalf("publisher %d: %d came behind %d", i, n, before)
		}
		last[i] = n
	}
	if st := topic.Stats().Subscriptions["steady"]; st.MsgOut+st.Dropped > publishers*each {
		t.Errorf("%d given and %d dropped, of %d", st.MsgOut, st.Dropped, publishers*each)
	}
}
