package wire

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"wayside/wire/pulsarpb"
)

const (
	// MaxIDs bounds the message ids of one ACK or REDELIVER. Clients send up to
	// some thousands; one that was cut off for long may bring all of its
	// unacknowledged ones at once, of which a broker allows 50,000 by default.
	MaxIDs = 1 << 16
	// MaxAckWords bounds the ack_set words of one command over all its ids. A
	// thousand ids of batches of a thousand messages have 16,000.
	MaxAckWords = 1 << 16
	// keptIDs and keptWords are what Shrink leaves in a reused struct.
	keptIDs, keptWords = 8, 16
	// keptAcks is the same of an Ack, which is kept for whoever comes next.
	keptAcks = 256
)

// MessageID is an id as clients send it.
type MessageID struct {
	Ledger, Entry int64
	Partition     int32 // -1 when absent
	BatchIndex    int32 // -1 when absent
	BatchSize     int32 // 0 when absent
	// AckSet has a bit for each message of the batch, least significant first; one
	// means not yet acknowledged. Without words the id stands for the whole entry.
	AckSet []int64
}

// Ack is an ACK command. Its slices are reused by the next ParseAck.
type Ack struct {
	ConsumerID         uint64
	Cumulative         bool
	IDs                []MessageID
	ValidationError    pulsarpb.CommandAck_ValidationError
	HasValidationError bool // the client could not read the message and dropped it
	TxnLeast, TxnMost  uint64
	HasTxn             bool // both transaction fields are present
	RequestID          uint64
	HasRequestID       bool // an ACK_RESPONSE is wanted

	words []int64 // backs all AckSets
}

// ParseAck fills a from a serialized BaseCommand. Consumer and type are required,
// ledger and entry in each id. Above MaxIDs or MaxAckWords it is ErrTooLarge.
func ParseAck(cmd []byte, a *Ack) error {
	const typ = pulsarpb.BaseCommand_ACK
	sub, err := subCommand(cmd, typ)
	if err != nil {
		return err
	}
	*a = Ack{IDs: a.IDs[:0], words: a.words[:0]}
	if a.IDs, err = roomForIDs(a.IDs, sub, 3, typ); err != nil {
		return err
	}
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
		if err := a.set(&f, &has); err != nil {
			return fmt.Errorf("wire: %s: message_id %d: %w", typ, len(a.IDs), err)
		}
	}
	a.HasValidationError = has&(1<<4) != 0
	a.HasTxn = has&(1<<6) != 0 && has&(1<<7) != 0
	a.HasRequestID = has&(1<<8) != 0
	if has&(1<<1) == 0 || has&(1<<2) == 0 {
		return malformed(typ, "consumer_id or ack_type missing")
	}
	return nil
}

// Shrink drops slices that are larger than an idle connection should keep.
func (a *Ack) Shrink() {
	if cap(a.IDs) > keptAcks {
		a.IDs = nil
	}
	if cap(a.words) > keptAcks {
		a.words = nil
	}
}

func (a *Ack) set(f *field, has *uint32) (err error) {
	switch {
	case f.varint(1):
		a.ConsumerID = f.v
	case f.varint(2):
		a.Cumulative = pulsarpb.CommandAck_AckType(int32(f.v)) == pulsarpb.CommandAck_Cumulative
	case f.bytes(3):
		var id MessageID
		id, a.words, err = parseID(f.b, a.words)
		a.IDs = append(a.IDs, id)
	case f.varint(4):
		a.ValidationError = pulsarpb.CommandAck_ValidationError(int32(f.v))
	case f.varint(6):
		a.TxnLeast = f.v
	case f.varint(7):
		a.TxnMost = f.v
	case f.varint(8):
		a.RequestID = f.v
	default:
		return nil
	}
	*has |= 1 << f.num
	return err
}

// roomForIDs counts the message ids of a command before making room for them.
func roomForIDs(ids []MessageID, sub []byte, num protowire.Number, typ pulsarpb.BaseCommand_Type) ([]MessageID, error) {
	n := countBytes(sub, num)
	if n > MaxIDs {
		return ids, fmt.Errorf("wire: %s with %d message ids, limit %d: %w", typ, n, MaxIDs, ErrTooLarge)
	}
	return slices.Grow(ids, n), nil
}

// parseID reads a MessageIdData. Words of its ack_set are appended to words, which
// may move: an AckSet taken before then keeps the older array, with the same words.
func parseID(b []byte, words []int64) (MessageID, []int64, error) {
	id := MessageID{Partition: -1, BatchIndex: -1}
	from := len(words)
	var f field
	var ledger, entry bool
	for all := fields(b); ; {
		ok, bad := all.more(&f)
		if bad {
			return id, words, ErrMalformed
		}
		if !ok {
			break
		}
		switch {
		case f.varint(1):
			id.Ledger, ledger = int64(f.v), true
		case f.varint(2):
			id.Entry, entry = int64(f.v), true
		case f.varint(3):
			id.Partition = int32(f.v)
		case f.varint(4):
			id.BatchIndex = int32(f.v)
		case f.varint(6):
			id.BatchSize = int32(f.v)
		case f.num == 5:
			var err error
			if words, err = appendWords(words, &f); err != nil {
				return id, words, err
			}
		}
	}
	if !ledger || !entry {
		return id, words, ErrMalformed
	}
	if from < len(words) {
		id.AckSet = words[from:len(words):len(words)]
	}
	return id, words, nil
}

// appendWords takes ack_set words, one by one as proto2 sends them or packed.
func appendWords(words []int64, f *field) ([]int64, error) {
	switch f.typ {
	case protowire.VarintType:
		if len(words) == MaxAckWords {
			return words, ErrTooLarge
		}
		return append(words, int64(f.v)), nil
	case protowire.BytesType:
		for b := f.b; len(b) > 0; {
			v, n := protowire.ConsumeVarint(b)
			if n < 0 {
				return words, ErrMalformed
			}
			if len(words) == MaxAckWords {
				return words, ErrTooLarge
			}
			words, b = append(words, int64(v)), b[n:]
		}
	}
	return words, nil
}
