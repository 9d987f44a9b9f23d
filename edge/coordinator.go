package edge

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// Coordinator begins and ends transactions (protocol 2.12), with the id 0 among
// coordinators. What it decides is durable before it is done: a record of each
// transaction, with all that takes part, stands in the store until it has ended
// everywhere. Its methods never wait; done runs when the change is durable or has failed.
type Coordinator struct {
	b     *Broker
	store Values

	mu     sync.Mutex // leaf; held while records are handed to the store, for their order
	open   map[uint64]*txn
	next   uint64 // id of the next one
	leased uint64 // ids below are given away, whatever happens
	texts  int    // bytes of names in all records
	closed bool
}

// txn is a transaction that has not ended.
type txn struct {
	id      TxnID
	record  txnRecord
	state   TxnState
	members map[TxnSubscription]int // who takes part, with its place in the record; a topic has Subscription ""
	ended   map[TopicName]bool      // topics that have ended their part
	text    int
	opened  time.Time
	timer   *time.Timer
	waiting []func(error) // for its end
}

// Begin opens a transaction that is aborted when so much time has passed.
func (c *Coordinator) Begin(timeout time.Duration, done func(TxnID, error)) {
	if err := c.begin(timeout, done); err != nil {
		done(TxnID{}, err)
	}
}

func (c *Coordinator) begin(timeout time.Duration, done func(TxnID, error)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.mayBeginLocked(); err != nil {
		return err
	}
	if timeout < 0 || timeout > maxTxnTime {
		timeout = maxTxnTime
	}
	x := &txn{id: TxnID{Least: c.next}, record: txnRecord{Timeout: timeout.Milliseconds()}}
	c.next++
	c.leaseLocked()
	c.addLocked(x)
	c.putLocked(x, func(err error) {
		if err != nil {
			c.forget(x)
		}
		done(x.id, err)
	})
	return nil
}

// txnDisabled is what the reference says where transactions are switched off.
const txnDisabled = "Transactions are not enabled."

func (c *Coordinator) mayBeginLocked() error {
	switch {
	case c.closed:
		return ErrClosing
	case !c.b.opts.Transactions:
		return fmt.Errorf("%w: %s", ErrNotAllowed, txnDisabled)
	case len(c.open) >= maxTxns:
		return fmt.Errorf("%w: %d transactions are open", ErrLimit, len(c.open))
	}
	return nil
}

// addLocked takes a transaction in and lets its time run.
func (c *Coordinator) addLocked(x *txn) {
	x.opened, x.members, x.ended = c.b.opts.Clock(), map[TxnSubscription]int{}, map[TopicName]bool{}
	c.open[x.id.Least] = x
	if x.state == TxnOpen {
		c.armLocked(x, time.Duration(x.record.Timeout)*time.Millisecond)
	}
}

func (c *Coordinator) armLocked(x *txn, after time.Duration) {
	x.timer = time.AfterFunc(after, func() { c.expire(x) })
}

// expireRetry is when the end of a transaction whose time is over is tried again.
const expireRetry = time.Second

