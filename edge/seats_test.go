package edge_test

import (
	"slices"
	"testing"
	"time"

	"wayside/edge"
)

// named is a consumer of subscription s.
func named(kind edge.SubKind, name string, priority int) edge.SubscribeOptions {
	o := subscription("s", kind)
	o.Consumer, o.Priority = name, priority
	return o
}

// told are the notices of being active or not.
func (b *inbox) told() []bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.active)
}

func TestANewcomerThatTakesOverIsToldOnlyThat(t *testing.T) {
	k := newKit(t, func(o *edge.Options) { o.FailoverDelay = time.Millisecond })
	topic := k.topic("newcomer")
	_, low := k.subscribe(topic, named(edge.Failover, "low", 1))
	_, high := k.subscribe(topic, named(edge.Failover, "high", 0))
	eventually(t, "a change of the active consumer", func() bool { return len(high.told()) > 0 && len(low.told()) > 1 })
	if got := high.told(); !slices.Equal(got, []bool{true}) {
		t.Errorf("the newcomer was told %v", got)
	}
	if got := low.told(); !slices.Equal(got, []bool{true, false}) {
		t.Errorf("the one before was told %v", got)
	}
}

func TestANewcomerThatIsOutdoneBeforeItsTurnIsTold(t *testing.T) {
	k := newKit(t, func(o *edge.Options) { o.FailoverDelay = time.Hour })
	topic := k.topic("outdone")
	k.subscribe(topic, named(edge.Failover, "low", 2))
	_, middle := k.subscribe(topic, named(edge.Failover, "middle", 1))
	if got := middle.told(); len(got) > 0 {
		t.Fatalf("who is to take over was told %v", got)
	}
	k.subscribe(topic, named(edge.Failover, "high", 0))
	if got := middle.told(); !slices.Equal(got, []bool{false}) {
		t.Errorf("who was outdone was told %v", got)
	}
}

func TestASeekKeepsTheSeatOfTheActiveFree(t *testing.T) {
	k := newKit(t, func(o *edge.Options) { o.FailoverDelay = time.Hour })
	topic := k.topic("kept")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	at := k.publish(p, numbers(0, 3)...)
	c, in := k.subscribe(topic, named(edge.Failover, "active", 0))
	standby, other := k.subscribe(topic, named(edge.Failover, "standby", 1))
	standby.Flow(100)
	c.Flow(100)
	in.await(t, 3)
	if err := standby.Seek(t.Context(), edge.SeekTarget{Position: at[1]}); err != nil {
		t.Fatal(err)
	}
	if in.reason() == nil {
		t.Fatal("the active one was not sent away")
	}
	if got := other.told(); !slices.Equal(got, []bool{false}) {
		t.Fatalf("the standby was told %v", got)
	}
	c, in = k.subscribe(topic, named(edge.Failover, "active", 0))
	c.Flow(100)
	if got := in.await(t, 2); !slices.Equal(got, numbers(1, 2)) {
		t.Fatalf("got %v", got)
	}
	if other.count() > 0 {
		t.Fatalf("the standby was given %v", other.bodies())
	}
}

func TestASeatThatASeekHasEmptiedIsFilledAfterTheDelay(t *testing.T) {
	k := newKit(t, func(o *edge.Options) { o.FailoverDelay = time.Millisecond })
	topic := k.topic("filled")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	at := k.publish(p, numbers(0, 3)...)
	c, _ := k.subscribe(topic, named(edge.Failover, "active", 0))
	standby, other := k.subscribe(topic, named(edge.Failover, "standby", 1))
	standby.Flow(100)
	if err := c.Seek(t.Context(), edge.SeekTarget{Position: at[2]}); err != nil {
		t.Fatal(err)
	}
	if got := other.await(t, 1); !slices.Equal(got, []string{"2"}) {
		t.Fatalf("got %v", got)
	}
}

func TestTheTurnAfterAJoinIsTheNewcomers(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("turn")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	c, in := k.subscribe(topic, named(edge.Shared, "first", 0))
	c.Flow(100)
	k.publish(p, "0")
	in.await(t, 1)
	c, other := k.subscribe(topic, named(edge.Shared, "second", 0))
	c.Flow(100)
	k.publish(p, "1")
	if got := other.await(t, 1); !slices.Equal(got, []string{"1"}) {
		t.Fatalf("got %v", got)
	}
}

func TestASharedProducerIsToldTheEpochThatItFinds(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("epoch")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	if epoch, ok := p.TopicEpoch(); ok {
		t.Errorf("epoch %d of a topic that never had an exclusive producer", epoch)
	}
	k.close(p)
	for range 2 {
		p, _ = k.producer(topic, edge.ProducerOptions{Access: edge.AccessExclusive})
		k.close(p)
	}
	p, _ = k.producer(topic, edge.ProducerOptions{})
	if epoch, ok := p.TopicEpoch(); !ok || epoch != 1 {
		t.Errorf("epoch %d, %v, want 1", epoch, ok)
	}
}

// close closes a producer and waits for the answer.
func (k *kit) close(p *edge.Producer) {
	k.Helper()
	done := make(chan struct{})
	p.Close(func() { close(done) })
	recv(k.T, done)
}
