package edge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Broker holds the topics by name, open or not. It opens and unloads them, lets
// others watch which exist, and takes snapshots for stats.
type Broker struct {
	opts    Options
	store   Store
	budget  *Budget
	catalog *Catalog
	reads   chan struct{} // semaphore of dispatchers' disk reads
	run     context.Context
	stop    context.CancelFunc
	wg      sync.WaitGroup // housekeeper and closing topics
	born    int64          // boot counter of this store, in generated producer names
	names   atomic.Int64   // number of generated producer names
	joins   atomic.Uint64  // order in which consumers joined
	counts  counters

	mu       sync.Mutex
	known    map[TopicName]struct{} // that exist in the store
	open     map[TopicName]*slot    // open, opening or going
	watchers map[*watcher]struct{}
	closed   bool
}

// slot is the place of a topic that is open, being opened, or being closed. Its
// fields are set before ready closes; gone closes when the place is free again.
type slot struct {
	ready chan struct{}
	topic *Topic
	err   error
	going bool // guarded by Broker.mu: closing or being deleted
	gone  chan struct{}
}

type watcher struct{ wake chan struct{} }

// NewBroker reads catalog and topic records and starts the housekeeper. The store
// stays its caller's, who closes it after the broker.
func NewBroker(store Store, o Options) (*Broker, error) {
	if o.Budget == nil {
		o.Budget = NewBudget(32 << 20)
	}
	run, stop := context.WithCancel(context.Background())
	b := &Broker{
		opts: o, store: store, budget: o.Budget,
		reads: make(chan struct{}, max(o.ConcurrentReads, 1)),
		run:   run, stop: stop,
		known:    map[TopicName]struct{}{},
		open:     map[TopicName]*slot{},
		watchers: map[*watcher]struct{}{},
	}
	var err error
	if b.catalog, err = loadCatalog(store, o.Clock); err != nil {
		stop()
		return nil, fmt.Errorf("read catalog: %w", err)
	}
	if b.born, err = b.catalog.countBoot(run); err != nil {
		stop()
		return nil, fmt.Errorf("note start: %w", err)
	}
	for _, r := range store.Records() {
		b.known[r.Name] = struct{}{}
	}
	b.wg.Go(b.keepHouse)
	return b, nil
}

// Catalog is what exists besides messages.
func (b *Broker) Catalog() *Catalog { return b.catalog }

// Budget is the memory that everybody shares.
func (b *Broker) Budget() *Budget { return b.budget }

// Options are those that the broker was made with.
func (b *Broker) Options() Options { return b.opts }

// Records tells of every topic, open or not.
func (b *Broker) Records() []TopicRecord { return b.store.Records() }

// Exists reports whether a topic is stored.
func (b *Broker) Exists(name TopicName) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, ok := b.known[name]
	return ok
}

// Names lists the topics of a namespace, or all for "", sorted; every partition
// under its own name.
func (b *Broker) Names(namespace string) []TopicName {
	b.mu.Lock()
	names := make([]TopicName, 0, len(b.known))
	for n := range b.known {
		if namespace == "" || n.NamespaceName() == namespace {
			names = append(names, n)
		}
	}
	b.mu.Unlock()
	slices.SortFunc(names, func(x, y TopicName) int { return strings.Compare(x.String(), y.String()) })
	return names
}

// Watch gives a wake whenever a topic is created or deleted; wakes are merged, so
// the woken side lists and compares. stop ends it.
func (b *Broker) Watch() (wake <-chan struct{}, stop func()) {
	w := &watcher{wake: make(chan struct{}, 1)}
	b.mu.Lock()
	b.watchers[w] = struct{}{}
	b.mu.Unlock()
	return w.wake, func() {
		b.mu.Lock()
		delete(b.watchers, w)
		b.mu.Unlock()
	}
}

