package main

import (
	"context"
	"fmt"
	"net/http"
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

// prepare leaves a durable subscription behind, for which all that follows is kept.
func (d *pulsarDriver) prepare(topic string) error {
	if d.admin == "" {
		return nil
	}
	c, err := d.client()
	if err != nil {
		return err
	}
	defer c.Close()
	s, err := c.Subscribe(pulsar.ConsumerOptions{Topic: topic, SubscriptionName: "keep", SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest})
	if err != nil {
		return err
	}
	s.Close()
	return nil
}

func (d *pulsarDriver) drop(topic string) error {
	if d.admin == "" {
		return nil
	}
	request, err := http.NewRequest(http.MethodDelete, d.admin+"/admin/v2/persistent/public/default/"+topic+"?force=true", nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusNoContent {
		return fmt.Errorf("deleting %s: status %d", topic, answer.StatusCode)
	}
	return nil
}

func (d *pulsarDriver) open(topic string, batch int) (publisher, error) {
	c, err := d.client()
	if err != nil {
		return nil, err
	}
	o := pulsar.ProducerOptions{Topic: topic, DisableBatching: batch == 0, MaxPendingMessages: window, SendTimeout: time.Minute}
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
