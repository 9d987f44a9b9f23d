package wire_test

import (
	"errors"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"wayside/wire"
	"wayside/wire/pulsarpb"
)

// ackOf makes an ACK with ids of the given ack sets.
func ackOf(sets ...[]int64) *pulsarpb.CommandAck {
	a := &pulsarpb.CommandAck{ConsumerId: proto.Uint64(1), AckType: pulsarpb.CommandAck_Individual.Enum()}
	for i, set := range sets {
		a.MessageId = append(a.MessageId, &pulsarpb.MessageIdData{
			LedgerId: proto.Uint64(7), EntryId: proto.Uint64(uint64(i)), AckSet: set,
		})
	}
	return a
}

func TestParseAckReuse(t *testing.T) {
	many := make([][]int64, 300)
	for i := range many {
		many[i] = slices.Repeat([]int64{int64(i)}, i%5)
	}
	var a wire.Ack
	for _, c := range []*pulsarpb.CommandAck{ackOf(many...), ackOf(), ackOf([]int64{-1}, nil, []int64{1, 2})} {
		if err := wire.ParseAck(commandBytes(t, c), &a); err != nil {
			t.Fatal(err)
		}
		compareIDs(t, a.IDs, c.MessageId)
	}
	if cap(a.IDs) < 300 {
		t.Error("the room for ids was not used again")
	}
	a.Shrink()
	if cap(a.IDs) > 8 {
		t.Errorf("room for %d ids after Shrink", cap(a.IDs))
	}
}

func TestParseAckPacked(t *testing.T) {
	set := []int64{-1, 0, 1 << 40, 5}
	var words []byte
	for _, w := range set {
		words = protowire.AppendVarint(words, uint64(w))
	}
	cmd := packedAck(words, 5<<3, 9) // and one more that is not packed
	var a wire.Ack
	if err := wire.ParseAck(cmd, &a); err != nil {
		t.Fatal(err)
	}
	if want := append(set, 9); !slices.Equal(a.IDs[0].AckSet, want) {
		t.Errorf("%v, want %v", a.IDs[0].AckSet, want)
	}
	compareHot(t, cmd)
}

// packedAck makes an ACK of one id whose ack_set is packed; more follows it.
func packedAck(words []byte, more ...byte) []byte {
	id := protowire.AppendBytes([]byte{8, 1, 16, 2, 5<<3 | 2}, words)
	body := protowire.AppendBytes([]byte{8, 1, 16, 0, 3<<3 | 2}, append(id, more...))
	return protowire.AppendBytes([]byte{8, 10, 10<<3 | 2}, body)
}

// TestParseHalfTxn: only both fields make a transaction.
func TestParseHalfTxn(t *testing.T) {
	for _, both := range []bool{false, true} {
		ack := ackOf(nil)
		send := &pulsarpb.CommandSend{ProducerId: proto.Uint64(1), SequenceId: proto.Uint64(2), TxnidLeastBits: proto.Uint64(3)}
		ack.TxnidLeastBits = proto.Uint64(3)
		if both {
			ack.TxnidMostBits, send.TxnidMostBits = proto.Uint64(0), proto.Uint64(0)
		}
		var a wire.Ack
		var s wire.Send
		err := errors.Join(wire.ParseAck(commandBytes(t, ack), &a), wire.ParseSend(commandBytes(t, send), &s))
		if err != nil || a.HasTxn != both || s.HasTxn != both {
			t.Errorf("both %t: %t, %t, %v", both, a.HasTxn, s.HasTxn, err)
		}
	}
}

// TestParseAckLimits: counts are bounded, and ids are counted before there is room.
func TestParseAckLimits(t *testing.T) {
	var a wire.Ack
	ids := make([][]int64, wire.MaxIDs)
	if err := wire.ParseAck(commandBytes(t, ackOf(ids...)), &a); err != nil || len(a.IDs) != wire.MaxIDs {
		t.Errorf("as many as may be: %d, %v", len(a.IDs), err)
	}
	a = wire.Ack{}
	tooMany := commandBytes(t, ackOf(append(ids, nil)...))
	if err := wire.ParseAck(tooMany, &a); !errors.Is(err, wire.ErrTooLarge) || cap(a.IDs) != 0 {
		t.Errorf("one id more: %v, room for %d", err, cap(a.IDs))
	}
	words := make([]int64, wire.MaxAckWords)
	if err := wire.ParseAck(commandBytes(t, ackOf(words)), &a); err != nil {
		t.Errorf("words: %v", err)
	}
	if err := wire.ParseAck(commandBytes(t, ackOf(words, []int64{1})), &a); !errors.Is(err, wire.ErrTooLarge) {
		t.Errorf("one word more, in another id: %v", err)
	}
	packed := make([]byte, wire.MaxAckWords+1)
	if err := wire.ParseAck(packedAck(packed[1:]), &a); err != nil || len(a.IDs[0].AckSet) != wire.MaxAckWords {
		t.Errorf("packed words: %v", err)
	}
	if err := wire.ParseAck(packedAck(packed), &a); !errors.Is(err, wire.ErrTooLarge) {
		t.Errorf("one packed word more: %v", err)
	}
	many := commandBytes(t, ackOf(make([]int64, 1000)))
	for range wire.MaxAckWords/1000 + 1 { // words of former commands do not count
		if err := wire.ParseAck(many, &a); err != nil {
			t.Fatal(err)
		}
	}
	r := wire.Redeliver{IDs: make([]wire.MessageID, 100)}
	if r.Shrink(); cap(r.IDs) > 8 {
		t.Errorf("room for %d ids after Shrink", cap(r.IDs))
	}
	redeliver := &pulsarpb.CommandRedeliverUnacknowledgedMessages{ConsumerId: proto.Uint64(1), MessageIds: ackOf(append(ids, nil)...).MessageId}
	if err := wire.ParseRedeliver(commandBytes(t, redeliver), &r); !errors.Is(err, wire.ErrTooLarge) {
		t.Errorf("redeliver: %v", err)
	}
}
