package wire

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"wayside/wire/pulsarpb"
)

// scan reads MessageMetadata. Every peer must be able to parse what is stored, so
// required fields are checked at every depth.
func (m *Message) scan() error {
	m.NumMessages = 1
	var f field
	var has uint64
	for all := fields(m.Metadata); ; {
		ok, bad := all.more(&f)
		if bad {
			return fmt.Errorf("wire: %w: not protobuf", ErrMetadata)
		}
		if !ok {
			break
		}
		good := true
		switch f.typ {
		case protowire.VarintType:
			m.setNumber(&f)
		case protowire.BytesType:
			good = m.setBytes(&f)
		default:
			continue
		}
		if !good {
			return fmt.Errorf("wire: %w: field %d", ErrMetadata, f.num)
		}
		if f.num < 64 {
			has |= present(&f)
		}
	}
	m.setPresence(has)
	const required = 1<<1 | 1<<2 | 1<<3
	if has&required != required {
		return fmt.Errorf("wire: %w: producer_name, sequence_id or publish_time missing", ErrMetadata)
	}
	return nil
}

// present gives the bit of a field below 64 that came in its expected wire type:
// strings, bytes and messages by the mask, numbers otherwise.
func present(f *field) uint64 {
	const byteFields = 1<<1 | 1<<4 | 1<<5 | 1<<6 | 1<<7 | 1<<13 | 1<<14 | 1<<15 | 1<<16 | 1<<18 | 1<<26
	bit := uint64(1) << f.num
	if (bit&byteFields != 0) == (f.typ == protowire.BytesType) {
		return bit
	}
	return 0
}

func (m *Message) setPresence(has uint64) {
	m.HasPartitionKey = has&(1<<6) != 0
	m.Batch = has&(1<<11) != 0
	m.HasSchemaVersion = has&(1<<16) != 0
	m.HasOrderingKey = has&(1<<18) != 0
	m.HasDeliverAt = has&(1<<19) != 0
	m.HasMarker = has&(1<<20) != 0
	m.HasTxn = has&(1<<22) != 0 && has&(1<<23) != 0
	m.HasHighest = has&(1<<24) != 0
}

func (m *Message) setNumber(f *field) {
	switch f.num {
	case 2:
		m.SequenceID = int64(f.v)
	case 3:
		m.PublishTime = int64(f.v)
	case 8:
		m.Compression = pulsarpb.CompressionType(int32(f.v))
	case 9:
		m.UncompressedSize = uint32(f.v)
	case 11:
		m.NumMessages = int32(f.v)
	case 12:
		m.EventTime = int64(f.v)
	case 17:
		m.PartitionKeyB64 = f.v != 0
	case 19:
		m.DeliverAt = int64(f.v)
	case 20:
		m.Marker = int32(f.v)
	case 22:
		m.TxnLeast = f.v
	case 23:
		m.TxnMost = f.v
	case 24:
		m.HighestSequenceID = int64(f.v)
	case 25:
		m.NullValue = f.v != 0
	case 27:
		m.NumChunks = int32(f.v)
	case 28:
		m.TotalChunkSize = int32(f.v)
	case 29:
		m.ChunkID = int32(f.v)
	case 30:
		m.NullPartitionKey = f.v != 0
	}
}

// setBytes returns false if a list element is not what it should be.
func (m *Message) setBytes(f *field) bool {
	switch f.num {
	case 1:
		m.ProducerName = f.b
	case 4:
		_, ok := parseProperty(f.b)
		return ok
	case 6:
		m.PartitionKey = f.b
	case 13:
		m.EncryptionKeys++
		return isEncryptionKey(f.b)
	case 16:
		m.SchemaVersion = f.b
	case 18:
		m.OrderingKey = f.b
	case 26:
		m.UUID = f.b
	}
	return true
}

// Property is one name and value that a producer gave a message.
type Property struct {
	Key, Value []byte
}

// parseProperty reads a KeyValue; both of its fields are required.
func parseProperty(b []byte) (p Property, ok bool) {
	var f field
	var key, value bool
	for all := fields(b); ; {
		ok, bad := all.more(&f)
		if bad {
			return p, false
		}
		if !ok {
			return p, key && value
		}
		switch {
		case f.bytes(1):
			p.Key, key = f.b, true
		case f.bytes(2):
			p.Value, value = f.b, true
		}
	}
}

// isEncryptionKey checks an EncryptionKeys: key and value are required, its
// metadata are properties.
func isEncryptionKey(b []byte) bool {
	var f field
	var key, value bool
	for all := fields(b); ; {
		ok, bad := all.more(&f)
		if bad {
			return false
		}
		if !ok {
			return key && value
		}
		switch {
		case f.bytes(1):
			key = true
		case f.bytes(2):
			value = true
		case f.bytes(3):
			if _, ok := parseProperty(f.b); !ok {
				return false
			}
		}
	}
}
