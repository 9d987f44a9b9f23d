package wire_test

import (
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"google.golang.org/protobuf/proto"

	"wayside/wire"
	"wayside/wire/pulsarpb"
)

// compress does what the official clients do for each kind.
func compress(t testing.TB, kind pulsarpb.CompressionType, b []byte) []byte {
	t.Helper()
	switch kind {
	case pulsarpb.CompressionType_LZ4:
		out := make([]byte, lz4.CompressBlockBound(len(b)))
		var c lz4.Compressor
		n, err := c.CompressBlock(b, out)
		if err != nil || n == 0 {
			t.Fatalf("lz4: %d, %v", n, err)
		}
		return out[:n]
	case pulsarpb.CompressionType_ZLIB:
		var out bytes.Buffer
		w := zlib.NewWriter(&out)
		if _, err := w.Write(b); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	case pulsarpb.CompressionType_ZSTD:
		e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		return e.EncodeAll(b, nil)
	case pulsarpb.CompressionType_SNAPPY:
		return snappy.Encode(nil, b)
	}
	return b
}

// zstdStream compresses without the content's size in the frame.
func zstdStream(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	e, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(e, bytes.NewReader(b)); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

var kinds = []pulsarpb.CompressionType{
	pulsarpb.CompressionType_NONE, pulsarpb.CompressionType_LZ4, pulsarpb.CompressionType_ZLIB,
	pulsarpb.CompressionType_ZSTD, pulsarpb.CompressionType_SNAPPY,
}

// batch makes the payload of n messages with all that a single header can say.
func batch(t testing.TB, n int) []byte {
	t.Helper()
	var out []byte
	for i := range n {
		meta := &pulsarpb.SingleMessageMetadata{EventTime: proto.Uint64(uint64(100 + i))}
		if i%2 == 1 {
			meta.Properties = []*pulsarpb.KeyValue{{Key: proto.String("i"), Value: proto.String(fmt.Sprint(i))}}
			meta.PartitionKey = proto.String("key")
			meta.PartitionKeyB64Encoded = proto.Bool(true)
			meta.OrderingKey = []byte("o")
			meta.SequenceId = proto.Uint64(uint64(1000 + i))
			meta.NullValue, meta.NullPartitionKey, meta.CompactedOut = proto.Bool(true), proto.Bool(true), proto.Bool(true)
		}
		var err error
		if out, err = wire.AppendSingle(out, meta, []byte(strings.Repeat(fmt.Sprint("message ", i), i))); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func batchMetadata(n int, kind pulsarpb.CompressionType, size int64) *pulsarpb.MessageMetadata {
	meta := metadata()
	meta.NumMessagesInBatch = proto.Int32(int32(n))
	if kind != pulsarpb.CompressionType_NONE {
		meta.Compression = &kind
		meta.UncompressedSize = proto.Uint32(uint32(size))
	}
	return meta
}

func TestUnpackBatch(t *testing.T) {
	const n = 20
	plain := batch(t, n)
	var u wire.Unpacker
	defer u.Close()
	for _, kind := range append(kinds, kinds...) { // twice, with the decoders of the first round
		entry := build(t, batchMetadata(n, kind, int64(len(plain))), string(compress(t, kind, plain)))
		i := 0
		err := u.Unpack(entry, len(plain), func(s wire.Single) error {
			checkSingle(t, kind, i, s)
			i++
			return nil
		})
		if err != nil || i != n {
			t.Errorf("%s: %d messages, %v", kind, i, err)
		}
		if err := u.Unpack(entry, len(plain)-1, nil); !errors.Is(err, wire.ErrTooLarge) {
			t.Errorf("%s above the limit: %v", kind, err)
		}
	}
}

func checkSingle(t *testing.T, kind pulsarpb.CompressionType, i int, s wire.Single) {
	t.Helper()
	odd := i%2 == 1
	sequence := int64(3 + i) // counted from the batch's
	if odd {
		sequence = int64(1000 + i)
	}
	if s.Index != i || s.SequenceID != sequence || s.EventTime != int64(100+i) ||
		string(s.Payload) != strings.Repeat(fmt.Sprint("message ", i), i) ||
		s.HasKey != odd || s.KeyB64 != odd || s.NullKey != odd || s.NullValue != odd || s.CompactedOut != odd || s.HasOrderingKey != odd {
		t.Errorf("%s: message %d: %+v", kind, i, s)
	}
	if odd && (len(s.Properties) != 1 || string(s.Properties[0].Key) != "i" || string(s.Properties[0].Value) != fmt.Sprint(i) ||
		string(s.Key) != "key" || string(s.OrderingKey) != "o") || !odd && len(s.Properties) > 0 {
		t.Errorf("%s: message %d: %+v", kind, i, s)
	}
}

func TestUnpackAlone(t *testing.T) {
	for _, kind := range kinds {
		for _, payload := range []string{"", "x", strings.Repeat("a payload that can be compressed ", 100)} {
			meta := metadata()
			meta.PartitionKey, meta.OrderingKey = proto.String("k"), []byte("o")
			meta.Properties = []*pulsarpb.KeyValue{{Key: proto.String("a"), Value: proto.String("1")}, {Key: proto.String("a"), Value: proto.String("2")}}
			compressed := []byte(payload)
			if kind != pulsarpb.CompressionType_NONE && payload != "" {
				meta.Compression, meta.UncompressedSize = &kind, proto.Uint32(uint32(len(payload)))
				if kind != pulsarpb.CompressionType_LZ4 || len(payload) > 1 { // which never compresses a single byte
					compressed = compress(t, kind, compressed)
				} else {
					compressed = []byte{0x10, 'x'}
				}
			}
			visits := 0
			err := wire.Unpack(build(t, meta, string(compressed)), 1<<20, func(s wire.Single) error {
				visits++
				if string(s.Payload) != payload || string(s.Key) != "k" || !s.HasKey || string(s.OrderingKey) != "o" || s.SequenceID != 3 || len(s.Properties) != 2 || string(s.Properties[1].Value) != "2" {
					t.Errorf("%s: %+v", kind, s)
				}
				return nil
			})
			if err != nil || visits != 1 {
				t.Errorf("%s, %d bytes: %d visits, %v", kind, len(payload), visits, err)
			}
		}
	}
}

// TestUnpackEmpty: an empty payload, compressed or left as it is.
func TestUnpackEmpty(t *testing.T) {
	for _, kind := range kinds {
		for name, payload := range map[string][]byte{"": nil, "compressed": emptyOf(t, kind)} {
			meta := metadata()
			meta.Compression = &kind
			meta.UncompressedSize = proto.Uint32(0)
			err := wire.Unpack(build(t, meta, string(payload)), 1<<20, func(s wire.Single) error {
				if len(s.Payload) > 0 {
					t.Errorf("%s: %q", kind, s.Payload)
				}
				return nil
			})
			if err != nil {
				t.Errorf("%s %s: %v", kind, name, err)
			}
		}
	}
}

func emptyOf(t *testing.T, kind pulsarpb.CompressionType) []byte {
	if kind == pulsarpb.CompressionType_LZ4 {
		return []byte{0} // what the Go client writes
	}
	return compress(t, kind, nil)
}

func TestUnpackZstdStream(t *testing.T) {
	plain := batch(t, 10)
	entry := build(t, batchMetadata(10, pulsarpb.CompressionType_ZSTD, int64(len(plain))), string(zstdStream(t, plain)))
	n := 0
	if err := wire.Unpack(entry, 1<<20, func(wire.Single) error { n++; return nil }); err != nil || n != 10 {
		t.Errorf("%d, %v", n, err)
	}
}

// TestUnpackRefuses: nothing is visited of what is not whole.
func TestUnpackRefuses(t *testing.T) {
	const n = 3
	plain := batch(t, n)
	encrypted := batchMetadata(n, 0, 0)
	encrypted.EncryptionKeys = []*pulsarpb.EncryptionKeys{{Key: proto.String("k"), Value: []byte{1}}}
	cases := []struct {
		name    string
		meta    *pulsarpb.MessageMetadata
		payload []byte
		want    error
	}{
		{"one message less", batchMetadata(n+1, 0, 0), plain, wire.ErrCount},
		{"one message more", batchMetadata(n-1, 0, 0), plain, wire.ErrCount},
		{"count 0", batchMetadata(0, 0, 0), plain, wire.ErrCount},
		{"count -1", batchMetadata(-1, 0, 0), plain, wire.ErrCount},
		{"count 2^31-1", batchMetadata(1<<31-1, 0, 0), []byte("ten bytes "), wire.ErrMetadata},
		{"payload cut off", batchMetadata(n, 0, 0), plain[:len(plain)-1], wire.ErrMetadata},
		{"single size beyond", batchMetadata(1, 0, 0), []byte{0, 0, 0, 9, 1}, wire.ErrMetadata},
		{"no payload size", batchMetadata(1, 0, 0), []byte{0, 0, 0, 2, 0x28, 1}, wire.ErrMetadata},
		{"negative payload size", batchMetadata(1, 0, 0), unhex(t, "0000000b 18ffffffffffffffffff01"), wire.ErrMetadata},
		{"payload size beyond", batchMetadata(1, 0, 0), []byte{0, 0, 0, 2, 0x18, 1}, wire.ErrMetadata},
		{"single garbage", batchMetadata(1, 0, 0), []byte{0, 0, 0, 1, 0xff}, wire.ErrMetadata},
		{"half a property", batchMetadata(1, 0, 0), unhex(t, "00000007 1800 0a03 0a0161"), wire.ErrMetadata},
		{"encrypted", encrypted, plain, wire.ErrEncrypted},
		{"unknown compression", batchMetadata(n, 77, int64(len(plain))), plain, wire.ErrCompression},
	}
	size := int64(len(plain))
	for _, kind := range kinds[1:] {
		squeezed := compress(t, kind, plain)
		for name, c := range map[string]struct {
			size    int64
			payload []byte
			want    error
		}{
			"claims less":    {size - 1, squeezed, wire.ErrCompression},
			"claims more":    {size + 1, squeezed, wire.ErrCompression},
			"claims 4 GiB":   {1<<32 - 1, squeezed, wire.ErrTooLarge},
			"claims nothing": {0, squeezed, wire.ErrCompression},
			"cut off":        {size, squeezed[:len(squeezed)-5], wire.ErrCompression},
			"nothing there":  {size, nil, wire.ErrCompression},
			"garbage":        {size, []byte{0xff, 0x13, 0x37, 0, 0xff}, wire.ErrCompression},
		} {
			cases = append(cases, struct {
				name    string
				meta    *pulsarpb.MessageMetadata
				payload []byte
				want    error
			}{kind.String() + " " + name, batchMetadata(n, kind, c.size), c.payload, c.want})
		}
	}
	for _, c := range cases {
		err := wire.Unpack(build(t, c.meta, string(c.payload)), 1<<20, func(wire.Single) error {
			t.Errorf("%s: visited", c.name)
			return nil
		})
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

func TestUnpackStops(t *testing.T) {
	stop := errors.New("stop")
	visits := 0
	err := wire.Unpack(build(t, batchMetadata(5, 0, 0), string(batch(t, 5))), 1<<20, func(wire.Single) error {
		if visits++; visits == 2 {
			return stop
		}
		return nil
	})
	if err != stop || visits != 2 {
		t.Errorf("%d visits, %v", visits, err)
	}
}

// TestUnpackerShared: one Unpacker serves several goroutines.
func TestUnpackerShared(t *testing.T) {
	plain := batch(t, 50)
	var u wire.Unpacker
	defer u.Close()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			kind := kinds[1+i%4]
			entry := build(t, batchMetadata(50, kind, int64(len(plain))), string(compress(t, kind, plain)))
			for range 50 {
				n := 0
				if err := u.Unpack(entry, 1<<20, func(wire.Single) error { n++; return nil }); err != nil || n != 50 {
					t.Errorf("%s: %d, %v", kind, n, err)
					return
				}
			}
		})
	}
	all.Wait()
}

// TestUnpackBomb: a payload that claims little and gives much allocates no more
// than it claims.
func TestUnpackBomb(t *testing.T) {
	bomb := make([]byte, 8<<20)
	for _, kind := range kinds[1:] {
		squeezed := compress(t, kind, bomb)
		entry := build(t, batchMetadata(1, kind, 1000), string(squeezed))
		var u wire.Unpacker
		var before, after runtime.MemStats
		for i := range 2 { // the first time makes decoders
			runtime.ReadMemStats(&before)
			if err := u.Unpack(entry, 1<<20, nil); !errors.Is(err, wire.ErrCompression) {
				t.Errorf("%s: %v", kind, err)
			}
			runtime.ReadMemStats(&after)
			if got := after.TotalAlloc - before.TotalAlloc; i == 1 && got > 64<<10 {
				t.Errorf("%s: %d bytes allocated", kind, got)
			}
		}
		u.Close()
	}
}
