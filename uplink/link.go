package uplink

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/prometheus/client_golang/prometheus"
)

// link is the way to the cloud that all topics share: one client of the official
// library, and its successor when it has gone silent.
type link struct {
	o      *Options
	gate   *gate
	folder *folder
	wg     *group // of clients being closed

	mu      sync.Mutex
	current *client
	hint    string    // what the client's log last said about the connection
	hintAt  time.Time // and when
	denied  bool      // the hint speaks of credentials
	ban     ban
}

// ban is a send error that the client logs without telling the producer.
type ban struct {
	at   time.Time
	name string // of the ServerError
	text string
}

// client is one client of the official library with those who use it.
type client struct {
	pulsar.Client
	link    *link
	born    time.Time
	leaked  atomic.Int64 // bytes of its memory limit that never come back
	refs    int          // guarded by link.mu
	retired bool         // guarded by link.mu
}

func newLink(o *Options, wg *group) *link {
	l := &link{o: o, gate: newGate(o), wg: wg}
	l.folder = newFolder(o.Logger, l.note)
	return l
}

// acquire returns the client, made if need be. release gives it back.
func (l *link) acquire() (*client, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current == nil {
		made, err := l.dial()
		if err != nil {
			return nil, err
		}
		l.current = &client{Client: made, link: l, born: time.Now()}
	}
	l.current.refs++
	return l.current, nil
}

// dial makes a client; nothing goes over the link yet.
func (l *link) dial() (pulsar.Client, error) {
	auth, err := l.o.Auth.provider()
	if err != nil {
		return nil, fmt.Errorf("credentials: %w", err)
	}
	transport, err := l.o.Auth.transport(l.o.URL)
	if err != nil {
		return nil, err
	}
	return pulsar.NewClient(pulsar.ClientOptions{
		URL:               l.o.URL,
		ListenerName:      l.o.Listener,
		Authentication:    auth,
		TLSConfig:         transport,
		ConnectionTimeout: l.o.ConnectTimeout, // none by default, whatever its comment says
		OperationTimeout:  l.o.OperationTimeout,
		KeepAliveInterval: l.o.KeepAlive,
		MemoryLimitBytes:  clientMemory,
		Logger:            &lines{f: l.folder},
		// Nobody reads the client's metrics, and a second client may not share them.
		MetricsRegisterer:  prometheus.NewRegistry(),
		MetricsCardinality: pulsar.MetricsCardinalityNone,
		Description:        "wayside",
	})
}

// release gives a client back. A retired one is closed by the last who does.
func (c *client) release() {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	c.refs--
	c.closeUnusedLocked()
}

// retire lets nobody use a client any more: its connection is dead, and the pool would
// go on handing it out until it notices by itself.
func (c *client) retire() {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	if c.link.current == c {
		c.link.current = nil
	}
	c.retired = true
	c.closeUnusedLocked()
}

func (c *client) isRetired() bool {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	return c.retired
}

// closeUnusedLocked closes in the background: it may wait for a peer that is gone.
func (c *client) closeUnusedLocked() {
	if c.retired && c.refs == 0 {
		c.link.wg.Go(c.Close)
	}
}

// lose counts bytes that a closed producer took with it: the client never gives them
// back to its memory limit. When they have become much the client is replaced.
func (c *client) lose(bytes int64) {
	if c.leaked.Add(bytes) > clientMemory/2 {
		c.retire()
	}
}

// silent is told that an answer has not come. If nothing else has since then either,
// the client's connection is taken for dead.
func (l *link) silent(since time.Time) {
	if !l.gate.quietSince(since) {
		return
	}
	l.mu.Lock()
	c := l.current
	l.mu.Unlock()
	if c != nil && c.born.Before(since) {
		c.retire()
	}
}

// close ends the link when nobody uses it any more.
func (l *link) close() {
	l.mu.Lock()
	c := l.current
	l.mu.Unlock()
	if c != nil {
		c.retire()
	}
}

// note reads the client's log for what its errors keep to themselves.
func (l *link) note(line, cause string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if text, ok := strings.CutPrefix(line, "Received send error from server: "); ok {
		name, message, _ := strings.Cut(text, " : ")
		l.ban = ban{time.Now(), strings.Trim(name, "[]"), strings.Trim(message, "[]")}
		return
	}
	hint, denied := "", false
	switch {
	case strings.HasPrefix(line, "Failed to establish connection with broker: "):
		hint = strings.Trim(strings.TrimPrefix(line, "Failed to establish connection with broker: "), "'")
		denied = speaksOfCredentials(hint)
	case line == "Failed to load auth credentials":
		hint, denied = "credentials cannot be read: "+cause, true
	case strings.HasPrefix(line, "Failed to connect to broker"):
		hint = cause
	case strings.HasPrefix(line, "Failed to configure TLS"), strings.HasPrefix(line, "Failed to perform initial handshake"):
		hint = cause
	case strings.HasPrefix(line, "Detected stale connection"):
		hint = "the connection has gone silent"
	default:
		return
	}
	l.hint, l.hintAt, l.denied = firstLine(hint), time.Now(), denied
}

func speaksOfCredentials(text string) bool {
	text = strings.ToLower(text)
	for _, word := range []string{"authent", "token", "credential", "password", "certificate"} {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

// hintSince is what the log said about the connection since then.
func (l *link) hintSince(t time.Time) (text string, denied bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hintAt.Before(t) {
		return "", false
	}
	return l.hint, l.denied
}

// banSince is the send error that came since then, if one did.
func (l *link) banSince(t time.Time) (ban, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ban, l.ban.at.After(t)
}
