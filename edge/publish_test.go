package edge_test

import (
	"errors"
	"testing"

	"wayside/edge"
)

func TestProducerNamesAreTakenOnce(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("names")
	key := new(int)
	p, e := k.producer(topic, edge.ProducerOptions{Name: "p", PeerKey: key})
	_, err := topic.AddProducer(t.Context(), edge.ProducerOptions{Name: "p", PeerKey: new(int)}, &end{}, &peer{})
	var inUse *edge.InUseError
	if !errors.As(err, &inUse) || !errors.Is(err, edge.ErrProducerBusy) {
		t.Fatalf("a second one got %v", err)
	}
	if _, err := topic.AddProducer(t.Context(), edge.ProducerOptions{Name: "p", PeerKey: key, Epoch: 1}, &end{}, &peer{}); err != nil {
		t.Fatalf("the successor got %v", err)
	}
	if a := recv(t, send(p, message("old"))); !errors.Is(a.err, edge.ErrGone) || e.reason() != nil {
		t.Fatalf("the replaced one published: %v, and was told %v", a.err, e.reason())
	}
	q, _ := k.producer(topic, edge.ProducerOptions{})
	r, _ := k.producer(topic, edge.ProducerOptions{})
	if q.Name() == r.Name() {
		t.Fatalf("two producers are called %s", q.Name())
	}
}

func TestDuplicatesAreToldInLine(t *testing.T) {
	k := newKit(t, func(o *edge.Options) { o.Deduplication = true })
	topic := k.topic("dedup")
	p, _ := k.producer(topic, edge.ProducerOptions{Name: "p"})
	numbered := func(s, h int64) edge.Message {
		m := message("x")
		m.Facts.Producer, m.Facts.Sequence, m.Facts.Highest = "p", s, h
		return m
	}
	k.store.Hold()
	first := send(p, numbered(5, 7))
	again := send(p, numbered(6, 6)) // while the first is on its way
	next := send(p, numbered(8, 8))
	k.store.Release()
	if a := recv(t, first); a.err != nil || a.Duplicate {
		t.Fatalf("first: %+v", a)
	}
	if a := recv(t, again); a.err != nil || !a.Duplicate {
		t.Fatalf("inside the first: %+v", a)
	}
	if a := recv(t, next); a.err != nil || a.Duplicate {
		t.Fatalf("next: %+v", a)
	}
	p.Close(nil)
	if err := k.broker.Unload(t.Context(), topic.Name()); err != nil {
		t.Fatal(err)
	}
	p, _ = k.producer(k.topic("dedup"), edge.ProducerOptions{Name: "p"})
	if p.LastSequence() != 8 {
		t.Fatalf("after the reload the last sequence is %d", p.LastSequence())
	}
}

func TestChunksShareASequence(t *testing.T) {
	k := newKit(t, func(o *edge.Options) { o.Deduplication = true })
	p, _ := k.producer(k.topic("chunks"), edge.ProducerOptions{Name: "p"})
	chunk := func(id int32) answer {
		m := message("x")
		m.Facts.Producer, m.Facts.Sequence, m.Facts.Highest = "p", 3, 3
		m.Facts.Chunk = edge.Chunk{UUID: "u", ID: id, Of: 3}
		return recv(t, send(p, m))
	}
	for id := range int32(3) {
		if a := chunk(id); a.err != nil || a.Duplicate {
			t.Fatalf("chunk %d: %+v", id, a)
		}
	}
	for id := range int32(3) {
		if a := chunk(id); !a.Duplicate {
			t.Errorf("chunk %d was stored again", id)
		}
	}
}

func TestFailedAppendClosesProducersAndNothingOvertakes(t *testing.T) {
	k := newKit(t, func(o *edge.Options) { o.Deduplication = true })
	topic := k.topic("fail")
	p, e := k.producer(topic, edge.ProducerOptions{Name: "p"})
	numbered := func(s int64) edge.Message {
		m := message("x")
		m.Facts.Producer, m.Facts.Sequence, m.Facts.Highest = "p", s, s
		return m
	}
	k.store.Hold()
	k.store.Fail(errors.New("no space"))
	one, two := send(p, numbered(1)), send(p, numbered(2))
	k.store.Release()
	for _, ch := range []<-chan answer{one, two} {
		if a := recv(t, ch); a.err == nil {
			t.Fatal("a failed write was receipted")
		}
	}
	eventually(t, "the producer is closed", func() bool { return e.reason() != nil })
	k.store.Fail(nil)
	p, _ = k.producer(topic, edge.ProducerOptions{Name: "p"})
	if p.LastSequence() != -1 {
		t.Fatalf("a failed sequence is remembered: %d", p.LastSequence())
	}
	if a := recv(t, send(p, numbered(1))); a.err != nil || a.Duplicate {
		t.Fatalf("the resend: %+v: %v", a, a.err)
	}
}

