package uplink

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/log"
	"github.com/prometheus/client_golang/prometheus"
)

// numbered is message i of a topic: everything about it follows from its number.
type numbered struct {
	topic string
	i     int
}

func (n numbered) rng() *rand.Rand { return rand.New(rand.NewPCG(uint64(n.i), uint64(len(n.topic)))) }

func (n numbered) message() *pulsar.ProducerMessage {
	r := n.rng()
	sequence := int64(n.i)
	m := &pulsar.ProducerMessage{
		Payload:    []byte(fmt.Sprintf("%s %d %s", n.topic, n.i, strings.Repeat("x", r.IntN(200)))),
		Properties: map[string]string{"n": fmt.Sprint(n.i)},
		SequenceID: &sequence,
	}
	if r.IntN(100) == 0 {
		m.Payload = append(m.Payload, strings.Repeat("y", r.IntN(20_000))...)
	}
	if r.IntN(3) > 0 {
		m.Key = fmt.Sprint("key-", r.IntN(20))
	}
	if r.IntN(5) == 0 {
		m.OrderingKey = fmt.Sprint("order-", r.IntN(5))
	}
	if r.IntN(4) == 0 {
		m.EventTime = time.UnixMilli(1_700_000_000_000 + int64(n.i))
	}
	for k := range r.IntN(3) {
		m.Properties[fmt.Sprint("p", k)] = fmt.Sprint(r.IntN(1000))
	}
	return m
}

// load publishes numbered messages to one topic of the broker under test, in bursts and
// trickles, and comes back after every kill: the client resends what has no receipt,
// and the broker drops what it has already.
type load struct {
	topic   string
	count   int
	batched bool
	seed    uint64
	spread  time.Duration // aim of the whole
}

func quietClient(url string, patient bool) (pulsar.Client, error) {
	o := pulsar.ClientOptions{
		URL: url, Logger: log.DefaultNopLogger(), MetricsRegisterer: prometheus.NewRegistry(),
		ConnectionTimeout: 2 * time.Second, OperationTimeout: 5 * time.Second, KeepAliveInterval: 2 * time.Second,
	}
	if patient {
		o.OperationTimeout = 30 * time.Second
	}
	return pulsar.NewClient(o)
}

// run returns when every message has its receipt.
func (l *load) run(ctx context.Context, c pulsar.Client) error {
	var p pulsar.Producer
	err := retry(ctx, func() (err error) {
		p, err = c.CreateProducer(pulsar.ProducerOptions{
			Topic: l.topic, Name: "sensor-" + l.topic, SendTimeout: -1, MaxPendingMessages: 500,
			DisableBatching: !l.batched, BatchingMaxPublishDelay: 5 * time.Millisecond, BatchingMaxMessages: 60,
		})
		return err
	})
	if err != nil {
		return err
	}
	defer p.Close()
	rng := rand.New(rand.NewPCG(l.seed, 3))
	var wg sync.WaitGroup
	failed := make(chan error, 1)
	begin := time.Now()
	for i := range l.count {
		wg.Add(1)
		p.SendAsync(ctx, numbered{l.topic, i}.message(), func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) {
			if err != nil {
				select {
				case failed <- fmt.Errorf("%s: message %d: %w", l.topic, i, err):
				default:
				}
			}
			wg.Done()
		})
		l.pause(ctx, rng, begin, i)
	}
	wg.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// pause keeps to the aim: now single messages, now bursts of some hundred.
func (l *load) pause(ctx context.Context, rng *rand.Rand, begin time.Time, i int) {
	if rng.IntN(100) > 1 && i%300 < 290 {
		return
	}
	due := begin.Add(l.spread * time.Duration(i) / time.Duration(l.count))
	if wait := time.Until(due); wait > 0 {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
}

// retry tries again until it succeeds or ctx ends.
func retry(ctx context.Context, try func() error) error {
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%w; last: %w", ctx.Err(), err)
		}
	}
}
