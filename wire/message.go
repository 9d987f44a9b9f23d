package wire

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"wayside/wire/pulsarpb"
)

const (
	magicChecksum   = 0x0e01 // a checksum follows
	magicEntry      = 0x0e02 // broker entry metadata follows; never stored
	magicLength     = 2
	checksumLength  = magicLength + sizeField
	batchedOverhead = sizeField + 2 // of a message in a batch: its header's size, and payload_size in it
)

// Message is what the header of an entry says. Slices borrow from the entry.
// A field without a Has beside it has its default when absent.
type Message struct {
	HasChecksum bool
	// Metadata is the serialized header, Payload what follows it to the end. They
	// begin at MetadataAt and PayloadAt of the entry.
	Metadata, Payload     []byte
	MetadataAt, PayloadAt int

	ProducerName      []byte
	SequenceID        int64
	HighestSequenceID int64
	HasHighest        bool

	PublishTime  int64 // milliseconds since 1970, by the producer's clock
	EventTime    int64 // the same; 0 means none
	DeliverAt    int64 // the same
	HasDeliverAt bool

	PartitionKey     []byte
	HasPartitionKey  bool
	PartitionKeyB64  bool // the key is bytes, in base64
	NullPartitionKey bool
	OrderingKey      []byte
	HasOrderingKey   bool
	NullValue        bool // a tombstone

	// Batch is told by the presence of a count, which may be one.
	Batch            bool
	NumMessages      int32 // as claimed, see Check; 1 when absent
	Compression      pulsarpb.CompressionType
	UncompressedSize uint32
	EncryptionKeys   int // how many; more than none means encrypted

	Marker    int32 // kind of an entry that is never delivered
	HasMarker bool

	// Of a chunk: the uuid of the whole message, and which of how many this is.
	UUID           []byte
	ChunkID        int32
	NumChunks      int32
	TotalChunkSize int32 // bytes of the whole message

	TxnLeast, TxnMost uint64
	HasTxn            bool // both transaction fields are present
	SchemaVersion     []byte
	HasSchemaVersion  bool
}

// IsChunk tells whether the entry is a part of a message in several.
func (m *Message) IsChunk() bool { return len(m.UUID) > 0 && m.NumChunks > 1 }

// ParseMessage reads the header of an entry, which begins with the magic of its
// checksum or, without one, with the size of its metadata. A checksum is verified
// first (ErrChecksum); then the metadata must be what a client can parse, lists
// within included (ErrMetadata). Payload and counts are not looked into; for
// counts there is Check.
func ParseMessage(data []byte) (Message, error) {
	var m Message
	at := 0
	if len(data) >= checksumLength && binary.BigEndian.Uint16(data) == magicChecksum {
		m.HasChecksum = true
		at = checksumLength
		if crc32c(data[at:]) != binary.BigEndian.Uint32(data[magicLength:]) {
			return Message{}, fmt.Errorf("wire: entry of %d bytes: %w", len(data), ErrChecksum)
		}
	}
	if len(data)-at < sizeField {
		return Message{}, fmt.Errorf("wire: entry of %d bytes: %w", len(data), ErrMetadata)
	}
	size := binary.BigEndian.Uint32(data[at:])
	m.MetadataAt = at + sizeField
	if uint64(size) > uint64(len(data)-m.MetadataAt) {
		return Message{}, fmt.Errorf("wire: metadata of %d bytes in an entry of %d: %w", size, len(data), ErrMetadata)
	}
	m.PayloadAt = m.MetadataAt + int(size)
	m.Metadata, m.Payload = data[m.MetadataAt:m.PayloadAt:m.PayloadAt], data[m.PayloadAt:]
	if err := m.scan(); err != nil {
		return Message{}, err
	}
	return m, nil
}

// Check refuses a count that the payload cannot hold. A batch has at least one
// message, and each takes at least six bytes of the payload, or of what it
// decompresses to by its own account; that account is only as good as limit, the
// most messages an entry may have whatever it says.
func (m *Message) Check(limit int) error {
	if !m.Batch {
		return nil
	}
	room := uint64(len(m.Payload))
	if m.Compression != pulsarpb.CompressionType_NONE {
		room = uint64(m.UncompressedSize)
	}
	most := min(room/batchedOverhead, uint64(max(limit, 0)))
	if m.NumMessages < 1 || uint64(m.NumMessages) > most {
		return fmt.Errorf("wire: batch claims %d messages, can have 1 to %d: %w", m.NumMessages, most, ErrCount)
	}
	return nil
}

// crc32c is the checksum of entries.
func crc32c(b []byte) uint32 {
	return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
}
