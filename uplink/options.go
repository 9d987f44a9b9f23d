package uplink

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"time"
)

// Options configure an Uplink. DefaultOptions fills in all but URL, EdgeID and Routes.
type Options struct {
	// URL of the cloud, pulsar://HOST:PORT or pulsar+ssl://HOST:PORT; several hosts are
	// separated by commas.
	URL string
	// EdgeID names this device to the cloud, 1 to 256 bytes. Two devices with one id
	// lose each other's data. A change of it begins new producer names.
	EdgeID string
	// Cluster names the cloud in status and metrics.
	Cluster string
	// Listener is the name of the cloud's advertised listener to ask for, "" for its
	// default.
	Listener string
	// Self are the host:port addresses under which this broker is reached, by which
	// routes that lead back to it are told.
	Self   []string
	Routes []Route
	Auth   Auth

	Logger *slog.Logger
	// Clock is the wall clock, for ages in status.
	Clock func() time.Time

	// RateLimit is in bytes per second over all topics, measured before compression;
	// 0 for none. SetRateLimit changes it.
	RateLimit int64

	// Bounds of each topic's window: what is read from the core and not yet confirmed.
	WindowMessages int
	WindowBytes    int
	// A batch has at most BatchMessages, and aims at BatchBytes before compression.
	BatchMessages int
	BatchBytes    int
	// MaxMessageSize bounds what an entry may unpack to, in bytes.
	MaxMessageSize int

	// ReceiptTimeout is how long a topic waits for a receipt, beyond the time that the
	// bytes ahead take, before it gives its producer up.
	ReceiptTimeout time.Duration
	// ConnectTimeout bounds a TCP connection, OperationTimeout every other request.
	ConnectTimeout, OperationTimeout time.Duration
	// KeepAlive is between PINGs to the cloud; twice as long without a word ends the
	// connection.
	KeepAlive time.Duration
	// Pauses between tries are drawn from a bound that doubles from BackoffMin up to
	// BackoffMax, or RefusedMax when the cloud answers and refuses.
	BackoffMin, BackoffMax, RefusedMax time.Duration
	// At most ReconnectsPerMinute connections that bring no receipt are made in
	// ReconnectSpan, which is a minute except in tests. 0 for no limit.
	ReconnectsPerMinute int
	ReconnectSpan       time.Duration
	// IdleClose is after how long without messages a topic closes its producer.
	IdleClose time.Duration

	// fault is set by tests that must be caught: no plan is kept.
	fault bool
}

// Auth is how the uplink proves who it is. At most one of Token, Basic, OAuth2 and
// Certificate is set. Functions are called again for each connection, so that renewed
// files take effect.
type Auth struct {
	Token  func() (string, error)
	Basic  *Basic
	OAuth2 *OAuth2
	// Certificate is the client's certificate with its key.
	Certificate func() (*tls.Certificate, error)
	// Roots are PEM certificates that are trusted instead of the system's; nil for those.
	Roots func() ([]byte, error)
}

// Basic is a user with a password.
type Basic struct{ User, Password string }

// OAuth2 are client credentials. KeyFile is a path, read by the official client.
type OAuth2 struct{ Issuer, Audience, Scope, KeyFile string }

// DefaultOptions are the values of an installation that configures nothing.
func DefaultOptions() Options {
	return Options{
		Cluster:             "cloud",
		Logger:              slog.New(slog.DiscardHandler),
		Clock:               time.Now,
		WindowMessages:      600,
		WindowBytes:         192 << 10,
		BatchMessages:       100,
		BatchBytes:          32 << 10,
		MaxMessageSize:      5 << 20,
		ReceiptTimeout:      20 * time.Second,
		ConnectTimeout:      5 * time.Second,
		OperationTimeout:    10 * time.Second,
		KeepAlive:           30 * time.Second,
		BackoffMin:          time.Second,
		BackoffMax:          10 * time.Second,
		RefusedMax:          5 * time.Minute,
		ReconnectsPerMinute: 10,
		ReconnectSpan:       time.Minute,
		IdleClose:           2 * time.Minute,
	}
}

// clientMemory is what the official client may hold of all topics together, in bytes;
// beyond it a send waits.
const clientMemory = 4 << 20

// maxEdgeID bounds EdgeID in bytes.
const maxEdgeID = 256

func (o *Options) check() error {
	u, err := url.Parse(o.URL)
	var errs []error
	wrong := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	wrong(err != nil || !slices.Contains([]string{"pulsar", "pulsar+ssl"}, u.Scheme) || u.Host == "",
		"url: %q is neither pulsar://HOST:PORT nor pulsar+ssl://HOST:PORT", o.URL)
	wrong(o.EdgeID == "" || len(o.EdgeID) > maxEdgeID, "edge id: %d bytes long, 1 to %d are possible", len(o.EdgeID), maxEdgeID)
	wrong(o.RateLimit < 0, "rate limit: %d is below zero", o.RateLimit)
	wrong(o.BatchMessages < 1 || o.BatchMessages > o.WindowMessages, "batch of %d messages in a window of %d", o.BatchMessages, o.WindowMessages)
	wrong(o.BatchBytes < 1 || o.BatchBytes > o.WindowBytes, "batch of %d bytes in a window of %d", o.BatchBytes, o.WindowBytes)
	for _, d := range []time.Duration{o.ReceiptTimeout, o.ConnectTimeout, o.OperationTimeout, o.KeepAlive,
		o.BackoffMin, o.BackoffMax, o.RefusedMax, o.IdleClose} {
		wrong(d <= 0, "a time of %v", d)
	}
	ways := 0
	for _, set := range []bool{o.Auth.Token != nil, o.Auth.Basic != nil, o.Auth.OAuth2 != nil, o.Auth.Certificate != nil} {
		if set {
			ways++
		}
	}
	wrong(ways > 1, "auth: %d ways at once", ways)
	return errors.Join(errs...)
}

// sizes are the planner's bounds.
func (o *Options) sizes() sizes {
	return sizes{
		count: o.BatchMessages, batchBytes: o.BatchBytes, hardBytes: o.WindowBytes,
		singles: o.BatchMessages, flying: o.WindowMessages, step: uint64(o.WindowMessages),
	}
}

// grace is how long a stop waits for goroutines once it no longer waits for receipts.
func (o *Options) grace() time.Duration { return o.BackoffMin }
