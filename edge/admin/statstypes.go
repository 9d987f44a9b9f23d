package admin

// The stats objects, complete and in the order of 4.0.7 (protocol 5.3). Members without
// a comment say what they count; those marked "always" belong to features that this
// broker lacks, or are not measured, and always have the value of a topic that does
// not use them. Times are ms since 1970, 0 for never.

type topicStats struct {
	RateIn              rate                         `json:"msgRateIn"`
	ThroughputIn        rate                         `json:"msgThroughputIn"`
	RateOut             rate                         `json:"msgRateOut"`
	ThroughputOut       rate                         `json:"msgThroughputOut"`
	BytesIn             int64                        `json:"bytesInCounter"`
	MessagesIn          int64                        `json:"msgInCounter"`
	SystemBytesIn       int64                        `json:"systemTopicBytesInCounter"` // always
	BytesOut            int64                        `json:"bytesOutCounter"`
	MessagesOut         int64                        `json:"msgOutCounter"`
	InternalBytesOut    int64                        `json:"bytesOutInternalCounter"` // always
	AverageSize         rate                         `json:"averageMsgSize"`
	ChunkPublished      bool                         `json:"msgChunkPublished"` // always
	StorageSize         int64                        `json:"storageSize"`
	BacklogSize         int64                        `json:"backlogSize"`
	QuotaSize           int64                        `json:"backlogQuotaLimitSize"`          // −1 for none
	QuotaTime           int64                        `json:"backlogQuotaLimitTime"`          // seconds, −1 for none
	OldestAge           int64                        `json:"oldestBacklogMessageAgeSeconds"` // always: −1, unknown
	RateLimited         int64                        `json:"publishRateLimitedTimes"`
	EarliestTime        int64                        `json:"earliestMsgPublishTimeInBacklogs"` // always
	OffloadedSize       int64                        `json:"offloadedStorageSize"`             // always
	OffloadLedger       int64                        `json:"lastOffloadLedgerId"`              // always
	OffloadSuccess      int64                        `json:"lastOffloadSuccessTimeStamp"`      // always
	OffloadFailure      int64                        `json:"lastOffloadFailureTimeStamp"`      // always
	TxnOngoing          int64                        `json:"ongoingTxnCount"`                  // always
	TxnAborted          int64                        `json:"abortedTxnCount"`                  // always
	TxnCommitted        int64                        `json:"committedTxnCount"`                // always
	Publishers          []publisherStats             `json:"publishers"`
	WaitingOwners       int                          `json:"waitingPublishers"`
	Subscriptions       map[string]subscriptionStats `json:"subscriptions"`
	Replication         struct{}                     `json:"replication"` // always
	DeduplicationStatus string                       `json:"deduplicationStatus,omitempty"`
	TopicEpoch          *int64                       `json:"topicEpoch,omitempty"`
	HoleRanges          int                          `json:"nonContiguousDeletedMessagesRanges"`
	HoleBytes           int64                        `json:"nonContiguousDeletedMessagesRangesSerializedSize"` // always
	DelayedBytes        int64                        `json:"delayedMessageIndexSizeInBytes"`                   // always
	Compaction          compactionStats              `json:"compaction"`
	OwnerBroker         string                       `json:"ownerBroker,omitempty"`
	DropRate            *rate                        `json:"msgDropRate,omitempty"` // of a non-persistent topic alone
}

type compactionStats struct {
	Removed   int64 `json:"lastCompactionRemovedEventCount"`
	Succeeded int64 `json:"lastCompactionSucceedTimestamp"`
	Failed    int64 `json:"lastCompactionFailedTimestamp"`
	Duration  int64 `json:"lastCompactionDurationTimeInMills"`
}

// partitionedStats is the sum over the partitions, without owner and deduplication.
type partitionedStats struct {
	topicStats
	Metadata   partitionMetadata     `json:"metadata"`
	Partitions map[string]topicStats `json:"partitions"`
}

type publisherStats struct {
	AccessMode    string            `json:"accessMode,omitempty"` // this and what lies below Partial: absent in a sum
	RateIn        rate              `json:"msgRateIn"`
	ThroughputIn  rate              `json:"msgThroughputIn"`
	AverageSize   rate              `json:"averageMsgSize"`
	ChunkedRate   rate              `json:"chunkedMessageRate"` // always
	ID            uint64            `json:"producerId"`
	Partial       bool              `json:"supportsPartialProducer"` // always
	Name          string            `json:"producerName,omitempty"`
	Address       string            `json:"address,omitempty"` // "/ip:port"
	Connected     string            `json:"connectedSince,omitempty"`
	ClientVersion *string           `json:"clientVersion,omitempty"`
	Metadata      map[string]string `json:"metadata,omitzero"`
}

