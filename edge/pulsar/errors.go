package pulsar

import (
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	"wayside/edge"
	"wayside/wire/pulsarpb"
)

// fault is what clients are told of one error of the core.
type fault struct {
	err  error
	code pulsarpb.ServerError
	text string
	// details adds what the error says behind the sentinel's own words, which the core
	// writes for clients. Where it is not set the text is all: what went wrong inside
	// is for the log.
	details bool
}

// faults is the one table from the core's errors to protocol codes (protocol 2.4). The
// first that matches counts.
func faults() []fault {
	const storage = "The broker cannot store anything now"
	return []fault{
		{edge.ErrName, pulsarpb.ServerError_InvalidTopicName, "Invalid topic name", true},
		{edge.ErrBadRequest, pulsarpb.ServerError_MetadataError, "The request makes no sense", true},
		{edge.ErrNotAllowed, pulsarpb.ServerError_NotAllowedError, "Not allowed", true},
		{edge.ErrNamespaceNotFound, pulsarpb.ServerError_TopicNotFound, "Namespace not found", false},
		{edge.ErrTenantNotFound, pulsarpb.ServerError_TopicNotFound, "Namespace not found", false},
		{edge.ErrTopicNotFound, pulsarpb.ServerError_TopicNotFound, "Topic not found", true},
		{edge.ErrSubscriptionNotFound, pulsarpb.ServerError_SubscriptionNotFound, "Subscription does not exist", false},
		{edge.ErrConsumerNotFound, pulsarpb.ServerError_MetadataError, "Consumer not found", false},
		{edge.ErrSchemaNotFound, pulsarpb.ServerError_TopicNotFound, "Topic not found or no-schema", true},
		{edge.ErrMessageNotFound, pulsarpb.ServerError_MetadataError, "Message not found", false},
		{edge.ErrNothingToExpire, pulsarpb.ServerError_MetadataError, "Nothing to expire", false},
		{edge.ErrExists, pulsarpb.ServerError_NotAllowedError, "It exists already", true},
		{edge.ErrNotEmpty, pulsarpb.ServerError_NotAllowedError, "It is not empty", true},
		{edge.ErrTopicInUse, pulsarpb.ServerError_ConsumerBusy, "Others are connected", true},
		{edge.ErrConsumerBusy, pulsarpb.ServerError_ConsumerBusy, "Consumer is already connected", true},
		{edge.ErrProducerBusy, pulsarpb.ServerError_ProducerBusy, "Producer is already connected", true},
		{edge.ErrTypeMismatch, pulsarpb.ServerError_ConsumerBusy, "Subscription is of different type", true},
		{edge.ErrSticky, pulsarpb.ServerError_ConsumerAssignError, "Key ranges conflict", true},
		{edge.ErrFenced, pulsarpb.ServerError_ProducerFenced, "Producer was fenced", true},
		{edge.ErrTerminated, pulsarpb.ServerError_TopicTerminatedError, "Topic was already terminated", false},
		{edge.ErrQuotaHold, pulsarpb.ServerError_ProducerBlockedQuotaExceededError, "Cannot create producer on topic with backlog quota exceeded", false},
		{edge.ErrQuotaFail, pulsarpb.ServerError_ProducerBlockedQuotaExceededException, "Cannot create producer on topic with backlog quota exceeded", false},
		{edge.ErrLimit, pulsarpb.ServerError_NotAllowedError, "A limit is reached", true},
		{edge.ErrSchemaForm, pulsarpb.ServerError_IncompatibleSchema, "Invalid schema", true},
		{edge.ErrSchema, pulsarpb.ServerError_IncompatibleSchema, "Incompatible schema", true},
		{edge.ErrUnauthorized, pulsarpb.ServerError_AuthorizationError, "Client is not authorized", true},
		{edge.ErrUnloaded, pulsarpb.ServerError_ServiceNotReady, "Topic is temporarily unavailable", false},
		{edge.ErrClosing, pulsarpb.ServerError_ServiceNotReady, "The broker is stopping", false},
		{edge.ErrGone, pulsarpb.ServerError_ServiceNotReady, "It was closed meanwhile", false},
		{edge.ErrTxnNotFound, pulsarpb.ServerError_TransactionNotFound, "The transaction was not found", true},
		{edge.ErrTxnCoordinator, pulsarpb.ServerError_TransactionCoordinatorNotFound, "The transaction coordinator was not found", true},
		{edge.ErrTxnStatus, pulsarpb.ServerError_InvalidTxnStatus, "The transaction has another status", true},
		{edge.ErrTxnConflict, pulsarpb.ServerError_TransactionConflict, "It is acknowledged already, or in a transaction", true},
		{edge.ErrStoreFull, pulsarpb.ServerError_PersistenceError, storage, false},
		{edge.ErrLedgerFailed, pulsarpb.ServerError_PersistenceError, storage, false},
		{edge.ErrStorage, pulsarpb.ServerError_PersistenceError, storage, false},
		{edge.ErrDuplicate, pulsarpb.ServerError_PersistenceError, "It is not known yet whether the message is a duplicate", false},
		{edge.ErrChecksum, pulsarpb.ServerError_ChecksumError, "Checksum failed on the broker", false},
		{edge.ErrBadMessage, pulsarpb.ServerError_MetadataError, "The message's metadata cannot be used", true},
		{context.Canceled, pulsarpb.ServerError_ServiceNotReady, "The request was given up", false},
		{context.DeadlineExceeded, pulsarpb.ServerError_ServiceNotReady, "The request took too long", false},
	}
}

// explain gives code and sentence for a client. known is false for an error that no
// client should meet; it belongs into the log.
func explain(err error) (code pulsarpb.ServerError, text string, known bool) {
	for _, f := range faults() {
		if errors.Is(err, f.err) {
			return f.code, f.sentence(err), true
		}
	}
	return pulsarpb.ServerError_UnknownError, "The broker failed", false
}

// sentence is the plain text of a fault.
func (f *fault) sentence(err error) string {
	if !f.details {
		return f.text
	}
	var busy *edge.InUseError
	detail := ""
	if errors.As(err, &busy) {
		detail = busy.What
	} else if _, behind, ok := strings.Cut(err.Error(), f.err.Error()+": "); ok {
		detail = shortened(behind)
	}
	switch {
	case detail == "" || misleading(f.code, detail):
		return f.text
	case errors.Is(f.err, edge.ErrName):
		return f.text + ": " + detail
	}
	return detail
}

// maxDetail is how much of a long text clients are told, in bytes: it may hold names of
// their own, and a thousand of them may wait to be written.
const maxDetail = 512

// shortened cuts a text that is too long, between characters.
func shortened(text string) string {
	if len(text) <= maxDetail {
		return text
	}
	n := maxDetail
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…"
}

// misleading reports whether a text holds the name of another error. The Go client
// searches whole texts for these names (protocol 4, number 60).
func misleading(code pulsarpb.ServerError, text string) bool {
	for _, other := range []pulsarpb.ServerError{
		pulsarpb.ServerError_TopicNotFound, pulsarpb.ServerError_TopicTerminatedError,
		pulsarpb.ServerError_ProducerBlockedQuotaExceededException, pulsarpb.ServerError_ProducerFenced,
	} {
		if code != other && strings.Contains(text, other.String()) {
			return true
		}
	}
	return false
}

// breach is why a connection is closed: its client did what no client may do.
type breach string

func (b breach) Error() string { return string(b) }
