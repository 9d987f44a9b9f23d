package edge

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
)

// Broker holds the topics by name, open or not. It opens and unloads them, lets
// others watch which exist, and takes snapshots for stats.
type Broker struct {
	opts      Options
	store     Store
	budget    *Budget
	catalog   *Catalog
	txns      *Coordinator
	tails     *tails
	crew      *crew
	compactor compactor
	reads     chan struct{} // semaphore of dispatchers' disk reads
	run       context.Context
	stop      context.CancelFunc
	wg        sync.WaitGroup // housekeeper, and what goes on without its caller
	born      int64          // boot counter of this store, in generated producer names
	stopping  atomic.Bool    // its front ends are about to close
	names     atomic.Int64   // number of generated producer names
	joins     atomic.Uint64  // order in which consumers joined
	counts    counters
	// duplicates are messages that deduplication has dropped.
	duplicates atomic.Int64
	forms      map[TopicName]bool // with a compacted form, or a leftover of one, at the start; not changed
	shortage   shortage
	holding    holdRoom

	mu       sync.Mutex
	known    map[TopicName]struct{} // that exist in the store
	open     map[TopicName]*slot    // open, opening or going
	making   int                    // of these, not known yet
	watchers map[*watcher]struct{}
	closed   bool
}

// NewBroker reads catalog and topic records and starts the housekeeper. The store
// stays its caller's, who closes it after the broker.
func NewBroker(store Store, o Options) (*Broker, error) {
	if o.Budget == nil {
		o.Budget = NewBudget(32 << 20)
	}
	run, stop := context.WithCancel(context.Background())
	b := &Broker{
		opts: o, store: store, budget: o.Budget, tails: newTails(o.Budget), crew: newCrew(runtime.GOMAXPROCS(0)),
		reads: make(chan struct{}, max(o.ConcurrentReads, 1)),
		run:   run, stop: stop,
		known:    map[TopicName]struct{}{},
		open:     map[TopicName]*slot{},
		watchers: map[*watcher]struct{}{},
	}
	_, publish := b.budget.Usage(SharePublish)
	b.holding.limit = publish / 4
	var err error
	if b.catalog, err = loadCatalog(store, o.Clock); err != nil {
		stop()
		return nil, fmt.Errorf("read catalog: %w", err)
	}
	if b.born, err = b.catalog.countBoot(run); errors.Is(err, ErrStoreFull) {
		b.born = o.Clock().UnixMilli() // a full disk keeps nobody from reading, and the names differ still
	} else if err != nil {
		stop()
		return nil, fmt.Errorf("note start: %w", err)
	}
	for _, r := range store.Records() {
		if !r.Name.hidden() {
			b.known[r.Name] = struct{}{}
		}
	}
	b.dropOrphans()
	if b.txns, err = loadCoordinator(b); err != nil {
		stop()
		return nil, fmt.Errorf("read transactions: %w", err)
	}
	b.txns.resume()
	b.wg.Go(b.keepHouse)
	return b, nil
}

// Catalog is what exists besides messages.
func (b *Broker) Catalog() *Catalog { return b.catalog }

// Coordinator is who transactions begin and end with.
func (b *Broker) Coordinator() *Coordinator { return b.txns }

// Budget is the memory that everybody shares.
func (b *Broker) Budget() *Budget { return b.budget }

// Options are those that the broker was made with.
func (b *Broker) Options() Options { return b.opts }

// Records tells of every topic, open or not.
func (b *Broker) Records() []TopicRecord {
	return slices.DeleteFunc(b.store.Records(), func(r TopicRecord) bool { return r.Name.hidden() })
}

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
	names := b.namesLocked(namespace)
	b.mu.Unlock()
	return sortedNames(names)
}

func (b *Broker) namesLocked(namespace string) []TopicName {
	names := make([]TopicName, 0, len(b.known))
	for n := range b.known {
		if namespace == "" || n.NamespaceName() == namespace {
			names = append(names, n)
		}
	}
	return names
}

// sortedNames sorts by the full name.
func sortedNames(names []TopicName) []TopicName {
	sort.Slice(names, func(i, j int) bool { return names[i].compare(names[j]) < 0 })
	return names
}

// Close lets all clients go, ends dispatch and hands the last cursor states to the
// store. The front ends are closed before. What has not ended with the context goes on
// by itself.
func (b *Broker) Close(ctx context.Context) error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil
	}
	b.closed = true
	b.mu.Unlock()
	b.txns.stop()
	b.stop()
	ended := make(chan struct{})
	go func() { b.wg.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-ctx.Done():
		return ctx.Err()
	}
	var errs []error
	for _, name := range b.places() {
		s, err := b.take(ctx, name, false)
		if err == nil && s != nil {
			err = s.topic.close(ctx, ErrClosing)
			b.release(name, s)
		}
		errs = append(errs, err)
	}
	b.tails.drop()
	b.crew.wait()
	return errors.Join(errs...)
}

// see brings work to its end, however long its caller waits.
func (b *Broker) see(ctx context.Context, work func(context.Context) error) error {
	done := make(chan error, 1)
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return ErrClosing
	}
	b.wg.Go(func() { done <- work(context.WithoutCancel(ctx)) })
	b.mu.Unlock()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// spawn works on something that ends with the broker's run. It returns false if that is over.
func (b *Broker) spawn(work func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.wg.Go(work)
	}
	return !b.closed
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

// Stopping says that the front ends close next, and then the broker. Consumers that
// leave from now on have not left by their own will: redelivery counts stay. What a
// publish rate holds back is published, and nothing is held back any more.
func (b *Broker) Stopping() {
	if b.stopping.Swap(true) {
		return
	}
	for _, t := range b.openTopics() {
		t.letHeldGo()
	}
}
