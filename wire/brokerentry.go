package wire

import (
	"encoding/binary"
	"fmt"
)

// SplitBrokerEntry splits what follows a MESSAGE into the serialized
// BrokerEntryMetadata, nil if there is none, and the entry. A broker puts it in
// front on delivery, to clients of protocol 18 and up that ask for it; it is never
// stored with the entry nor covered by its checksum.
func SplitBrokerEntry(b []byte) (meta, entry []byte, err error) {
	if len(b) < magicLength || binary.BigEndian.Uint16(b) != magicEntry {
		return nil, b, nil
	}
	b = b[magicLength:]
	if len(b) < sizeField {
		return nil, nil, fmt.Errorf("wire: broker entry metadata cut off: %w", ErrMetadata)
	}
	size := binary.BigEndian.Uint32(b)
	b = b[sizeField:]
	if uint64(size) > uint64(len(b)) {
		return nil, nil, fmt.Errorf("wire: broker entry metadata of %d bytes, %d left: %w", size, len(b), ErrMetadata)
	}
	return b[:size:size], b[size:], nil
}
