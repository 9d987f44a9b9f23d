package admin

import (
	"net/http"

	"wayside/edge"
)

// statsRoutes: what a topic, or all partitions of one together, is doing (protocol 5.2
// and 5.3, captures curl-stats). A topic that is not loaded is loaded for it. Of the
// query, subscriptionBacklogSize, excludePublishers and excludeConsumers are obeyed;
// backlogs are exact in any case.
func (s *Server) statsRoutes(domain string) {
	s.handleTopic(domain, "GET", "/stats", s.getStats)
	s.handleTopic(domain, "GET", "/partitioned-stats", s.getPartitionedStats)
	s.handleTopic(domain, "GET", "/internalStats", s.getInternalStats)
	s.handleTopic(domain, "GET", "/partitioned-internalStats", s.getPartitionedInternalStats)
}

// statsOptions are what the query asks for.
type statsOptions struct {
	backlogSize bool
	publishers  bool
	consumers   bool
}

func statsOptionsOf(r *http.Request) statsOptions {
	return statsOptions{
		backlogSize: switchOr(r, "subscriptionBacklogSize", true),
		publishers:  !switchOn(r, "excludePublishers"),
		consumers:   !switchOn(r, "excludeConsumers"),
	}
}

func (s *Server) getStats(r *http.Request, name edge.TopicName) (any, error) {
	stats, err := s.topicStats(r, name)
	if err != nil {
		return nil, err
	}
	view := statsOf(stats, statsOptionsOf(r))
	view.OwnerBroker = s.brokerID(r)
	if name.IsPersistent() {
		view.DeduplicationStatus = deduplication(stats.Deduplication)
	}
	return view, nil
}

// topicStats asks the broker; the base name of a partitioned topic has none of its own.
func (s *Server) topicStats(r *http.Request, name edge.TopicName) (edge.TopicStats, error) {
	if _, ok := s.broker.Partitions(name); ok {
		return edge.TopicStats{}, edge.ErrTopicNotFound
	}
	if !s.broker.Catalog().HasNamespace(name.NamespaceName()) {
		return edge.TopicStats{}, edge.ErrNamespaceNotFound
	}
	return s.broker.TopicStats(r.Context(), name)
}

func deduplication(on bool) string {
	if on {
		return "Enabled"
	}
	return "Disabled"
}

// getPartitionedStats adds the partitions up. Those that were deleted on their own are
// left out.
func (s *Server) getPartitionedStats(r *http.Request, name edge.TopicName) (any, error) {
	n, err := s.partitioned(name)
	if err != nil {
		return nil, err
	}
	options := statsOptionsOf(r)
	sum := statsOf(edge.TopicStats{Epoch: -1, QuotaSize: -1, QuotaTime: -1}, options)
	metadata, err := s.metadataOf(name, n)
	if err != nil {
		return nil, err
	}
	whole := partitionedStats{Metadata: metadata, Partitions: map[string]topicStats{}}
	for _, partition := range s.each(name) {
		stats, err := s.topicStats(r, partition)
		if gone(err) {
			continue
		}
		if err != nil {
			return nil, ofTopic(err, partition)
		}
		view := statsOf(stats, options)
		sum.add(&view)
		if switchOr(r, "perPartition", true) {
			view.OwnerBroker = s.brokerID(r)
			view.DeduplicationStatus = deduplication(stats.Deduplication)
			whole.Partitions[partition.String()] = view
		}
	}
	whole.topicStats = sum
	return whole, nil
}

// partitioned is the number of partitions of a topic that has some.
func (s *Server) partitioned(name edge.TopicName) (int, error) {
	if !s.broker.Catalog().HasNamespace(name.NamespaceName()) {
		return 0, edge.ErrNamespaceNotFound
	}
	n, ok := s.broker.Partitions(name)
	if !ok {
		return 0, refuse(http.StatusNotFound, "Partitioned Topic %s not found", name)
	}
	return n, nil
}

