package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// A cell is one way of publishing.
type cell struct {
	name       string
	publishers int // with one message in flight each; 0: one publisher with a window of messages
	batch      int // messages per batch, 0 for none
	base       string
}

const (
	pipelined = "pipelined"
	batched   = "batches of 100"
)

// cells lists the ways of publishing. JetStream has no batches: Wayside's are set against its pipelined publisher.
func cells() []cell {
	return []cell{
		{name: "1 publisher", publishers: 1},
		{name: "16 publishers", publishers: 16},
		{name: "256 publishers", publishers: 256},
		{name: pipelined},
		{name: batched, batch: 100, base: pipelined},
	}
}

// result is what one run of a cell showed.
type result struct {
	rate   float64       // messages with a receipt per second
	median time.Duration // from send to receipt
	late   time.Duration // the same, of the slowest in a hundred
	cpu    time.Duration // of the server, per message
}

// run publishes to a new topic for as long as told, and drops it.
func (c cell) run(p *peer, size int, long time.Duration) (result, error) {
	topic := fmt.Sprintf("bench-%d", time.Now().UnixNano())
	if err := p.driver.prepare(topic); err != nil {
		return result{}, fmt.Errorf("preparing: %w", err)
	}
	publishers, err := c.open(p, topic, size)
	defer closeAll(publishers)
	if err != nil {
		return result{}, err
	}
	before, begin := p.cpu(), time.Now()
	var latencies []time.Duration
	if c.publishers > 0 {
		latencies, err = synchronous(publishers, size, long)
	} else {
		latencies, err = asynchronous(publishers[0], size, long)
	}
	took, used := time.Since(begin), p.cpu()-before
	if err != nil {
		return result{}, err
	}
	slices.Sort(latencies)
	n := len(latencies)
	if n == 0 {
		return result{}, errors.New("no message got a receipt")
	}
	return result{
		rate: float64(n) / took.Seconds(), median: latencies[n/2], late: latencies[n*99/100], cpu: used / time.Duration(n),
	}, p.driver.drop(topic)
}

// open makes the publishers and sends one message with each, so that connecting is not timed.
func (c cell) open(p *peer, topic string, size int) ([]publisher, error) {
	publishers := make([]publisher, max(c.publishers, 1))
	failures := make([]error, len(publishers))
	var all sync.WaitGroup
	gate := make(chan struct{}, 16) // connecting all at once would measure the listener's queue
	for i := range publishers {
		gate <- struct{}{}
		all.Go(func() {
			defer func() { <-gate }()
			one, err := p.driver.open(topic, c.batch)
			if err == nil {
				publishers[i], err = one, one.publish(make([]byte, size))
			}
			failures[i] = err
		})
	}
	all.Wait()
	return publishers, errors.Join(failures...)
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
