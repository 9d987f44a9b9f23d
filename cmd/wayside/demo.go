package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/spf13/cobra"
)

// maxSensors bounds the demo: each sensor is a goroutine.
const maxSensors = 10_000

type demoFlags struct {
	clientFlags
	sensors int
	rate    float64
	seconds int
}

// quantity is what a kind of sensor measures; the topic has its name.
type quantity struct {
	name, unit   string
	mean, swing  float64
	noise, clock float64 // clock: seconds of one swing
}

func quantities() []quantity {
	return []quantity{
		{"temperature", "°C", 21, 4, 0.1, 60},
		{"humidity", "%", 55, 10, 0.5, 90},
		{"vibration", "mm/s", 2.8, 0.6, 0.4, 20},
	}
}

func (m *Main) demoCommand() *cobra.Command {
	f := &demoFlags{}
	c := &cobra.Command{
		Use:   "demo",
		Short: "Play sensors on a running broker, so that data moves",
		Long: "The sensors publish JSON readings to the topics temperature, humidity and vibration in public/default, each with " +
			"its name as key. A consumer of the same topics shows what arrives. It goes on until it is interrupted.",
		Args: onlyFlags,
	}
	f.add(c)
	c.Flags().IntVar(&f.sensors, "sensors", 12, "number `N` of sensors")
	c.Flags().Float64Var(&f.rate, "rate", 1, "readings `R` of each sensor a second")
	c.Flags().IntVar(&f.seconds, "seconds", 0, "end after `N` seconds")
	c.RunE = func(c *cobra.Command, _ []string) error { return m.demo(c.Context(), f) }
	return c
}

func (m *Main) demo(ctx context.Context, f *demoFlags) error {
	if f.sensors < 1 || f.sensors > maxSensors || f.rate <= 0 || f.rate > 1000 || f.seconds < 0 {
		return failed(exitUsage, "wrong usage", "--sensors, --rate", fmt.Sprintf("at most %d sensors and 1000 readings a second each", maxSensors))
	}
	ctx, cancel := m.untilSignal(ctx)
	defer cancel()
	if f.seconds > 0 {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(f.seconds)*time.Second)
		defer cancel()
	}
	client, err := f.connect(ctx, m.Stderr)
	if err != nil {
		return err
	}
	s := &stage{client: client, out: m.Stdout}
	closers, err := s.play(ctx, f)
	leave(append(closers, client.Close)...)
	if err == nil {
		fmt.Fprintf(m.Stdout, "%d published, %d confirmed, %d seen\n", s.published.Load(), s.confirmed.Load(), s.arrived.Load())
	}
	return err
}

// stage is a demo under way.
type stage struct {
	client pulsar.Client
	out    io.Writer

	published atomic.Int64
	confirmed atomic.Int64
	arrived   atomic.Int64
	delay     atomic.Int64 // of the last arrival since its reading, ns

	mu      sync.Mutex
	failure error // the last one of a publish since the last line
}

// reading is a message of the demo.
type reading struct {
	Sensor string  `json:"sensor"`
	Number int     `json:"number"`
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`
	Time   string  `json:"time"`
}

// play goes on until the context ends. What it has opened is to be closed in the order
// that it returns, also after an error.
func (s *stage) play(ctx context.Context, f *demoFlags) (closers []func(), err error) {
	consumer, err := s.client.Subscribe(s.audience())
	if err != nil {
		return nil, failed(exitFailed, "cannot subscribe", "temperature, humidity, vibration", err.Error())
	}
	closers = append(closers, consumer.Close)
	producers, err := s.producers()
	for _, p := range producers {
		closers = append(closers, func() { flushBriefly(p) }, p.Close)
	}
	if err != nil {
		return closers, err
	}
	fmt.Fprintf(s.out, "%d sensors publish %g readings a second each to temperature, humidity and vibration; Ctrl-C ends\n", f.sensors, f.rate)
	sending, cancel := lingering(ctx)
	closers = append(closers, cancel)
	var group sync.WaitGroup
	for i := range f.sensors {
		group.Go(func() { s.sense(ctx, sending, i, producers[i%len(producers)], f.rate) })
	}
	group.Go(func() { s.watch(ctx, consumer) })
	group.Go(func() { s.tellEverySecond(ctx) })
	group.Wait()
	return closers, nil
}

// audience is a subscription that leaves nothing behind.
func (s *stage) audience() pulsar.ConsumerOptions {
	var topics []string
	for _, q := range quantities() {
		topics = append(topics, q.name)
	}
	return pulsar.ConsumerOptions{
		Topics: topics, SubscriptionName: fmt.Sprintf("wayside-demo-%d", time.Now().UnixNano()),
		SubscriptionMode: pulsar.NonDurable, Type: pulsar.Exclusive,
	}
}

func (s *stage) producers() ([]pulsar.Producer, error) {
	var made []pulsar.Producer
	for _, q := range quantities() {
		p, err := s.client.CreateProducer(pulsar.ProducerOptions{Topic: q.name})
		if err != nil {
			return made, failed(exitFailed, "cannot publish", q.name, err.Error())
		}
		made = append(made, p)
	}
	return made, nil
}

// sense is the life of one sensor, which ends with ctx; sending is for what it has sent.
// Sensors start apart, like real ones.
func (s *stage) sense(ctx, sending context.Context, i int, p pulsar.Producer, perSecond float64) {
	q := quantities()[i%len(quantities())]
	name := fmt.Sprintf("sensor-%02d", i+1)
	limiter := limiter(perSecond)
	pause(ctx, time.Duration(rand.Float64()/perSecond*float64(time.Second)))
	for n := 1; limiter.Wait(ctx) == nil; n++ {
		now := time.Now()
		phase := 2*math.Pi*float64(now.UnixMilli())/1000/q.clock + float64(i)
		value := q.mean + q.swing*math.Sin(phase) + q.noise*rand.NormFloat64()
		payload, err := json.Marshal(reading{name, n, math.Round(value*100) / 100, q.unit, now.UTC().Format(time.RFC3339Nano)})
		if err != nil {
			s.fail(err)
			return
		}
		s.published.Add(1)
		p.SendAsync(sending, &pulsar.ProducerMessage{Payload: payload, Key: name, EventTime: now}, func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) {
			if err != nil {
				s.fail(err)
				return
			}
			s.confirmed.Add(1)
		})
	}
}

// pause waits, or returns early with the context.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

func (s *stage) fail(err error) {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure = err
}

func (s *stage) watch(ctx context.Context, consumer pulsar.Consumer) {
	for {
		message, err := consumer.Receive(ctx)
		if err != nil {
			return
		}
		s.arrived.Add(1)
		s.delay.Store(int64(time.Since(message.EventTime())))
		if err := consumer.Ack(message); err != nil {
			s.fail(err)
		}
	}
}

func (s *stage) tellEverySecond(ctx context.Context) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for before := int64(0); ; {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			published := s.published.Load()
			fmt.Fprintf(s.out, "%s  %d/s published, %d in all, %d confirmed, %d seen by a consumer %v after the reading%s\n",
				now.Format(time.TimeOnly), published-before, published, s.confirmed.Load(), s.arrived.Load(),
				time.Duration(s.delay.Load()).Round(100*time.Microsecond), s.lastFailure())
			before = published
		}
	}
}

func (s *stage) lastFailure() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure == nil {
		return ""
	}
	text := "; not confirmed: " + s.failure.Error()
	s.failure = nil
	return text
}

func flushBriefly(p pulsar.Producer) {
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	// What is not confirmed by now is counted as such in the last line.
	_ = p.FlushWithCtx(ctx)
}
