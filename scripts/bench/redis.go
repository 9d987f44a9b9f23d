package main

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"
)

// redisDriver appends to a Redis stream, one per topic, and reads with a consumer group per subscription.
type redisDriver struct {
	address string
	names   atomic.Int64 // given to consumers, which have to differ within a group
}

const (
	redisTimeout = 30 * time.Second
	redisRead    = 100             // messages that a consumer asks for at once, at most
	redisBlock   = time.Second / 2 // that a read waits for messages
	redisField   = "d"             // of an entry: its payload
)

func (d *redisDriver) connect() (redis.Conn, error) {
	return redis.Dial("tcp", d.address, redis.DialConnectTimeout(redisTimeout), redis.DialReadTimeout(redisTimeout),
		redis.DialWriteTimeout(redisTimeout))
}

func (d *redisDriver) prepare(t topic) error {
	c, err := d.connect()
	if err != nil {
		return err
	}
	defer c.Close()
	for _, s := range t.subscriptions {
		if _, err := c.Do("XGROUP", "CREATE", t.name, s, "0", "MKSTREAM"); err != nil {
			return err
		}
	}
	return nil
}

func (d *redisDriver) drop(t topic) error {
	c, err := d.connect()
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Do("DEL", t.name)
	return err
}

func (d *redisDriver) open(t topic, _ int) (publisher, error) {
	c, err := d.connect()
	if err != nil {
		return nil, err
	}
	p := &redisPublisher{conn: c, topic: t.name, pipeline: newPipeline(), queue: make(chan redisSend, window)}
	p.writer.Go(p.write)
	return p, nil
}

type redisPublisher struct {
	conn     redis.Conn
	topic    string
	pipeline *pipeline
	queue    chan redisSend
	writer   sync.WaitGroup
}

type redisSend struct {
	payload []byte
	done    func(error)
}

func (p *redisPublisher) publish(payload []byte) error {
	_, err := p.conn.Do("XADD", p.topic, "*", redisField, payload)
	return err
}

func (p *redisPublisher) send(payload []byte, done func(error)) {
	p.pipeline.enter()
	p.queue <- redisSend{payload, done}
}

// write sends what is queued and flushes when nothing more is.
func (p *redisPublisher) write() {
	for s := range p.queue {
		err := p.conn.Send("XADD", p.topic, "*", redisField, s.payload)
		if err == nil && len(p.queue) == 0 {
			err = p.conn.Flush()
		}
		p.pipeline.add(func() error {
			if err != nil {
				return err
			}
			_, err := p.conn.Receive()
			return err
		}, s.done)
	}
}

func (p *redisPublisher) flush() error {
	p.pipeline.flush()
	return nil
}

func (p *redisPublisher) close() {
	close(p.queue)
	p.writer.Wait()
	p.pipeline.close()
	p.conn.Close()
}

func (d *redisDriver) consume(t topic, subscription string, ahead int, got func([]byte)) (consumer, error) {
	conn, err := d.connect()
	if err != nil {
		return nil, err
	}
	c := &redisConsumer{conn: conn, topic: t.name, group: subscription, name: fmt.Sprintf("c%d", d.names.Add(1)), count: min(ahead, redisRead)}
	c.reader.Go(func() { c.failure = c.read(got) })
	return c, nil
}

type redisConsumer struct {
	conn               redis.Conn
	topic, group, name string
	count              int // of messages that are read at once
	closing            atomic.Bool
	reader             sync.WaitGroup
	failure            error
}

// read acknowledges in one command what one read brought: with several in flight, that is how it is done.
func (c *redisConsumer) read(got func([]byte)) error {
	for !c.closing.Load() {
		answer, err := redis.Values(c.conn.Do("XREADGROUP", "GROUP", c.group, c.name, "COUNT", c.count,
			"BLOCK", redisBlock.Milliseconds(), "STREAMS", c.topic, ">"))
		if errors.Is(err, redis.ErrNil) {
			continue
		}
		if err != nil {
			return err
		}
		entries, err := redisEntries(answer)
		if err != nil {
			return err
		}
		ack := redis.Args{c.topic, c.group}
		for _, e := range entries {
			got(e.payload)
			ack = append(ack, e.id)
		}
		if _, err := c.conn.Do("XACK", ack...); err != nil {
			return err
		}
	}
	return nil
}

func (c *redisConsumer) close() error {
	c.closing.Store(true)
	c.reader.Wait()
	c.conn.Close()
	return c.failure
}

type redisEntry struct{ id, payload []byte }

// redisEntries takes the entries out of the answer to a read of one stream: a list of streams, each with its name and
// a list of entries, each with its id and a list of fields and values.
func redisEntries(answer []any) ([]redisEntry, error) {
	if len(answer) != 1 {
		return nil, fmt.Errorf("an answer about %d streams", len(answer))
	}
	stream, err := redis.Values(answer[0], nil)
	if err != nil || len(stream) != 2 {
		return nil, fmt.Errorf("a stream of %d parts: %v", len(stream), err)
	}
	list, err := redis.Values(stream[1], nil)
	if err != nil {
		return nil, err
	}
	entries := make([]redisEntry, len(list))
	for i, one := range list {
		entry, err := redis.Values(one, nil)
		if err != nil || len(entry) != 2 {
			return nil, fmt.Errorf("an entry of %d parts: %v", len(entry), err)
		}
		fields, err := redis.ByteSlices(entry[1], nil)
		if err != nil || len(fields) != 2 {
			return nil, fmt.Errorf("an entry with %d fields and values: %v", len(fields), err)
		}
		id, err := redis.Bytes(entry[0], nil)
		if err != nil {
			return nil, err
		}
		entries[i] = redisEntry{id, fields[1]}
	}
	return entries, nil
}