// statsOf is a topic's snapshot in Pulsar's shape.
func statsOf(t edge.TopicStats, o statsOptions) topicStats {
	v := topicStats{
		RateIn:        rate(t.RateIn),
		ThroughputIn:  rate(t.ThroughputIn),
		RateOut:       rate(t.RateOut),
		ThroughputOut: rate(t.ThroughputOut),
		BytesIn:       t.BytesIn,
		MessagesIn:    t.MsgIn,
		BytesOut:      t.BytesOut,
		MessagesOut:   t.MsgOut,
		AverageSize:   rate(perMessage(t.ThroughputIn, t.RateIn)),
		StorageSize:   t.StorageSize,
		BacklogSize:   t.BacklogSize,
		QuotaSize:     t.QuotaSize,
		QuotaTime:     t.QuotaTime,
		OldestAge:     -1,
		Compaction:    compactionOf(t.Compaction),
		Publishers:    []publisherStats{},
		WaitingOwners: t.Waiting,
		RateLimited:   t.RateLimited,
		TxnOngoing:    t.Transactions, TxnCommitted: t.Committed, TxnAborted: t.Aborted,
		Subscriptions: make(map[string]subscriptionStats, len(t.Subscriptions)),
	}
	if !t.Name.IsPersistent() && t.Name.Local != "" {
		v.DropRate = new(rate(t.DropRate))
		v.QuotaSize, v.QuotaTime, v.OldestAge = 0, 0, 0 // as the reference has it
	}
	if t.Epoch >= 0 {
		v.TopicEpoch = &t.Epoch
	}
	for _, p := range t.Publishers {
		if o.publishers {
			v.Publishers = append(v.Publishers, publisherOf(p))
		}
	}
	for name, sub := range t.Subscriptions {
		view := subscriptionOfStats(sub, o)
		if v.DropRate != nil {
			view.DropRate = new(rate(sub.DropRate))
		}
		v.Subscriptions[name] = view
		v.HoleRanges += view.HoleRanges
	}
	return v
}

func perMessage(throughput, messages float64) float64 {
	if messages == 0 {
		return 0
	}
	return throughput / messages
}

func publisherOf(p edge.ProducerStats) publisherStats {
	return publisherStats{
		AccessMode:    p.Access.String(),
		RateIn:        rate(p.RateIn),
		ThroughputIn:  rate(p.ThroughputIn),
		AverageSize:   rate(perMessage(p.ThroughputIn, p.RateIn)),
		ID:            p.ID,
		Name:          p.Name,
		Address:       "/" + p.Address,
		Connected:     iso(p.Connected),
		ClientVersion: &p.Version,
		Metadata:      dictionary(p.Metadata),
	}
}

func subscriptionOfStats(sub edge.SubscriptionStats, o statsOptions) subscriptionStats {
	v := subscriptionStats{
		RateOut:       rate(sub.RateOut),
		ThroughputOut: rate(sub.ThroughputOut),
		BytesOut:      sub.BytesOut,
		MessagesOut:   sub.MsgOut,
		Backlog:       sub.Backlog,
		BacklogSize:   -1,
		NoDelayed:     sub.Backlog - sub.Delayed,
		Blocked:       sub.Blocked,
		Delayed:       sub.Delayed,
		Replay:        sub.Replay,
		Unacked:       sub.Unacked,
		Type:          "None",
		Active:        sub.Active,
		TotalExpired:  sub.Expired,
		LastExpire:    sub.LastExpire,
		LastFlow:      sub.LastFlow,
		LastConsumed:  sub.LastSent,
		LastAcked:     sub.LastAck,
		LastMoved:     sub.LastMove,
		Consumers:     []consumerStats{},
		IsDurable:     sub.Durable,
		Durable:       sub.Durable,
		OutOfOrder:    sub.OutOfOrder,
		HoleRanges:    len(sub.Holes),
		Properties:    dictionary(sub.Properties),
		Paused:        sub.Paused,
	}
	if o.backlogSize {
		v.BacklogSize = sub.BacklogBytes
	}
	if sub.Typed {
		v.Type = sub.Kind.String()
	}
	if sub.Typed && sub.Kind == edge.KeyShared {
		v.KeySharedMode = keySharedMode(sub.Sticky)
	}
	for _, c := range sub.Consumers {
		v.RateRedeliver += rate(c.RateRedeliver)
		if o.consumers {
			v.Consumers = append(v.Consumers, consumerOf(c))
		}
	}
	return v
}

func keySharedMode(sticky bool) string {
	if sticky {
		return "STICKY"
	}
	return "AUTO_SPLIT"
}

func consumerOf(c edge.ConsumerStats) consumerStats {
	v := consumerStats{
		RateOut:          rate(c.RateOut),
		ThroughputOut:    rate(c.ThroughputOut),
		BytesOut:         c.BytesOut,
		MessagesOut:      c.MsgOut,
		RateRedeliver:    rate(c.RateRedeliver),
		Name:             c.Name,
		Permits:          c.Permits,
		Unacked:          c.Unacked,
		Blocked:          c.Blocked,
		Address:          "/" + c.Address,
		Connected:        iso(c.Connected),
		ClientVersion:    &c.Version,
		LastAcked:        c.LastAck,
		LastConsumed:     c.LastSent,
		LastFlow:         c.LastFlow,
		Metadata:         dictionary(c.Metadata),
		LastAckedTime:    isoMillis(c.LastAck),
		LastConsumedTime: isoMillis(c.LastSent),
	}
	if c.Kind == edge.KeyShared {
		v.DrainingHashes = &[]struct{}{}
		for _, r := range c.Ranges {
			v.KeyRanges = append(v.KeyRanges, [2]int{int(r.First), int(r.Last)})
		}
	}
	return v
}

// dictionary is the map itself, or an empty one for nil, which JSON would write as null.
func dictionary(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}
