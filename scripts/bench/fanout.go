package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	fanoutQuiet  = 5 * time.Second // without a delivery: no more will come
	stoppedAhead = 10              // messages that are sent to a stopped consumer, so that it soon holds all that it is sent
	stampSize    = 8               // of the time of sending, before a payload
)

// An audience is the consumers of a fan-out.
type audience struct {
	consumers []consumer
	latencies [][]time.Duration
	got, last atomic.Int64 // deliveries, and the time of the last one
	release   chan struct{}
}

// fanning publishes at a rate to many consumers. With c.stopped the first of them does not come back from its first
// message; what it does not take is not waited for.
func (c cell) fanning(p *peer, o options) (result, error) {
	t := newTopic([]string{"s"}, c.shared)
	rate, copies := o.rate*sharedRate, 1
	if !c.shared {
		t.subscriptions = make([]string, o.consumers)
		for i := range t.subscriptions {
			t.subscriptions[i] = fmt.Sprintf("s%03d", i)
		}
		rate, copies = o.rate, o.consumers
		if c.stopped {
			copies--
		}
	}
	if err := p.driver.prepare(t); err != nil {
		return result{}, fmt.Errorf("preparing: %w", err)
	}
	a := &audience{release: make(chan struct{}), consumers: make([]consumer, o.consumers), latencies: make([][]time.Duration, o.consumers)}
	err := a.join(c, p, t)
	var r result
	if err == nil {
		r, err = a.listen(c, p, t, o, rate, copies)
	}
	if err = errors.Join(err, a.leave()); err != nil {
		return result{}, err
	}
	latencies := slices.Concat(a.latencies...)
	slices.Sort(latencies)
	r.median, r.late = latencies[len(latencies)/2], latencies[len(latencies)*99/100]
	return r, p.driver.drop(t)
}

func (a *audience) join(c cell, p *peer, t topic) error {
	return aFewAtOnce(len(a.consumers), func(i int) error {
		got, ahead := func(payload []byte) { a.take(i, payload) }, window
		if c.stopped && i == 0 {
			got, ahead = func([]byte) { <-a.release }, stoppedAhead
		}
		one, err := p.driver.consume(t, t.subscriptions[i%len(t.subscriptions)], ahead, got)
		if err == nil {
			a.consumers[i] = one
		}
		return err
	})
}

// take notes how long a message was under way. Those without a time are there to open the way.
func (a *audience) take(i int, payload []byte) {
	now := time.Now().UnixNano()
	if sent := stamp(payload); sent > 0 {
		a.latencies[i] = append(a.latencies[i], time.Duration(now-sent))
		a.last.Store(now)
		a.got.Add(1)
	}
}

func stamp(payload []byte) int64 {
	if len(payload) < stampSize {
		return 0
	}
	return int64(binary.LittleEndian.Uint64(payload))
}

// listen publishes and waits for the deliveries. Of a shared subscription, the stopped consumer keeps what had been
// sent to it.
func (a *audience) listen(c cell, p *peer, t topic, o options, rate float64, copies int) (result, error) {
	publishers, err := cell{}.open(p, t, max(o.size, stampSize))
	defer closeAll(publishers)
	if err != nil {
		return result{}, err
	}
	count := max(int(rate*o.long.Seconds()), 1)
	before, begin := p.cpu(), time.Now()
	if err := a.speak(publishers[0], o, count, rate); err != nil {
		return result{}, err
	}
	want := int64(count * copies)
	a.last.CompareAndSwap(0, time.Now().UnixNano())
	quiet := fanoutQuiet
	if c.stopped && c.shared {
		quiet = time.Second
	}
	for tick := time.NewTicker(5 * time.Millisecond); a.got.Load() < want; <-tick.C {
		if time.Since(time.Unix(0, a.last.Load())) > quiet {
			tick.Stop()
			break
		}
	}
	took, used := time.Unix(0, a.last.Load()).Sub(begin), p.cpu()-before
	n := a.got.Load()
	switch {
	case n == 0 || n < want && !(c.stopped && c.shared):
		return result{}, fmt.Errorf("%d of %d deliveries came", n, want)
	case want-n > window:
		return result{}, fmt.Errorf("the stopped consumer kept %d of %d messages back", want-n, want)
	}
	return newResult(int(n), took, used, nil), nil
}

// speak publishes count messages at a rate, each with its time, and waits for the receipts.
func (a *audience) speak(to publisher, o options, count int, rate float64) error {
	data := payloads(max(o.size, stampSize))
	var refused atomic.Pointer[error]
	begin := time.Now()
	for k := range count {
		time.Sleep(time.Until(begin.Add(time.Duration(float64(k) / rate * float64(time.Second)))))
		payload := slices.Clone(data[k%len(data)])
		binary.LittleEndian.PutUint64(payload, uint64(time.Now().UnixNano()))
		to.send(payload, func(err error) {
			if err != nil {
				refused.Store(&err)
			}
		})
	}
	err := to.flush()
	if r := refused.Load(); r != nil {
		err = errors.Join(err, *r)
	}
	return err
}

// leave ends all consumers, after which the latencies are nobody's else.
func (a *audience) leave() error {
	close(a.release)
	failures := make([]error, len(a.consumers))
	var all sync.WaitGroup
	for i, c := range a.consumers {
		if c != nil {
			all.Go(func() { failures[i] = c.close() })
		}
	}
	all.Wait()
	return errors.Join(failures...)
}
