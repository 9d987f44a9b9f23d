package wire

import (
	"encoding/binary"
	"fmt"
)

// Single is one message as its producer sent it, out of a batch or alone. Slices
// borrow from the entry or, if it was compressed, from bytes that were made for
// it and are not used again; Properties itself is only valid during the visit.
type Single struct {
	Index      int // in the batch, from 0
	Payload    []byte
	Properties []Property
	SequenceID int64 // counted from the batch's own if the message has none
	EventTime  int64 // milliseconds since 1970; 0 means none

	Key            []byte
	HasKey         bool
	KeyB64         bool // the key is bytes, in base64
	NullKey        bool
	OrderingKey    []byte
	HasOrderingKey bool
	NullValue      bool // a tombstone
	CompactedOut   bool // a later message with its key made it void

	payloadSize     int32
	hasPayloadSize  bool
	hasOwnSequence  bool
	malformedNested bool
}

// takeSingle splits the first message off a batch's payload and parses its header
// into s, whose Properties' room is used again.
func takeSingle(b []byte, s *Single) (rest []byte, err error) {
	if len(b) < sizeField {
		return nil, fmt.Errorf("wire: batch ends early: %w", ErrCount)
	}
	size := binary.BigEndian.Uint32(b)
	b = b[sizeField:]
	if uint64(size) > uint64(len(b)) {
		return nil, fmt.Errorf("wire: batched metadata of %d bytes, %d left: %w", size, len(b), ErrMetadata)
	}
	*s = Single{Index: s.Index, Properties: s.Properties[:0]}
	if err := s.scan(b[:size]); err != nil {
		return nil, err
	}
	b = b[size:]
	if s.payloadSize < 0 || int64(s.payloadSize) > int64(len(b)) {
		return nil, fmt.Errorf("wire: batched payload of %d bytes, %d left: %w", s.payloadSize, len(b), ErrMetadata)
	}
	s.Payload = b[:s.payloadSize:s.payloadSize]
	return b[s.payloadSize:], nil
}

// scan reads SingleMessageMetadata, of which payload_size is required.
func (s *Single) scan(b []byte) error {
	var f field
	for all := fields(b); ; {
		ok, bad := all.more(&f)
		if bad {
			return fmt.Errorf("wire: batched message: %w", ErrMetadata)
		}
		if !ok {
			break
		}
		s.set(&f)
	}
	if !s.hasPayloadSize || s.malformedNested {
		return fmt.Errorf("wire: batched message: %w", ErrMetadata)
	}
	return nil
}

func (s *Single) set(f *field) {
	switch {
	case f.bytes(1):
		p, ok := parseProperty(f.b)
		s.malformedNested = s.malformedNested || !ok
		s.Properties = append(s.Properties, p)
	case f.bytes(2):
		s.Key, s.HasKey = f.b, true
	case f.varint(3):
		s.payloadSize, s.hasPayloadSize = int32(f.v), true
	case f.varint(4):
		s.CompactedOut = f.v != 0
	case f.varint(5):
		s.EventTime = int64(f.v)
	case f.varint(6):
		s.KeyB64 = f.v != 0
	case f.bytes(7):
		s.OrderingKey, s.HasOrderingKey = f.b, true
	case f.varint(8):
		s.SequenceID, s.hasOwnSequence = int64(f.v), true
	case f.varint(9):
		s.NullValue = f.v != 0
	case f.varint(10):
		s.NullKey = f.v != 0
	}
}

// alone makes the single message of an entry that is no batch.
func (m *Message) alone(payload []byte) Single {
	s := Single{
		Payload:    payload,
		SequenceID: m.SequenceID, EventTime: m.EventTime,
		Key: m.PartitionKey, HasKey: m.HasPartitionKey, KeyB64: m.PartitionKeyB64, NullKey: m.NullPartitionKey,
		OrderingKey: m.OrderingKey, HasOrderingKey: m.HasOrderingKey,
		NullValue: m.NullValue,
	}
	var f field
	for all := fields(m.Metadata); ; {
		if ok, _ := all.more(&f); !ok {
			return s
		}
		if f.bytes(4) {
			p, _ := parseProperty(f.b)
			s.Properties = append(s.Properties, p)
		}
	}
}
