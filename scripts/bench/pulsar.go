package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/log"
	"github.com/prometheus/client_golang/prometheus"
)

// pulsarDriver drives a broker with the official Go client. Without an admin URL the broker is taken to keep nothing,
// and there is nothing to prepare or to drop.
type pulsarDriver struct{ url, admin string }

func (d *pulsarDriver) client() (pulsar.Client, error) {
	return pulsar.NewClient(pulsar.ClientOptions{
		URL: d.url, ConnectionTimeout: 10 * time.Second, OperationTimeout: 30 * time.Second,
		Logger: log.DefaultNopLogger(), MetricsRegisterer: prometheus.NewRegistry(),
		MetricsCardinality: pulsar.MetricsCardinalityNone,
	})
}

func (d *pulsarDriver) prepare(t topic) error {
	if d.admin == "" {
		return nil
	}
	c, err := d.client()
	if err != nil {
		return err
	}
	defer c.Close()
	for _, s := range t.subscriptions {
		consumer, err := c.Subscribe(t.options(s))
		if err != nil {
			return err
		}
		consumer.Close()
	}
	return nil
}

func (t topic) options(subscription string) pulsar.ConsumerOptions {
	o := pulsar.ConsumerOptions{Topic: t.name, SubscriptionName: subscription, SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest}
	if t.shared {
		o.Type = pulsar.Shared
	}
	return o
}

func (d *pulsarDriver) drop(t topic) error {
	if d.admin == "" {
		return nil
	}
	request, err := http.NewRequest(http.MethodDelete, d.admin+"/admin/v2/persistent/public/default/"+t.name+"?force=true", nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusNoContent {
		return fmt.Errorf("deleting %s: status %d", t.name, answer.StatusCode)
	}
	return nil
}

func (d *pulsarDriver) open(t topic, batch int) (publisher, error) {
	c, err := d.client()
	if err != nil {
		return nil, err
	}
	o := pulsar.ProducerOptions{Topic: t.name, DisableBatching: batch == 0, MaxPendingMessages: window, SendTimeout: time.Minute}
	if batch > 0 {
		o.BatchingMaxMessages, o.BatchingMaxSize, o.BatchingMaxPublishDelay = uint(batch), 1<<20, time.Millisecond
	}
	p, err := c.CreateProducer(o)
	if err != nil {
		c.Close()
		return nil, err
	}
	return &pulsarPublisher{c, p}, nil
}

type pulsarPublisher struct {
	client   pulsar.Client
	producer pulsar.Producer
}

func (p *pulsarPublisher) publish(payload []byte) error {
	_, err := p.producer.Send(context.Background(), &pulsar.ProducerMessage{Payload: payload})
	return err
}

func (p *pulsarPublisher) send(payload []byte, done func(error)) {
	p.producer.SendAsync(context.Background(), &pulsar.ProducerMessage{Payload: payload},
		func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) { done(err) })
}

func (p *pulsarPublisher) flush() error { return p.producer.FlushWithCtx(context.Background()) }

func (p *pulsarPublisher) close() {
	p.producer.Close()
	p.client.Close()
}

func (d *pulsarDriver) consume(t topic, subscription string, ahead int, got func([]byte)) (consumer, error) {
	client, err := d.client()
	if err != nil {
		return nil, err
	}
	o := t.options(subscription)
	o.ReceiverQueueSize = ahead
	one, err := client.Subscribe(o)
	if err != nil {
		client.Close()
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &pulsarConsumer{client: client, consumer: one, cancel: cancel}
	c.reader.Go(func() { c.failure = c.read(ctx, got) })
	return c, nil
}

type pulsarConsumer struct {
	client   pulsar.Client
	consumer pulsar.Consumer
	cancel   context.CancelFunc
	reader   sync.WaitGroup
	failure  error
}

func (c *pulsarConsumer) read(ctx context.Context, got func([]byte)) error {
	for {
		m, err := c.consumer.Receive(ctx)
		if errors.Is(err, context.Canceled) {
			return nil
		}
		if err != nil {
			return err
		}
		got(m.Payload())
		if err := c.consumer.Ack(m); err != nil {
			return err
		}
	}
}

func (c *pulsarConsumer) close() error {
	c.cancel()
	c.reader.Wait()
	c.consumer.Close()
	c.client.Close()
	return c.failure
}