// noteLocked records that a topic exists or not, and wakes the watchers.
func (b *Broker) noteLocked(name TopicName, exists bool) {
	if _, had := b.known[name]; had == exists {
		return
	}
	if exists {
		b.known[name] = struct{}{}
	} else {
		delete(b.known, name)
	}
	for w := range b.watchers {
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

// Open returns a topic, ready for producers and consumers. A missing one is created if
// create is set, which front ends set by Options.AutoCreate and by what the client asks.
// It may wait for the disk.
func (b *Broker) Open(ctx context.Context, name TopicName, create bool) (*Topic, error) {
	if !name.IsPersistent() {
		return nil, fmt.Errorf("%w: topic %s: non-persistent topics are not served", ErrNotAllowed, name)
	}
	for {
		s, mine, wait, err := b.place(name, create)
		switch {
		case err != nil:
			return nil, err
		case mine:
			b.fill(name, s)
			return s.topic, s.err
		case wait == nil:
			return s.topic, nil
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, fmt.Errorf("open topic %s: %w", name, ctx.Err())
		}
	}
}

// place finds the slot of a topic that is open, or makes one that the caller has to
// fill (mine), or says on what to wait before looking again.
func (b *Broker) place(name TopicName, create bool) (s *slot, mine bool, wait <-chan struct{}, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, false, nil, ErrClosing
	}
	if s, ok := b.open[name]; ok {
		if s.going {
			return s, false, s.gone, nil
		}
		select {
		case <-s.ready:
			return s, false, nil, nil
		default:
			return s, false, s.ready, nil
		}
	}
	if _, ok := b.known[name]; !ok {
		if err := b.mayCreateLocked(name, create); err != nil {
			return nil, false, nil, err
		}
	}
	s = &slot{ready: make(chan struct{}), gone: make(chan struct{})}
	b.open[name] = s
	return s, true, nil, nil
}

// mayCreateLocked says why a missing topic is not created now.
func (b *Broker) mayCreateLocked(name TopicName, create bool) error {
	if err := b.namespaceFor(name); err != nil {
		return err
	}
	base, index := name.Partition()
	if n, ok := b.catalog.partitions(base); ok && index >= 0 {
		if index >= n {
			return fmt.Errorf("%w: Topic not found %s", ErrTopicNotFound, name)
		}
		create = true // a partition that metadata promises comes into being on demand
	}
	if _, ok := b.catalog.partitions(name); ok {
		return fmt.Errorf("%w: %s is partitioned: name one of its partitions", ErrNotAllowed, name)
	}
	if !create {
		return fmt.Errorf("%w: Topic not found %s", ErrTopicNotFound, name)
	}
	if len(b.known)+len(b.open) >= b.opts.Topics {
		return fmt.Errorf("%w: %d topics exist", ErrLimit, b.opts.Topics)
	}
	return nil
}

// namespaceFor reports whether a topic's namespace exists or may come into being.
func (b *Broker) namespaceFor(name TopicName) error {
	if b.catalog.HasNamespace(name.NamespaceName()) || b.opts.AutoCreateNamespaces {
		return nil
	}
	return fmt.Errorf("%w: Namespace not found %s", ErrNamespaceNotFound, name.NamespaceName())
}

// fill opens the ledger for a placed slot. No client's context ends it, since others
// may wait for the same slot.
func (b *Broker) fill(name TopicName, s *slot) {
	b.mu.Lock()
	_, existed := b.known[name]
	b.mu.Unlock()
	s.topic, s.err = b.load(name, existed)
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.err != nil {
		delete(b.open, name)
	} else {
		b.noteLocked(name, true)
	}
	close(s.ready)
}

// load opens a topic's ledger and all its cursors.
func (b *Broker) load(name TopicName, existed bool) (*Topic, error) {
	if !existed && b.opts.AutoCreateNamespaces {
		if err := b.catalog.ensureNamespace(b.run, name.Tenant, name.NamespaceName()); err != nil {
			return nil, fmt.Errorf("create namespace of %s: %w", name, err)
		}
	}
	var reserved []string
	if !existed && b.opts.OnCreate != nil {
		reserved = b.opts.OnCreate(name)
	}
	ledger, err := b.store.OpenLedger(name, reserved)
	if err != nil {
		return nil, fmt.Errorf("open topic %s: %w: %w", name, ErrStorage, err)
	}
	t, err := newTopic(b, name, ledger)
	if err != nil {
		ledger.Close(func(error) {})
		return nil, fmt.Errorf("open topic %s: %w: %w", name, ErrStorage, err)
	}
	return t, nil
}

// take marks an open topic's slot as going, so that nobody is given it any more.
// Without an open topic it makes such a slot, when hold is set.
func (b *Broker) take(ctx context.Context, name TopicName, hold bool) (*slot, error) {
	for {
		b.mu.Lock()
		s, ok := b.open[name]
		switch {
		case !ok && !hold:
			b.mu.Unlock()
			return nil, nil
		case !ok:
			s = &slot{ready: make(chan struct{}), gone: make(chan struct{}), going: true}
			close(s.ready)
			b.open[name] = s
			b.mu.Unlock()
			return s, nil
		}
		wait := s.ready
		if s.going {
			wait = s.gone
		}
		select {
		case <-wait:
			if !s.going {
				s.going = true
				b.mu.Unlock()
				return s, nil
			}
		default:
		}
		b.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// release frees the place of a slot that take returned.
func (b *Broker) release(name TopicName, s *slot) {
	b.mu.Lock()
	delete(b.open, name)
	close(s.gone)
	b.mu.Unlock()
}

// putBack makes a taken topic available again.
func (b *Broker) putBack(name TopicName, s *slot) {
	b.mu.Lock()
	b.open[name] = &slot{ready: s.ready, topic: s.topic, gone: make(chan struct{})}
	close(s.gone)
	b.mu.Unlock()
}

// Unload closes a topic: its clients are told ErrUnloaded and come back. It may wait.
func (b *Broker) Unload(ctx context.Context, name TopicName) error {
	if !b.Exists(name) {
		return fmt.Errorf("%w: %s", ErrTopicNotFound, name)
	}
	s, err := b.take(ctx, name, false)
	if err != nil || s == nil {
		return err
	}
	defer b.release(name, s)
	return s.topic.close(ctx, ErrUnloaded)
}

// Delete removes a topic with its subscriptions, backlog and schema. Without force a
// topic with clients is left. It may wait.
func (b *Broker) Delete(ctx context.Context, name TopicName, force bool) error {
	if !b.Exists(name) {
		return fmt.Errorf("%w: %s", ErrTopicNotFound, name)
	}
	s, err := b.take(ctx, name, true)
	if err != nil {
		return err
	}
	if s.topic != nil {
		if err := s.topic.seal(force); err != nil {
			b.putBack(name, s)
			return err
		}
		err = s.topic.close(ctx, ErrUnloaded)
	}
	defer b.release(name, s)
	if err != nil {
		return err
	}
	if err := wait(ctx, func(done func(error)) { b.store.DeleteLedger(name, done) }); err != nil {
		return fmt.Errorf("delete topic %s: %w", name, err)
	}
	b.mu.Lock()
	b.noteLocked(name, false)
	b.mu.Unlock()
	if base, i := name.Partition(); i < 0 {
		return b.catalog.dropSchemas(ctx, base)
	}
	return nil
}

// Terminate ends a topic: nothing more can be published. It returns the last entry's
// position, entry −1 on an empty topic. It may wait.
func (b *Broker) Terminate(ctx context.Context, name TopicName) (Position, error) {
	t, err := b.Open(ctx, name, false)
	if err != nil {
		return Position{}, err
	}
	return t.terminate(ctx)
}

// CreateTopic makes a plain topic. It may wait.
func (b *Broker) CreateTopic(ctx context.Context, name TopicName) error {
	if err := b.namespaceFor(name); err != nil {
		return err
	}
	if _, ok := b.catalog.partitions(name); ok || b.Exists(name) {
		return fmt.Errorf("%w: %s", ErrExists, name)
	}
	_, err := b.Open(ctx, name, true)
	return err
}

// Lookup says whether a client may go on with a topic; the topic need not exist.
func (b *Broker) Lookup(name TopicName) error { return b.namespaceFor(name) }

// DeleteNamespace removes a namespace, with all its topics if force. It may wait.
func (b *Broker) DeleteNamespace(ctx context.Context, ns string, force bool) error {
	if !b.catalog.HasNamespace(ns) {
		return fmt.Errorf("%w: %s", ErrNamespaceNotFound, ns)
	}
	names := b.Names(ns)
	if len(names) > 0 && !force {
		return fmt.Errorf("%w: namespace %s has %d topics", ErrNotEmpty, ns, len(names))
	}
	for _, n := range names {
		if err := b.Delete(ctx, n, true); err != nil && !errors.Is(err, ErrTopicNotFound) {
			return err
		}
	}
	return b.catalog.deleteNamespace(ctx, ns)
}

// openTopics is a snapshot of the topics that are open now.
func (b *Broker) openTopics() []*Topic {
	b.mu.Lock()
	defer b.mu.Unlock()
	ts := make([]*Topic, 0, len(b.open))
	for _, s := range b.open {
		select {
		case <-s.ready:
			if s.topic != nil && !s.going {
				ts = append(ts, s.topic)
			}
		default:
		}
	}
	return ts
}

// Close lets all clients go, ends dispatch and hands the last cursor states to the
// store. The front ends are closed before.
func (b *Broker) Close(ctx context.Context) error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil
	}
	b.closed = true
	b.mu.Unlock()
	b.stop()
	b.wg.Wait()
	var errs []error
	for _, t := range b.openTopics() {
		if s, err := b.take(ctx, t.name, false); err != nil {
			errs = append(errs, err)
		} else if s != nil {
			errs = append(errs, s.topic.close(ctx, ErrClosing))
			b.release(t.name, s)
		}
	}
	return errors.Join(errs...)
}

// wait starts something that answers by a done function, and waits for the answer.
func wait(ctx context.Context, start func(done func(error))) error {
	ch := make(chan error, 1)
	start(func(err error) { ch <- err })
	select {
	case err := <-ch:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// producerName makes up a name that was never given before, in any run of this store.
func (b *Broker) producerName() string {
	return fmt.Sprintf("%s-%d-%d", b.opts.Cluster, b.born, b.names.Add(1)-1)
}

// TopicStats is a snapshot of a topic, which is opened for it. It may wait.
func (b *Broker) TopicStats(ctx context.Context, name TopicName) (TopicStats, error) {
	t, err := b.Open(ctx, name, false)
	if err != nil {
		return TopicStats{}, err
	}
	return t.Stats(), nil
}
