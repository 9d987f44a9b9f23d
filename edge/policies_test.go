package edge_test

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"wayside/edge"
)

// rule changes the rules of a namespace or topic.
func (k *kit) rule(of string, change func(*edge.Policies)) {
	k.Helper()
	if err := k.broker.ChangePolicies(k.Context(), of, func(p *edge.Policies) error { change(p); return nil }); err != nil {
		k.Fatal(err)
	}
}

const own = "public/default"

// wall is a clock that stands still until told otherwise.
type wall struct{ passed atomic.Int64 }

func (w *wall) time() time.Time      { return time.Unix(2_000_000_000, w.passed.Load()) }
func (w *wall) pass(d time.Duration) { w.passed.Add(int64(d)) }

func TestRulesOfATopicGoBeforeThoseOfItsNamespace(t *testing.T) {
	k := newKit(t, nil)
	one, two := k.topic("one"), k.topic("two")
	if err := k.broker.CreatePartitions(t.Context(), k.name("p"), 2); err != nil {
		t.Fatal(err)
	}
	k.rule(own, func(p *edge.Policies) { p.Producers = new(int64(1)) })
	k.rule(k.name("two").String(), func(p *edge.Policies) { p.Producers = new(int64(2)) })
	k.rule(k.name("p").String(), func(p *edge.Policies) { p.Producers = new(int64(3)) })
	for n, topic := range map[int]*edge.Topic{1: one, 2: two, 3: k.topic("p-partition-1")} {
		for range n {
			k.producer(topic, edge.ProducerOptions{})
		}
		_, err := topic.AddProducer(t.Context(), edge.ProducerOptions{}, &end{}, &peer{})
		wants(t, "one producer more", err, edge.ErrProducerBusy)
	}
	k.restart(nil)
	k.producer(k.topic("one"), edge.ProducerOptions{})
	_, err := k.topic("one").AddProducer(t.Context(), edge.ProducerOptions{}, &end{}, &peer{})
	wants(t, "after a restart", err, edge.ErrProducerBusy)
	k.rule(own, func(p *edge.Policies) { *p = edge.Policies{} })
	k.producer(k.topic("one"), edge.ProducerOptions{})
	if err := k.broker.Delete(t.Context(), k.name("two"), true); err != nil {
		t.Fatal(err)
	}
	if p := k.broker.Effective(k.name("two")); p.Producers != nil {
		t.Error("the rules of a topic outlive it")
	}
}

func TestCountsThatRulesAllow(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("t")
	k.rule(own, func(p *edge.Policies) {
		p.Consumers, p.ConsumersPerSubscription, p.Subscriptions = new(int64(3)), new(int64(2)), new(int64(2))
	})
	for range 2 {
		k.subscribe(topic, subscription("a", edge.Shared))
	}
	try := func(name string) error {
		_, err := topic.Subscribe(t.Context(), subscription(name, edge.Shared), &inbox{}, &peer{})
		return err
	}
	wants(t, "a third of one subscription", try("a"), edge.ErrConsumerBusy)
	k.subscribe(topic, subscription("b", edge.Shared))
	wants(t, "a fourth", try("b"), edge.ErrConsumerBusy)
	k.rule(own, func(p *edge.Policies) { p.Consumers = nil })
	wants(t, "a third subscription", try("c"), edge.ErrNotAllowed)
	k.rule(own, func(p *edge.Policies) { p.Subscriptions, p.AutoSubscriptions = nil, &edge.AutoSubscriptions{} })
	if topic.AutoSubscribes() {
		t.Error("subscriptions come into being that may not")
	}
	_, err := topic.AddProducer(t.Context(), edge.ProducerOptions{InitialSubscription: "d"}, &end{}, &peer{})
	wants(t, "an initial subscription", err, edge.ErrNotAllowed)
	k.producer(topic, edge.ProducerOptions{InitialSubscription: "a"})
}

