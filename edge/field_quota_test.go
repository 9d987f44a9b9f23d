package edge_test

import (
	"errors"
	"testing"
	"time"

	"wayside/edge"
)

// Cases that people met with other brokers, by the numbers that they have among ours: what
// is full, and what is too old. Times are the broker's own.

// DF-05: a backlog quota fired, consumers drained everything, and producers stay blocked.
func TestFieldDF05AnEmptyBacklogBlocksNobody(t *testing.T) {
	for name, rule := range map[string]func(*edge.Policies){
		"size": func(p *edge.Policies) {
			p.BacklogSize = &edge.BacklogQuota{Size: 1_000, Time: -1, Policy: edge.QuotaHold}
		},
		"age": func(p *edge.Policies) {
			p.BacklogAge = &edge.BacklogQuota{Time: 10, Policy: edge.QuotaHold}
		},
	} {
		t.Run(name, func(t *testing.T) {
			now := &wall{}
			k := newKit(t, func(o *edge.Options) { o.Clock = now.time })
			if err := k.broker.CreatePartitions(t.Context(), k.name("df05"), 2); err != nil {
				t.Fatal(err)
			}
			topic := k.topic("df05-partition-0")
			k.rule(own, rule)
			c, in := k.subscribe(topic, subscription("s", edge.KeyShared))
			c.Flow(100)
			old, end := k.producer(topic, edge.ProducerOptions{Name: "old", UserProvided: true})
			k.publishAll(old, messages(12, func(i int, m *edge.Message) {
				hundredBytes(i, m)
				m.Facts.Receive, m.Facts.Key = now.time().UnixMilli(), []byte{byte(i)}
			})...)
			now.pass(11 * time.Second)
			k.broker.Sweep(0)
			eventually(t, "the producer is blocked", func() bool { return errors.Is(end.reason(), edge.ErrQuotaHold) })
			in.await(t, 12)
			k.ack(c, in.from(0)...)
			if n := topic.Stats().BacklogSize; n != 0 {
				t.Errorf("a backlog of %d bytes", n)
			}
			for _, name := range []string{"old", "new"} {
				p, end := k.producer(topic, edge.ProducerOptions{Name: name, UserProvided: true})
				k.publishAll(p, messages(1, func(_ int, m *edge.Message) { m.Facts.Receive = now.time().UnixMilli() })...)
				k.broker.Sweep(0)
				if err := end.reason(); err != nil {
					t.Errorf("%s is blocked: %v", name, err)
				}
			}
		})
	}
}

// DF-07: a full stream that refuses new data is expected to take some again as old ones
// are taken away, and does not. The consumer stands for whatever drains slowly, the uplink
// too, whose cursor is one.
func TestFieldDF07RoomComesBackMessageByMessage(t *testing.T) {
	k := newKit(t, func(o *edge.Options) { o.WhenFull = edge.WhenFullFail })
	topic := k.topic("df07")
	c, in := k.subscribe(topic, subscription("s", edge.Exclusive))
	c.Flow(1000)
	k.quota(2_000)
	p, end := k.producer(topic, edge.ProducerOptions{})
	k.publishAll(p, messages(20, hundredBytes)...)
	k.broker.Sweep(0)
	eventually(t, "the producer is refused", func() bool { return errors.Is(end.reason(), edge.ErrQuotaFail) })
	in.await(t, 20)
	for n := range 50 { // a message leaves, a message comes, and the one after it does not
		k.ack(c, in.from(n)[0])
		p, _ := k.producer(topic, edge.ProducerOptions{})
		k.publishAll(p, messages(1, hundredBytes)...)
		p.Close(nil)
		in.await(t, 21+n)
		if _, err := topic.AddProducer(t.Context(), edge.ProducerOptions{}, newEnd(), &peer{}); !errors.Is(err, edge.ErrQuotaFail) {
			t.Fatalf("after %d: one too many: %v", n, err)
		}
	}
	if st := k.broker.Stats().Store; st.LiveBytes != st.Quota {
		t.Errorf("%d of %d bytes", st.LiveBytes, st.Quota)
	}
}

func newEnd() *end { return &end{} }

