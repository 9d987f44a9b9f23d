package edge

import (
	"encoding/binary"
	"math/bits"
)

// murmur3 is the 32-bit Murmur3 hash for x86 with seed 0, made positive as Pulsar
// does (the highest bit cleared).
func murmur3(data []byte) uint32 {
	const c1, c2 = 0xcc9e2d51, 0x1b873593
	var h uint32
	n := uint32(len(data))
	for ; len(data) >= 4; data = data[4:] {
		k := binary.LittleEndian.Uint32(data) * c1
		h ^= bits.RotateLeft32(k, 15) * c2
		h = bits.RotateLeft32(h, 13)*5 + 0xe6546b64
	}
	var k uint32
	for i := len(data) - 1; i >= 0; i-- {
		k = k<<8 | uint32(data[i])
	}
	h ^= bits.RotateLeft32(k*c1, 15) * c2
	h ^= n
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	return (h ^ h>>16) & 0x7fffffff
}
