package wire_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"wayside/wire"
	"wayside/wire/pulsarpb"
)

func frameOf(t testing.TB, sub proto.Message, entry []byte) []byte {
	t.Helper()
	b, err := wire.AppendPayloadCommand(nil, wire.Wrap(sub), entry)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestDumpSecrets: credentials never get into a log.
func TestDumpSecrets(t *testing.T) {
	const token = "eyJhbGciOiJIUzI1NiJ9"
	for _, sub := range []proto.Message{
		&pulsarpb.CommandConnect{ClientVersion: proto.String("x"), AuthData: []byte(token), OriginalAuthData: proto.String(token)},
		&pulsarpb.CommandAuthResponse{Response: &pulsarpb.AuthData{AuthMethodName: proto.String("token"), AuthData: []byte(token)}},
		&pulsarpb.CommandLookupTopic{Topic: proto.String("x"), RequestId: proto.Uint64(1), OriginalAuthData: proto.String(token)},
	} {
		got := wire.Dump(frameOf(t, sub, nil))
		if strings.Contains(got, token) || !strings.Contains(got, "auth_data:<20 bytes>") {
			t.Errorf("%T: %s", sub, got)
		}
	}
}

func TestDumpBroken(t *testing.T) {
	send := &pulsarpb.CommandSend{ProducerId: proto.Uint64(1), SequenceId: proto.Uint64(2)}
	for _, c := range []struct {
		name  string
		frame []byte
		want  []string
	}{
		{"nothing", nil, []string{"? wire: frame of 0 bytes"}},
		{"cut off", []byte(wire.PingFrame)[:10], []string{"?", "malformed", "00000009"}},
		{"longer than it says", []byte(wire.PingFrame + "x"), []string{"?", "malformed"}},
		{"not protobuf", sizes(7, 3, 0xff, 0xff, 0xff), []string{"?", "ffffff"}},
		{"unknown type", sizes(6, 2, 8, 99), []string{"99 {}"}},
		{"unknown field", sizes(13, 9, 8, 13, 0x6a, 5, 8, 7, 0x98, 6, 5), []string{"SUCCESS {request_id:7 99:5}"}},
		{"packed list", framed(packedAck([]byte{5, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})), []string{"entryId:2 ack_set:[5, -1]}"}},
		{"packed garbage", framed(packedAck([]byte{5, 0xff})), []string{"ack_set:[5 ?]"}},
		{"fixed numbers", sizes(20, 16, 8, 13, 0x6a, 12, 8, 7, 0x99, 6, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f), []string{"SUCCESS {request_id:7 99:1}"}},
		{"field cut off", sizes(10, 6, 8, 13, 0x6a, 2, 8, 0xff), []string{"SUCCESS {", "malformed"}},
		{"no metadata", frameOf(t, send, []byte{1, 2}), []string{"SEND {producer_id:1 sequence_id:2} crc=absent ? ", "malformed metadata"}},
		{"broker entry cut off", frameOf(t, send, []byte{0x0e, 2, 0, 0, 0, 9}), []string{"SEND {", "broker entry metadata"}},
		{"batch cut off", frameOf(t, send, build(t, batchMetadata(2, 0, 0), "\x00\x00\x00\x02\x18\x01a\x00\x00")), []string{"[0]{payload_size:1} \"a\" ? "}},
		{"compressed", frameOf(t, send, build(t, batchMetadata(2, pulsarpb.CompressionType_LZ4, 9), "zzz")), []string{"compression:LZ4", "payload=3"}},
		{"many in a batch", frameOf(t, send, build(t, batchMetadata(20, 0, 0), string(batch(t, 20)))), []string{"[11]{", " ..."}},
	} {
		got := wire.Dump(c.frame)
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %s, want %s in it", c.name, got, want)
			}
		}
		if strings.Contains(got, "\n") || strings.Contains(got, "[12]") {
			t.Errorf("%s: %s", c.name, got)
		}
	}
}

// framed puts any bytes into a frame as its command.
func framed(cmd []byte) []byte {
	return append(sizes(uint32(4+len(cmd)), uint32(len(cmd))), cmd...)
}

// TestDumpBounded: a line stays readable whatever the frame holds.
func TestDumpBounded(t *testing.T) {
	topics := make([]string, 100_000)
	for i := range topics {
		topics[i] = strings.Repeat("topic", 10)
	}
	lists := []proto.Message{
		&pulsarpb.CommandGetTopicsOfNamespaceResponse{RequestId: proto.Uint64(1), Topics: topics},
		&pulsarpb.CommandError{RequestId: proto.Uint64(1), Error: pulsarpb.ServerError_UnknownError.Enum(), Message: proto.String(strings.Repeat("x", 1<<20))},
		ackOf(make([]int64, 50_000), make([]int64, 50_000)),
	}
	for _, sub := range lists {
		if got := wire.Dump(frameOf(t, sub, nil)); len(got) > 6<<10 || !strings.Contains(got, "...") {
			t.Errorf("%T: %d characters: %.200s", sub, len(got), got)
		}
	}
}