// MG-01: the far end was never reachable since the first start: limits are not applied, and
// memory climbs. What the uplink has for a topic is a cursor that stands still.
func TestFieldMG01DroppingTheOldestHoldsTheQuota(t *testing.T) {
	const quota = 50_000
	k := newKit(t, func(o *edge.Options) { o.WhenFull = edge.WhenFullDropOldest })
	topic := k.topic("mg01")
	k.subscribe(topic, subscription("never", edge.Exclusive)) // it takes nothing
	k.quota(quota)
	p, _ := k.producer(topic, edge.ProducerOptions{})
	const n = 3_000
	used := func() (sum int64) {
		for _, s := range []edge.Share{edge.SharePublish, edge.ShareRead, edge.ShareSubscription, edge.ShareTail} {
			u, _ := k.broker.Budget().Usage(s)
			sum += u
		}
		return sum
	}
	var early int64
	for i := 0; i < n; i += 100 {
		k.publishAll(p, messages(100, hundredBytes)...)
		k.broker.Sweep(0)
		if live := topic.Stats().BacklogSize; live >= quota {
			t.Fatalf("%d bytes after %d messages", live, i+100)
		}
		if i == n/3 {
			early = used()
		}
	}
	if late := used(); late > early+early/4+64<<10 {
		t.Errorf("memory grew from %d to %d bytes", early, late)
	}
	backlog := topic.Stats().Subscriptions["never"].Backlog
	if dropped := k.broker.Stats().Dropped; dropped+backlog != n || dropped == 0 {
		t.Errorf("%d dropped and %d left of %d", dropped, backlog, n)
	}
}

// CK-03: the client's clock is a year ahead, its messages never expire and the disk fills.
func TestFieldCK03ExpiryGoesByTheBrokersTime(t *testing.T) {
	now := &wall{}
	k := newKit(t, func(o *edge.Options) { o.Clock, o.KeepAcked = now.time, 0 })
	topic := k.topic("ck03")
	k.rule(topic.Name().String(), func(p *edge.Policies) { p.TTL = new(int64(5)) })
	k.subscribe(topic, subscription("s", edge.Shared))
	p, _ := k.producer(topic, edge.ProducerOptions{})
	ahead := func(_ int, m *edge.Message) {
		m.Facts.Receive = now.time().UnixMilli()
		m.Facts.Publish = now.time().AddDate(1, 0, 0).UnixMilli()
	}
	k.publishAll(p, messages(2_500, ahead)...)
	k.publishAll(p, messages(1, func(_ int, m *edge.Message) { m.Facts.Receive = now.time().UnixMilli() })...)
	now.pass(5 * time.Second)
	k.broker.Sweep(0)
	if n := topic.Stats().Subscriptions["s"].Backlog; n != 2_501 {
		t.Errorf("%d are left after 5 s", n)
	}
	now.pass(time.Second)
	k.broker.Sweep(0)
	if st := topic.Stats().Subscriptions["s"]; st.Backlog != 0 || st.Expired != 2_501 {
		t.Errorf("%d are left, %d expired", st.Backlog, st.Expired)
	}
	eventually(t, "their ledgers go", func() bool {
		k.broker.Sweep(0)
		return topic.Stats().Entries < 1_000
	})
}

// CK-07: a restart sets the timers of expiry back to their full length.
func TestFieldCK07ARestartGivesNoMessageMoreTime(t *testing.T) {
	now := &wall{}
	clock := func(o *edge.Options) { o.Clock = now.time }
	k := newKit(t, clock)
	topic := k.topic("ck07")
	k.rule(topic.Name().String(), func(p *edge.Policies) { p.TTL = new(int64(60)) })
	k.subscribe(topic, subscription("s", edge.Shared))
	p, _ := k.producer(topic, edge.ProducerOptions{})
	k.publishAll(p, messages(10, func(_ int, m *edge.Message) { m.Facts.Receive = now.time().UnixMilli() })...)
	now.pass(30 * time.Second)
	k.restart(clock)
	topic = k.topic("ck07")
	now.pass(30 * time.Second)
	k.broker.Sweep(0)
	if n := topic.Stats().Subscriptions["s"].Backlog; n != 10 {
		t.Errorf("%d are left at 60 s", n)
	}
	now.pass(time.Second)
	k.broker.Sweep(0)
	if n := topic.Stats().Subscriptions["s"].Backlog; n != 0 {
		t.Errorf("%d are left at 61 s", n)
	}
}
