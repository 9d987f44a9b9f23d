package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

// Transactions: each reading of a source is brought, in one transaction, to two other topics and acknowledged. Whenever
// the broker is killed, a reading is in both of them, once, or else still to be had from the source.
const (
	txnSource = "crash-txn-source"
	txnSub    = "transform"
	txnFence  = "fence/"
	// txnTime is how long a transaction may last. One that a kill has left open holds back what is behind it for as
	// long, once the broker is there again.
	txnTime = 2 * time.Second
)

var txnTargets = []string{"crash-txn-x", "crash-txn-y"}

// ledger is what is known of the readings.
type ledger struct {
	mu        sync.Mutex
	fed       map[string]bool           // readings with a receipt
	committed map[string]bool           // by a commit that was confirmed
	out       map[string]map[string]int // target → reading → how often it is there
	totals    struct{ commits, aborts int }
}

func newLedger() *ledger {
	l := &ledger{fed: map[string]bool{}, committed: map[string]bool{}, out: map[string]map[string]int{}}
	for _, t := range txnTargets {
		l.out[t] = map[string]int{}
	}
	return l
}

// feed publishes readings, each by itself: of a batch the Go client acknowledges in a transaction also what it had
// acknowledged in an earlier one that was aborted.
func (l *ledger) feed(ctx context.Context, c pulsar.Client, r *rand.Rand, round int) {
	p, err := c.CreateProducer(pulsar.ProducerOptions{Topic: txnSource, Name: fmt.Sprintf("feed-r%d", round), DisableBatching: true})
	if err != nil {
		return
	}
	for n := 0; ctx.Err() == nil; n++ {
		payload := fmt.Sprintf("%d/%d", round, n)
		p.SendAsync(ctx, &pulsar.ProducerMessage{Payload: []byte(payload)}, func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) {
			if err == nil {
				l.mu.Lock()
				l.fed[payload] = true
				l.mu.Unlock()
			}
		})
		pause(ctx, time.Duration(r.IntN(6))*time.Millisecond)
	}
}

// transform brings readings over until ctx ends. Some transactions are aborted.
func (l *ledger) transform(ctx context.Context, c pulsar.Client, r *rand.Rand) {
	s, err := c.Subscribe(pulsar.ConsumerOptions{
		Topic: txnSource, SubscriptionName: txnSub, Type: pulsar.Shared, SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest,
	})
	if err != nil {
		return
	}
	var to []pulsar.Producer
	for _, t := range txnTargets {
		p, err := c.CreateProducer(pulsar.ProducerOptions{Topic: t, DisableBatching: r.IntN(2) == 0, BatchingMaxPublishDelay: time.Millisecond})
		if err != nil {
			return
		}
		to = append(to, p)
	}
	for ctx.Err() == nil {
		if !l.one(ctx, c, r, s, to) {
			return
		}
	}
}

