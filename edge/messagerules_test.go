package edge_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"wayside/edge"
)

func TestTypesOfSubscriptionsThatAreNotEnabled(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("t")
	old, _ := k.subscribe(topic, subscription("old", edge.Exclusive))
	k.rule(own, func(p *edge.Policies) { p.SubscriptionTypes = &[]string{"Failover", "Key_Shared"} })
	base := topic.Name().String()
	for _, x := range []struct {
		topical *[]string
		refused map[edge.SubKind]bool
	}{
		{nil, map[edge.SubKind]bool{edge.Exclusive: true, edge.Shared: true, edge.Failover: false, edge.KeyShared: false}},
		{&[]string{"Shared"}, map[edge.SubKind]bool{edge.Exclusive: true, edge.Shared: false, edge.Failover: true, edge.KeyShared: true}},
	} {
		k.rule(base, func(p *edge.Policies) { p.SubscriptionTypes = x.topical })
		for kind, refused := range x.refused {
			o := subscription("of "+kind.String(), kind)
			c, err := topic.Subscribe(t.Context(), o, &inbox{room: -1}, &peer{})
			if !refused {
				if err != nil {
					t.Fatal(err)
				}
				c.Close()
				continue
			}
			wants(t, kind.String(), err, edge.ErrNotAllowed)
			if !strings.Contains(err.Error(), "Topic[{"+base+"}] doesn't support "+kind.String()+" sub type!") {
				t.Errorf("a client is told %q", err)
			}
		}
	}
	if err := topic.CreateSubscription(t.Context(), "by hand", edge.Latest); err != nil {
		t.Error(err)
	}
	own := subscription("the broker's", edge.Exclusive)
	own.Own = true
	k.subscribe(topic, own)
	old.Close()
}

func TestMessagesThatRulesRefuse(t *testing.T) {
	const now = 1_000_000
	yes := new(true)
	for name, x := range map[string]struct {
		rules edge.Policies
		m     func(*edge.Message)
		want  error
		text  string
	}{
		"plain where all is encrypted": {edge.Policies{EncryptionRequired: yes}, nil, edge.ErrBadMessage, "Messages must be encrypted"},
		"encrypted":                    {edge.Policies{EncryptionRequired: yes}, func(m *edge.Message) { m.Facts.Encrypted = true }, nil, ""},
		"plain where it may be":        {edge.Policies{EncryptionRequired: new(false)}, nil, nil, ""},
		"of the largest size":          {edge.Policies{MessageSize: new(int64(10))}, nil, nil, ""},
		"larger":                       {edge.Policies{MessageSize: new(int64(9))}, nil, edge.ErrNotAllowed, "Exceed maximum message size"},
		"a large chunk":                {edge.Policies{MessageSize: new(int64(9))}, func(m *edge.Message) { m.Facts.Chunk = edge.Chunk{UUID: "u", Of: 2} }, nil, ""},
		"larger without a limit":       {edge.Policies{MessageSize: new(int64(0))}, nil, nil, ""},
		"delayed as long as it may be": {edge.Policies{DelayedDelivery: &edge.DelayedDelivery{Active: true, Most: 500}}, func(m *edge.Message) { m.Facts.DeliverAt = now + 500 }, nil, ""},
		"delayed longer": {edge.Policies{DelayedDelivery: &edge.DelayedDelivery{Active: true, Most: 500}}, func(m *edge.Message) { m.Facts.DeliverAt = now + 501 },
			edge.ErrNotAllowed, "Exceeds max allowed delivery delay of 500 milliseconds"},
		"delayed where nothing is": {edge.Policies{DelayedDelivery: &edge.DelayedDelivery{Most: 500}}, func(m *edge.Message) { m.Facts.DeliverAt = now + 501 }, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t, nil)
			topic := k.topic("t")
			p, e := k.producer(topic, edge.ProducerOptions{Encrypted: true})
			bound, _ := k.producer(topic, edge.ProducerOptions{Own: true, Encrypted: true})
			k.rule(own, func(p *edge.Policies) { p.EncryptionRequired = x.rules.EncryptionRequired })
			k.rule(topic.Name().String(), func(p *edge.Policies) {
				p.MessageSize, p.DelayedDelivery = x.rules.MessageSize, x.rules.DelayedDelivery
			})
			m := message("ten bytes.")
			m.Facts.Publish = now
			if x.m != nil {
				x.m(&m)
			}
			a := recv(t, send(p, m))
			wants(t, "the answer", a.err, x.want)
			if a.err != nil && !strings.HasSuffix(a.err.Error(), ": "+x.text) || e.reason() != nil {
				t.Errorf("a client is told %q, its producer %v", a.err, e.reason())
			}
			if a := recv(t, send(bound, m)); a.err != nil {
				t.Errorf("the broker itself is told %v", a.err)
			}
		})
	}
}

