package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"wayside/edge"
)

// verdict is what the core's error means over HTTP. The reason is what a person reads
// when the handler has nothing more exact to say.
type verdict struct {
	err    error
	status int
	reason string
}

// verdicts is the one table from the core's sentinels to statuses, those of Pulsar
// 4.0.7 where it has the case (protocol 5.1). A wrapped error matches the first row
// that it is.
var verdicts = []verdict{
	// First, since a wait that ends so may be wrapped as a failure of what it waited for.
	{context.DeadlineExceeded, http.StatusServiceUnavailable, "The request took too long: it may still be carried out"},
	{context.Canceled, http.StatusServiceUnavailable, "The request was given up"},

	{edge.ErrName, http.StatusPreconditionFailed, "Topic name is not valid"},
	{edge.ErrBadRequest, http.StatusBadRequest, "The request cannot be carried out as it stands"},
	{edge.ErrNotAllowed, http.StatusMethodNotAllowed, "This is not allowed on this topic"},

	{edge.ErrNamespaceNotFound, http.StatusNotFound, "Namespace not found"},
	{edge.ErrTenantNotFound, http.StatusNotFound, "Tenant does not exist"},
	{edge.ErrTopicNotFound, http.StatusNotFound, "Topic not found"},
	{edge.ErrSubscriptionNotFound, http.StatusNotFound, "Subscription not found"},
	{edge.ErrConsumerNotFound, http.StatusNotFound, "Consumer not found"},
	{edge.ErrSchemaNotFound, http.StatusNotFound, "Schema not found"},
	{edge.ErrMessageNotFound, http.StatusNotFound, "Message not found"},
	{edge.ErrNothingToExpire, http.StatusConflict, "Nothing to expire"},

	{edge.ErrExists, http.StatusConflict, "This already exists"},
	{edge.ErrNotEmpty, http.StatusConflict, "This is not empty"},
	{edge.ErrTopicInUse, http.StatusPreconditionFailed, "Topic has connected producers/consumers"},
	{edge.ErrConsumerBusy, http.StatusPreconditionFailed, "Subscription has active connected consumers"},
	{edge.ErrProducerBusy, http.StatusConflict, "Producer name is taken"},
	{edge.ErrTypeMismatch, http.StatusConflict, "Subscription is of another type"},
	{edge.ErrSticky, http.StatusConflict, "Key ranges overlap with those of another consumer"},

	{edge.ErrFenced, http.StatusConflict, "Producer is fenced"},
	{edge.ErrTerminated, http.StatusConflict, "Topic is terminated"},
	{edge.ErrQuotaHold, http.StatusInsufficientStorage, "Backlog quota is exceeded"},
	{edge.ErrQuotaFail, http.StatusInsufficientStorage, "Backlog quota is exceeded"},
	{edge.ErrLimit, http.StatusPreconditionFailed, "A limit of this broker is reached"},
	{edge.ErrSchemaForm, http.StatusUnprocessableEntity, "Schema is invalid"},
	{edge.ErrSchema, http.StatusConflict, "Schema is incompatible with the one that the topic has"},
	{edge.ErrUnauthorized, http.StatusForbidden, "Not authorized"},

	{edge.ErrUnloaded, http.StatusServiceUnavailable, "Topic was unloaded meanwhile: try again"},
	{edge.ErrClosing, http.StatusServiceUnavailable, "Broker is stopping"},
	{edge.ErrGone, http.StatusServiceUnavailable, "Closed meanwhile: try again"},

	{edge.ErrTxnNotFound, http.StatusNotFound, "Transaction not found"},
	{edge.ErrTxnCoordinator, http.StatusNotFound, "Transaction coordinator not found"},
	{edge.ErrTxnStatus, http.StatusConflict, "Transaction has another status"},
	{edge.ErrTxnConflict, http.StatusConflict, "It is acknowledged already, or in a transaction"},

	{edge.ErrStoreFull, http.StatusInsufficientStorage, "No space is left in the store"},
	{edge.ErrLedgerFailed, http.StatusServiceUnavailable, "An earlier write to this topic failed"},
	{edge.ErrStorage, http.StatusServiceUnavailable, "The store failed: see the broker's log"},

	{edge.ErrDuplicate, http.StatusConflict, "Duplicate"},
	{edge.ErrChecksum, http.StatusBadRequest, "Checksum does not match"},
	{edge.ErrBadMessage, http.StatusBadRequest, "Message metadata is unusable"},
}

// unknown answers an error that is in no row. A test keeps the table complete for the
// core's sentinels, so only defects end here.
var unknown = verdict{status: http.StatusInternalServerError, reason: "Internal error: see the broker's log"}

// refusal is an error with its answer.
type refusal struct {
	status int
	reason string
	cause  error // nil if the request itself is to blame
}

func (r *refusal) Error() string {
	if r.cause == nil {
		return r.reason
	}
	return r.reason + ": " + r.cause.Error()
}

func (r *refusal) Unwrap() error { return r.cause }

// refuse makes an error that answers with the status and the sentence.
func refuse(status int, format string, args ...any) error {
	return &refusal{status: status, reason: fmt.Sprintf(format, args...)}
}

// judge finds the answer to an error: its own, or the table's.
func judge(err error) *refusal {
	if r := (*refusal)(nil); errors.As(err, &r) {
		return r
	}
	v := judgeBare(err)
	return &refusal{status: v.status, reason: v.reason, cause: err}
}

func judgeBare(err error) verdict {
	for _, v := range verdicts {
		if errors.Is(err, v.err) {
			return v
		}
	}
	return unknown
}

// reworded gives an error that is of the sentinel a sentence that fits the request,
// with the table's status. Any other error, one that has its sentence, and nil stay as
// they are.
func reworded(err, sentinel error, format string, args ...any) error {
	if r := (*refusal)(nil); errors.As(err, &r) || !errors.Is(err, sentinel) {
		return err
	}
	return &refusal{status: judgeBare(sentinel).status, reason: fmt.Sprintf(format, args...), cause: err}
}

// ofTopic rewords what only needs the topic's name.
func ofTopic(err error, name edge.TopicName) error {
	err = reworded(err, edge.ErrTopicNotFound, "Topic %s not found", name)
	return reworded(err, edge.ErrTerminated, "Topic %s is terminated", name)
}

// ofSubscription rewords what needs the subscription's name too.
func ofSubscription(err error, name edge.TopicName, subscription string) error {
	err = reworded(err, edge.ErrSubscriptionNotFound, "Subscription %s not found for topic %s", subscription, name)
	err = reworded(err, edge.ErrTopicInUse, "Subscription has active connected consumers")
	return ofTopic(err, name)
}