func TestAccessModes(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("access")
	add := func(name string, m edge.AccessMode) (*edge.Producer, *end, error) {
		e := &end{}
		p, err := topic.AddProducer(t.Context(), edge.ProducerOptions{Name: name, Access: m}, e, &peer{})
		return p, e, err
	}
	a, _, err := add("a", edge.AccessExclusive)
	if err != nil {
		t.Fatal(err)
	}
	if epoch, ok := a.TopicEpoch(); !ok || epoch != 0 {
		t.Fatalf("first epoch %d %t", epoch, ok)
	}
	if _, _, err := add("b", edge.AccessExclusive); !errors.Is(err, edge.ErrFenced) {
		t.Fatalf("second exclusive: %v", err)
	}
	if _, _, err := add("c", edge.AccessShared); !errors.Is(err, edge.ErrProducerBusy) {
		t.Fatalf("shared beside exclusive: %v", err)
	}
	d, dEnd, err := add("d", edge.AccessWait)
	if err != nil || d.Ready() {
		t.Fatalf("waiting: %v, ready %t", err, d.Ready())
	}
	a.Close(nil)
	eventually(t, "the waiter's turn", func() bool { return len(dEnd.turns()) == 1 })
	if a := recv(t, send(d, message("x"))); a.err != nil {
		t.Fatal(a.err)
	}
	f, _, err := add("f", edge.AccessFence)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the owner is fenced", func() bool { return errors.Is(dEnd.reason(), edge.ErrFenced) })
	if epoch, _ := f.TopicEpoch(); epoch != 2 {
		t.Fatalf("epoch %d", epoch)
	}
	_, err = topic.AddProducer(t.Context(), edge.ProducerOptions{Name: "g", Access: edge.AccessFence, HasTopicEpoch: true, TopicEpoch: 1}, &end{}, &peer{})
	if !errors.Is(err, edge.ErrFenced) {
		t.Fatalf("an old epoch: %v", err)
	}
}

func TestTerminatedTopicTakesNothingMoreAndTellsTheEnd(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("ended")
	p, e := k.producer(topic, edge.ProducerOptions{})
	at := k.publish(p, "a")
	last, err := k.broker.Terminate(t.Context(), topic.Name())
	if err != nil || last != at[0] {
		t.Fatalf("terminated at %v, %v", last, err)
	}
	eventually(t, "the producer is closed", func() bool { return errors.Is(e.reason(), edge.ErrTerminated) })
	if _, err := topic.AddProducer(t.Context(), edge.ProducerOptions{}, &end{}, &peer{}); !errors.Is(err, edge.ErrTerminated) {
		t.Fatalf("a new producer: %v", err)
	}
	c, in := k.subscribe(topic, subscription("s", edge.Exclusive))
	c.Flow(10)
	in.await(t, 1)
	k.ack(c, at...)
	eventually(t, "the end is told", func() bool { in.mu.Lock(); defer in.mu.Unlock(); return in.ended == 1 })
}

func TestIdsNeverComeBack(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("ids")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	before := k.publish(p, "a")[0]
	birth := topic.BirthID()
	if err := k.broker.Delete(t.Context(), topic.Name(), false); !errors.Is(err, edge.ErrTopicInUse) {
		t.Fatalf("deleting a topic in use: %v", err)
	}
	if err := k.broker.Delete(t.Context(), topic.Name(), true); err != nil {
		t.Fatal(err)
	}
	topic = k.topic("ids")
	if topic.BirthID() == birth {
		t.Fatal("the recreated topic has the old birth id")
	}
	p, _ = k.producer(topic, edge.ProducerOptions{})
	if after := k.publish(p, "b")[0]; !before.Less(after) {
		t.Fatalf("%v came after %v", after, before)
	}
}

// A message that no store could take fails alone: its producer and the others go on.
func TestAMessageThatTheStoreRefusesFailsAlone(t *testing.T) {
	k := newKit(t, func(o *edge.Options) { o.Deduplication = true })
	topic := k.topic("refused")
	p, e := k.producer(topic, edge.ProducerOptions{Name: "p"})
	refuse := func(m *edge.Message) bool { return string(m.Data) == "bad" }
	k.hooks.refuse.Store(&refuse)
	bad := numbered(0)
	bad.Data = []byte("bad")
	if a := recv(t, send(p, bad)); !errors.Is(a.err, edge.ErrBadRequest) || errors.Is(a.err, edge.ErrStorage) {
		t.Fatalf("it got %v", a.err)
	}
	if r := k.send(p, numbered(0)); r.Duplicate {
		t.Fatal("what was refused counts as stored")
	}
	if e.reason() != nil {
		t.Fatalf("its producer was closed: %v", e.reason())
	}
}
