package pulsar

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"wayside/edge"
	"wayside/wire/pulsarpb"
)

// Traps of protocol.md, section 4, that have to do with schemas and transactions.
// testdata/traps.txt lists all of them.

func TestTrap63And64And65And79SchemaAnswersAreComplete(t *testing.T) {
	c := serve(t).connect().producing("schemas")
	topic := proto.String(public + "schemas")
	get := func(version []byte) *pulsarpb.CommandGetSchemaResponse {
		return c.answered(&pulsarpb.CommandGetSchema{RequestId: num(1), Topic: topic, SchemaVersion: version}).GetGetSchemaResponse()
	}
	create := func(s *pulsarpb.Schema) *pulsarpb.CommandGetOrCreateSchemaResponse {
		return c.answered(&pulsarpb.CommandGetOrCreateSchema{RequestId: num(2), Topic: topic, Schema: s}).GetGetOrCreateSchemaResponse()
	}
	missing := func(when string) {
		t.Helper()
		if m := get(nil); m.Schema != nil || m.GetErrorCode() != pulsarpb.ServerError_TopicNotFound || m.ErrorMessage == nil {
			t.Errorf("%s: %v", when, m)
		}
	}
	missing("without a schema")
	// What the Java client asks before a message to a retry or dead letter topic.
	if m := create(schemaOf(pulsarpb.Schema_None, "")); m.ErrorCode != nil || m.SchemaVersion == nil || len(m.SchemaVersion) != 0 {
		t.Errorf("type None: %v", m)
	}
	missing("after type None")
	m := create(schemaOf(pulsarpb.Schema_String, ""))
	if m.ErrorCode != nil || len(m.SchemaVersion) != 8 {
		t.Fatalf("type String: %v", m)
	}
	for _, version := range [][]byte{nil, m.SchemaVersion} {
		if got := get(version); got.Schema == nil || len(got.SchemaVersion) != 8 || got.ErrorCode != nil {
			t.Errorf("version %x: %v", version, got)
		}
	}
	if got := get([]byte{0, 0, 0, 0, 0, 0, 0, 9}); got.Schema != nil || got.ErrorCode == nil || got.ErrorMessage == nil {
		t.Errorf("a version that is not there: %v", got)
	}
}

// The Java client finds who waits for an answer about a transaction by the upper half of
// its id, and for an ERROR by its request id.
func TestTrap66AnswersAboutTransactionsAreFound(t *testing.T) {
	for _, on := range []bool{true, false} {
		answersAreFound(t, serve(t, func(_ *Options, o *edge.Options) { o.Transactions = on }).connect())
	}
}

func answersAreFound(t *testing.T, c *client) {
	for name, m := range map[string]proto.Message{
		"NEW_TXN":                 &pulsarpb.CommandNewTxn{RequestId: num(3), TcId: num(7)},
		"ADD_PARTITION_TO_TXN":    &pulsarpb.CommandAddPartitionToTxn{RequestId: num(3), TxnidMostBits: num(7), TxnidLeastBits: num(1)},
		"ADD_SUBSCRIPTION_TO_TXN": &pulsarpb.CommandAddSubscriptionToTxn{RequestId: num(3), TxnidMostBits: num(7), TxnidLeastBits: num(1)},
		"END_TXN":                 &pulsarpb.CommandEndTxn{RequestId: num(3), TxnidMostBits: num(7), TxnidLeastBits: num(1)},
	} {
		type answer interface {
			GetRequestId() uint64
			GetTxnidMostBits() uint64
		}
		got := c.answered(m)
		if got.GetError() != nil {
			if got.GetError().GetRequestId() != 3 || got.GetError().GetMessage() == "" {
				t.Errorf("%s: %v", name, got)
			}
			continue
		}
		var a answer
		switch {
		case got.NewTxnResponse != nil:
			a = got.NewTxnResponse
		case got.AddPartitionToTxnResponse != nil:
			a = got.AddPartitionToTxnResponse
		case got.AddSubscriptionToTxnResponse != nil:
			a = got.AddSubscriptionToTxnResponse
		case got.EndTxnResponse != nil:
			a = got.EndTxnResponse
		default:
			t.Fatalf("%s: %v", name, got)
		}
		if a.GetRequestId() != 3 || a.GetTxnidMostBits() != 7 {
			t.Errorf("%s: %v", name, got)
		}
	}
}