// Who does not encrypt is let go as soon as that is required, and not let in again.
func TestProducersThatDoNotEncrypt(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("t")
	_, open := k.producer(topic, edge.ProducerOptions{})
	_, closed := k.producer(topic, edge.ProducerOptions{Encrypted: true})
	k.rule(own, func(p *edge.Policies) { p.EncryptionRequired = new(true) })
	eventually(t, "one that does not is let go", func() bool { return open.reason() != nil })
	wants(t, "one that does not", open.reason(), edge.ErrBadRequest)
	if closed.reason() != nil {
		t.Errorf("one that does is told %v", closed.reason())
	}
	_, err := topic.AddProducer(t.Context(), edge.ProducerOptions{}, &end{}, &peer{})
	wants(t, "the same again", err, edge.ErrBadRequest)
	if !strings.HasSuffix(err.Error(), ": Encryption is required in "+topic.Name().String()) {
		t.Errorf("a client is told %q", err)
	}
	k.rule(own, func(p *edge.Policies) { p.EncryptionRequired = nil })
	k.producer(topic, edge.ProducerOptions{})
}

func TestDelayedMessagesWhereDelaysAreOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, nil)
		topic := k.topic("t")
		p, _ := k.producer(topic, edge.ProducerOptions{})
		later := func(f *edge.Facts) { f.DeliverAt = time.Now().Add(time.Hour).UnixMilli() }
		c, in := k.subscribe(topic, subscription("s", edge.Shared))
		c.Flow(100)
		comes := func(n int, when string) {
			t.Helper()
			synctest.Wait()
			if in.count() != n {
				t.Fatalf("%d came %s, want %d", in.count(), when, n)
			}
		}
		publish := func(n int) {
			for range n {
				m := message("late")
				later(&m.Facts)
				recv(t, send(p, m))
			}
		}
		publish(3)
		comes(0, "with a delay")
		k.rule(topic.Name().String(), func(p *edge.Policies) { p.DelayedDelivery = &edge.DelayedDelivery{} })
		comes(3, "when delays were switched off")
		publish(2)
		comes(5, "without delays")
		k.rule(topic.Name().String(), func(p *edge.Policies) { p.DelayedDelivery = &edge.DelayedDelivery{Active: true} })
		publish(2)
		comes(5, "with delays again")
		k.rule(topic.Name().String(), func(p *edge.Policies) { p.DelayedDelivery = nil })
		comes(5, "by the broker's own rule")
		k.stop()
	})
}

func TestPropertiesOfPartitionedTopics(t *testing.T) {
	k := newKit(t, nil)
	ctx := t.Context()
	a, longer := k.name("a"), k.name("ab")
	note := func(of edge.TopicName, key, value string) error {
		return k.broker.ChangePartitionProperties(ctx, of, func(p map[string]string) { p[key] = value })
	}
	has := func(of edge.TopicName, want int, when string) {
		t.Helper()
		if p, err := k.broker.PartitionProperties(of); len(p) != want || err != nil {
			t.Errorf("%s has %v %s: %v", of, p, when, err)
		}
	}
	wants(t, "none there", note(a, "k", "v"), edge.ErrTopicNotFound)
	for _, name := range []edge.TopicName{a, longer} {
		if err := k.broker.CreatePartitions(ctx, name, 1); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"k", "l"} {
		if err := note(longer, key, "v"); err != nil {
			t.Fatal(err)
		}
	}
	has(a, 0, "at first")
	wants(t, "too much", note(longer, "m", strings.Repeat("x", 40_000)), edge.ErrLimit)
	k.restart(nil)
	has(longer, 2, "after a restart")
	if err := k.broker.DeletePartitions(ctx, longer, false); err != nil {
		t.Fatal(err)
	}
	if err := k.broker.CreatePartitions(ctx, longer, 1); err != nil {
		t.Fatal(err)
	}
	has(longer, 0, "made anew")
}
