package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// natsDriver publishes to a JetStream stream in files, one stream per topic, and reads with a durable pull consumer per
// subscription.
type natsDriver struct{ url string }

const natsTimeout = 30 * time.Second

func (d *natsDriver) connect() (*nats.Conn, jetstream.JetStream, error) {
	c, err := nats.Connect(d.url)
	if err != nil {
		return nil, nil, err
	}
	// One more than the window: the window is kept here, the client's own limit gives up instead of waiting.
	js, err := jetstream.New(c, jetstream.WithDefaultTimeout(natsTimeout), jetstream.WithPublishAsyncMaxPending(window+1))
	if err != nil {
		c.Close()
		return nil, nil, err
	}
	return c, js, nil
}

func (d *natsDriver) prepare(t topic) error {
	c, js, err := d.connect()
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), natsTimeout)
	defer cancel()
	stream, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: t.name, Subjects: []string{t.name}, Storage: jetstream.FileStorage})
	if err != nil {
		return err
	}
	for _, s := range t.subscriptions {
		if _, err := stream.CreateConsumer(ctx, jetstream.ConsumerConfig{Durable: s, AckPolicy: jetstream.AckExplicitPolicy}); err != nil {
			return err
		}
	}
	return nil
}

func (d *natsDriver) drop(t topic) error {
	c, js, err := d.connect()
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), natsTimeout)
	defer cancel()
	return js.DeleteStream(ctx, t.name)
}

func (d *natsDriver) open(t topic, _ int) (publisher, error) {
	c, js, err := d.connect()
	if err != nil {
		return nil, err
	}
	return &natsPublisher{conn: c, js: js, topic: t.name, pipeline: newPipeline()}, nil
}

type natsPublisher struct {
	conn     *nats.Conn
	js       jetstream.JetStream
	topic    string
	pipeline *pipeline
}

func (p *natsPublisher) publish(payload []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), natsTimeout)
	defer cancel()
	_, err := p.js.Publish(ctx, p.topic, payload)
	return err
}

func (p *natsPublisher) send(payload []byte, done func(error)) {
	p.pipeline.enter()
	future, err := p.js.PublishAsync(p.topic, payload)
	p.pipeline.add(func() error {
		if err != nil {
			return err
		}
		select {
		case <-future.Ok():
			return nil
		case err := <-future.Err():
			return err
		}
	}, done)
}

func (p *natsPublisher) flush() error {
	p.pipeline.flush()
	return nil
}

func (p *natsPublisher) close() {
	p.pipeline.close()
	p.conn.Close()
}

func (d *natsDriver) consume(t topic, subscription string, ahead int, got func([]byte)) (consumer, error) {
	conn, js, err := d.connect()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), natsTimeout)
	defer cancel()
	handle, err := js.Consumer(ctx, t.name, subscription)
	if err != nil {
		conn.Close()
		return nil, err
	}
	messages, err := handle.Messages(jetstream.PullMaxMessages(ahead))
	if err != nil {
		conn.Close()
		return nil, err
	}
	c := &natsConsumer{conn: conn, messages: messages}
	c.reader.Go(func() { c.failure = c.read(got) })
	return c, nil
}

type natsConsumer struct {
	conn     *nats.Conn
	messages jetstream.MessagesContext
	reader   sync.WaitGroup
	failure  error
}

func (c *natsConsumer) read(got func([]byte)) error {
	for {
		m, err := c.messages.Next()
		if errors.Is(err, jetstream.ErrMsgIteratorClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		got(m.Data())
		if err := m.Ack(); err != nil {
			return err
		}
	}
}

func (c *natsConsumer) close() error {
	c.messages.Stop()
	c.reader.Wait()
	c.conn.Close()
	return c.failure
}
