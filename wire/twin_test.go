package wire_test

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"wayside/wire"
	"wayside/wire/pulsarpb"
)

// What is scanned by hand has a twin in the generated code: both must accept the
// same bytes and say the same. Two differences are wanted and left out here: the
// scanners take a command that comes twice for malformed, where protobuf merges,
// and do not look into messages that they do not use.

var hotTypes = []pulsarpb.BaseCommand_Type{
	pulsarpb.BaseCommand_SEND, pulsarpb.BaseCommand_ACK, pulsarpb.BaseCommand_FLOW,
	pulsarpb.BaseCommand_REDELIVER_UNACKNOWLEDGED_MESSAGES,
}

// compareHot scans cmd with the scanner for its type, if there is one, and compares
// the outcome with the generated code's wherever that accepts the bytes.
func compareHot(t testing.TB, cmd []byte) bool {
	t.Helper()
	c, err := wire.Decode(cmd)
	if err != nil || repeated(cmd) {
		return false
	}
	switch c.GetType() {
	case pulsarpb.BaseCommand_SEND:
		compareSend(t, cmd, c.GetSend())
	case pulsarpb.BaseCommand_ACK:
		compareAck(t, cmd, c.GetAck())
	case pulsarpb.BaseCommand_FLOW:
		var f wire.Flow
		if err := wire.ParseFlow(cmd, &f); err != nil {
			t.Errorf("flow: %v", err)
		}
		if want := (wire.Flow{ConsumerID: c.GetFlow().GetConsumerId(), Permits: c.GetFlow().GetMessagePermits()}); f != want {
			t.Errorf("flow: %+v, want %+v", f, want)
		}
	case pulsarpb.BaseCommand_REDELIVER_UNACKNOWLEDGED_MESSAGES:
		compareRedeliver(t, cmd, c.GetRedeliverUnacknowledgedMessages())
	default:
		return false
	}
	return true
}

// repeated tells whether the bytes have more than one value for a field that is
// not a list: encoding what was decoded gives fewer bytes then.
func repeated(cmd []byte) bool {
	var c pulsarpb.BaseCommand
	if proto.Unmarshal(cmd, &c) != nil {
		return true
	}
	return proto.Size(&c) < len(cmd)
}

func compareSend(t testing.TB, cmd []byte, c *pulsarpb.CommandSend) {
	t.Helper()
	var got wire.Send
	if err := wire.ParseSend(cmd, &got); err != nil {
		t.Errorf("send: %v", err)
		return
	}
	want := wire.Send{
		ProducerID: c.GetProducerId(), SequenceID: int64(c.GetSequenceId()),
		HighestSequenceID: int64(c.GetHighestSequenceId()), HasHighest: c.HighestSequenceId != nil,
		NumMessages: c.GetNumMessages(), IsChunk: c.GetIsChunk(), Marker: c.GetMarker(), HasMessageID: c.MessageId != nil,
		TxnLeast: c.GetTxnidLeastBits(), TxnMost: c.GetTxnidMostBits(),
		HasTxn: c.TxnidLeastBits != nil && c.TxnidMostBits != nil,
	}
	if got != want {
		t.Errorf("send: %+v, want %+v", got, want)
	}
}

func compareAck(t testing.TB, cmd []byte, c *pulsarpb.CommandAck) {
	t.Helper()
	var got wire.Ack
	if err := wire.ParseAck(cmd, &got); err != nil {
		t.Errorf("ack: %v", err)
		return
	}
	compareIDs(t, got.IDs, c.GetMessageId())
	got.IDs = nil
	got.Shrink()
	want := wire.Ack{
		ConsumerID: c.GetConsumerId(), Cumulative: c.GetAckType() == pulsarpb.CommandAck_Cumulative,
		ValidationError: c.GetValidationError(), HasValidationError: c.ValidationError != nil,
		TxnLeast: c.GetTxnidLeastBits(), TxnMost: c.GetTxnidMostBits(),
		HasTxn:    c.TxnidLeastBits != nil && c.TxnidMostBits != nil,
		RequestID: c.GetRequestId(), HasRequestID: c.RequestId != nil,
	}
	if !sameAck(got, want) {
		t.Errorf("ack: %+v, want %+v", got, want)
	}
}

func sameAck(a, b wire.Ack) bool {
	return a.ConsumerID == b.ConsumerID && a.Cumulative == b.Cumulative && a.ValidationError == b.ValidationError &&
		a.HasValidationError == b.HasValidationError && a.TxnLeast == b.TxnLeast && a.TxnMost == b.TxnMost &&
		a.HasTxn == b.HasTxn && a.RequestID == b.RequestID && a.HasRequestID == b.HasRequestID
}

