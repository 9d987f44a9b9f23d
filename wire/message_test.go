package wire_test

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"testing"

	"google.golang.org/protobuf/proto"

	"wayside/wire"
	"wayside/wire/pulsarpb"
)

func metadata() *pulsarpb.MessageMetadata {
	return &pulsarpb.MessageMetadata{
		ProducerName: proto.String("p"), SequenceId: proto.Uint64(3), PublishTime: proto.Uint64(1),
	}
}

func build(t testing.TB, meta *pulsarpb.MessageMetadata, payload string) []byte {
	t.Helper()
	entry, err := wire.Build(meta, []byte(payload))
	if err != nil {
		t.Fatal(err)
	}
	return entry
}

// raw frames any bytes as metadata, with a good checksum.
func raw(meta []byte, payload string) []byte {
	rest := binary.BigEndian.AppendUint32(nil, uint32(len(meta)))
	rest = append(append(rest, meta...), payload...)
	out := binary.BigEndian.AppendUint32([]byte{0x0e, 0x01}, crc32.Checksum(rest, crc32.MakeTable(crc32.Castagnoli)))
	return append(out, rest...)
}

func TestParseMessageChecksum(t *testing.T) {
	good := build(t, metadata(), "hello")
	if m, err := wire.ParseMessage(good); err != nil || !m.HasChecksum || string(m.Payload) != "hello" {
		t.Errorf("good: %+v, %v", m, err)
	}
	if m, err := wire.ParseMessage(good[6:]); err != nil || m.HasChecksum || string(m.Payload) != "hello" {
		t.Errorf("without checksum: %+v, %v", m, err)
	}
	for i := 2; i < len(good); i++ { // every bit behind the magic counts
		for bit := range 8 {
			bad := append([]byte(nil), good...)
			bad[i] ^= 1 << bit
			if _, err := wire.ParseMessage(bad); !errors.Is(err, wire.ErrChecksum) {
				t.Errorf("bit %d of byte %d: %v", bit, i, err)
			}
		}
	}
	for n := 6; n < len(good); n++ {
		if _, err := wire.ParseMessage(good[:n]); !errors.Is(err, wire.ErrChecksum) {
			t.Errorf("cut at %d: %v", n, err)
		}
	}
}

func TestParseMessageMetadata(t *testing.T) {
	const required = "0a0170 1003 1801"
	for _, c := range []struct {
		name, meta string
		good       bool
	}{
		{"required alone", required, true},
		{"empty", "", false},
		{"no producer", "1003 1801", false},
		{"no sequence", "0a0170 1801", false},
		{"no publish time", "0a0170 1003", false},
		{"producer as number", "0801 1003 1801", false},
		{"sequence as bytes", "0a0170 120103 1801", false},
		{"cut off", required + "0a05", false},
		{"endless varint", required + "48 ffffffffffffffffffffff", false},
		{"field 0", required + "0000", false},
		{"field 2^29", required + "80808080 10 00", false},
		{"field 2^29-1", required + "f8ffffff0f 00", true},
		{"group never ended", required + "fb01", false},
		{"group", required + "a306 0801 a406", true},
		{"fixed32 and fixed64", required + "a50600000000 a1060000000000000000", true},
		{"fields of newer versions", required + "f80101 820204aabbccdd 880205", true},
		{"property", required + "2206 0a0161 120131", true},
		{"property without value", required + "2203 0a0161", false},
		{"property without key", required + "2203 120131", false},
		{"property garbage", required + "2201 ff", false},
		{"encryption key", required + "6a06 0a016b 120176", true},
		{"encryption key without value", required + "6a03 0a016b", false},
		{"encryption key garbage", required + "6a01 ff", false},
		{"encryption key with metadata", required + "6a0e 0a016b 120176 1a06 0a0161 120131", true},
		{"encryption key with half metadata", required + "6a0b 0a016b 120176 1a03 0a0161", false},
		{"unknown compression", required + "4063", true},
	} {
		meta := unhex(t, c.meta)
		m, err := wire.ParseMessage(raw(meta, "x"))
		if c.good != (err == nil) || !c.good && !errors.Is(err, wire.ErrMetadata) {
			t.Errorf("%s: %v", c.name, err)
		}
		if official := proto.Unmarshal(meta, new(pulsarpb.MessageMetadata)); (official == nil) != c.good {
			t.Errorf("%s: the generated code says %v", c.name, official)
		}
		if err == nil {
			compareMessage(t, &m)
		}
	}
}

