package edge_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"wayside/edge"
)

// numbered is a message with a sequence.
func numbered(sequence int64) edge.Message {
	m := message("x")
	m.Facts.Sequence, m.Facts.Highest = sequence, sequence
	return m
}

func (k *kit) send(p *edge.Producer, m edge.Message) edge.Receipt {
	k.Helper()
	m.Facts.Producer = p.Name()
	a := recv(k.T, send(p, m))
	if a.err != nil {
		k.Fatal(a.err)
	}
	return a.Receipt
}

func TestGeneratedNamesAreForgottenFirst(t *testing.T) {
	k := newKit(t, func(o *edge.Options) { o.Deduplication = true })
	topic := k.topic("names")
	named := func(name string) *edge.Producer {
		p, _ := k.producer(topic, edge.ProducerOptions{Name: name, UserProvided: true})
		return p
	}
	for _, name := range []string{"kept", "idle"} {
		p := named(name)
		k.send(p, numbered(5))
		p.Close(nil)
	}
	fill := func(n int, o edge.ProducerOptions) {
		prefix := o.Name
		for i := range n {
			if o.UserProvided {
				o.Name = fmt.Sprint(prefix, i)
			}
			p, _ := k.producer(topic, o)
			m := numbered(0)
			m.Facts.Producer = p.Name()
			p.Publish(m, func(edge.Receipt, error) {})
			p.Close(nil)
		}
		barrier(t, k, topic)
	}
	fill(edge.MaxSequences+3_000, edge.ProducerOptions{})
	idle := named("idle")
	if idle.LastSequence() != 5 {
		t.Fatalf("for names that were made up a given one was forgotten: %d", idle.LastSequence())
	}
	idle.Close(nil)
	fill(edge.MaxSequences/2, edge.ProducerOptions{Name: "x", UserProvided: true})
	named("idle").Close(nil)
	fill(edge.MaxSequences/2, edge.ProducerOptions{Name: "y", UserProvided: true})
	if p := named("idle"); p.LastSequence() != 5 {
		t.Fatalf("the name that was used last was forgotten: %d", p.LastSequence())
	}
	if p := named("kept"); p.LastSequence() != -1 {
		t.Fatalf("more names are known than there may be: %d", p.LastSequence())
	}
}

// A name that publishes while nobody looks for duplicates is not known any more.
func TestWhatWasPublishedWithoutDeduplicationIsNoDuplicateLater(t *testing.T) {
	dedup := func(on bool) func(*edge.Options) {
		return func(o *edge.Options) { o.Deduplication = on }
	}
	k := newKit(t, dedup(true))
	p, _ := k.producer(k.topic("switch"), edge.ProducerOptions{Name: "p"})
	k.send(p, numbered(7))
	k.restart(dedup(false))
	p, _ = k.producer(k.topic("switch"), edge.ProducerOptions{Name: "p"})
	k.send(p, numbered(0)) // the device was started anew
	k.restart(dedup(true))
	p, _ = k.producer(k.topic("switch"), edge.ProducerOptions{Name: "p"})
	if p.LastSequence() != -1 {
		t.Errorf("the last sequence is %d", p.LastSequence())
	}
	if r := k.send(p, numbered(1)); r.Duplicate {
		t.Fatal("a new message was taken for a duplicate, and lost")
	}
}

func TestAFailedAppendClosesAProducerThatIsBecoming(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("failing")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	k.store.Hold()
	k.store.Fail(errors.New("no space"))
	sent := send(p, message("a"))
	e := &end{}
	made := outcome(func() error {
		_, err := topic.AddProducer(context.Background(), edge.ProducerOptions{Access: edge.AccessFence}, e, &peer{})
		return err
	})
	eventually(t, "the producer is there", func() bool {
		st := topic.Stats()
		return len(st.Publishers) == 1 && st.Publishers[0].Access == edge.AccessFence
	})
	k.store.Release()
	if err := recv(t, made); !errors.Is(err, edge.ErrStorage) {
		t.Fatalf("it was admitted: %v", err)
	}
	if a := recv(t, sent); a.err == nil {
		t.Fatal("a failed write was receipted")
	}
	if reason := e.reason(); reason != nil {
		t.Errorf("the end of one that was never there was told: %v", reason)
	}
	k.store.Fail(nil)
}

// The end of a producer that was kicked before it was there may be used for the next
// try; nothing of the first must reach it then.
func TestAKickWhileBecomingIsTheErrorAlone(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("kicked")
	k.store.Hold()
	e := &end{}
	made := outcome(func() error {
		_, err := topic.AddProducer(context.Background(), edge.ProducerOptions{Access: edge.AccessExclusive}, e, &peer{})
		return err
	})
	eventually(t, "the producer is there", func() bool { return len(topic.Stats().Publishers) == 1 })
	fenced := outcome(func() error {
		_, err := topic.AddProducer(context.Background(), edge.ProducerOptions{Access: edge.AccessFence}, &end{}, &peer{})
		return err
	})
	eventually(t, "the next one is there", func() bool {
		st := topic.Stats()
		return len(st.Publishers) == 1 && st.Publishers[0].Access == edge.AccessFence
	})
	k.store.Release()
	if err := recv(t, made); !errors.Is(err, edge.ErrFenced) {
		t.Errorf("the first: %v", err)
	}
	if err := recv(t, fenced); err != nil {
		t.Fatal(err)
	}
	if reason := e.reason(); reason != nil {
		t.Errorf("its end was told %v", reason)
	}
}