type subscriptionStats struct {
	RateOut       rate            `json:"msgRateOut"`
	ThroughputOut rate            `json:"msgThroughputOut"`
	BytesOut      int64           `json:"bytesOutCounter"`
	MessagesOut   int64           `json:"msgOutCounter"`
	RateRedeliver rate            `json:"msgRateRedeliver"`
	AckRate       rate            `json:"messageAckRate"`                  // always
	ChunkedRate   rate            `json:"chunkedMessageRate"`              // always
	Backlog       int64           `json:"msgBacklog"`                      // entries
	BacklogSize   int64           `json:"backlogSize"`                     // bytes, −1 if not asked for
	EarliestTime  int64           `json:"earliestMsgPublishTimeInBacklog"` // always
	NoDelayed     int64           `json:"msgBacklogNoDelayed"`
	Blocked       bool            `json:"blockedSubscriptionOnUnackedMsgs"`
	Delayed       int64           `json:"msgDelayed"`
	Replay        int64           `json:"msgInReplay"`
	Unacked       int64           `json:"unackedMessages"` // 0 for Exclusive and Failover
	Type          string          `json:"type"`            // "None" if no consumer came since the topic was loaded
	Active        string          `json:"activeConsumerName,omitempty"`
	RateExpired   rate            `json:"msgRateExpired"` // always
	TotalExpired  int64           `json:"totalMsgExpired"`
	LastExpire    int64           `json:"lastExpireTimestamp"`
	LastFlow      int64           `json:"lastConsumedFlowTimestamp"`
	LastConsumed  int64           `json:"lastConsumedTimestamp"`
	LastAcked     int64           `json:"lastAckedTimestamp"`
	LastMoved     int64           `json:"lastMarkDeleteAdvancedTimestamp"`
	Consumers     []consumerStats `json:"consumers"`
	IsDurable     bool            `json:"isDurable"`
	IsReplicated  bool            `json:"isReplicated"` // always
	OutOfOrder    bool            `json:"allowOutOfOrderDelivery"`
	KeySharedMode string          `json:"keySharedMode,omitempty"`
	AfterMark     struct{}        `json:"consumersAfterMarkDeletePosition"` // always
	draining
	HoleRanges   int               `json:"nonContiguousDeletedMessagesRanges"`
	HoleBytes    int64             `json:"nonContiguousDeletedMessagesRangesSerializedSize"` // always
	DelayedBytes int64             `json:"delayedMessageIndexSizeInBytes"`                   // always
	Properties   map[string]string `json:"subscriptionProperties"`
	filtered                       // always
	throttled                      // always
	Durable      bool              `json:"durable"`
	Replicated   bool              `json:"replicated"` // always

	DropRate *rate `json:"msgDropRate,omitempty"` // on a non-persistent topic alone

	// Paused says why nothing new is dispatched, absent if it is. Pulsar has no such member.
	Paused string `json:"waysidePaused,omitempty"`
}

// draining is always zero: a key goes to its new consumer when the old one is done.
type draining struct {
	Count   int64 `json:"drainingHashesCount"`
	Cleared int64 `json:"drainingHashesClearedTotal"`
	Unacked int64 `json:"drainingHashesUnackedMessages"`
}

type filtered struct {
	Processed   int64 `json:"filterProcessedMsgCount"`
	Accepted    int64 `json:"filterAcceptedMsgCount"`
	Rejected    int64 `json:"filterRejectedMsgCount"`
	Rescheduled int64 `json:"filterRescheduledMsgCount"`
}

type throttled struct {
	MessagesSubscription int64 `json:"dispatchThrottledMsgEventsBySubscriptionLimit"`
	BytesSubscription    int64 `json:"dispatchThrottledBytesEventsBySubscriptionLimit"`
	MessagesTopic        int64 `json:"dispatchThrottledMsgEventsByTopicLimit"`
	BytesTopic           int64 `json:"dispatchThrottledBytesEventsByTopicLimit"`
	MessagesBroker       int64 `json:"dispatchThrottledMsgEventsByBrokerLimit"`
	BytesBroker          int64 `json:"dispatchThrottledBytesEventsByBrokerLimit"`
}

