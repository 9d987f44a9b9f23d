package edge

import (
	"errors"
	"fmt"
)

// Errors that callers tell apart. Those that come from the core wrap one of them
// with the step that failed; front ends map them to codes of their protocol.
var (
	// A name or a request is wrong in itself.
	ErrName       = errors.New("invalid topic name")
	ErrBadRequest = errors.New("bad request")
	ErrNotAllowed = errors.New("not allowed")

	// Something is not there.
	ErrNamespaceNotFound    = errors.New("namespace not found")
	ErrTenantNotFound       = errors.New("tenant not found")
	ErrTopicNotFound        = errors.New("topic not found")
	ErrSubscriptionNotFound = errors.New("subscription not found")
	ErrConsumerNotFound     = errors.New("consumer not found")
	ErrSchemaNotFound       = errors.New("schema not found")
	ErrMessageNotFound      = errors.New("message not found")
	ErrNothingToExpire      = errors.New("nothing to expire")

	// Something is there already, or in use.
	ErrExists       = errors.New("already exists")
	ErrNotEmpty     = errors.New("not empty")
	ErrTopicInUse   = errors.New("topic has connected producers or consumers")
	ErrConsumerBusy = errors.New("subscription is taken")
	ErrProducerBusy = errors.New("producer name is taken")
	ErrTypeMismatch = errors.New("subscription is of different type")
	ErrSticky       = errors.New("key ranges conflict")

	// Ends of a producer or a topic.
	ErrFenced       = errors.New("producer is fenced")
	ErrTerminated   = errors.New("topic is terminated")
	ErrQuotaHold    = errors.New("backlog quota exceeded, producer has to wait")
	ErrQuotaFail    = errors.New("backlog quota exceeded")
	ErrLimit        = errors.New("limit reached")
	ErrSchema       = errors.New("incompatible schema")
	ErrSchemaForm   = errors.New("invalid schema")
	ErrUnauthorized = errors.New("not authorized")

	// States that pass.
	ErrUnloaded = errors.New("topic was unloaded")
	ErrClosing  = errors.New("broker is stopping")
	ErrGone     = errors.New("closed meanwhile")

	// Transactions.
	ErrTxnNotFound    = errors.New("transaction not found")
	ErrTxnCoordinator = errors.New("transaction coordinator not found")
	ErrTxnStatus      = errors.New("invalid transaction status")
	ErrTxnConflict    = errors.New("transaction conflict")

	// The disk.
	ErrStorage      = errors.New("storage failed")
	ErrStoreFull    = errors.New("no space left in the store")
	ErrLedgerFailed = errors.New("an earlier write failed")

	// A message itself.
	ErrDuplicate  = errors.New("duplicate")
	ErrChecksum   = errors.New("checksum mismatch")
	ErrBadMessage = errors.New("message metadata is unusable")
)

// InUseError says that a name or a seat is held by a peer. Whoever gets it asks
// the holder for a sign of life and tries again if there is none.
type InUseError struct {
	Err    error // ErrConsumerBusy, ErrProducerBusy or ErrSticky
	What   string
	Holder Peer
}

// Error says what is taken.
func (e *InUseError) Error() string { return fmt.Sprintf("%v: %s", e.Err, e.What) }

// Unwrap gives the sentinel.
func (e *InUseError) Unwrap() error { return e.Err }