func TestABacklogQuotaStopsItsTopicAlone(t *testing.T) {
	for policy, want := range map[string]error{edge.QuotaHold: edge.ErrQuotaHold, edge.QuotaFail: edge.ErrQuotaFail} {
		k := newKit(t, nil)
		topic, other := k.topic("over"), k.topic("other")
		k.rule(own, func(p *edge.Policies) { p.BacklogSize = &edge.BacklogQuota{Size: 1_000, Time: -1, Policy: policy} })
		c, in := k.subscribe(topic, subscription("s", edge.Exclusive))
		c.Flow(100)
		p, pe := k.producer(topic, edge.ProducerOptions{})
		_, oe := k.producer(other, edge.ProducerOptions{})
		k.publishAll(p, messages(9, hundredBytes)...)
		k.broker.Sweep(0)
		k.publishAll(p, messages(1, hundredBytes)...) // up to the next round all goes on
		if err := pe.reason(); err != nil {
			t.Fatalf("closed too early: %v", err)
		}
		_, err := topic.AddProducer(t.Context(), edge.ProducerOptions{}, &end{}, &peer{})
		wants(t, "a new producer", err, want)
		k.broker.Sweep(0)
		eventually(t, "its producer is closed", func() bool { return errors.Is(pe.reason(), want) })
		if err := oe.reason(); err != nil {
			t.Fatalf("another topic's producer was told %v", err)
		}
		in.await(t, 10)
		k.ack(c, in.from(0)[:2]...)
		k.producer(topic, edge.ProducerOptions{})
	}
}

func TestABacklogQuotaDropsTheOldest(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("over")
	k.rule(own, func(p *edge.Policies) { p.BacklogSize = &edge.BacklogQuota{Size: 2_000, Policy: edge.QuotaEvict} })
	c, in := k.subscribe(topic, subscription("s", edge.Exclusive))
	p, _ := k.producer(topic, edge.ProducerOptions{})
	at := k.publishAll(p, messages(30, hundredBytes)...)
	k.broker.Sweep(0)
	c.Flow(100)
	eventually(t, "the rest came", func() bool { return in.count() >= 17 })
	if got := in.from(0)[0]; got.Less(at[12]) || at[13].Less(got) {
		t.Errorf("first came %v", got)
	}
	k.publishAll(p, messages(1, nil)...)
}

func TestABacklogThatIsTooOld(t *testing.T) {
	now := &wall{}
	k := newKit(t, func(o *edge.Options) { o.Clock = now.time })
	topic := k.topic("old")
	k.subscribe(topic, subscription("s", edge.Exclusive))
	p, pe := k.producer(topic, edge.ProducerOptions{})
	received := func(_ int, m *edge.Message) { m.Facts.Receive = now.time().UnixMilli() }
	k.publishAll(p, messages(3, received)...)
	now.pass(time.Minute)
	k.publishAll(p, messages(2, received)...)
	k.rule(own, func(p *edge.Policies) { p.BacklogAge = &edge.BacklogQuota{Time: 90, Policy: edge.QuotaFail} })
	k.broker.Sweep(0)
	if err := pe.reason(); err != nil {
		t.Fatalf("at one minute: %v", err)
	}
	now.pass(time.Minute)
	k.broker.Sweep(0)
	eventually(t, "the producer is closed at two minutes", func() bool { return errors.Is(pe.reason(), edge.ErrQuotaFail) })
	k.rule(own, func(p *edge.Policies) { p.BacklogAge = &edge.BacklogQuota{Time: 90, Policy: edge.QuotaEvict} })
	k.broker.Sweep(0)
	if n := topic.Stats().Subscriptions["s"].Backlog; n != 2 {
		t.Errorf("%d entries are left", n)
	}
}

func TestMessagesExpire(t *testing.T) {
	now := &wall{}
	k := newKit(t, func(o *edge.Options) { o.Clock = now.time })
	topic := k.topic("ttl")
	c, in := k.subscribe(topic, subscription("s", edge.Shared))
	k.subscribe(topic, edge.SubscribeOptions{Name: "r", Start: &edge.Earliest, Epoch: -1})
	c.Flow(1)
	p, _ := k.producer(topic, edge.ProducerOptions{})
	received := func(_ int, m *edge.Message) { m.Facts.Receive = now.time().UnixMilli() }
	k.publishAll(p, messages(3, received)...)
	in.await(t, 1)
	now.pass(time.Minute)
	k.publishAll(p, messages(1, received)...)
	k.rule(topic.Name().String(), func(p *edge.Policies) { p.TTL = new(int64(60)) })
	k.broker.Sweep(0)
	if n := topic.Stats().Subscriptions["s"].Backlog; n != 4 {
		t.Fatalf("%d entries are left at exactly a minute", n)
	}
	now.pass(time.Second)
	k.broker.Sweep(0)
	st := topic.Stats()
	for _, name := range []string{"s", "r"} {
		if sub := st.Subscriptions[name]; sub.Backlog != 1 || sub.Expired != 3 {
			t.Errorf("%s: %d left, %d expired", name, sub.Backlog, sub.Expired)
		}
	}
	c.Flow(10)
	if got := in.await(t, 2); !slices.Equal(got[1:], []string{"0"}) {
		t.Errorf("then came %q", got)
	}
}

