package main

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

const drainTime = 5 * time.Minute // for one consumer to take all

// draining publishes messages, which is not timed, and lets one consumer take and acknowledge them.
func (c cell) draining(p *peer, o options) (result, error) {
	t := newTopic([]string{"s"}, false)
	if err := p.driver.prepare(t); err != nil {
		return result{}, fmt.Errorf("preparing: %w", err)
	}
	if err := c.fill(p, t, o); err != nil {
		return result{}, fmt.Errorf("filling: %w", err)
	}
	var got atomic.Int64
	all := make(chan struct{})
	before, begin := p.cpu(), time.Now()
	consumer, err := p.driver.consume(t, "s", window, func([]byte) {
		if got.Add(1) == int64(o.drain) {
			close(all)
		}
	})
	if err != nil {
		return result{}, err
	}
	select {
	case <-all:
	case <-time.After(drainTime):
	}
	took, used := time.Since(begin), p.cpu()-before
	if err := consumer.close(); err != nil {
		return result{}, err
	}
	if n := got.Load(); n != int64(o.drain) {
		return result{}, fmt.Errorf("%d messages came of %d", n, o.drain)
	}
	return newResult(o.drain, took, used, nil), p.driver.drop(t)
}

// fill publishes as many messages as are drained.
func (c cell) fill(p *peer, t topic, o options) error {
	publisher, err := p.driver.open(t, c.batch)
	if err != nil {
		return err
	}
	defer publisher.close()
	data := payloads(o.size)
	var refused atomic.Pointer[error]
	for i := range o.drain {
		publisher.send(data[i%len(data)], func(err error) {
			if err != nil {
				refused.Store(&err)
			}
		})
	}
	err = publisher.flush()
	if r := refused.Load(); r != nil {
		err = errors.Join(err, *r)
	}
	return err
}
