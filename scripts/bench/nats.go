package main

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// natsDriver publishes to a JetStream stream in files, one stream per topic.
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

func (d *natsDriver) prepare(topic string) error {
	c, js, err := d.connect()
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), natsTimeout)
	defer cancel()
	_, err = js.CreateStream(ctx, jetstream.StreamConfig{Name: topic, Subjects: []string{topic}, Storage: jetstream.FileStorage})
	return err
}

func (d *natsDriver) drop(topic string) error {
	c, js, err := d.connect()
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), natsTimeout)
	defer cancel()
	return js.DeleteStream(ctx, topic)
}

func (d *natsDriver) open(topic string, _ int) (publisher, error) {
	c, js, err := d.connect()
	if err != nil {
		return nil, err
	}
	p := &natsPublisher{conn: c, js: js, topic: topic, slots: make(chan struct{}, window), receipts: make(chan receipt, window)}
	p.waiter.Go(p.wait)
	return p, nil
}

type natsPublisher struct {
	conn     *nats.Conn
	js       jetstream.JetStream
	topic    string
	slots    chan struct{} // one taken per message without a receipt
	receipts chan receipt
	waiter   sync.WaitGroup
}

type receipt struct {
	future jetstream.PubAckFuture
	done   func(error)
}

func (p *natsPublisher) publish(payload []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), natsTimeout)
	defer cancel()
	_, err := p.js.Publish(ctx, p.topic, payload)
	return err
}

func (p *natsPublisher) send(payload []byte, done func(error)) {
	p.slots <- struct{}{}
	future, err := p.js.PublishAsync(p.topic, payload)
	if err != nil {
		<-p.slots
		done(err)
		return
	}
	p.receipts <- receipt{future, done}
}

// wait takes the receipts in the order of sending until the publisher is closed.
func (p *natsPublisher) wait() {
	for r := range p.receipts {
		select {
		case <-r.future.Ok():
			r.done(nil)
		case err := <-r.future.Err():
			r.done(err)
		}
		<-p.slots
	}
}

// flush fills the window with nothing, which takes until all receipts have come.
func (p *natsPublisher) flush() error {
	for range window {
		p.slots <- struct{}{}
	}
	for range window {
		<-p.slots
	}
	return nil
}

func (p *natsPublisher) close() {
	close(p.receipts)
	p.waiter.Wait()
	p.conn.Close()
}