// A topic that nobody uses is opened when all in it has expired.
func TestMessagesOfQuietTopicsExpire(t *testing.T) {
	now := &wall{}
	k := newKit(t, func(o *edge.Options) { o.Clock = now.time })
	k.rule(own, func(p *edge.Policies) { p.TTL = new(int64(60)) })
	topic := k.topic("quiet")
	c, _ := k.subscribe(topic, subscription("s", edge.Shared))
	p, _ := k.producer(topic, edge.ProducerOptions{})
	k.publishAll(p, messages(3, func(_ int, m *edge.Message) { m.Facts.Receive = now.time().UnixMilli() })...)
	p.Close(nil)
	c.Close()
	k.broker.Sweep(3 * time.Minute)
	if len(k.broker.OpenTopics()) != 0 {
		t.Fatal("the topic is still open")
	}
	now.pass(time.Hour)
	k.broker.Sweep(0)
	k.broker.Sweep(0)
	if n := k.topic("quiet").Stats().Subscriptions["s"].Backlog; n != 0 {
		t.Errorf("%d entries are left", n)
	}
}

func TestRetentionKeepsWhatIsAcknowledged(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("kept")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	c, in := k.subscribe(topic, subscription("s", edge.Exclusive))
	c.Flow(5_000)
	k.publishAll(p, messages(4_500, hundredBytes)...) // four closed ledgers
	in.await(t, 4_500)
	k.rule(own, func(p *edge.Policies) { p.Retention = &edge.Retention{Minutes: 10, MiB: -1} })
	k.ack(c, in.from(0)...)
	start := topic.Spans().Start()
	k.broker.Sweep(9 * time.Minute)
	barrier(t, k, topic)
	if topic.Spans().Start() != start {
		t.Fatal("younger than its time, and gone")
	}
	k.broker.Sweep(11 * time.Minute)
	eventually(t, "all closed ledgers are gone", func() bool { return len(topic.Spans().Closed) == 0 })
}

func TestRetentionGivesWayWhenTheStoreIsFull(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("kept")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	c, in := k.subscribe(topic, subscription("s", edge.Exclusive))
	c.Flow(5_000)
	k.publishAll(p, messages(4_500, hundredBytes)...)
	in.await(t, 4_500)
	k.rule(own, func(p *edge.Policies) { p.Retention = &edge.Retention{Minutes: -1, MiB: -1} })
	k.ack(c, in.from(0)...)
	k.broker.Sweep(time.Hour)
	barrier(t, k, topic)
	if n := len(topic.Spans().Closed); n != 4 {
		t.Fatalf("%d closed ledgers are left", n)
	}
	k.quota(400_000)
	k.broker.Sweep(0)
	eventually(t, "half of it is gone", func() bool { n := len(topic.Spans().Closed); return n == 2 || n == 1 })
}

