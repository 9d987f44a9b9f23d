package pulsar

import (
	"context"
	"crypto/tls"
	"log/slog"
	"time"

	"wayside/wire"
)

// Options configure a Server. DefaultOptions fills in all of them.
type Options struct {
	// MaxMessageSize is told to clients in CONNECTED, in bytes. A frame may be 10 KiB
	// larger (protocol 1.5).
	MaxMessageSize int
	// Connections is how many clients may be connected; one more is closed at once.
	Connections int
	// KeepAlive is the interval of our PINGs. A client that sent nothing in the whole
	// interval after one is closed.
	KeepAlive time.Duration
	// HandshakeTimeout is how long after the accept a client may take to be logged in.
	HandshakeTimeout time.Duration
	// FrameTimeout is how long a client may send nothing in the middle of a frame, for
	// which memory was taken; the whole frame may take that and a second for each 64 KiB.
	FrameTimeout time.Duration
	// Hurry is how long a client may hold memory for a frame while others wait for
	// memory; after that it has to bring or take 64 KiB a second.
	Hurry time.Duration
	// StallTimeout is how long a client may take nothing before what waits for it is
	// given back to its subscriptions, to be delivered later or to others.
	StallTimeout time.Duration
	// WriteTimeout is how long it may take nothing before it is closed.
	WriteTimeout time.Duration
	// LivenessTimeout is how long the holder of a name or seat may take for a sign of
	// life when somebody else wants it.
	LivenessTimeout time.Duration

	// Advertised is what LOOKUP answers: host, host:port or pulsar:// URL. Empty keeps
	// each client on the address that it dialled. AdvertisedTLS is the same for
	// pulsar+ssl://.
	Advertised, AdvertisedTLS string
	// ServerVersion is what CONNECTED calls the broker; it must not be empty.
	ServerVersion string

	// Producers and Consumers are how many of each one connection may have.
	Producers, Consumers int
	// Requests is how many requests of a connection may be worked on at once. More are
	// not read from the socket until one is done.
	Requests int
	// Replies is how many answers a connection may be owed, receipts included. More
	// requests are not read until some are written.
	Replies int
	// DeliveryBytes is how much may wait for a client in the outbox, in bytes. Zero
	// means an eighth of the budget's read share, between 64 KiB and 1 MiB.
	DeliveryBytes int
	// Buffers is how many 64 KiB buffers all connections share for reading, and as
	// many for writing. They are made when first wanted.
	Buffers int

	Logger *slog.Logger
	Clock  func() time.Time // wall clock, noted with each message
	// SinceBoot is the time since the machine's start, noted with each message; it
	// mends the wall clock later.
	SinceBoot func() time.Duration
	// Authenticator decides who may connect and as whom. Nil lets everybody in,
	// without a role.
	Authenticator Authenticator
}

// Authenticator tells who a client is. It is asked on a goroutine of the request and
// may wait. The error is logged; the client is told no more than that it failed.
type Authenticator interface {
	Authenticate(ctx context.Context, c Credentials) (role string, err error)
}

// Credentials are what a client showed with CONNECT.
type Credentials struct {
	Method            string // "none", "token", …; "" when the client named none
	Data              []byte
	OriginalPrincipal string               // of a proxy's client
	TLS               *tls.ConnectionState // nil on a plain connection
	Address           string               // ip:port of the client
}

// DefaultOptions are the values of an installation that configures nothing. The
// figures of time are those of the reference broker where it has them (protocol 2.1,
// 2.2, 3.5).
func DefaultOptions() Options {
	return Options{
		MaxMessageSize:   wire.DefaultMaxMessageSize,
		Connections:      1000,
		KeepAlive:        30 * time.Second,
		HandshakeTimeout: 30 * time.Second,
		FrameTimeout:     10 * time.Second,
		Hurry:            2 * time.Second,
		StallTimeout:     time.Second,
		WriteTimeout:     30 * time.Second,
		LivenessTimeout:  5 * time.Second,
		ServerVersion:    "Wayside",
		Producers:        10_000,
		Consumers:        10_000,
		Requests:         64,
		Replies:          1000,
		Buffers:          8,
		Logger:           slog.New(slog.DiscardHandler),
		Clock:            time.Now,
		SinceBoot:        sinceProcessStart(),
	}
}

// sinceProcessStart stands in for the time since the machine's start.
func sinceProcessStart() func() time.Duration {
	start := time.Now()
	return func() time.Duration { return time.Since(start) }
}

const (
	// preLogin is the largest frame before a client is logged in: a CONNECT with a
	// large token takes some KiB.
	preLogin = 64 << 10
	// maxCommand is the longest command without payload, in bytes: an ACK of some
	// ten thousand ids, or a large schema.
	maxCommand = 1 << 20
	// maxSendCommand is the same for the few fields of a SEND.
	maxSendCommand = 4 << 10
	// maxBatch is how many messages an entry may have. It bounds the bit sets that
	// partly acknowledged batches cost.
	maxBatch = 1 << 18
	// maxName is how long names of producers, consumers and subscriptions may be.
	// Dead letter producers of the Java client have the longest, of some topic names.
	maxName = 2 << 10
	// maxKey is the longest key kept among an entry's facts.
	maxKey = 64 << 10
	// maxChunkID is the longest id of a chunked message that is kept apart.
	maxChunkID = 1 << 10
	// maxMetadata bounds what a consumer says of itself (protocol 2.9), and
	// maxProducerMetadata a producer, for which the reference has no bound.
	maxMetadata         = 1 << 10
	maxProducerMetadata = 64 << 10
	// entryOverhead is what a message takes in memory beside its bytes.
	entryOverhead = 512
	// slowestRate is the rate in bytes a second below which a frame is given up. Frames
	// that clients take have to keep to it only while others wait.
	slowestRate = 64 << 10
	// latestProtocol is the newest protocol version that is spoken.
	latestProtocol = 21
	// keepGone is how long ids that the broker closed are remembered: what clients
	// had sent to them before they knew is ignored (protocol 2.8).
	keepGone = 30 * time.Second
)