func compareRedeliver(t testing.TB, cmd []byte, c *pulsarpb.CommandRedeliverUnacknowledgedMessages) {
	t.Helper()
	var got wire.Redeliver
	if err := wire.ParseRedeliver(cmd, &got); err != nil {
		t.Errorf("redeliver: %v", err)
		return
	}
	compareIDs(t, got.IDs, c.GetMessageIds())
	if got.ConsumerID != c.GetConsumerId() || got.ConsumerEpoch != int64(c.GetConsumerEpoch()) ||
		got.HasConsumerEpoch != (c.ConsumerEpoch != nil) {
		t.Errorf("redeliver: %+v, want %v", got, c)
	}
}

func compareIDs(t testing.TB, got []wire.MessageID, want []*pulsarpb.MessageIdData) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d ids, want %d", len(got), len(want))
	}
	for i, w := range want {
		g := got[i]
		if g.Ledger != int64(w.GetLedgerId()) || g.Entry != int64(w.GetEntryId()) || g.Partition != w.GetPartition() ||
			g.BatchIndex != w.GetBatchIndex() || g.BatchSize != w.GetBatchSize() || !slices.Equal(g.AckSet, w.GetAckSet()) {
			t.Errorf("id %d: %+v, want %v", i, g, w)
		}
	}
}

// compareMessage compares the facts of an entry with its metadata as the generated
// code reads them, and fails when that does not accept them.
func compareMessage(t testing.TB, m *wire.Message) {
	t.Helper()
	var c pulsarpb.MessageMetadata
	if err := proto.Unmarshal(m.Metadata, &c); err != nil {
		t.Errorf("accepted metadata %x: %v", m.Metadata, err)
		return
	}
	for _, x := range []struct {
		name      string
		got, want any
	}{
		{"producer", string(m.ProducerName), c.GetProducerName()},
		{"sequence", m.SequenceID, int64(c.GetSequenceId())},
		{"highest", m.HighestSequenceID, int64(c.GetHighestSequenceId())},
		{"has highest", m.HasHighest, c.HighestSequenceId != nil},
		{"publish time", m.PublishTime, int64(c.GetPublishTime())},
		{"event time", m.EventTime, int64(c.GetEventTime())},
		{"deliver at", m.DeliverAt, c.GetDeliverAtTime()},
		{"has deliver at", m.HasDeliverAt, c.DeliverAtTime != nil},
		{"key", string(m.PartitionKey), c.GetPartitionKey()},
		{"has key", m.HasPartitionKey, c.PartitionKey != nil},
		{"base64", m.PartitionKeyB64, c.GetPartitionKeyB64Encoded()},
		{"null key", m.NullPartitionKey, c.GetNullPartitionKey()},
		{"ordering key", string(m.OrderingKey), string(c.GetOrderingKey())},
		{"has ordering key", m.HasOrderingKey, c.OrderingKey != nil},
		{"null value", m.NullValue, c.GetNullValue()},
		{"batch", m.Batch, c.NumMessagesInBatch != nil},
		{"messages", m.NumMessages, c.GetNumMessagesInBatch()},
		{"compression", m.Compression, c.GetCompression()},
		{"uncompressed size", m.UncompressedSize, c.GetUncompressedSize()},
		{"encryption keys", m.EncryptionKeys, len(c.GetEncryptionKeys())},
		{"marker", m.Marker, c.GetMarkerType()},
		{"has marker", m.HasMarker, c.MarkerType != nil},
		{"uuid", string(m.UUID), c.GetUuid()},
		{"chunk", m.ChunkID, c.GetChunkId()},
		{"chunks", m.NumChunks, c.GetNumChunksFromMsg()},
		{"chunk size", m.TotalChunkSize, c.GetTotalChunkMsgSize()},
		{"txn least", m.TxnLeast, c.GetTxnidLeastBits()},
		{"txn most", m.TxnMost, c.GetTxnidMostBits()},
		{"has txn", m.HasTxn, c.TxnidLeastBits != nil && c.TxnidMostBits != nil},
		{"schema version", string(m.SchemaVersion), string(c.GetSchemaVersion())},
		{"has schema version", m.HasSchemaVersion, c.SchemaVersion != nil},
	} {
		if x.got != x.want {
			t.Errorf("%s: %v, want %v", x.name, x.got, x.want)
		}
	}
	if len(m.Metadata) != m.PayloadAt-m.MetadataAt {
		t.Errorf("metadata of %d bytes from %d to %d", len(m.Metadata), m.MetadataAt, m.PayloadAt)
	}
}
