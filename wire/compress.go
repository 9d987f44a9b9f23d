package wire

import (
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"wayside/wire/pulsarpb"
)

// Unpacker opens entries. It keeps decoders between calls: one for zstd, made at
// the first such entry, and those of zlib as long as the garbage collector lets
// them live. The zero value is ready; it may be used by several goroutines, and
// must not be copied. Close frees it.
type Unpacker struct {
	zlib sync.Pool

	mu   sync.Mutex // guards what follows
	zstd *zstd.Decoder
}

// Close frees the decoders. The Unpacker may be used again.
func (u *Unpacker) Close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.zstd != nil {
		u.zstd.Close()
		u.zstd = nil
	}
}

var (
	errShort   = errors.New("other size than announced")
	errUnknown = errors.New("unknown kind")
)

// inflate decompresses to exactly size bytes, the way the clients compress: a raw
// LZ4 block, a zlib stream, a zstd frame, a raw snappy block. Not all of them
// bother to compress an empty payload.
func (u *Unpacker) inflate(kind pulsarpb.CompressionType, src []byte, size int) ([]byte, error) {
	if size == 0 && len(src) == 0 {
		return nil, nil
	}
	switch kind {
	case pulsarpb.CompressionType_LZ4:
		return exactly(size)(inflateLZ4(src, size))
	case pulsarpb.CompressionType_ZLIB:
		return u.inflateZlib(src, size)
	case pulsarpb.CompressionType_ZSTD:
		return exactly(size)(u.inflateZstd(src, size))
	case pulsarpb.CompressionType_SNAPPY:
		return inflateSnappy(src, size)
	}
	return nil, fmt.Errorf("%w %d", errUnknown, kind)
}

func exactly(size int) func([]byte, error) ([]byte, error) {
	return func(b []byte, err error) ([]byte, error) {
		if err == nil && len(b) != size {
			return nil, errShort
		}
		return b, err
	}
}

func inflateLZ4(src []byte, size int) ([]byte, error) {
	dst := make([]byte, size)
	n, err := lz4.UncompressBlock(src, dst)
	if err != nil {
		return nil, err
	}
	return dst[:n], nil
}

func inflateSnappy(src []byte, size int) ([]byte, error) {
	if n, err := snappy.DecodedLen(src); err != nil || n != size {
		return nil, errors.Join(errShort, err)
	}
	return snappy.Decode(make([]byte, size), src)
}

// inflateZlib reads size bytes and the stream's end, so that its checksum counts.
func (u *Unpacker) inflateZlib(src []byte, size int) ([]byte, error) {
	r, err := u.zlibReader(src)
	if err != nil {
		return nil, err
	}
	defer u.zlib.Put(r)
	dst := make([]byte, size)
	if _, err := io.ReadFull(r, dst); err != nil {
		return nil, err
	}
	var more [1]byte
	if _, err := io.ReadFull(r, more[:]); err != io.EOF {
		return nil, errors.Join(errShort, err)
	}
	return dst, nil
}

func (u *Unpacker) zlibReader(src []byte) (io.ReadCloser, error) {
	if r, ok := u.zlib.Get().(io.ReadCloser); ok {
		return r, r.(zlib.Resetter).Reset(bytes.NewReader(src), nil)
	}
	return zlib.NewReader(bytes.NewReader(src))
}

func (u *Unpacker) inflateZstd(src []byte, size int) ([]byte, error) {
	d, err := u.zstdDecoder()
	if err != nil {
		return nil, err
	}
	return d.DecodeAll(src, make([]byte, 0, size))
}

// zstdDecoder returns the decoder, which works without goroutines. It never writes
// beyond the room it is given.
func (u *Unpacker) zstdDecoder() (d *zstd.Decoder, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.zstd == nil {
		u.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecodeAllCapLimit(true))
	}
	return u.zstd, err
}
