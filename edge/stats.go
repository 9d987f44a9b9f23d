package edge

import (
	"sync"
	"sync/atomic"
	"time"
)

// counters count what passes, since their owner was made.
type counters struct {
	msgIn, bytesIn   atomic.Int64
	msgOut, bytesOut atomic.Int64
	lost             atomic.Int64 // ranges that were gone or damaged
	dropped          atomic.Int64 // entries that gave way when the store was full, messages that nobody could take
	rate             rate
}

func (c *counters) in(messages, bytes int64) {
	c.msgIn.Add(messages)
	c.bytesIn.Add(bytes)
}

func (c *counters) out(messages, bytes int64) {
	c.msgOut.Add(messages)
	c.bytesOut.Add(bytes)
}

// rate remembers counts of about a minute ago, to say how fast they grow. It takes
// memory only once somebody has asked.
type rate struct{ past atomic.Pointer[rateState] }

type rateState struct {
	mu       sync.Mutex
	at, was  time.Time
	now, old [5]int64
}

// rateWindow is the least time that a rate is averaged over; Pulsar's is a minute.
const rateWindow = time.Minute

// per returns the growth per second of the given counts over the last minute or two.
func (r *rate) per(t time.Time, counts [5]int64) (perSecond [5]float64) {
	if r.past.Load() == nil {
		r.past.CompareAndSwap(nil, &rateState{at: t, was: t, now: counts, old: counts})
	}
	return r.past.Load().per(t, counts)
}

func (r *rateState) per(t time.Time, counts [5]int64) (perSecond [5]float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t.Sub(r.at) >= rateWindow {
		r.was, r.old = r.at, r.now
		r.at, r.now = t, counts
	}
	if d := t.Sub(r.was).Seconds(); d >= 1 {
		for i := range counts {
			perSecond[i] = float64(counts[i]-r.old[i]) / d
		}
	}
	return perSecond
}

func (c *counters) rates(t time.Time) [5]float64 {
	return c.rate.per(t, [5]int64{c.msgIn.Load(), c.bytesIn.Load(), c.msgOut.Load(), c.bytesOut.Load(), c.dropped.Load()})
}

// BrokerStats is a snapshot of the whole broker.
type BrokerStats struct {
	Topics, Open, Producers, Consumers, Subscriptions int
	MsgIn, BytesIn, MsgOut, BytesOut                  int64
	RateIn, ThroughputIn, RateOut, ThroughputOut      float64 // per second, over the last minute or two
	Lost                                              int64   // ranges of entries that were gone or damaged
	Dropped                                           int64   // entries that gave way to newer ones when the store was full
	Duplicates                                        int64   // messages that deduplication has dropped
	Store                                             StoreStats
	Health                                            []string // why it is not healthy
}

// TopicStats is a snapshot of a topic.
type TopicStats struct {
	Name                                         TopicName
	BirthID                                      string
	MsgIn, BytesIn, MsgOut, BytesOut             int64 // since it was loaded
	RateIn, ThroughputIn, RateOut, ThroughputOut float64
	StorageSize, BacklogSize                     int64
	Entries                                      int64
	Spans                                        Spans
	Publishers                                   []ProducerStats
	Waiting                                      int // producers that wait to become exclusive
	Subscriptions                                map[string]SubscriptionStats
	Deduplication, Terminated                    bool
	Epoch                                        int64 // of exclusive producers, −1 for none yet
	Properties                                   map[string]string
	QuotaSize, QuotaTime                         int64 // of the backlog: bytes and seconds, −1 for none
	Transactions, Committed, Aborted             int64 // with entries that are open; that have ended since the load
	Dropped                                      int64 // messages that nobody could take, of a non-persistent topic
	DropRate                                     float64
	RateLimited                                  int64 // how often its publish rate began to hold sends back
	Compaction                                   CompactionStatus
	CompactedEntries, CompactedBytes             int64 // of the compacted form, 0 without one; bytes 0 before its first use
}

// ProducerStats is a snapshot of a producer.
type ProducerStats struct {
	ID                     uint64
	Name, Address, Version string
	Connected              time.Time
	Metadata               map[string]string
	Access                 AccessMode
	MsgIn, BytesIn         int64
	RateIn, ThroughputIn   float64
}

