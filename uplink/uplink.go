package uplink

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"wayside/edge"
	"wayside/wire"
)

// Uplink forwards the topics that its routes name.
type Uplink struct {
	o        Options
	table    *table
	link     *link
	limiter  *rate.Limiter
	unpacker wire.Unpacker
	broker   *edge.Broker // from Start on

	run      context.Context // ends when the uplink stops
	stop     context.CancelFunc
	cut      chan struct{} // closed when there is no more time to wait for receipts
	wg       *group
	attaches chan struct{} // bounds how many topics are opened at once
	again    chan struct{} // capacity one: a forwarder has ended with its topic

	hurry sync.Once

	mu    sync.Mutex
	lines map[line]*forwarder
	ended bool // nothing is started any more
}

// line is one topic on one route.
type line struct {
	route string
	topic edge.TopicName
}

// concurrentAttaches bounds how many topics the uplink opens at once when it starts.
const concurrentAttaches = 4

// New checks everything and says all that is wrong in one error. Nothing runs yet and
// nothing is connected. Reserved is ready for the broker's Options.OnCreate.
func New(o Options) (*Uplink, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("uplink: %w", err)
	}
	t, err := parseTable(o.EdgeID, o.URL, o.Self, o.Routes)
	if err != nil {
		return nil, fmt.Errorf("uplink: %w", err)
	}
	u := &Uplink{o: o, table: t, cut: make(chan struct{}), lines: map[line]*forwarder{}, wg: newGroup(), attaches: make(chan struct{}, concurrentAttaches), again: make(chan struct{}, 1)}
	u.run, u.stop = context.WithCancel(context.Background())
	u.limiter = rate.NewLimiter(rate.Inf, o.WindowBytes)
	u.SetRateLimit(o.RateLimit)
	u.link = newLink(&u.o, u.wg)
	return u, nil
}

// Reserved names the subscriptions that are to be made together with a topic, so that
// nothing that is published before the uplink looks is missed.
func (u *Uplink) Reserved(name edge.TopicName) []string { return u.table.reserved(name) }

// SetRateLimit changes Options.RateLimit while running.
func (u *Uplink) SetRateLimit(bytesPerSecond int64) {
	if bytesPerSecond <= 0 {
		u.limiter.SetLimit(rate.Inf)
		return
	}
	u.limiter.SetLimit(rate.Limit(bytesPerSecond))
}

// pace counts bytes that were sent and returns how long nothing more may follow.
func (u *Uplink) pace(bytes int, now time.Time) time.Duration {
	longest := time.Duration(0)
	for bytes > 0 { // the limiter takes no more than its burst at once
		n := min(bytes, u.limiter.Burst())
		longest = u.limiter.ReserveN(now, n).DelayFrom(now)
		bytes -= n
	}
	return longest
}

// Start begins to forward from a broker, which stays its caller's.
func (u *Uplink) Start(b *edge.Broker) {
	u.broker = b
	u.wg.Go(u.watch)
}

// watch finds topics that match a route, from now on.
func (u *Uplink) watch() {
	wake, stop := u.broker.Watch()
	defer stop()
	for {
		for _, name := range u.broker.Names("") {
			for _, r := range u.table.match(name) {
				if !u.forward(r, name) {
					return
				}
			}
		}
		select {
		case <-wake:
		case <-u.again:
		case <-u.run.Done():
			return
		}
	}
}

// forward begins with a topic, unless it is known. It returns false when the uplink
// stops.
func (u *Uplink) forward(r *route, name edge.TopicName) bool {
	key := line{r.Name, name}
	u.mu.Lock()
	f := u.lines[key]
	u.mu.Unlock()
	if f != nil {
		return u.run.Err() == nil
	}
	to, park, err := u.table.places(r, name)
	if err != nil {
		u.o.Logger.Error("a topic cannot be forwarded", "topic", name.String(), "error", err)
		return true
	}
	select {
	case u.attaches <- struct{}{}:
	case <-u.run.Done():
		return false
	}
	f = newForwarder(u, r, name, to, park)
	f.attaching = true
	u.mu.Lock()
	u.lines[key] = f
	u.mu.Unlock()
	u.wg.Go(func() {
		defer func() { <-u.attaches }()
		f.subscribe()
	})
	return true
}

// forget drops a forwarder whose topic is gone.
func (u *Uplink) forget(f *forwarder) {
	u.mu.Lock()
	delete(u.lines, line{f.route.Name, f.name})
	u.mu.Unlock()
	select {
	case u.again <- struct{}{}:
	default:
	}
}

// start runs a forwarder's goroutine if it has none.
func (u *Uplink) start(f *forwarder, needed bool) {
	if !needed {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.ended {
		u.wg.Go(f.loop)
	}
}

func (u *Uplink) ending() bool { return u.run.Err() != nil }

// late reports whether there is no more time to wait for receipts.
func (u *Uplink) late() bool {
	select {
	case <-u.cut:
		return true
	default:
		return false
	}
}

func (u *Uplink) forwarders() []*forwarder {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := make([]*forwarder, 0, len(u.lines))
	for _, f := range u.lines {
		all = append(all, f)
	}
	return all
}

// Close stops sending, waits for the receipts of what is in flight until ctx ends,
// hands the last plans to the core and lets the cloud go. What has no receipt by then
// is sent again by the next life. The broker must still be open. After an error
// goroutines may linger until the official client's own timeouts.
func (u *Uplink) Close(ctx context.Context) error {
	u.stop()
	for _, f := range u.forwarders() {
		u.start(f, f.inbox.rouse())
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		u.finished()
	}()
	var err error
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		err = fmt.Errorf("uplink: close: %w", ctx.Err())
	}
	u.hurry.Do(func() { close(u.cut) })
	select {
	case <-done:
		return nil
	case <-time.After(u.o.grace()):
		return err
	}
}

// finished waits for everything that was started.
func (u *Uplink) finished() {
	u.wg.Wait()
	u.mu.Lock()
	u.ended = true
	u.mu.Unlock()
	u.link.close()
	u.wg.Wait()
	u.unpacker.Close()
}
