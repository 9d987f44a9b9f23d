package edge

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// Producer is the right of a client to publish on a topic.
type Producer struct {
	topic   *Topic
	opts    ProducerOptions
	name    string
	end     ProducerEnd
	peer    Peer
	since   time.Time
	schema  int64 // version, −1 without
	last    int64 // sequence told at creation
	msgIn   atomic.Int64
	bytesIn atomic.Int64
	rate    rate

	// guarded by topic.mu
	closed         bool
	reason         error // why our side closed it
	epoch          int64 // topic epoch, −1 for a shared producer
	seq            *sequence
	becoming       bool    // its new topic epoch is being written
	repeats, mixes quietly // lines about what was dropped, see dropped
	unborn         bool    // so for the first time: nobody has it yet
	held           int     // sends of it that are held back, see throttle
	leaving        bool    // its end waits behind them
}

// ProducerOptions is what a client asks for (protocol 2.7).
type ProducerOptions struct {
	ID                  uint64 // the client's id, for stats
	Name                string // "" lets the broker make one up
	UserProvided        bool
	Epoch               int64 // the client's reconnect counter
	Access              AccessMode
	TopicEpoch          int64 // with HasTopicEpoch
	HasTopicEpoch       bool
	Metadata            map[string]string
	InitialSubscription string  // durable, made at the earliest message if missing
	Schema              *Schema // nil without
	Encrypted           bool    // its messages are, end to end
	Own                 bool    // the broker's: what policies ask of messages does not bind it
	Deduplicate         bool    // drops what the name repeats also where the broker does not
	// PeerKey identifies connection and producer id: a successor with an equal key and
	// name and a higher Epoch replaces its predecessor.
	PeerKey any
}

// Receipt says where a message is stored.
type Receipt struct {
	Position  Position
	Index     uint64
	Duplicate bool // nothing was stored: the sequence is known
}

// Name is the producer's name, given or made up.
func (p *Producer) Name() string { return p.name }

// LastSequence is the highest sequence known of the name, −1 without deduplication.
func (p *Producer) LastSequence() int64 { return p.last }

// SchemaVersion is the version of the producer's schema, −1 without one.
func (p *Producer) SchemaVersion() int64 { return p.schema }

// TopicEpoch returns the epoch that an exclusive producer holds, or that a shared one
// has found, if the topic has ever had an exclusive producer.
func (p *Producer) TopicEpoch() (int64, bool) {
	p.topic.mu.Lock()
	defer p.topic.mu.Unlock()
	return p.epoch, p.epoch >= 0
}

// Ready reports whether the producer may publish; if not, ProducerEnd.Ready comes.
func (p *Producer) Ready() bool {
	if p.opts.Access == AccessShared {
		return true
	}
	p.topic.mu.Lock()
	defer p.topic.mu.Unlock()
	return p.topic.owner == p && !p.becoming
}