// SubscriptionStats is a snapshot of a subscription. Times are ms since 1970, 0 for never.
type SubscriptionStats struct {
	Kind                                  SubKind
	Typed                                 bool // a consumer came since the load, so Kind is meant
	Durable                               bool
	Backlog, BacklogBytes                 int64 // entries, bytes
	Unacked                               int64
	Blocked                               bool
	Replay, Delayed                       int64
	Active                                string // name of the active consumer of the single kinds
	MsgOut, BytesOut, Redelivered         int64
	RateOut, ThroughputOut                float64
	Consumers                             []ConsumerStats
	MarkDelete, Read                      Position
	Holes                                 []Run
	Properties                            map[string]string
	LastAck, LastFlow, LastSent, LastMove int64
	OutOfOrder, Sticky                    bool
	Expired, LastExpire                   int64 // entries past their time to live, and when some were
	Dropped                               int64 // messages that nobody could take, on a non-persistent topic
	DropRate                              float64
	Paused                                string // why new entries are not dispatched
}

// ConsumerStats is a snapshot of a consumer.
type ConsumerStats struct {
	ID                            uint64
	Name, Address, Version        string
	Connected                     time.Time
	Metadata                      map[string]string
	Kind                          SubKind
	Permits, Unacked              int64
	Blocked                       bool
	MsgOut, BytesOut, Redelivered int64
	RateOut, ThroughputOut        float64
	RateRedeliver                 float64
	LastAck, LastSent, LastFlow   int64
	Ranges                        []SlotRange // of Key_Shared
	Backlog                       int64       // of the subscription, entries
}

// Stats is a snapshot of the broker.
func (b *Broker) Stats() BrokerStats {
	b.mu.Lock()
	st := BrokerStats{Topics: len(b.known)}
	b.mu.Unlock()
	for _, t := range b.openTopics() {
		st.Open++
		t.mu.Lock()
		st.Producers += len(t.producers) + len(t.queue)
		for _, s := range t.subs {
			st.Consumers += s.consumerCount()
		}
		t.mu.Unlock()
	}
	for _, r := range b.Records() {
		st.Subscriptions += r.Subscriptions
	}
	c := &b.counts
	st.MsgIn, st.BytesIn, st.MsgOut, st.BytesOut = c.msgIn.Load(), c.bytesIn.Load(), c.msgOut.Load(), c.bytesOut.Load()
	st.Lost, st.Dropped, st.Duplicates = c.lost.Load(), c.dropped.Load(), b.duplicates.Load()
	r := c.rates(time.Now())
	st.RateIn, st.ThroughputIn, st.RateOut, st.ThroughputOut = r[0], r[1], r[2], r[3]
	st.Store = b.store.Stats()
	st.Health = b.healthOf(&st.Store)
	return st
}

// Stats is a snapshot of the topic.
func (t *Topic) Stats() TopicStats {
	now := time.Now()
	spans := t.ledger.Spans()
	c := &t.counts
	r := c.rates(now)
	st := TopicStats{
		Name: t.name, BirthID: t.ledger.BirthID(), Spans: spans,
		MsgIn: c.msgIn.Load(), BytesIn: c.bytesIn.Load(), MsgOut: c.msgOut.Load(), BytesOut: c.bytesOut.Load(),
		RateIn: r[0], ThroughputIn: r[1], RateOut: r[2], ThroughputOut: r[3],
		Dropped: c.dropped.Load(), DropRate: r[4],
		Subscriptions: map[string]SubscriptionStats{}, Deduplication: t.deduplicates(),
	}
	st.Entries, _, st.StorageSize = spans.Totals()
	st.Transactions, st.Committed, st.Aborted = t.txnCounts()
	st.QuotaSize, st.QuotaTime = t.policies.Load().quotas()
	st.Compaction = t.Compaction()
	if form := t.compacted.Load(); form != nil {
		st.CompactedEntries, st.CompactedBytes = form.state.Entries, form.bytes()
	}
	t.mu.Lock()
	st.Waiting, st.Terminated, st.Epoch, st.Properties = len(t.queue), t.state.Terminated, t.state.Epoch-1, t.state.Properties
	producers := t.allProducersLocked()
	subs := *t.wakes.Load()
	if h := t.throttle.Load(); h != nil {
		st.RateLimited = h.limited
	}
	t.mu.Unlock()
	for _, p := range producers {
		st.Publishers = append(st.Publishers, p.stats(now))
	}
	for _, s := range subs {
		ss := s.stats(now, spans)
		st.BacklogSize = max(st.BacklogSize, ss.BacklogBytes)
		st.Subscriptions[s.name] = ss
	}
	return st
}

