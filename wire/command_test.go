package wire_test

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"wayside/wire"
	"wayside/wire/pulsarpb"
)

// TestCommandTable walks every command: its field number is its type, Wrap knows
// it, and Decode refuses its type alone.
func TestCommandTable(t *testing.T) {
	all := (&pulsarpb.BaseCommand{}).ProtoReflect().Descriptor().Fields()
	types := pulsarpb.BaseCommand_CONNECT.Descriptor().Values()
	if all.Len() != types.Len()+1 {
		t.Errorf("%d fields, %d types", all.Len(), types.Len())
	}
	for i := range types.Len() {
		typ := types.Get(i)
		f := all.ByNumber(protoreflect.FieldNumber(typ.Number()))
		if f == nil {
			t.Errorf("%s: no field", typ.Name())
			continue
		}
		sub := (&pulsarpb.BaseCommand{}).ProtoReflect().NewField(f).Message()
		c := wire.Wrap(sub.Interface())
		if c.GetType() != pulsarpb.BaseCommand_Type(typ.Number()) || !c.ProtoReflect().Has(f) {
			t.Errorf("%s: wrapped as %v", typ.Name(), c)
		}
		alone, err := proto.Marshal(&pulsarpb.BaseCommand{Type: c.Type})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := wire.Decode(alone); !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%s alone: %v", typ.Name(), err)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	success := protowire.AppendBytes(protowire.AppendTag(nil, 13, protowire.BytesType), []byte{8, 7})
	for _, c := range []struct {
		name string
		cmd  []byte
	}{
		{"nothing", nil},
		{"not protobuf", []byte{0xff, 0xff}},
		{"no type", success},
		{"type 0", append([]byte{8, 0}, success...)},
		{"type 1", append([]byte{8, 1}, success...)},
		{"type 71", append([]byte{8, 71}, success...)},
		{"type 90", append([]byte{8, 90}, success...)},
		{"negative type", append([]byte{8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, success...)},
		{"type of another command", append([]byte{8, 14}, success...)},
		{"required field missing", []byte{8, 13, 13<<3 | 2, 0}},
		{"command cut off", []byte{8, 13, 13<<3 | 2, 2, 8}},
	} {
		if got, err := wire.Decode(c.cmd); !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%s: %v, %v", c.name, got, err)
		}
	}
	if _, err := wire.Decode(append([]byte{8, 13}, success...)); err != nil {
		t.Errorf("good one: %v", err)
	}
}

// TestDecodeNewerFields: what later protocol versions add does no harm and is not
// kept.
func TestDecodeNewerFields(t *testing.T) {
	cmd := commandBytes(t, &pulsarpb.CommandSuccess{RequestId: proto.Uint64(7)})
	cmd = protowire.AppendTag(cmd, 500, protowire.BytesType)
	cmd = protowire.AppendBytes(cmd, make([]byte, 1000))
	c, err := wire.Decode(cmd)
	if err != nil || c.GetSuccess().GetRequestId() != 7 {
		t.Fatalf("%v, %v", c, err)
	}
	if proto.Size(c) > 10 {
		t.Errorf("%d bytes kept", proto.Size(c))
	}
}

func TestAppendCommandRefuses(t *testing.T) {
	for name, c := range map[string]*pulsarpb.BaseCommand{
		"nil":            nil,
		"empty":          {},
		"type alone":     {Type: pulsarpb.BaseCommand_PING.Enum()},
		"other command":  {Type: pulsarpb.BaseCommand_PING.Enum(), Pong: &pulsarpb.CommandPong{}},
		"field missing":  wire.Wrap(&pulsarpb.CommandSuccess{}),
		"not a command":  wire.Wrap(&pulsarpb.MessageMetadata{}),
		"nothing":        wire.Wrap(nil),
		"typed nil":      wire.Wrap((*pulsarpb.CommandPing)(nil)),
		"unknown number": {Type: pulsarpb.BaseCommand_Type(99).Enum()},
	} {
		got, err := wire.AppendCommand([]byte("kept"), c)
		if err == nil || string(got) != "kept" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// TestAppendByHand compares hand encoding with the generated code at the borders
// of what varints and lengths can be.
func TestAppendByHand(t *testing.T) {
	for _, n := range []int64{0, 1, 127, 128, 1 << 14, 1 << 32, -1, 1<<63 - 1} {
		compareEncoding(t, wire.AppendSendReceipt(nil, uint64(n), n, n, n, n), &pulsarpb.CommandSendReceipt{
			ProducerId: proto.Uint64(uint64(n)), SequenceId: proto.Uint64(uint64(n)), HighestSequenceId: proto.Uint64(uint64(n)),
			MessageId: &pulsarpb.MessageIdData{LedgerId: proto.Uint64(uint64(n)), EntryId: proto.Uint64(uint64(n))},
		}, nil)
		for _, words := range [][]int64{nil, {n}, make([]int64, 200)} {
			h := wire.MessageHead{ConsumerID: uint64(n), Ledger: n, Entry: n, Partition: int32(n), RedeliveryCount: uint32(n), AckSet: words, ConsumerEpoch: n, HasEpoch: n != 1}
			entry := make([]byte, n&0xff)
			compareEncoding(t, append(wire.AppendMessage(nil, &h, len(entry)), entry...), messageOf(&h), entry)
		}
	}
	for _, text := range []string{"", "no", strings.Repeat("x", 300)} {
		want := &pulsarpb.CommandAckResponse{ConsumerId: proto.Uint64(1), RequestId: proto.Uint64(1 << 40)}
		if text != "" {
			want.Error, want.Message = pulsarpb.ServerError_NotAllowedError.Enum(), &text
		}
		compareEncoding(t, wire.AppendAckResponse(nil, 1, 1<<40, pulsarpb.ServerError_NotAllowedError, text), want, nil)
	}
}

func messageOf(h *wire.MessageHead) *pulsarpb.CommandMessage {
	m := &pulsarpb.CommandMessage{
		ConsumerId: &h.ConsumerID,
		MessageId:  &pulsarpb.MessageIdData{LedgerId: proto.Uint64(uint64(h.Ledger)), EntryId: proto.Uint64(uint64(h.Entry)), Partition: &h.Partition},
		AckSet:     h.AckSet,
	}
	if h.RedeliveryCount > 0 {
		m.RedeliveryCount = &h.RedeliveryCount
	}
	if h.HasEpoch {
		m.ConsumerEpoch = proto.Uint64(uint64(h.ConsumerEpoch))
	}
	return m
}

func compareEncoding(t *testing.T, got []byte, sub proto.Message, entry []byte) {
	t.Helper()
	want, err := wire.AppendPayloadCommand(nil, wire.Wrap(sub), entry)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%T\n%x, want\n%x", sub, got, want)
	}
}

// TestHotRefuses: what the hot commands require must be there.
func TestHotRefuses(t *testing.T) {
	parse := map[pulsarpb.BaseCommand_Type]func([]byte) error{
		pulsarpb.BaseCommand_SEND:                              func(b []byte) error { return wire.ParseSend(b, new(wire.Send)) },
		pulsarpb.BaseCommand_ACK:                               func(b []byte) error { return wire.ParseAck(b, new(wire.Ack)) },
		pulsarpb.BaseCommand_FLOW:                              func(b []byte) error { return wire.ParseFlow(b, new(wire.Flow)) },
		pulsarpb.BaseCommand_REDELIVER_UNACKNOWLEDGED_MESSAGES: func(b []byte) error { return wire.ParseRedeliver(b, new(wire.Redeliver)) },
	}
	good := map[pulsarpb.BaseCommand_Type]string{
		pulsarpb.BaseCommand_SEND:                              "08011002",
		pulsarpb.BaseCommand_ACK:                               "08011000 1a0408011002",
		pulsarpb.BaseCommand_FLOW:                              "08011002",
		pulsarpb.BaseCommand_REDELIVER_UNACKNOWLEDGED_MESSAGES: "0801 120408011002",
	}
	bad := map[pulsarpb.BaseCommand_Type][]string{
		pulsarpb.BaseCommand_SEND:                              {"", "0801", "1002", "080110", "0801 12020202", "08011002 ff"},
		pulsarpb.BaseCommand_ACK:                               {"", "0801", "1000", "08011000 1a020801", "08011000 1a021001", "08011000 1a03080110", "08011000 1a0708011002 2a01ff"},
		pulsarpb.BaseCommand_FLOW:                              {"", "0801", "1002", "08ffffffffffffffffffff01"},
		pulsarpb.BaseCommand_REDELIVER_UNACKNOWLEDGED_MESSAGES: {"", "12020801", "0801 12020801"},
	}
	for typ, parse := range parse {
		envelope := func(number pulsarpb.BaseCommand_Type, body string) []byte {
			cmd := protowire.AppendVarint([]byte{8}, uint64(number))
			cmd = protowire.AppendTag(cmd, protowire.Number(typ), protowire.BytesType)
			return protowire.AppendBytes(cmd, unhex(t, body))
		}
		if err := parse(envelope(typ, good[typ])); err != nil {
			t.Errorf("%s: %v", typ, err)
		}
		for _, body := range bad[typ] {
			if err := parse(envelope(typ, body)); !errors.Is(err, wire.ErrMalformed) {
				t.Errorf("%s %s: %v", typ, body, err)
			}
		}
		twice := append(envelope(typ, good[typ]), envelope(typ, good[typ])...)
		for name, cmd := range map[string][]byte{
			"other type": envelope(pulsarpb.BaseCommand_PING, good[typ]), "twice": twice,
			"no command": protowire.AppendVarint([]byte{8}, uint64(typ)), "garbage": {0xff},
		} {
			if err := parse(cmd); !errors.Is(err, wire.ErrMalformed) {
				t.Errorf("%s, %s: %v", typ, name, err)
			}
		}
	}
}
