package edge

// watcher is told when topics come or go. Broker.mu guards all but wake.
type watcher struct {
	wake      chan struct{}
	follows   bool   // wants to know which
	namespace string // of those that it follows
	changes   []Change
	missed    bool // there were more than it keeps
}

// Change is a topic that came or went.
type Change struct {
	Name   TopicName
	Exists bool
}

// keptChanges is how many of them wait for one follower, at most 100 KiB of memory.
const keptChanges = 1_000

// Watch gives a wake whenever a topic is created or deleted; wakes are merged, so
// the woken side lists and compares. stop ends it.
func (b *Broker) Watch() (wake <-chan struct{}, stop func()) {
	w := &watcher{wake: make(chan struct{}, 1)}
	b.mu.Lock()
	b.watchers[w] = struct{}{}
	b.mu.Unlock()
	return w.wake, func() { b.unwatch(w) }
}

func (b *Broker) unwatch(w *watcher) {
	b.mu.Lock()
	delete(b.watchers, w)
	b.mu.Unlock()
}

// Follower is told which topics of a namespace come and go.
type Follower struct {
	broker *Broker
	w      *watcher
}

// Follow lists the topics of a namespace, as Names does, and tells of all that come and
// go from then on.
func (b *Broker) Follow(namespace string) ([]TopicName, *Follower) {
	w := &watcher{wake: make(chan struct{}, 1), follows: true, namespace: namespace}
	b.mu.Lock()
	names := b.namesLocked(namespace)
	b.watchers[w] = struct{}{}
	b.mu.Unlock()
	return sortedNames(names), &Follower{b, w}
}

// Wake gives one whenever Changes has something new.
func (f *Follower) Wake() <-chan struct{} { return f.w.wake }

// Changes are those since the last call, in order; and the topics that exist behind
// them, as Names lists them. missed says that there were more than are kept: then only
// that list counts.
func (f *Follower) Changes() (changes []Change, names []TopicName, missed bool) {
	b := f.broker
	b.mu.Lock()
	changes, missed = f.w.changes, f.w.missed
	f.w.changes, f.w.missed = nil, false
	if len(changes) > 0 || missed {
		names = b.namesLocked(f.w.namespace)
	}
	b.mu.Unlock()
	return changes, sortedNames(names), missed
}

// Stop ends it.
func (f *Follower) Stop() { f.broker.unwatch(f.w) }

// noteLocked records that a topic exists or not, and tells the watchers.
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
		if w.note(name, exists) {
			select {
			case w.wake <- struct{}{}:
			default:
			}
		}
	}
}

// note reports whether the watcher is to be woken.
func (w *watcher) note(name TopicName, exists bool) bool {
	switch {
	case !w.follows:
		return true
	case name.NamespaceName() != w.namespace:
		return false
	case len(w.changes) >= keptChanges:
		w.changes, w.missed = nil, true
	case !w.missed:
		w.changes = append(w.changes, Change{name, exists})
	}
	return true
}