type consumerStats struct {
	RateOut       rate   `json:"msgRateOut"`
	ThroughputOut rate   `json:"msgThroughputOut"`
	BytesOut      int64  `json:"bytesOutCounter"`
	MessagesOut   int64  `json:"msgOutCounter"`
	RateRedeliver rate   `json:"msgRateRedeliver"`
	AckRate       rate   `json:"messageAckRate"`     // always
	ChunkedRate   rate   `json:"chunkedMessageRate"` // always
	Name          string `json:"consumerName"`
	Permits       int64  `json:"availablePermits"` // below 0 after a large batch
	Unacked       int64  `json:"unackedMessages"`
	PerEntry      int64  `json:"avgMessagesPerEntry"` // always
	Blocked       bool   `json:"blockedConsumerOnUnackedMsgs"`
	draining
	DrainingHashes   *[]struct{}       `json:"drainingHashes,omitempty"` // Key_Shared alone; always empty
	Address          string            `json:"address,omitempty"`        // "/ip:port"; absent in a sum, as are the next two and the metadata
	Connected        string            `json:"connectedSince,omitempty"`
	ClientVersion    *string           `json:"clientVersion,omitempty"`
	LastAcked        int64             `json:"lastAckedTimestamp"`
	LastConsumed     int64             `json:"lastConsumedTimestamp"`
	LastFlow         int64             `json:"lastConsumedFlowTimestamp"`
	KeyRanges        [][2]int          `json:"keyHashRangeArrays,omitempty"` // Key_Shared alone; both ends included
	Metadata         map[string]string `json:"metadata,omitzero"`
	LastAckedTime    string            `json:"lastAckedTime"`
	LastConsumedTime string            `json:"lastConsumedTime"`
}

// add puts another topic's figures on top, as Pulsar adds partitions up: a client with a
// producer or consumer on each of them counts once, and the type of a subscription is that
// of the last partition that knows one.
func (t *topicStats) add(o *topicStats) {
	t.RateIn += o.RateIn
	t.ThroughputIn += o.ThroughputIn
	t.RateOut += o.RateOut
	t.ThroughputOut += o.ThroughputOut
	t.BytesIn += o.BytesIn
	t.MessagesIn += o.MessagesIn
	t.BytesOut += o.BytesOut
	t.MessagesOut += o.MessagesOut
	t.AverageSize = rate(perMessage(float64(t.ThroughputIn), float64(t.RateIn)))
	t.StorageSize += o.StorageSize
	t.BacklogSize += o.BacklogSize
	t.Publishers = addPublishers(t.Publishers, o.Publishers)
	t.WaitingOwners += o.WaitingOwners
	t.RateLimited += o.RateLimited
	t.HoleRanges += o.HoleRanges
	for name, sub := range o.Subscriptions {
		sum, ok := t.Subscriptions[name]
		if ok {
			sum.add(&sub)
		} else {
			sum = sub
			sum.Consumers = addConsumers([]consumerStats{}, sub.Consumers)
		}
		t.Subscriptions[name] = sum
	}
}

func (s *subscriptionStats) add(o *subscriptionStats) {
	s.RateOut += o.RateOut
	s.ThroughputOut += o.ThroughputOut
	s.BytesOut += o.BytesOut
	s.MessagesOut += o.MessagesOut
	s.RateRedeliver += o.RateRedeliver
	s.Backlog += o.Backlog
	s.BacklogSize = max(s.BacklogSize, 0) + o.BacklogSize
	s.NoDelayed += o.NoDelayed
	s.Blocked = s.Blocked || o.Blocked
	s.Delayed += o.Delayed
	s.Replay += o.Replay
	s.Unacked += o.Unacked
	s.LastFlow = max(s.LastFlow, o.LastFlow)
	s.LastConsumed = max(s.LastConsumed, o.LastConsumed)
	s.LastAcked = max(s.LastAcked, o.LastAcked)
	s.LastMoved = max(s.LastMoved, o.LastMoved)
	s.HoleRanges += o.HoleRanges
	s.Consumers = addConsumers(s.Consumers, o.Consumers)
	if o.Type != "None" {
		s.Type, s.KeySharedMode, s.OutOfOrder = o.Type, o.KeySharedMode, o.OutOfOrder
	}
	if o.Paused != "" {
		s.Paused = o.Paused
	}
}
