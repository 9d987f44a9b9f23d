package edge

import (
	"fmt"
	"strconv"
	"time"
)

// TxnState is how far a transaction has come.
type TxnState int

// A transaction that has ended is forgotten, so the last two states pass quickly.
const (
	TxnOpen       TxnState = iota
	TxnCommitting          // decided and durable: it will be committed, whatever happens
	TxnAborting
)

// String is the name that Pulsar's admin interface shows.
func (s TxnState) String() string { return [...]string{"OPEN", "COMMITTING", "ABORTING"}[s] }

// String is the form that Pulsar's texts have.
func (id TxnID) String() string { return fmt.Sprintf("(%d,%d)", id.Most, id.Least) }

// Types of the markers that end a transaction's entries on a topic.
const (
	markerCommit = 21
	markerAbort  = 22
)

// TxnSubscription names a subscription that a transaction acknowledges on.
type TxnSubscription struct{ Topic, Subscription string }

// TxnInfo is what is told of a transaction that has not ended.
type TxnInfo struct {
	ID            TxnID
	State         TxnState
	Opened        time.Time     // of this run of the broker, if it is older
	Timeout       time.Duration // after which it is aborted
	Topics        []string      // as the client named them
	Subscriptions []TxnSubscription
}

// Bounds of transactions. All that is open is in memory and on disk until it ends, and
// is given up at the latest when its time is over.
const (
	// maxTxns bounds the open ones; the Go client has at most 1,000 requests under way.
	maxTxns = 2_000
	// maxTxnParts bounds the topics and subscriptions of one transaction, whose record is
	// written anew with each.
	maxTxnParts = 1_000
	// maxTxnText bounds the names that one record holds, in bytes, maxTxnTexts those of all.
	maxTxnText  = 256 << 10
	maxTxnTexts = 4 << 20
	// maxTxnAcks bounds, in pieces, what transactions hold acknowledged on a subscription:
	// a run of entries, a part of a batch or 64 of its messages. Each piece takes at most
	// 60 bytes in the value that keeps them over a restart.
	maxTxnAcks = 10_000
	// maxAborted bounds the aborted transactions that a topic remembers as long as it
	// holds their entries, together with the open ones: what it keeps of itself stays
	// below 32 KiB. Neighbours count as one.
	maxAborted = 1_000
	// maxTxnTime bounds a time to live: what is longer is as good as this.
	maxTxnTime = 10 * 365 * 24 * time.Hour
)

// Keys of transactions among the store's values.
const (
	keyTxn     = "txn/"
	keyTxnNext = "txn/next"  // an id that was never given
	keyTxnOpen = "txn/open/" // records, by id
	keyTxnAcks = "txn/acks/" // what is acknowledged, by id and place of the subscription in its record
)

func txnKey(id TxnID) string { return fmt.Sprintf("%s%016x", keyTxnOpen, id.Least) }

func txnAcksKey(id TxnID, place int) string {
	return fmt.Sprintf("%s%016x/", keyTxnAcks, id.Least) + strconv.Itoa(place)
}
