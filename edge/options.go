package edge

import (
	"log/slog"
	"time"
)

// WhenFull says what happens to publishers when live bytes reach the quota.
type WhenFull int

// Pulsar's three backlog quota policies (protocol 3.11).
const (
	WhenFullHold       WhenFull = iota // producers wait: producer_request_hold
	WhenFullFail                       // producers are refused: producer_exception
	WhenFullDropOldest                 // the slowest cursors are advanced: consumer_backlog_eviction
)

// Options configure a Broker. DefaultOptions fills in all but Budget, which the
// caller makes from the memory limit.
type Options struct {
	Clock  func() time.Time // wall clock; durations never come from it
	Logger *slog.Logger
	Boot   uint64  // id of this boot of the machine, noted with each entry
	Budget *Budget // shares of the memory limit

	AutoCreate           bool // PRODUCER and SUBSCRIBE create missing topics
	AutoPartitions       int  // of a topic that is created so; 0 makes a plain one
	AutoCreateNamespaces bool // and missing tenants and namespaces
	Deduplication        bool // by producer name and sequence, on every topic
	MaxMessageSize       int  // bytes, told to clients and bounding a read

	Opener Opener // looks into entries for compaction; nil refuses that

	SchemaRules      SchemaRules    // knows schemas; nil knows only equal ones
	SchemaStrategy   SchemaStrategy // which schemas may follow which
	SchemaAutoUpdate bool           // clients may bring new schemas
	SchemaEnforced   bool           // producers without a schema are refused on topics with one

	Transactions bool // clients may have some; those that are open end in any case
	// Marker makes the bytes of a marker that ends a transaction's entries, as a front end
	// would have them; nil makes none. Nobody is ever delivered them.
	Marker func(*Facts) []byte

	UnackedPerConsumer     int // messages, 0 for no limit
	UnackedPerSubscription int // messages, 0 for no limit
	FailoverDelay          time.Duration

	BacklogCheckInterval time.Duration // housekeeping: quota, trim, idle topics
	WhenFull             WhenFull
	KeepAcked            int64         // bytes of acknowledged data kept readable as long as there is room
	IdleUnload           time.Duration // a topic without clients is unloaded after this

	// OnCreate names durable subscriptions that are made together with a topic, at
	// its earliest message. Called without locks.
	OnCreate func(TopicName) []string

	Cluster string // names the broker in generated producer names

	Topics                   int // that may exist
	ProducersPerTopic        int
	SubscriptionsPerTopic    int
	ConsumersPerSubscription int
	ConcurrentReads          int // disk reads of dispatchers at once
}

// DefaultOptions are the values of an installation that configures nothing.
func DefaultOptions() Options {
	return Options{
		Clock:                    time.Now,
		Logger:                   slog.New(slog.DiscardHandler),
		AutoCreate:               true,
		MaxMessageSize:           5 << 20,
		SchemaStrategy:           Full,
		SchemaAutoUpdate:         true,
		Transactions:             true,
		UnackedPerConsumer:       50_000,
		UnackedPerSubscription:   200_000,
		FailoverDelay:            time.Second,
		BacklogCheckInterval:     5 * time.Second,
		KeepAcked:                32 << 20,
		IdleUnload:               2 * time.Minute,
		Cluster:                  "standalone",
		Topics:                   100_000,
		ProducersPerTopic:        10_000,
		SubscriptionsPerTopic:    10_000,
		ConsumersPerSubscription: 10_000,
		ConcurrentReads:          4,
	}
}
