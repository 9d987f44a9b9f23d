package wire

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"wayside/wire/pulsarpb"
)

// deflate compresses as the clients do, see inflate. Nothing is kept between calls:
// who compresses does so seldom.
func deflate(kind pulsarpb.CompressionType, plain []byte) ([]byte, error) {
	switch kind {
	case pulsarpb.CompressionType_NONE:
		return plain, nil
	case pulsarpb.CompressionType_LZ4:
		out := make([]byte, lz4.CompressBlockBound(len(plain)))
		n, err := lz4.CompressBlock(plain, out, nil)
		return out[:n], err
	case pulsarpb.CompressionType_ZLIB:
		return deflateZlib(plain)
	case pulsarpb.CompressionType_ZSTD:
		return deflateZstd(plain)
	case pulsarpb.CompressionType_SNAPPY:
		return frameSnappy(plain), nil
	}
	return nil, fmt.Errorf("%w: %w %d", ErrCompression, errUnknown, kind)
}

func deflateZlib(plain []byte) ([]byte, error) {
	var out bytes.Buffer
	w := zlib.NewWriter(&out)
	if _, err := w.Write(plain); err != nil {
		return nil, err
	}
	err := w.Close()
	return out.Bytes(), err
}

// zstdWindow keeps the encoder small; batches are seldom larger.
const zstdWindow = 128 << 10

func deflateZstd(plain []byte) ([]byte, error) {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true),
		zstd.WithWindowSize(zstdWindow), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return nil, err
	}
	out := w.EncodeAll(plain, nil)
	return out, w.Close()
}

// snappyLiteral is the most that one literal of a snappy block holds here: its length
// less one is written in two bytes.
const snappyLiteral = 1 << 16

// frameSnappy makes a valid snappy block without compressing: an encoder would be linked
// for the sake of clients that hardly any device has.
func frameSnappy(plain []byte) []byte {
	out := binary.AppendUvarint(make([]byte, 0, len(plain)+len(plain)/snappyLiteral*3+8), uint64(len(plain)))
	for len(plain) > 0 {
		n := min(len(plain), snappyLiteral)
		out = append(out, 61<<2) // a literal whose length is in two bytes
		out = binary.LittleEndian.AppendUint16(out, uint16(n-1))
		out = append(out, plain[:n]...)
		plain = plain[n:]
	}
	return out
}
