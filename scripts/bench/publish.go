package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// kept is the topic of a publish cell, with one subscription for which all is kept.
func kept() topic { return newTopic([]string{"keep"}, false) }

// publishing publishes to a new topic for as long as told, and drops it.
func (c cell) publishing(p *peer, o options) (result, error) {
	t := kept()
	if err := p.driver.prepare(t); err != nil {
		return result{}, fmt.Errorf("preparing: %w", err)
	}
	publishers, err := c.open(p, t, o.size)
	defer closeAll(publishers)
	if err != nil {
		return result{}, err
	}
	before, begin := p.cpu(), time.Now()
	var latencies []time.Duration
	if c.publishers > 0 {
		latencies, err = synchronous(publishers, o.size, o.long)
	} else {
		latencies, err = asynchronous(publishers[0], o.size, o.long)
	}
	took, used := time.Since(begin), p.cpu()-before
	if err != nil {
		return result{}, err
	}
	if len(latencies) == 0 {
		return result{}, errors.New("no message got a receipt")
	}
	return newResult(len(latencies), took, used, latencies), p.driver.drop(t)
}

// open makes the publishers and sends one message with each, so that connecting is not timed.
func (c cell) open(p *peer, t topic, size int) ([]publisher, error) {
	publishers := make([]publisher, max(c.publishers, 1))
	return publishers, aFewAtOnce(len(publishers), func(i int) error {
		one, err := p.driver.open(t, c.batch)
		if err != nil {
			return err
		}
		publishers[i] = one
		return one.publish(make([]byte, size))
	})
}

// aFewAtOnce calls connect n times. Connecting all at once would measure the listener's queue.
func aFewAtOnce(n int, connect func(i int) error) error {
	failures := make([]error, n)
	gate := make(chan struct{}, 16)
	var all sync.WaitGroup
	for i := range n {
		gate <- struct{}{}
		all.Go(func() {
			defer func() { <-gate }()
			failures[i] = connect(i)
		})
	}
	all.Wait()
	return errors.Join(failures...)
}

func closeAll(publishers []publisher) {
	var all sync.WaitGroup
	for _, p := range publishers {
		if p != nil {
			all.Go(p.close)
		}
	}
	all.Wait()
}

// payloads is random text, made before the clock starts.
func payloads(size int) [][]byte {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/"
	r := rand.New(rand.NewPCG(1, uint64(size)))
	all := make([][]byte, 1024)
	for i := range all {
		all[i] = make([]byte, size)
		for j := range all[i] {
			all[i][j] = letters[r.IntN(len(letters))]
		}
	}
	return all
}

func synchronous(publishers []publisher, size int, long time.Duration) ([]time.Duration, error) {
	data := payloads(size)
	latencies, failures := make([][]time.Duration, len(publishers)), make([]error, len(publishers))
	end := time.Now().Add(long)
	var all sync.WaitGroup
	for i, p := range publishers {
		all.Go(func() {
			for k := i; time.Now().Before(end); k++ {
				begin := time.Now()
				if failures[i] = p.publish(data[k%len(data)]); failures[i] != nil {
					return
				}
				latencies[i] = append(latencies[i], time.Since(begin))
			}
		})
	}
	all.Wait()
	return slices.Concat(latencies...), errors.Join(failures...)
}

func asynchronous(p publisher, size int, long time.Duration) ([]time.Duration, error) {
	data := payloads(size)
	var mu sync.Mutex
	var latencies []time.Duration
	var failure error
	end := time.Now().Add(long)
	for k := 0; time.Now().Before(end); k++ {
		begin := time.Now()
		p.send(data[k%len(data)], func(err error) {
			took := time.Since(begin)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failure = err
				return
			}
			latencies = append(latencies, took)
		})
	}
	err := p.flush()
	mu.Lock()
	defer mu.Unlock()
	return latencies, errors.Join(err, failure)
}
