package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

// load is the clients of one round.
type load struct {
	clients []pulsar.Client
	cancel  context.CancelFunc
	wg      sync.WaitGroup
}

// startLoad publishes, consumes, acknowledges, gives back, seeks and subscribes until
// ctx ends.
func startLoad(ctx context.Context, b *broker, book *book, rnd *rand.Rand, round int) (*load, error) {
	ctx, cancel := context.WithCancel(ctx)
	l := &load{cancel: cancel}
	if err := l.startTxns(ctx, b, book.ledger, rnd, round); err != nil {
		cancel()
		return nil, err
	}
	for i := range 3 {
		c, err := b.client()
		if err != nil {
			cancel()
			return nil, err
		}
		l.clients = append(l.clients, c)
		for _, t := range topics {
			r := rand.New(rand.NewPCG(rnd.Uint64(), uint64(i)))
			switch i {
			case 0:
				l.wg.Go(func() { publish(ctx, c, book, r, t, round, 0) })
				l.wg.Go(func() { publish(ctx, c, book, rand.New(rand.NewPCG(r.Uint64(), 9)), t, round, 20) })
			case 1:
				l.wg.Go(func() { work(ctx, c, book, r, t) })
			case 2:
				l.wg.Go(func() { wander(ctx, c, r, t) })
			}
		}
	}
	return l, nil
}

// startTxns starts what is done in transactions.
func (l *load) startTxns(ctx context.Context, b *broker, ledger *ledger, rnd *rand.Rand, round int) error {
	for i := range 7 {
		c, err := b.client()
		if err != nil {
			return err
		}
		l.clients = append(l.clients, c)
		r := rand.New(rand.NewPCG(rnd.Uint64(), uint64(i)))
		if i == 0 {
			l.wg.Go(func() { ledger.feed(ctx, c, r, round) })
		} else {
			l.wg.Go(func() { ledger.transform(ctx, c, r) })
		}
	}
	return nil
}

// stop ends all clients. Their broker is gone, and closing may take them long; the
// next broker listens elsewhere, so that none of them disturbs it.
func (l *load) stop() {
	l.cancel()
	ended := make(chan struct{})
	go func() {
		l.wg.Wait()
		close(ended)
	}()
	for _, c := range l.clients {
		go c.Close()
	}
	select {
	case <-ended:
	case <-time.After(time.Second):
	}
}

// publish sends numbered messages; the payload is producer, round and number.
func publish(ctx context.Context, c pulsar.Client, book *book, r *rand.Rand, topic string, round, batch int) {
	name := fmt.Sprintf("%s-b%d", topic, batch)
	p, err := c.CreateProducer(pulsar.ProducerOptions{
		Topic: topic, Name: fmt.Sprintf("%s-r%d", name, round), DisableBatching: batch == 0,
		BatchingMaxMessages: uint(max(batch, 1)), BatchingMaxPublishDelay: 2 * time.Millisecond, MaxPendingMessages: 200,
	})
	if err != nil {
		return
	}
	for n := 0; ctx.Err() == nil; n++ {
		payload := fmt.Sprintf("%s/%d/%d/%s", name, round, n, filler(r))
		p.SendAsync(ctx, &pulsar.ProducerMessage{Payload: []byte(payload), Key: fmt.Sprint(n % 7)},
			func(id pulsar.MessageID, _ *pulsar.ProducerMessage, err error) {
				if err == nil {
					book.receipt(topic, payload, id)
				}
			})
		if r.IntN(10) == 0 { // about a thousand a second, so that all can be read again
			pause(ctx, time.Duration(r.IntN(20))*time.Millisecond)
		}
	}
}

func filler(r *rand.Rand) string {
	b := make([]byte, r.IntN(400))
	for i := range b {
		b[i] = 'a' + byte(r.IntN(26))
	}
	return string(b)
}

// work is a consumer on the shared subscription: most messages are acknowledged, and
// the answer is waited for; some are given back.
func work(ctx context.Context, c pulsar.Client, book *book, r *rand.Rand, topic string) {
	s, err := c.Subscribe(pulsar.ConsumerOptions{
		Topic: topic, SubscriptionName: workSub, Type: pulsar.Shared, AckWithResponse: true,
		NackRedeliveryDelay: 50 * time.Millisecond, ReceiverQueueSize: 100, EnableBatchIndexAcknowledgment: true,
	})
	if err != nil {
		return
	}
	for ctx.Err() == nil {
		m, err := s.Receive(ctx)
		if err != nil {
			return
		}
		if r.IntN(10) == 0 {
			s.Nack(m)
			continue
		}
		payload := string(m.Payload())
		book.ackSent(topic, payload)
		if s.Ack(m) == nil {
			book.ackConfirmed(topic, payload)
		}
	}
}

// wander seeks to and fro, and comes and goes under names of its own.
func wander(ctx context.Context, c pulsar.Client, r *rand.Rand, topic string) {
	for ctx.Err() == nil {
		s, err := c.Subscribe(pulsar.ConsumerOptions{
			Topic: topic, SubscriptionName: fmt.Sprintf("wander-%d", r.IntN(3)), Type: pulsar.Exclusive,
			SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest,
		})
		if err != nil {
			return
		}
		var first pulsar.MessageID
		for range 20 + r.IntN(50) {
			short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
			m, err := s.Receive(short)
			cancel()
			if err != nil {
				break
			}
			if first == nil {
				first = m.ID()
			}
			_ = s.Ack(m)
		}
		switch r.IntN(4) {
		case 0:
			if first != nil {
				_ = s.Seek(first)
			}
		case 1:
			_ = s.SeekByTime(time.Now().Add(-time.Second))
		case 2:
			_ = s.Unsubscribe()
		}
		s.Close()
	}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
