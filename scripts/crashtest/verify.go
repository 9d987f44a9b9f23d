package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

// patience bounds the wait for one message that has to come.
const patience = 20 * time.Second

// verify reads what the broker holds after a kill and compares it with the book.
func verify(c pulsar.Client, b *book) error {
	for _, t := range topics {
		if err := audit(c, b, t); err != nil {
			return fmt.Errorf("topic %s: %w", t, err)
		}
		if err := drain(c, b, t); err != nil {
			return fmt.Errorf("topic %s: %w", t, err)
		}
	}
	return b.ledger.verify(c)
}

// audit reads every message since the last check, in order, on its own subscription.
func audit(c pulsar.Client, b *book, topic string) error {
	s, err := c.Subscribe(pulsar.ConsumerOptions{
		Topic: topic, SubscriptionName: auditSub, Type: pulsar.Exclusive, AckWithResponse: true,
		SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest, EnableBatchIndexAcknowledgment: true,
	})
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	defer s.Close()
	page := b.topic[topic]
	end, err := lastID(s)
	if err != nil {
		return err
	}
	seen := map[string]entryID{}
	var newest pulsar.Message
	for page.last.less(end) {
		m, err := receive(s)
		if err != nil {
			return fmt.Errorf("audit stands at %v, the last message is %v: %w", page.last, end, err)
		}
		if err := page.read(m, seen); err != nil {
			return err
		}
		newest = m
	}
	for payload, id := range page.receipts {
		got, ok := seen[payload]
		if !ok {
			return fmt.Errorf("receipted message %v is lost: %.60s", id, payload)
		}
		if got != id {
			return fmt.Errorf("message %.60s was receipted as %v and is %v", payload, id, got)
		}
	}
	b.totals.seen += len(seen)
	clear(page.receipts)
	for payload := range seen {
		page.owed[payload] = true
	}
	if newest == nil {
		return nil
	}
	return s.AckCumulative(newest)
}

// message is what the audit looks at of a message.
type message interface {
	ID() pulsar.MessageID
	Payload() []byte
}

// read checks one message of the audit: ids rise, no payload comes twice, numbers of
// a producer rise.
func (p *page) read(m message, seen map[string]entryID) error {
	id, payload := idOf(m.ID()), string(m.Payload())
	if !p.last.less(id) {
		return fmt.Errorf("id %v came after %v", id, p.last)
	}
	if old, ok := seen[payload]; ok {
		return fmt.Errorf("message %.60s is there twice, as %v and %v", payload, old, id)
	}
	part := strings.SplitN(payload, "/", 4)
	if len(part) != 4 {
		return fmt.Errorf("message %v has a strange payload: %.60q", id, payload)
	}
	n, err := strconv.Atoi(part[2])
	if err != nil {
		return err
	}
	of := part[0] + "/" + part[1]
	if last, ok := p.lastOf[of]; ok && n != last+1 || !ok && n != 0 {
		return fmt.Errorf("message %v is number %d of %s, after %d", id, n, of, last)
	}
	p.lastOf[of], p.last, seen[payload] = n, id, id
	return nil
}

// drain empties the shared subscription: what was never acknowledged has to come, and
// what was confirmed may not.
func drain(c pulsar.Client, b *book, topic string) error {
	s, err := c.Subscribe(pulsar.ConsumerOptions{
		Topic: topic, SubscriptionName: workSub, Type: pulsar.Shared,
		SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest, EnableBatchIndexAcknowledgment: true,
	})
	if err != nil {
		return fmt.Errorf("drain: %w", err)
	}
	defer s.Close()
	page := b.topic[topic]
	for payload := range page.ackSent {
		delete(page.owed, payload)
	}
	for len(page.owed) > 0 {
		m, err := receive(s)
		if err != nil {
			return fmt.Errorf("%d unacknowledged messages do not come again: %w", len(page.owed), err)
		}
		if err := page.again(s, m); err != nil {
			return err
		}
	}
	for { // those whose ack was sent and not confirmed may come too
		m, err := receiveWithin(s, 100*time.Millisecond)
		if err != nil {
			break
		}
		if err := page.again(s, m); err != nil {
			return err
		}
	}
	clear(page.ackSent)
	clear(page.confirmed)
	return nil
}

func (p *page) again(s pulsar.Consumer, m pulsar.Message) error {
	payload := string(m.Payload())
	if p.confirmed[payload] {
		return fmt.Errorf("message %v comes again after its acknowledgement was confirmed: %.60s", idOf(m.ID()), payload)
	}
	delete(p.owed, payload)
	return s.Ack(m)
}

func lastID(s pulsar.Consumer) (entryID, error) {
	ids, err := s.GetLastMessageIDs()
	if err != nil {
		return entryID{}, fmt.Errorf("last message id: %w", err)
	}
	return idOf(ids[0]), nil
}

func receive(s pulsar.Consumer) (pulsar.Message, error) { return receiveWithin(s, patience) }

func receiveWithin(s pulsar.Consumer, d time.Duration) (pulsar.Message, error) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	return s.Receive(ctx)
}
