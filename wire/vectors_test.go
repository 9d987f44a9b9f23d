package wire_test

import (
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"wayside/wire"
	"wayside/wire/pulsarpb"
)

// Known values that do not come from this code.

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestVectorFrames(t *testing.T) {
	entry, err := wire.Build(&pulsarpb.MessageMetadata{
		ProducerName: proto.String("p"), SequenceId: proto.Uint64(0), PublishTime: proto.Uint64(1),
	}, []byte("hello"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		want  string
		sub   proto.Message
		entry []byte
	}{
		{"00000009 00000005 0812920100", &pulsarpb.CommandPing{}, nil},
		{"00000009 00000005 08139a0100", &pulsarpb.CommandPong{}, nil},
		{"0000000a 00000006 080d6a020807", &pulsarpb.CommandSuccess{RequestId: proto.Uint64(7)}, nil},
		{
			"00000024 0000000a 08063206080110001801 0e01 92cd300c 00000007 0a017010001801 68656c6c6f",
			&pulsarpb.CommandSend{ProducerId: proto.Uint64(1), SequenceId: proto.Uint64(0), NumMessages: proto.Int32(1)}, entry,
		},
	} {
		got, err := wire.AppendPayloadCommand(nil, wire.Wrap(c.sub), c.entry)
		if err != nil || hex.EncodeToString(got) != strings.ReplaceAll(c.want, " ", "") {
			t.Errorf("%T: %x, %v, want %s", c.sub, got, err, c.want)
		}
	}
}

func TestSlot(t *testing.T) {
	for key, want := range map[string]uint16{
		"": 1, "a": 27058, "key-1": 5536, "NONE_KEY": 48803, "order-42": 41358,
	} {
		if got := wire.Slot([]byte(key)); got != want {
			t.Errorf("slot of %q: %d, want %d", key, got, want)
		}
	}
}

func TestStickyKey(t *testing.T) {
	b64 := base64.StdEncoding.EncodeToString
	for _, c := range []struct {
		name string
		m    wire.Message
		want string
	}{
		{"ordering key first", wire.Message{HasOrderingKey: true, OrderingKey: []byte("o"), HasPartitionKey: true, PartitionKey: []byte("k")}, "o"},
		{"empty ordering key", wire.Message{HasOrderingKey: true, HasPartitionKey: true, PartitionKey: []byte("k")}, ""},
		{"partition key", wire.Message{HasPartitionKey: true, PartitionKey: []byte("k")}, "k"},
		{"base64", wire.Message{HasPartitionKey: true, PartitionKeyB64: true, PartitionKey: []byte(b64([]byte{0xff, 0, 1, 2}))}, "\xff\x00\x01\x02"},
		{"base64 unpadded", wire.Message{HasPartitionKey: true, PartitionKeyB64: true, PartitionKey: []byte("YQ")}, "a"},
		{"base64 broken", wire.Message{HasPartitionKey: true, PartitionKeyB64: true, PartitionKey: []byte("?")}, "NONE_KEY"},
		{"none", wire.Message{ProducerName: []byte("standalone-0-3"), SequenceID: 42}, "standalone-0-3-42"},
		{"none, sequence -1", wire.Message{ProducerName: []byte("p"), SequenceID: -1}, "p--1"},
	} {
		if got := c.m.StickyKey([]byte("x")); string(got) != "x"+c.want {
			t.Errorf("%s: %q, want %q", c.name, got[1:], c.want)
		}
		if got, want := c.m.Slot(), wire.Slot([]byte(c.want)); got != want {
			t.Errorf("%s: slot %d, want %d", c.name, got, want)
		}
	}
}

// TestAckSetVectors reads the words as the protocol's examples give them.
func TestAckSetVectors(t *testing.T) {
	for _, c := range []struct {
		name string
		set  []int64
		open []int // messages not acknowledged
	}{
		{"ten less 0, 1 and 5", []int64{988}, []int{2, 3, 4, 6, 7, 8, 9}},
		{"only 69 of seventy", []int64{0, 32}, []int{69}},
	} {
		cmd := commandBytes(t, &pulsarpb.CommandAck{
			ConsumerId: proto.Uint64(1), AckType: pulsarpb.CommandAck_Individual.Enum(),
			MessageId: []*pulsarpb.MessageIdData{{LedgerId: proto.Uint64(1), EntryId: proto.Uint64(2), AckSet: c.set}},
		})
		var a wire.Ack
		if err := wire.ParseAck(cmd, &a); err != nil {
			t.Fatal(err)
		}
		var open []int
		for i := range 64 * len(a.IDs[0].AckSet) {
			if a.IDs[0].AckSet[i/64]>>(i%64)&1 == 1 {
				open = append(open, i)
			}
		}
		if !slices.Equal(open, c.open) {
			t.Errorf("%s: open %v, want %v", c.name, open, c.open)
		}
	}
}

// commandBytes gives the serialized BaseCommand.
func commandBytes(t testing.TB, sub proto.Message) []byte {
	t.Helper()
	b, err := proto.Marshal(wire.Wrap(sub))
	if err != nil {
		t.Fatal(err)
	}
	return b
}
