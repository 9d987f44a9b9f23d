package wire

import (
	"encoding/binary"
	"fmt"
	"math"

	"google.golang.org/protobuf/proto"

	"wayside/wire/pulsarpb"
)

// Build makes an entry, checksum first, from its header and payload. The header
// must say what the payload is: compressed, encrypted, a batch.
func Build(meta *pulsarpb.MessageMetadata, payload []byte) ([]byte, error) {
	const head = checksumLength + sizeField
	size := proto.Size(meta)
	if uint64(size) > math.MaxUint32 {
		return nil, fmt.Errorf("wire: metadata of %d bytes: %w", size, ErrTooLarge)
	}
	out := make([]byte, head, head+size+len(payload))
	binary.BigEndian.PutUint16(out, magicChecksum)
	binary.BigEndian.PutUint32(out[checksumLength:], uint32(size))
	out, err := proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(out, meta)
	if err != nil {
		return nil, fmt.Errorf("wire: %w: %w", ErrMetadata, err)
	}
	out = append(out, payload...)
	binary.BigEndian.PutUint32(out[magicLength:], crc32c(out[checksumLength:]))
	return out, nil
}

// AppendSingle appends one message to the payload of a batch and sets payload_size
// in its header. The batch's own header counts them.
func AppendSingle(dst []byte, meta *pulsarpb.SingleMessageMetadata, payload []byte) ([]byte, error) {
	if len(payload) > math.MaxInt32 {
		return dst, fmt.Errorf("wire: message of %d bytes in a batch: %w", len(payload), ErrTooLarge)
	}
	meta.PayloadSize = proto.Int32(int32(len(payload)))
	out, err := proto.Marshal(meta)
	if err != nil {
		return dst, fmt.Errorf("wire: %w: %w", ErrMetadata, err)
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(out)))
	return append(append(dst, out...), payload...), nil
}
