package edge

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// txnRecord is a transaction as it is stored, in JSON, where later versions may add fields.
type txnRecord struct {
	Timeout       int64             `json:"timeout"` // ms
	State         TxnState          `json:"state,omitempty"`
	Topics        []txnTopic        `json:"topics,omitempty"`
	Subscriptions []TxnSubscription `json:"subscriptions,omitempty"` // only added to: their place is part of a key
}

// txnTopic is a topic that is published on, and where it ended before that.
type txnTopic struct {
	Name   string `json:"name"`
	Ledger int64  `json:"l"`
	Entry  int64  `json:"e"`
}

// txnPart is a topic's part in a transaction.
type txnPart struct {
	id        TxnID
	commit    bool
	published bool
	after     Position // nothing was published up to there
	acks      []txnAcker
}

// txnAcker is a subscription that the transaction acknowledges on.
type txnAcker struct{ name, key string }

// leaseStep is how many ids are set aside at once.
const leaseStep = 1_000

// leaseLocked sees that no id is given twice, not after a crash either: what is set aside
// becomes durable in front of the record that uses it.
func (c *Coordinator) leaseLocked() {
	if c.next <= c.leased {
		return
	}
	c.leased = c.next + leaseStep
	c.store.PutValue(keyTxnNext, strconv.AppendUint(nil, c.leased, 10), func(error) {})
}

// putLocked hands a transaction's record to the store.
func (c *Coordinator) putLocked(x *txn, done func(error)) {
	raw, _ := json.Marshal(x.record) // has nothing that JSON cannot say
	c.store.PutValue(txnKey(x.id), raw, func(err error) {
		if err != nil {
			err = fmt.Errorf("%w: save transaction %v: %w", ErrStorage, x.id, err)
		}
		done(err)
	})
}

// eraseLocked takes back all that is stored of a transaction.
func (c *Coordinator) eraseLocked(x *txn) {
	for i := range x.record.Subscriptions {
		c.store.PutValue(txnAcksKey(x.id, i), nil, func(error) {})
	}
	c.store.PutValue(txnKey(x.id), nil, func(error) {})
}

// value reads one of the store's values, nil if it is not there.
func (c *Coordinator) value(key string) (raw []byte, err error) {
	err = c.store.ScanValues(key, func(k string, v []byte) bool {
		if k == key {
			raw = v
		}
		return false
	})
	return raw, err
}

// loadCoordinator reads all transactions that had not ended. One that was open goes on,
// with all its time before it.
func loadCoordinator(b *Broker) (*Coordinator, error) {
	c := &Coordinator{b: b, store: b.store, open: map[uint64]*txn{}}
	acks := map[string]bool{}
	var bad error
	err := b.store.ScanValues(keyTxn, func(key string, value []byte) bool {
		switch {
		case key == keyTxnNext:
			n, _ := strconv.ParseUint(string(value), 10, 64)
			c.next = max(c.next, n)
		case strings.HasPrefix(key, keyTxnOpen):
			bad = c.load(key[len(keyTxnOpen):], value)
		case strings.HasPrefix(key, keyTxnAcks):
			acks[key] = true
		}
		return bad == nil
	})
	if err == nil {
		err = bad
	}
	if err != nil {
		return nil, err
	}
	for _, x := range c.open {
		for i := range x.record.Subscriptions {
			delete(acks, txnAcksKey(x.id, i))
		}
	}
	for key := range acks { // of transactions that have ended
		c.store.PutValue(key, nil, func(error) {})
	}
	c.leased = c.next
	return c, nil
}

func (c *Coordinator) load(id string, value []byte) error {
	least, err := strconv.ParseUint(id, 16, 64)
	x := &txn{id: TxnID{Least: least}}
	if err == nil {
		err = json.Unmarshal(value, &x.record)
	}
	if err != nil {
		return fmt.Errorf("transaction %s: %w", id, err)
	}
	x.state = min(max(x.record.State, TxnOpen), TxnAborting)
	c.next = max(c.next, least+1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.addLocked(x)
	x.retake()
	c.texts += x.text
	return nil
}

// retake finds out from the record who takes part.
func (x *txn) retake() {
	for i, t := range x.record.Topics {
		x.takeAt(TxnSubscription{Topic: t.Name}, i)
	}
	for i, s := range x.record.Subscriptions {
		x.takeAt(s, i)
	}
}

func (x *txn) takeAt(who TxnSubscription, place int) {
	x.text += len(who.Topic) + len(who.Subscription)
	if name, err := ParseTopicName(who.Topic); err == nil {
		x.members[TxnSubscription{name.String(), who.Subscription}] = place
	}
}

// on lists the parts of a topic in transactions that it has not ended yet.
func (c *Coordinator) on(topic TopicName) (parts []txnPart) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.open) == 0 {
		return nil
	}
	full := topic.String()
	for _, x := range c.open {
		if p := x.part(full); !x.ended[topic] && (p.published || len(p.acks) > 0) {
			parts = append(parts, p)
		}
	}
	return parts
}

// part is a topic's part in the transaction.
func (x *txn) part(topic string) txnPart {
	p := txnPart{id: x.id, commit: x.state == TxnCommitting}
	for who, place := range x.members {
		switch {
		case who.Topic != topic:
		case who.Subscription == "":
			t := x.record.Topics[place]
			p.published, p.after = true, Position{t.Ledger, t.Entry}
		default:
			p.acks = append(p.acks, txnAcker{who.Subscription, txnAcksKey(x.id, place)})
		}
	}
	return p
}
