package main

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"
)

// mqttDriver publishes with QoS 1. A subscription is a session that outlives its connection; a shared one is made of
// the sessions of its consumers, and begins with the first of them.
type mqttDriver struct {
	url   string
	names atomic.Int64 // of sessions of consumers that share a subscription
}

const mqttTimeout = 30 * time.Second

// connect opens a session: a clean one ends with its connection. Without a name the server gives one.
func (d *mqttDriver) connect(name string, clean bool, got func([]byte)) (mqtt.Client, error) {
	o := mqtt.NewClientOptions().AddBroker(d.url).SetClientID(name).SetCleanSession(clean).SetProtocolVersion(4).
		SetConnectTimeout(mqttTimeout).SetAutoReconnect(false)
	if got != nil {
		o.SetDefaultPublishHandler(func(_ mqtt.Client, m mqtt.Message) { got(m.Payload()) })
	}
	c := mqtt.NewClient(o)
	return c, mqttWait(c.Connect())
}

func mqttWait(t mqtt.Token) error {
	if !t.WaitTimeout(mqttTimeout) {
		return errors.New("no answer")
	}
	return t.Error()
}

func mqttLeave(c mqtt.Client) { c.Disconnect(20) }

func (d *mqttDriver) prepare(t topic) error {
	if t.shared {
		return nil
	}
	for _, s := range t.subscriptions {
		c, err := d.connect(t.name+s, false, nil)
		if err != nil {
			return err
		}
		err = mqttWait(c.Subscribe(t.name, 1, nil))
		mqttLeave(c)
		if err != nil {
			return err
		}
	}
	return nil
}

// drop ends the sessions, by connecting with their names and clean ones.
func (d *mqttDriver) drop(t topic) error {
	if t.shared {
		return nil
	}
	for _, s := range t.subscriptions {
		c, err := d.connect(t.name+s, true, nil)
		if err != nil {
			return err
		}
		mqttLeave(c)
	}
	return nil
}

func (d *mqttDriver) open(t topic, _ int) (publisher, error) {
	c, err := d.connect("", true, nil)
	if err != nil {
		return nil, err
	}
	return &mqttPublisher{client: c, topic: t.name, pipeline: newPipeline()}, nil
}

type mqttPublisher struct {
	client   mqtt.Client
	topic    string
	pipeline *pipeline
}

func (p *mqttPublisher) publish(payload []byte) error {
	return mqttWait(p.client.Publish(p.topic, 1, false, payload))
}

func (p *mqttPublisher) send(payload []byte, done func(error)) {
	p.pipeline.enter()
	t := p.client.Publish(p.topic, 1, false, payload)
	p.pipeline.add(func() error { return mqttWait(t) }, done)
}

func (p *mqttPublisher) flush() error {
	p.pipeline.flush()
	return nil
}

func (p *mqttPublisher) close() {
	p.pipeline.close()
	mqttLeave(p.client)
}

func (d *mqttDriver) consume(t topic, subscription string, _ int, got func([]byte)) (consumer, error) {
	if !t.shared {
		c, err := d.connect(t.name+subscription, false, got)
		return mqttConsumer{c}, err
	}
	c, err := d.connect(fmt.Sprintf("%s-%d", t.name, d.names.Add(1)), true, got)
	if err != nil {
		return nil, err
	}
	if err := mqttWait(c.Subscribe("$share/"+subscription+"/"+t.name, 1, nil)); err != nil {
		mqttLeave(c)
		return nil, err
	}
	return mqttConsumer{c}, nil
}

type mqttConsumer struct{ client mqtt.Client }

func (c mqttConsumer) close() error {
	mqttLeave(c.client)
	return nil
}
