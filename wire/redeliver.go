package wire

import (
	"fmt"

	"wayside/wire/pulsarpb"
)

// Redeliver is a REDELIVER_UNACKNOWLEDGED_MESSAGES command. Without ids it means
// all that the consumer holds. Its slices are reused by the next ParseRedeliver.
type Redeliver struct {
	ConsumerID       uint64
	IDs              []MessageID
	ConsumerEpoch    int64
	HasConsumerEpoch bool

	words []int64
}

// ParseRedeliver fills r from a serialized BaseCommand, with the rules and limits
// of ParseAck.
func ParseRedeliver(cmd []byte, r *Redeliver) error {
	const typ = pulsarpb.BaseCommand_REDELIVER_UNACKNOWLEDGED_MESSAGES
	sub, err := subCommand(cmd, typ)
	if err != nil {
		return err
	}
	*r = Redeliver{IDs: r.IDs[:0], words: r.words[:0]}
	if r.IDs, err = roomForIDs(r.IDs, sub, 2, typ); err != nil {
		return err
	}
	var f field
	var consumer bool
	for all := fields(sub); ; {
		ok, bad := all.more(&f)
		if bad {
			return malformed(typ, "not protobuf")
		}
		if !ok {
			break
		}
		switch {
		case f.varint(1):
			r.ConsumerID, consumer = f.v, true
		case f.bytes(2):
			var id MessageID
			if id, r.words, err = parseID(f.b, r.words); err != nil {
				return fmt.Errorf("wire: %s: message_id %d: %w", typ, len(r.IDs), err)
			}
			r.IDs = append(r.IDs, id)
		case f.varint(3):
			r.ConsumerEpoch, r.HasConsumerEpoch = int64(f.v), true
		}
	}
	if !consumer {
		return malformed(typ, "consumer_id missing")
	}
	return nil
}

// Shrink drops slices that are larger than an idle connection should keep.
func (r *Redeliver) Shrink() {
	if cap(r.IDs) > keptIDs {
		r.IDs = nil
	}
	if cap(r.words) > keptWords {
		r.words = nil
	}
}