// expire aborts a transaction whose time is over.
func (c *Coordinator) expire(x *txn) {
	c.End(x.id, false, func(err error) {
		if err == nil {
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if x.state == TxnOpen && c.open[x.id.Least] == x && !c.closed {
			c.armLocked(x, expireRetry)
		}
	})
}

// findLocked returns a transaction that is open or ending.
func (c *Coordinator) findLocked(id TxnID) (*txn, error) {
	switch x := c.open[id.Least]; {
	case c.closed:
		return nil, ErrClosing
	case id.Most != 0:
		return nil, fmt.Errorf("%w: Transaction coordinator with id %d not found", ErrTxnCoordinator, id.Most)
	case x == nil:
		return nil, fmt.Errorf("%w: The transaction with this txdID `%v`not found ", ErrTxnNotFound, id)
	default:
		return x, nil
	}
}

func (c *Coordinator) findOpenLocked(id TxnID) (*txn, error) {
	x, err := c.findLocked(id)
	if err == nil && x.state != TxnOpen {
		return nil, fmt.Errorf("%w: transaction %v is %v", ErrTxnStatus, id, x.state)
	}
	return x, err
}

// AddTopics lets a transaction publish on topics, which are named as clients name them.
func (c *Coordinator) AddTopics(id TxnID, topics []string, done func(error)) {
	adds := make([]txnAdd, len(topics))
	for i, t := range topics {
		adds[i].TxnSubscription = TxnSubscription{Topic: t}
	}
	c.join(id, adds, done)
}

// AddSubscriptions lets a transaction acknowledge on subscriptions.
func (c *Coordinator) AddSubscriptions(id TxnID, subs []TxnSubscription, done func(error)) {
	adds := make([]txnAdd, len(subs))
	for i, s := range subs {
		adds[i].TxnSubscription = s
	}
	c.join(id, adds, done)
}

func (c *Coordinator) join(id TxnID, adds []txnAdd, done func(error)) {
	if err := c.add(id, adds, done); err != nil {
		done(err)
	}
}

// txnAdd is a topic or a subscription that is about to take part.
type txnAdd struct {
	TxnSubscription
	name TopicName
	end  Position // where the topic ends now
}

func (c *Coordinator) add(id TxnID, adds []txnAdd, done func(error)) error {
	for i := range adds {
		var err error
		if adds[i].name, err = ParseTopicName(adds[i].Topic); err != nil {
			return err
		}
		if adds[i].Subscription == "" {
			adds[i].end = c.b.endOf(adds[i].name)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	x, err := c.findOpenLocked(id)
	if err == nil {
		err = c.takeLocked(x, adds)
	}
	if err == nil {
		c.putLocked(x, done)
	}
	return err
}

// takeLocked notes who takes part, or says why that is too much.
func (c *Coordinator) takeLocked(x *txn, adds []txnAdd) error {
	text := 0
	for _, a := range adds {
		text += len(a.Topic) + len(a.Subscription)
	}
	if len(x.members)+len(adds) > maxTxnParts || x.text+text > maxTxnText || c.texts+text > maxTxnTexts {
		return fmt.Errorf("%w: too many topics and subscriptions take part in transactions", ErrLimit)
	}
	for _, a := range adds {
		if !x.take(a.TxnSubscription, a.name) {
			continue
		}
		c.texts += len(a.Topic) + len(a.Subscription)
		if a.Subscription == "" {
			x.record.Topics = append(x.record.Topics, txnTopic{Name: a.Topic, Ledger: a.end.Ledger, Entry: a.end.Entry})
		} else {
			x.record.Subscriptions = append(x.record.Subscriptions, a.TxnSubscription)
		}
	}
	return nil
}

// take notes a member whose place in the record is the next one. It returns false if it is
// one already.
func (x *txn) take(who TxnSubscription, name TopicName) bool {
	member := TxnSubscription{name.String(), who.Subscription}
	if _, ok := x.members[member]; ok {
		return false
	}
	place := len(x.record.Topics)
	if who.Subscription != "" {
		place = len(x.record.Subscriptions)
	}
	x.members[member] = place
	x.text += len(who.Topic) + len(who.Subscription)
	return true
}

// endOf is where a topic ends now, the zero position if it is not known.
func (b *Broker) endOf(name TopicName) Position {
	b.mu.Lock()
	s := b.open[name]
	_, known := b.known[name]
	b.mu.Unlock()
	if s != nil {
		select {
		case <-s.ready:
			if s.topic != nil {
				return s.topic.ledger.Spans().End()
			}
		default:
		}
	}
	if !known {
		return Position{}
	}
	for _, r := range b.store.Records() {
		if r.Name == name {
			return r.End
		}
	}
	return Position{}
}

// mayPublish says why a transaction may not publish on a topic. The topic is locked, so
// that what is let through stands in front of the transaction's end.
func (c *Coordinator) mayPublish(id TxnID, topic TopicName) error {
	_, err := c.member(id, TxnSubscription{Topic: topic.String()})
	return err
}

// mayAck returns the key under which what a transaction acknowledges on a subscription is
// stored, or says why it may not. The subscription is locked.
func (c *Coordinator) mayAck(id TxnID, topic TopicName, sub string) (key string, err error) {
	place, err := c.member(id, TxnSubscription{topic.String(), sub})
	return txnAcksKey(id, place), err
}

func (c *Coordinator) member(id TxnID, who TxnSubscription) (place int, err error) {
	if !c.b.opts.Transactions {
		return 0, fmt.Errorf("%w: %s", ErrNotAllowed, txnDisabled)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	x, err := c.findOpenLocked(id)
	if err != nil {
		return 0, fmt.Errorf("%w: Transaction %v has been ended or never was. Please use a new transaction", ErrNotAllowed, id)
	}
	place, ok := x.members[who]
	if !ok {
		return 0, fmt.Errorf("%w: %s takes no part in transaction %v", ErrNotAllowed, who.Topic, id)
	}
	return place, nil
}

// Info tells of a transaction that has not ended.
func (c *Coordinator) Info(id TxnID) (TxnInfo, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	x, err := c.findLocked(id)
	if err != nil {
		return TxnInfo{}, err
	}
	info := TxnInfo{
		ID: id, State: x.state, Opened: x.opened, Timeout: time.Duration(x.record.Timeout) * time.Millisecond,
		Subscriptions: slices.Clone(x.record.Subscriptions),
	}
	for _, t := range x.record.Topics {
		info.Topics = append(info.Topics, t.Name)
	}
	return info, nil
}