func TestWhatComesIntoBeingByItself(t *testing.T) {
	k := newKit(t, func(o *edge.Options) { o.AutoPartitions = 2 })
	ask := func(name string, create bool) (int, error) {
		return k.broker.Metadata(t.Context(), k.name(name), create)
	}
	k.topic("plain")
	for name, want := range map[string]int{"plain": 0, "a": 2, "b-DLQ": 0, "b-RETRY": 0, "c-partition-0": 0} {
		if n, err := ask(name, true); n != want || err != nil {
			t.Errorf("%s has %d partitions: %v", name, n, err)
		}
	}
	if n, err := ask("a", false); n != 2 || err != nil || !k.broker.Exists(k.name("a-partition-1")) {
		t.Errorf("then it has %d: %v", n, err)
	}
	for rule, want := range map[edge.AutoTopics]int{
		{Allow: true}:                       2,
		{Allow: true, Type: edge.AutoPlain}: 0,
		{Allow: true, Type: edge.AutoPartitioned, Partitions: 5}:  5,
		{Allow: false, Type: edge.AutoPartitioned, Partitions: 5}: -1,
	} {
		k.rule(own, func(p *edge.Policies) { p.AutoTopics = &rule })
		name := fmt.Sprint("by", want)
		n, err := ask(name, true)
		if want < 0 {
			wants(t, "not allowed", err, edge.ErrTopicNotFound)
			continue
		}
		if n != want || err != nil || !k.broker.AutoCreates(k.name(name)) {
			t.Errorf("by %+v it has %d partitions: %v", rule, n, err)
		}
	}
}

func TestANamespaceTakesSoManyTopics(t *testing.T) {
	k := newKit(t, nil)
	k.rule(own, func(p *edge.Policies) { p.Topics = new(int64(3)) })
	k.topic("a")
	wants(t, "three partitions", k.broker.CreatePartitions(t.Context(), k.name("p"), 3), edge.ErrLimit)
	if err := k.broker.CreatePartitions(t.Context(), k.name("p"), 2); err != nil {
		t.Fatal(err)
	}
	_, err := k.broker.Open(t.Context(), k.name("b"), true)
	wants(t, "one more", err, edge.ErrLimit)
	k.topic("a")
}

func TestDispatchKeepsToItsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, nil)
		topic := k.topic("paced")
		k.rule(own, func(p *edge.Policies) {
			p.DispatchRate = &edge.DispatchRate{Messages: 8, Period: 2}
			p.SubscriptionRate = &edge.DispatchRate{Messages: 5, Period: 1}
		})
		p, _ := k.producer(topic, edge.ProducerOptions{})
		k.publishAll(p, messages(20, nil)...)
		c, in := k.subscribe(topic, subscription("s", edge.Shared))
		c.Flow(100)
		synctest.Wait()
		for _, want := range []int{5, 8, 13, 16} {
			if n := in.count(); n != want {
				t.Fatalf("%d came, want %d", n, want)
			}
			time.Sleep(time.Second)
			synctest.Wait()
		}
		k.rule(own, func(p *edge.Policies) { p.DispatchRate, p.SubscriptionRate = nil, nil })
		synctest.Wait()
		if n := in.count(); n != 20 {
			t.Errorf("%d came without a rate", n)
		}
		k.stop()
	})
}

// The limits of what is unacknowledged are those of the rules as soon as they change.
func TestUnackedLimitsThatRulesSet(t *testing.T) {
	for name, rule := range map[string]func(p *edge.Policies, n *int64){
		"each": func(p *edge.Policies, n *int64) { p.UnackedPerConsumer = n },
		"all":  func(p *edge.Policies, n *int64) { p.UnackedPerSubscription = n },
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t, nil)
			topic := k.topic("t")
			limit := func(n *int64) { k.rule(own, func(p *edge.Policies) { rule(p, n) }) }
			limit(new(int64(4)))
			p, _ := k.producer(topic, edge.ProducerOptions{})
			k.publishAll(p, messages(30, nil)...)
			c, in := k.subscribe(topic, subscription("s", edge.Shared))
			c.Flow(1_000)
			holds := func(n int) {
				t.Helper()
				in.await(t, n)
				st := topic.Stats().Subscriptions["s"]
				if blocked := st.Blocked || st.Consumers[0].Blocked; in.count() != n || blocked != (n < 30) {
					t.Fatalf("%d came, blocked %t, want %d", in.count(), blocked, n)
				}
			}
			holds(4)
			limit(new(int64(7)))
			holds(7)
			k.ack(c, in.all()[0].Entry.Position) // above the half
			holds(7)
			limit(new(int64(2)))
			k.ack(c, in.all()[1].Entry.Position, in.all()[2].Entry.Position, in.all()[3].Entry.Position)
			holds(7)
			limit(new(int64(0))) // none
			holds(30)
		})
	}
}
