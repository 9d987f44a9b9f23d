package admin

import (
	"log/slog"
	"net"
	"time"

	"wayside/edge"
)

// Options configure a Server. DefaultOptions fills in what has a usual value; Listener
// and Broker come from the caller.
type Options struct {
	// Listener is bound already; the server closes it. With TLS it does TLS.
	Listener net.Listener
	Broker   *edge.Broker
	Logger   *slog.Logger
	Clock    func() time.Time // wall clock; uptime does not come from it

	Cluster string // the one cluster that this broker knows, and a label of all metrics
	Version string // of this program, shown by the status

	// PulsarPort and PulsarTLSPort are those of the Pulsar listeners, 0 for none. With
	// Advertised empty, lookups answer with the host that the client dialled and these
	// ports, so that it stays on an address that works for it. Advertised is a host,
	// HOST:PORT of the plain Pulsar listener, or a whole pulsar:// URL, that is answered
	// instead.
	PulsarPort    int
	PulsarTLSPort int
	Advertised    string
	// TLS says that Listener is an HTTPS one.
	TLS bool

	MaxBody        int64         // bytes of a request's body
	HeaderTimeout  time.Duration // for a request's head to come in
	ReadTimeout    time.Duration // for head and body
	RequestTimeout time.Duration // for the work on it: waits for disk and commits end
	IdleTimeout    time.Duration // a connection without requests is closed after it
	Connections    int           // at once; more wait to be accepted

	// Up to MetricsTopics topics have metrics of their own, above it sums per namespace
	// stand for them. Up to MetricsSubscriptions durable subscriptions have too, as long
	// as the topics have, above it none. So a scrape stays small whatever the devices do.
	MetricsTopics        int
	MetricsSubscriptions int
	StatusTopics         int // topics named in the status, those with the largest backlog

	// Clients is the number of connected Pulsar clients now, nil if nobody counts.
	Clients func() int
	// Sections are further parts of the status by name, as values that encoding/json
	// can write. They are called for every request, from any goroutine.
	Sections map[string]func() any
	// Backups makes backups of the store; nil if there are none to be had.
	Backups Backups
	// Collectors are further metrics. Their names begin with wayside_, or are Pulsar's.
	Collectors []Collector
}

// DefaultOptions are the values of an installation that configures nothing.
func DefaultOptions() Options {
	return Options{
		Logger:               slog.New(slog.DiscardHandler),
		Clock:                time.Now,
		Cluster:              "standalone",
		Version:              "unknown",
		PulsarPort:           6650,
		MaxBody:              1 << 20,
		HeaderTimeout:        5 * time.Second,
		ReadTimeout:          10 * time.Second,
		RequestTimeout:       30 * time.Second,
		IdleTimeout:          time.Minute,
		Connections:          64,
		MetricsTopics:        100,
		MetricsSubscriptions: 500,
		StatusTopics:         20,
	}
}
