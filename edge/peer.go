package edge

import "context"

// Peer is the connection behind a producer or a consumer.
type Peer interface {
	// Alive asks for a sign of life and waits for it for a bounded time; one probe
	// serves all who ask. A peer that shows none is closed, its producers and
	// consumers removed, before false is returned. A peer that the broker itself
	// holds back counts as alive.
	Alive(ctx context.Context) bool
	// Address is "ip:port" of the far side.
	Address() string
	// Principal is the authenticated role, "" without authentication.
	Principal() string
	// Version is what the client calls itself.
	Version() string
}

// Receiver takes what a consumer is given. Its methods are called with the
// subscription locked: they must neither block nor call back.
type Receiver interface {
	// Room is how many bytes of deliveries are welcome now, ≤ 0 for none. Whoever
	// said none calls Consumer.Wake when that has changed.
	Room() int
	// Deliver hands over an entry. The receiver releases its grant once the bytes are
	// written, or gives the delivery back by Consumer.GiveBack. It may keep the entry
	// until Flush, which follows soon: several go out together then.
	Deliver(d Delivery)
	// Flush sends off what was delivered. The subscription is not locked here, and
	// Consumer.Wake may be called.
	Flush()
	// ActiveChanged tells a Failover consumer whether it is the active one.
	ActiveChanged(active bool)
	// EndReached says that the topic is terminated and everything acknowledged.
	EndReached()
	// Closed says that the consumer is removed; nothing is delivered any more.
	Closed(reason error)
}

// ProducerEnd is told what happens to a producer; same rules as Receiver.
type ProducerEnd interface {
	// Ready says that a producer which waited has become the exclusive one.
	Ready(topicEpoch int64)
	// Closed says that the producer is removed. It comes behind the answers to all
	// that was published before, and not for one whose adding has failed: the end may
	// be used to try again.
	Closed(reason error)
}

// Delivery is one entry on its way to a consumer.
type Delivery struct {
	Entry       Entry
	Redelivered uint32   // redelivery count, 0 for the first time
	Rest        []uint64 // unacknowledged messages of a batch, nil for all
	Epoch       int64    // consumer epoch of Exclusive and Failover, −1 if unknown
	Grant       Grant    // memory of Entry.Data
}