// AddProducer admits a producer. It may wait for a commit. *InUseError says that a
// living peer may hold the name; ErrUnloaded that the broker has to be asked for the
// topic again.
func (t *Topic) AddProducer(ctx context.Context, o ProducerOptions, end ProducerEnd, peer Peer) (*Producer, error) {
	if err := t.hasRoom(); err != nil {
		return nil, err
	}
	p := &Producer{topic: t, opts: o, name: o.Name, end: end, peer: peer, since: t.broker.opts.Clock(), schema: -1, epoch: -1, last: -1}
	if p.name == "" {
		p.name = t.broker.producerName()
	}
	t.mu.Lock()
	err := t.openLocked()
	t.mu.Unlock()
	if err == nil {
		err = t.policies.Load().admits(t.name, &o)
	}
	if err == nil {
		err = t.prepareProducer(ctx, p)
	}
	if err == nil {
		err = t.admitProducer(ctx, p)
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// openLocked says why a topic takes no producer, whoever it is.
func (t *Topic) openLocked() error {
	switch {
	case t.closed != nil:
		return t.closed
	case t.state.Terminated:
		return fmt.Errorf("%w: %s", ErrTerminated, t.name)
	case len(t.producers)+len(t.queue) >= lower(t.policies.Load().Producers, t.broker.opts.ProducersPerTopic):
		return fmt.Errorf("%w: Topic '%s' reached max producers limit", ErrProducerBusy, t.name)
	}
	return nil
}

// prepareProducer stores what has to exist before the producer does.
func (t *Topic) prepareProducer(ctx context.Context, p *Producer) error {
	var err error
	if p.schema, err = t.broker.ProducerSchema(ctx, t.name, p.opts.Schema); err != nil {
		return err
	}
	if sub := p.opts.InitialSubscription; sub != "" && t.name.IsPersistent() {
		return t.initialSubscription(ctx, sub)
	}
	return nil
}

// initialSubscription makes the subscription that a producer wants to be there.
func (t *Topic) initialSubscription(ctx context.Context, name string) error {
	if t.AutoSubscribes() {
		return t.ensureSubscription(ctx, name)
	}
	if _, err := t.subscription(ctx, name); err != nil {
		return fmt.Errorf("%w: Could not create the initial subscription due to the auto subscription creation is not allowed", ErrNotAllowed)
	}
	return nil
}

// admitProducer registers name and access.
func (t *Topic) admitProducer(ctx context.Context, p *Producer) error {
	t.mu.Lock()
	err := t.openLocked()
	if err == nil {
		err = t.policies.Load().admits(t.name, &p.opts) // they may be others by now
	}
	if err == nil {
		err = t.replaceLocked(p)
	}
	if err != nil {
		t.mu.Unlock()
		return err
	}
	t.used = time.Now()
	if err = t.accessLocked(p); err == nil {
		t.useSequenceLocked(p)
	}
	p.unborn = p.becoming
	becoming := p.becoming
	t.mu.Unlock()
	if err != nil || !becoming {
		return err
	}
	return t.become(ctx, p)
}

// replaceLocked frees a name for its successor, or says who holds it.
func (t *Topic) replaceLocked(p *Producer) error {
	old := t.producers[p.name]
	for _, q := range t.queue {
		if q.name == p.name {
			old = q
		}
	}
	if old == nil {
		return nil
	}
	if old.opts.PeerKey != nil && old.opts.PeerKey == p.opts.PeerKey && p.opts.Epoch > old.opts.Epoch {
		t.removeProducerLocked(old)
		return nil
	}
	return &InUseError{
		Err:    ErrProducerBusy,
		What:   fmt.Sprintf("Producer with name '%s' is already connected to topic '%s'", p.name, t.name),
		Holder: old.peer,
	}
}

// Publish hands a message to the ledger and never waits. done runs in line with the
// answers to all other messages of the topic, on the store's goroutine. After
// ErrGone, ErrStorage or ErrLedgerFailed nothing is to be answered: the producer is
// closed, and ProducerEnd.Closed says so. What the topic's publish rate has no room for
// yet is held back, and the producer's next messages behind it; see Room.
func (p *Producer) Publish(m Message, done func(Receipt, error)) {
	t := p.topic
	t.mu.Lock()
	defer t.mu.Unlock()
	if h := t.throttle.Load(); h != nil && h.holds(p, m, done) {
		return
	}
	p.publishLocked(m, done)
}

func (p *Producer) publishLocked(m Message, done func(Receipt, error)) {
	t := p.topic
	if err := p.barredLocked(&m); err != nil {
		m.Grant.Release()
		t.ledger.Barrier(func(error) { done(Receipt{}, err) })
		return
	}
	seq := p.seq
	if seq != nil && seq.admit(&m.Facts) {
		facts, mixed := m.Facts, seq.goesBeyond(&m.Facts)
		m.Grant.Release()
		t.ledger.Barrier(func(error) { p.repeated(seq, &facts, mixed, done) })
		return
	}
	m.Sequenced, m.Generated = seq != nil, p.generated()
	last := max(m.Facts.Highest, m.Facts.Sequence)
	in := Facts{Txn: m.Facts.Txn, InTxn: m.Facts.InTxn}
	if in.InTxn {
		t.txnComingLocked(in.Txn)
	}
	t.ledger.Append(m, func(e Entry, err error) {
		switch {
		case err == nil:
			p.stored(&e, seq)
			done(Receipt{Position: e.Position, Index: e.Index}, nil)
		case errors.Is(err, ErrBadRequest):
			p.refused(seq, last)
			t.txnFailed(&in)
			done(Receipt{}, err)
		default:
			t.failed(err)
			t.txnFailed(&in)
			done(Receipt{}, fmt.Errorf("%w: %w", ErrStorage, err))
		}
	})
}

// refused runs on the store's goroutine after a message that no store could take. It
// fails alone, and its sequence, if nothing came behind it, is not known.
func (p *Producer) refused(seq *sequence, last int64) {
	if seq == nil {
		return
	}
	p.topic.mu.Lock()
	defer p.topic.mu.Unlock()
	if seq.pushed == last {
		seq.fallBack()
	}
}

// barredLocked says why a message is not taken.
func (p *Producer) barredLocked(m *Message) error {
	t := p.topic
	switch {
	case p.closed:
		return ErrGone
	case t.state.Terminated:
		return fmt.Errorf("%w: %s", ErrTerminated, t.name)
	case p.opts.Access != AccessShared && (t.owner != p || p.becoming):
		return ErrGone
	}
	if !p.opts.Own {
		if err := t.policies.Load().takes(m); err != nil {
			return err
		}
	}
	if m.Facts.InTxn {
		return t.barsTxnLocked(m.Facts.Txn)
	}
	return nil
}

// stored runs on the store's goroutine when an entry of the producer is durable.
func (p *Producer) stored(e *Entry, seq *sequence) {
	n := int64(e.Facts.Messages)
	p.msgIn.Add(n)
	p.bytesIn.Add(int64(len(e.Data)))
	p.topic.counts.in(n, int64(len(e.Data)))
	p.topic.broker.counts.in(n, int64(len(e.Data)))
	p.topic.broker.shortage.over()
	if seq != nil {
		p.topic.mu.Lock()
		seq.settled(&e.Facts)
		p.topic.mu.Unlock()
	}
	p.topic.appended(e)
}

// repeated answers a message whose sequence is known: a duplicate only if the
// first one is durable by now.
func (p *Producer) repeated(seq *sequence, f *Facts, mixed bool, done func(Receipt, error)) {
	p.topic.mu.Lock()
	ok := seq.covers(f)
	p.topic.mu.Unlock()
	if !ok {
		done(Receipt{}, ErrGone) // its first append failed, which closed the producer
		return
	}
	p.dropped(f, mixed)
	done(Receipt{Duplicate: true}, nil)
}

// Refuse puts an answer that the front end has decided in line. The message's grant
// is released.
func (p *Producer) Refuse(m Message, err error, done func(Receipt, error)) {
	m.Grant.Release()
	t := p.topic
	if t.throttle.Load() != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		if p.held > 0 && !p.leaving {
			t.throttle.Load().put(held{p: p, done: done, refusal: err})
			return
		}
	}
	t.ledger.Barrier(func(error) { done(Receipt{}, err) })
}
