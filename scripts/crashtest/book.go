package main

import (
	"fmt"
	"sync"

	"github.com/apache/pulsar-client-go/pulsar"
)

// topics are what the load uses; each has two subscriptions that are checked.
var topics = []string{"crash-a", "crash-b", "crash-c"}

const (
	auditSub = "audit" // reads everything once, in order, between the kills
	workSub  = "work"  // consumers acknowledge and give back under load
)

// entryID is a message's place, batch index included.
type entryID struct {
	ledger, entry int64
	batch         int32
}

func idOf(m pulsar.MessageID) entryID { return entryID{m.LedgerID(), m.EntryID(), m.BatchIdx()} }

func (a entryID) less(b entryID) bool {
	if a.ledger != b.ledger {
		return a.ledger < b.ledger
	}
	if a.entry != b.entry {
		return a.entry < b.entry
	}
	return a.batch < b.batch
}

// book is what the broker has promised so far. It forgets what has been checked.
type book struct {
	mu     sync.Mutex
	topic  map[string]*page
	totals struct{ receipts, acks, seen int }
	ledger *ledger
}

// page is the part of one topic.
type page struct {
	receipts  map[string]entryID // payload → id, since the last check
	last      entryID            // highest id ever seen
	lastOf    map[string]int     // producer → highest number read by audit
	ackSent   map[string]bool    // payload → an ack was sent on work
	confirmed map[string]bool    // payload → and confirmed
	owed      map[string]bool    // payload → must still come on work unless an ack was sent
}

func newBook() *book {
	b := &book{topic: map[string]*page{}, ledger: newLedger()}
	for _, t := range topics {
		b.topic[t] = &page{
			receipts: map[string]entryID{}, lastOf: map[string]int{}, ackSent: map[string]bool{},
			confirmed: map[string]bool{}, owed: map[string]bool{}, last: entryID{ledger: -1},
		}
	}
	return b
}

func (b *book) receipt(topic, payload string, id pulsar.MessageID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.topic[topic].receipts[payload] = idOf(id)
	b.totals.receipts++
}

func (b *book) ackSent(topic, payload string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.topic[topic].ackSent[payload] = true
}

func (b *book) ackConfirmed(topic, payload string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.topic[topic].confirmed[payload] = true
	b.totals.acks++
}

// idle says what a whole run has not shown, "" if it has shown everything: a load that never came to work must not
// pass for one that was survived.
func (b *book) idle() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.totals.receipts == 0:
		return "no message got a receipt"
	case b.totals.seen == 0:
		return "no message was read"
	case b.totals.acks == 0:
		return "no acknowledgement was confirmed"
	}
	return ""
}

func (b *book) summary() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return fmt.Sprintf("%d receipts, %d messages read, %d confirmed acknowledgements", b.totals.receipts, b.totals.seen, b.totals.acks)
}
