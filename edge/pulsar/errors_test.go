package pulsar

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"wayside/edge"
	"wayside/wire/pulsarpb"
)

func TestExplain(t *testing.T) {
	for _, test := range []struct {
		err  error
		code pulsarpb.ServerError
		text string
	}{
		{fmt.Errorf("open: %w: %q is odd", edge.ErrName, "x"), pulsarpb.ServerError_InvalidTopicName, `Invalid topic name: "x" is odd`},
		{fmt.Errorf("%w: Topic not found t", edge.ErrTopicNotFound), pulsarpb.ServerError_TopicNotFound, "Topic not found t"},
		{edge.ErrTopicNotFound, pulsarpb.ServerError_TopicNotFound, "Topic not found"},
		{&edge.InUseError{Err: edge.ErrProducerBusy, What: "It is taken"}, pulsarpb.ServerError_ProducerBusy, "It is taken"},
		{fmt.Errorf("add: %w", &edge.InUseError{Err: edge.ErrSticky, What: "Range conflict"}), pulsarpb.ServerError_ConsumerAssignError, "Range conflict"},
		{fmt.Errorf("%w: write /var/lib/x: input/output error", edge.ErrStorage), pulsarpb.ServerError_PersistenceError, "The broker cannot store anything now"},
		{fmt.Errorf("seek: %w", context.Canceled), pulsarpb.ServerError_ServiceNotReady, "The request was given up"},
		{errors.New("surprise in /var/lib"), pulsarpb.ServerError_UnknownError, "The broker failed"},
		// What the Go client searches for in whole texts stands in no other error's.
		{fmt.Errorf("%w: Topic not found TopicTerminatedError", edge.ErrTopicNotFound), pulsarpb.ServerError_TopicNotFound, "Topic not found"},
		{fmt.Errorf("%w: subscription ProducerFenced", edge.ErrNotAllowed), pulsarpb.ServerError_NotAllowedError, "Not allowed"},
	} {
		code, text, known := explain(test.err)
		if code != test.code || text != test.text || known != (code != pulsarpb.ServerError_UnknownError) {
			t.Errorf("explain(%v) = %s, %q, %t; want %s, %q", test.err, code, text, known, test.code, test.text)
		}
	}
}

func TestFixedTextsNameNoOtherError(t *testing.T) {
	for _, f := range faults() {
		if misleading(f.code, f.text) {
			t.Errorf("%q names another error", f.text)
		}
		if f.text == "" || strings.ContainsAny(f.text, "\n") {
			t.Errorf("%v has no plain sentence", f.err)
		}
	}
}

func TestLookupsNeverCostTheConnection(t *testing.T) {
	for _, f := range faults() {
		code, text := explainLookup(f.err)
		if code == pulsarpb.ServerError_ServiceNotReady || code == pulsarpb.ServerError_TooManyRequests || text == "" {
			t.Errorf("%v in a lookup: %s %q", f.err, code, text)
		}
	}
}
