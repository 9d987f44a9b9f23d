package uplink

import (
	"sync"

	"wayside/edge"
)

// happening is what a forwarder is told about by other goroutines.
type happening int

const (
	sessionOpened happening = iota // or err
	sessionAnswer                  // to the message with index: a receipt, or err
	sessionLost                    // the connection has ended
	planSaved                      // or err
	itemParked                     // or err
	attached                       // consumer is there, or err
	consumerGone                   // the core has removed the consumer: err says why
)

// event is one happening. session or consumer say whose it is: what concerns an
// earlier one is void.
type event struct {
	what      happening
	session   *session
	consumer  *attachment
	index     uint64
	batch     int32 // messages of the batch that the receipt was for
	duplicate bool
	err       error
}

// inbox is where other goroutines leave things for a forwarder's own. It never blocks
// them: what it holds is bounded by what was asked for.
type inbox struct {
	wake chan struct{} // capacity one

	mu         sync.Mutex
	events     []event
	deliveries []edge.Delivery
	running    bool // the forwarder's goroutine looks, or will
}

// post leaves an event. It reports whether the goroutine has to be started.
func (b *inbox) post(e event) (start bool) {
	b.mu.Lock()
	b.events = append(b.events, e)
	return b.rouseLocked()
}

// deliver leaves an entry; the same.
func (b *inbox) deliver(d edge.Delivery) (start bool) {
	b.mu.Lock()
	b.deliveries = append(b.deliveries, d)
	return b.rouseLocked()
}

// rouse wakes or starts the goroutine though nothing is left for it.
func (b *inbox) rouse() (start bool) {
	b.mu.Lock()
	return b.rouseLocked()
}

// rouseLocked unlocks.
func (b *inbox) rouseLocked() bool {
	start := !b.running
	b.running = true
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
	return start
}

// take empties the inbox.
func (b *inbox) take() (events []event, deliveries []edge.Delivery) {
	b.mu.Lock()
	defer b.mu.Unlock()
	events, deliveries = b.events, b.deliveries
	b.events, b.deliveries = nil, nil
	return events, deliveries
}

// rest lets the goroutine end, unless something was left meanwhile.
func (b *inbox) rest() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.events) > 0 || len(b.deliveries) > 0 {
		return false
	}
	b.running = false
	return true
}
