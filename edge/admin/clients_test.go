package admin

import (
	"context"
	"sync"
	"testing"
	"time"

	"wayside/edge"
)

// peer is a client's connection that always answers.
type peer struct{}

func (peer) Alive(context.Context) bool { return true }
func (peer) Address() string            { return "127.0.0.1:57704" }
func (peer) Principal() string          { return "" }
func (peer) Version() string            { return "Pulsar-Go-v0.19.0" }

// consumer takes what comes and tells how much there was.
type consumer struct {
	mu     sync.Mutex
	got    []edge.Delivery
	wanted int
	full   chan struct{} // closed when wanted deliveries are there
}

func newConsumer(wanted int) *consumer { return &consumer{wanted: wanted, full: make(chan struct{})} }

func (c *consumer) Room() int { return 1 << 20 }

func (*consumer) Flush() {}

func (c *consumer) Deliver(d edge.Delivery) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d.Grant.Release()
	c.got = append(c.got, d)
	if len(c.got) == c.wanted {
		close(c.full)
	}
}

func (c *consumer) ActiveChanged(bool) {}
func (c *consumer) EndReached()        {}
func (c *consumer) Closed(error)       {}

type producerEnd struct{}

func (producerEnd) Ready(int64)  {}
func (producerEnd) Closed(error) {}

// topicName parses a name that is right.
func topicName(t testing.TB, s string) edge.TopicName {
	t.Helper()
	name, err := edge.ParseTopicName(s)
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// open creates a topic.
func open(t testing.TB, s *Server, name string) *edge.Topic {
	t.Helper()
	topic, err := s.broker.Open(context.Background(), topicName(t, name), true)
	if err != nil {
		t.Fatal(err)
	}
	return topic
}

// produce publishes messages through a new producer and waits until they are stored.
func produce(t testing.TB, topic *edge.Topic, name string, batch int32, data ...string) *edge.Producer {
	t.Helper()
	p, err := topic.AddProducer(context.Background(), edge.ProducerOptions{
		ID: 1, Name: name, UserProvided: true, Metadata: map[string]string{"role": "sensor"}, PeerKey: name,
	}, producerEnd{}, peer{})
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range data {
		stored := make(chan error, 1)
		m := edge.Message{Data: []byte(d), Facts: edge.Facts{
			Producer: name, Sequence: int64(i), Highest: int64(i), Messages: max(batch, 1), Batch: batch > 0, Publish: 1_700_000_000_000 + int64(i),
			Receive: time.Now().UnixMilli(),
		}}
		p.Publish(m, func(_ edge.Receipt, err error) { stored <- err })
		if err := <-stored; err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// subscribe joins with permits for all messages and waits for the wanted number of entries.
func subscribe(t testing.TB, topic *edge.Topic, o edge.SubscribeOptions, wanted int) (*edge.Consumer, *consumer) {
	t.Helper()
	o.AutoSubscribe, o.Epoch = true, -1
	r := newConsumer(wanted)
	c, err := topic.Subscribe(context.Background(), o, r, peer{})
	if err != nil {
		t.Fatal(err)
	}
	c.Flow(1000)
	if wanted > 0 {
		<-r.full
	}
	return c, r
}