// one does one transaction. It returns false when the broker is gone.
func (l *ledger) one(ctx context.Context, c pulsar.Client, r *rand.Rand, s pulsar.Consumer, to []pulsar.Producer) bool {
	txn, err := c.NewTransaction(txnTime)
	if err != nil {
		return ctx.Err() == nil
	}
	var moved []string
	for range 1 + r.IntN(4) {
		m, err := s.Receive(ctx)
		if err != nil {
			return false
		}
		for _, p := range to {
			if _, err := p.Send(ctx, &pulsar.ProducerMessage{Payload: m.Payload(), Transaction: txn}); err != nil {
				return ctx.Err() == nil
			}
		}
		if s.AckWithTxn(m, txn) != nil {
			return ctx.Err() == nil
		}
		moved = append(moved, string(m.Payload()))
	}
	abort := r.IntN(5) == 0
	if abort {
		err = txn.Abort(ctx)
	} else {
		err = txn.Commit(ctx)
	}
	if err != nil {
		return ctx.Err() == nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if abort {
		l.totals.aborts++
		return true
	}
	l.totals.commits++
	for _, payload := range moved {
		l.committed[payload] = true
	}
	return true
}

// verify looks where every reading is.
func (l *ledger) verify(c pulsar.Client) error {
	for _, t := range txnTargets {
		if err := l.readTarget(c, t); err != nil {
			return fmt.Errorf("topic %s: %w", t, err)
		}
	}
	left, err := l.readSource(c)
	if err != nil {
		return fmt.Errorf("topic %s: %w", txnSource, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, all := range []map[string]int{l.out[txnTargets[0]], l.out[txnTargets[1]]} {
		for payload := range all {
			l.fed[payload] = true // though its receipt may never have come
		}
	}
	for payload := range l.fed {
		if err := l.judge(payload, left[payload]); err != nil {
			return err
		}
	}
	return nil
}

// judge says what is wrong with a reading's place; left: it is still to be had from the source.
func (l *ledger) judge(payload string, left bool) error {
	x, y := l.out[txnTargets[0]][payload], l.out[txnTargets[1]][payload]
	switch {
	case x != y || x > 1:
		return fmt.Errorf("reading %s is %d times in %s and %d times in %s", payload, x, txnTargets[0], y, txnTargets[1])
	case l.committed[payload] && x == 0:
		return fmt.Errorf("reading %s was committed and is lost", payload)
	case left && x == 1:
		return fmt.Errorf("reading %s was brought over and comes again", payload)
	case !left && x == 0:
		return fmt.Errorf("reading %s was not brought over and does not come again", payload)
	}
	return nil
}

// summary says what was done, idle what was not, "" for nothing.
func (l *ledger) summary() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return fmt.Sprintf("%d commits, %d aborts, %d readings brought over", l.totals.commits, l.totals.aborts, len(l.out[txnTargets[0]]))
}

func (l *ledger) idle() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.totals.commits == 0:
		return "no transaction was committed"
	case l.totals.aborts == 0:
		return "no transaction was aborted"
	}
	return ""
}

// readTarget reads all that is new up to a message of its own, behind which nothing of the last round can be open.
func (l *ledger) readTarget(c pulsar.Client, topic string) error {
	s, err := c.Subscribe(pulsar.ConsumerOptions{
		Topic: topic, SubscriptionName: auditSub, Type: pulsar.Exclusive, AckWithResponse: true,
		SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest,
	})
	if err != nil {
		return err
	}
	defer s.Close()
	fence, err := publishFence(c, topic)
	if err != nil {
		return err
	}
	for {
		m, err := receive(s)
		if err != nil {
			return err
		}
		switch payload := string(m.Payload()); {
		case payload == fence:
			return s.AckCumulative(m)
		case !strings.HasPrefix(payload, txnFence):
			l.mu.Lock()
			l.out[topic][payload]++
			l.mu.Unlock()
		}
	}
}

// publishFence publishes a message like no other one and returns what it says.
func publishFence(c pulsar.Client, topic string) (string, error) {
	p, err := c.CreateProducer(pulsar.ProducerOptions{Topic: topic, DisableBatching: true})
	if err != nil {
		return "", err
	}
	defer p.Close()
	fence := fmt.Sprint(txnFence, time.Now().UnixNano())
	_, err = p.Send(context.Background(), &pulsar.ProducerMessage{Payload: []byte(fence)})
	return fence, err
}

// txnQuiet is how long nothing has to come from the source until all has come: what is
// aborted comes back a moment after the targets are free of it.
const txnQuiet = 500 * time.Millisecond

// readSource returns what still comes from the source; it acknowledges none of it.
func (l *ledger) readSource(c pulsar.Client) (left map[string]bool, err error) {
	s, err := c.Subscribe(pulsar.ConsumerOptions{
		Topic: txnSource, SubscriptionName: txnSub, Type: pulsar.Shared, ReceiverQueueSize: 10_000,
		SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest,
	})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	fence, err := publishFence(c, txnSource)
	if err != nil {
		return nil, err
	}
	left = map[string]bool{}
	for reached, wait := false, patience; ; {
		m, err := receiveWithin(s, wait)
		switch {
		case err != nil && reached:
			return left, nil
		case err != nil:
			return nil, err
		case !strings.HasPrefix(string(m.Payload()), txnFence):
			left[string(m.Payload())] = true
			continue
		case string(m.Payload()) == fence:
			reached, wait = true, txnQuiet
		}
		if err := s.Ack(m); err != nil {
			return nil, err
		}
	}
}
