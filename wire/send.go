package wire

import "wayside/wire/pulsarpb"

// Send is a SEND command without its entry.
type Send struct {
	ProducerID uint64
	SequenceID int64 // of the entry's first message
	// HighestSequenceID is that of its last message. Of the official clients only
	// Java sends it, and only for batches.
	HighestSequenceID int64
	HasHighest        bool
	NumMessages       int32 // as the client counts; 1 when absent
	IsChunk           bool
	Marker            bool
	HasMessageID      bool // shadow topics only
	TxnLeast, TxnMost uint64
	HasTxn            bool // both transaction fields are present
}

// ParseSend fills s from a serialized BaseCommand. Producer and sequence are
// required; unknown fields are passed over.
func ParseSend(cmd []byte, s *Send) error {
	const typ = pulsarpb.BaseCommand_SEND
	sub, err := subCommand(cmd, typ)
	if err != nil {
		return err
	}
	*s = Send{NumMessages: 1}
	var f field
	var has uint32
	for all := fields(sub); ; {
		ok, bad := all.more(&f)
		if bad {
			return malformed(typ, "not protobuf")
		}
		if !ok {
			break
		}
		s.set(&f, &has)
	}
	s.HasHighest = has&(1<<6) != 0
	s.HasTxn = has&(1<<4) != 0 && has&(1<<5) != 0
	if has&(1<<1) == 0 || has&(1<<2) == 0 {
		return malformed(typ, "producer_id or sequence_id missing")
	}
	return nil
}

// set takes one field and marks its number in has.
func (s *Send) set(f *field, has *uint32) {
	switch {
	case f.varint(1):
		s.ProducerID = f.v
	case f.varint(2):
		s.SequenceID = int64(f.v)
	case f.varint(3):
		s.NumMessages = int32(f.v)
	case f.varint(4):
		s.TxnLeast = f.v
	case f.varint(5):
		s.TxnMost = f.v
	case f.varint(6):
		s.HighestSequenceID = int64(f.v)
	case f.varint(7):
		s.IsChunk = f.v != 0
	case f.varint(8):
		s.Marker = f.v != 0
	case f.bytes(9):
		s.HasMessageID = true
	default:
		return
	}
	*has |= 1 << f.num
}