func (p *Producer) stats(now time.Time) ProducerStats {
	r := p.rate.per(now, [5]int64{p.msgIn.Load(), p.bytesIn.Load()})
	return ProducerStats{
		ID: p.opts.ID, Name: p.name, Address: p.peer.Address(), Version: p.peer.Version(), Connected: p.since,
		Metadata: p.opts.Metadata, Access: p.opts.Access,
		MsgIn: p.msgIn.Load(), BytesIn: p.bytesIn.Load(), RateIn: r[0], ThroughputIn: r[1],
	}
}

func (s *Subscription) stats(now time.Time, spans Spans) SubscriptionStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.counts.rates(now)
	st := SubscriptionStats{
		Kind: s.kind, Typed: s.typed, Durable: s.durable && s.topic.name.IsPersistent(),
		Backlog: s.cursor.Backlog(spans), BacklogBytes: s.cursor.BacklogBytes(spans),
		MsgOut: s.counts.msgOut.Load(), BytesOut: s.counts.bytesOut.Load(), Redelivered: s.redelivers.Load(),
		RateOut: r[2], ThroughputOut: r[3], MarkDelete: s.cursor.MarkDelete(), Holes: s.cursor.Holes(),
		Properties: s.cursor.Properties(), LastAck: s.lastAck.Load(), LastFlow: s.lastFlow.Load(),
		LastSent: s.lastSent.Load(), LastMove: s.lastMove.Load(),
		OutOfOrder: s.outOfOrder, Sticky: s.sticky, Paused: s.paused, Dropped: s.counts.dropped.Load(), DropRate: r[4],
		Expired: s.expired.Load(), LastExpire: s.lastExpired.Load(),
	}
	s.dispatch.fill(&st)
	for _, c := range s.consumers {
		st.Consumers = append(st.Consumers, c.statsLocked(now, st.Backlog))
	}
	return st
}

// Stats is a snapshot of the consumer.
func (c *Consumer) Stats() ConsumerStats {
	s := c.sub
	s.mu.Lock()
	defer s.mu.Unlock()
	return c.statsLocked(time.Now(), s.cursor.Backlog(s.topic.ledger.Spans()))
}

func (c *Consumer) statsLocked(now time.Time, backlog int64) ConsumerStats {
	r := c.rate.per(now, [5]int64{c.msgOut.Load(), c.bytesOut.Load(), c.redelivered.Load()})
	st := ConsumerStats{
		ID: c.opts.ID, Name: c.opts.Consumer, Address: c.peer.Address(), Version: c.peer.Version(), Connected: c.since,
		Metadata: c.opts.Metadata, Kind: c.opts.Kind, Permits: int64(c.permits), Unacked: int64(c.unacked), Blocked: c.blocked,
		MsgOut: c.msgOut.Load(), BytesOut: c.bytesOut.Load(), Redelivered: c.redelivered.Load(),
		RateOut: r[0], ThroughputOut: r[1], RateRedeliver: r[2],
		LastAck: c.lastAck.Load(), LastSent: c.lastSent.Load(), LastFlow: c.lastFlow.Load(), Backlog: backlog,
	}
	if d, ok := c.sub.dispatch.(*shared); ok && d.keys != nil {
		st.Ranges = d.keys.owners.ranges(c)
	}
	return st
}

func (d *single) fill(st *SubscriptionStats) {
	st.Read = d.read
	if d.active != nil {
		st.Active = d.active.opts.Consumer
	}
}

func (d *shared) fill(st *SubscriptionStats) {
	st.Read, st.Unacked, st.Blocked = d.read, int64(d.unacked), d.blocked
	st.Replay, st.Delayed = d.replay.Len(), int64(d.delayed.Len())
}
