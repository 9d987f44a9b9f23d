package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"
)

const (
	// Slots is the size of the ring on which Key_Shared ranges are cut.
	Slots = 1 << 16
	// noKey stands for a key that cannot be told.
	noKey = "NONE_KEY"
)

// StickyKey appends to dst what decides where Key_Shared sends the entry: its
// ordering key, else its partition key, else producer name and sequence. A batch
// has the keys of its header. (As in the reference broker, a key whose base64 is
// broken counts as none.)
func (m *Message) StickyKey(dst []byte) []byte {
	switch {
	case m.HasOrderingKey:
		return append(dst, m.OrderingKey...)
	case m.HasPartitionKey && m.PartitionKeyB64:
		return appendDecoded(dst, m.PartitionKey)
	case m.HasPartitionKey:
		return append(dst, m.PartitionKey...)
	}
	dst = append(dst, m.ProducerName...)
	dst = append(dst, '-')
	return strconv.AppendInt(dst, m.SequenceID, 10)
}

// Slot returns the slot of the entry's sticky key.
func (m *Message) Slot() uint16 {
	var room [128]byte
	return Slot(m.StickyKey(room[:0]))
}

// Slot returns the place of a key on the Key_Shared ring, 1 to 65535: the lower 16
// bits of its Murmur3 hash, where 0 counts as 1.
func Slot(key []byte) uint16 {
	hash := murmur3(key) & math.MaxInt32 % Slots
	return uint16(max(hash, 1))
}

// appendDecoded appends the bytes that key has in base64, padded or not.
func appendDecoded(dst, key []byte) []byte {
	key = bytes.TrimRight(key, "=")
	from := len(dst)
	dst = append(dst, make([]byte, base64.RawStdEncoding.DecodedLen(len(key)))...)
	n, err := base64.RawStdEncoding.Decode(dst[from:], key)
	if err != nil {
		return append(dst[:from], noKey...)
	}
	return dst[:from+n]
}

// murmur3 is the x86 32-bit variant of the hash with seed 0.
func murmur3(b []byte) uint32 {
	const c1, c2 = 0xcc9e2d51, 0x1b873593
	mix := func(k uint32) uint32 { return bits.RotateLeft32(k*c1, 15) * c2 }
	length, h := uint32(len(b)), uint32(0)
	for ; len(b) >= 4; b = b[4:] {
		h ^= mix(binary.LittleEndian.Uint32(b))
		h = bits.RotateLeft32(h, 13)*5 + 0xe6546b64
	}
	var tail uint32
	for i, c := range b {
		tail |= uint32(c) << (8 * i)
	}
	h ^= mix(tail) // no bytes left mix to 0
	h ^= length
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	return h ^ h>>16
}