func TestParseMessageSizes(t *testing.T) {
	for name, b := range map[string][]byte{
		"nothing":                 nil,
		"magic alone":             {0x0e, 0x01},
		"size cut off":            {0, 0, 0},
		"size beyond entry":       {0, 0, 0, 10, 1, 2, 3},
		"size 4 GiB":              {0xff, 0xff, 0xff, 0xff, 1, 2, 3},
		"size behind checksum":    raw(nil, "")[:6],
		"no metadata":             raw(nil, ""),
		"broker entry metadata":   {0x0e, 0x02, 0, 0, 0, 1, 0},
		"checksum, size too long": {0x0e, 0x01, 0x52, 0x7d, 0x53, 0x51, 0xff},
	} {
		if _, err := wire.ParseMessage(b); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestParseMessageFacts(t *testing.T) {
	m := metadata()
	m.Properties = []*pulsarpb.KeyValue{{Key: proto.String("a"), Value: proto.String("1")}}
	m.PartitionKey = proto.String("")
	m.Compression = pulsarpb.CompressionType_ZSTD.Enum()
	m.UncompressedSize = proto.Uint32(1 << 31)
	m.NumMessagesInBatch = proto.Int32(1)
	m.EventTime = proto.Uint64(17)
	m.EncryptionKeys = []*pulsarpb.EncryptionKeys{{Key: proto.String("k"), Value: []byte("v")}, {Key: proto.String("l"), Value: nil}}
	m.EncryptionKeys[1].Value = []byte{}
	m.SchemaVersion = []byte{0, 0, 0, 0, 0, 0, 0, 3}
	m.PartitionKeyB64Encoded = proto.Bool(true)
	m.OrderingKey = []byte("o")
	m.DeliverAtTime = proto.Int64(-5)
	m.MarkerType = proto.Int32(21)
	m.TxnidLeastBits, m.TxnidMostBits = proto.Uint64(1), proto.Uint64(0)
	m.HighestSequenceId = proto.Uint64(9)
	m.NullValue, m.NullPartitionKey = proto.Bool(true), proto.Bool(true)
	m.Uuid = proto.String("u")
	m.NumChunksFromMsg, m.TotalChunkMsgSize, m.ChunkId = proto.Int32(3), proto.Int32(250), proto.Int32(2)
	got, err := wire.ParseMessage(build(t, m, "payload"))
	if err != nil {
		t.Fatal(err)
	}
	compareMessage(t, &got)
	if !got.IsChunk() || !got.Batch || !got.HasTxn || !got.HasMarker || got.DeliverAt != -5 {
		t.Errorf("%+v", got)
	}
	m.TxnidMostBits = nil
	if got, err = wire.ParseMessage(build(t, m, "")); err != nil || got.HasTxn {
		t.Errorf("half a transaction: %+v, %v", got, err)
	}
}

func TestCheck(t *testing.T) {
	const limit = 1000
	for _, c := range []struct {
		name       string
		count      int32
		compressed uint32 // uncompressed size, 0 for no compression
		payload    int
		good       bool
	}{
		{"one", 1, 0, 6, true},
		{"ten bytes, 2^31-1", 1<<31 - 1, 0, 10, false},
		{"ten bytes, 0", 0, 0, 10, false},
		{"ten bytes, -1", -1, 0, 10, false},
		{"as many as fit", 100, 0, 600, true},
		{"one more", 101, 0, 600, false},
		{"empty payload", 1, 0, 0, false},
		{"compressed", 100, 600, 10, true},
		{"compressed, one more", 101, 600, 10, false},
		{"compressed, claims 4 GiB", 1000, 1<<32 - 1, 10, true},
		{"compressed, claims 4 GiB, over the limit", 1001, 1<<32 - 1, 10, false},
		{"over the limit", 1001, 0, 1 << 20, false},
	} {
		meta := metadata()
		meta.NumMessagesInBatch = &c.count
		if c.compressed > 0 {
			meta.Compression = pulsarpb.CompressionType_LZ4.Enum()
			meta.UncompressedSize = &c.compressed
		}
		m, err := wire.ParseMessage(build(t, meta, string(make([]byte, c.payload))))
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Check(limit); c.good != (err == nil) || !c.good && !errors.Is(err, wire.ErrCount) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	single, err := wire.ParseMessage(build(t, metadata(), ""))
	if err != nil || single.Check(limit) != nil {
		t.Errorf("no batch: %v, %v", err, single.Check(limit))
	}
}

func TestSplitBrokerEntry(t *testing.T) {
	f := goldenFrame(t, "message-broker-entry-metadata")
	meta, entry, err := wire.SplitBrokerEntry(f.Entry)
	if err != nil {
		t.Fatal(err)
	}
	var b pulsarpb.BrokerEntryMetadata
	if err := proto.Unmarshal(meta, &b); err != nil || b.GetIndex() == 0 {
		t.Errorf("%v, %v", &b, err)
	}
	if _, err := wire.ParseMessage(entry); err != nil {
		t.Error(err)
	}
	if meta, same, err := wire.SplitBrokerEntry(entry); meta != nil || len(same) != len(entry) || err != nil {
		t.Errorf("entry without: %x, %v", meta, err)
	}
	for _, bad := range [][]byte{{0x0e, 0x02}, {0x0e, 0x02, 0, 0, 0}, {0x0e, 0x02, 0, 0, 0, 2, 1}, {0x0e, 0x02, 255, 255, 255, 255}} {
		if _, _, err := wire.SplitBrokerEntry(bad); !errors.Is(err, wire.ErrMetadata) {
			t.Errorf("%x: %v", bad, err)
		}
	}
}
