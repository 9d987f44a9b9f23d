package boltstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"

	"wayside/edge"
)

// A chunk is the entries that one commit brought to a topic, as one value:
//
//	version(1) 0(3) count(4) index(8) messages(8) newest(8) length(4) marks(4 each) crc(4) frames
//
// index is the ordinal of its first message, newest the latest publish time, length
// that of the frames. A mark
// for every 16th entry but the first holds the offset of its frame, so that an entry
// is found without a walk through all before it and a damaged length loses at most 15
// others. A frame is
//
//	length(4) crc(4) ordinal(uvarint) factsLength(uvarint) facts data
//
// where length counts what follows the crc and ordinal is the entry's index, counted
// from the chunk's. Both checksums cover the ledger and the
// entry's id too, so that a chunk in a wrong place is seen. All numbers are little endian.
const (
	chunkVersion = 1
	chunkFixed   = 36
	chunkMark    = 4
	chunkStride  = 16
	frameHeader  = 8

	// maxChunkEntries keeps a chunk's marks small.
	maxChunkEntries = 1 << 16
)

// appendChunk appends the value of a chunk of n entries that starts at p with index.
func appendChunk(b []byte, p edge.Position, index uint64, n int, entry func(int) (*edge.Facts, []byte)) []byte {
	start := len(b)
	marks := start + chunkFixed
	frames := marks + (n-1)/chunkStride*chunkMark + 4
	b = append(b, make([]byte, frames-start)...)
	messages, newest := uint64(0), int64(math.MinInt64)
	for i := range n {
		if i > 0 && i%chunkStride == 0 {
			binary.LittleEndian.PutUint32(b[marks+(i/chunkStride-1)*chunkMark:], uint32(len(b)-frames))
		}
		f, data := entry(i)
		b = appendFrame(b, edge.Position{Ledger: p.Ledger, Entry: p.Entry + int64(i)}, messages, f, data)
		messages += uint64(max(f.Messages, 1))
		newest = max(newest, f.Publish)
	}
	head := b[start:]
	head[0] = chunkVersion
	binary.LittleEndian.PutUint32(head[4:], uint32(n))
	binary.LittleEndian.PutUint64(head[8:], index)
	binary.LittleEndian.PutUint64(head[16:], messages)
	binary.LittleEndian.PutUint64(head[24:], uint64(newest))
	binary.LittleEndian.PutUint32(head[32:], uint32(len(b)-frames))
	sum := placedSum(p.Ledger, p.Entry, b[start:frames-4])
	binary.LittleEndian.PutUint32(b[frames-4:], sum)
	return b
}

func appendFrame(b []byte, p edge.Position, ordinal uint64, f *edge.Facts, data []byte) []byte {
	start := len(b)
	b = append(b, make([]byte, frameHeader)...)
	b = binary.AppendUvarint(b, ordinal)
	b = appendSizedFacts(b, f)
	b = append(b, data...)
	body := b[start+frameHeader:]
	binary.LittleEndian.PutUint32(b[start:], uint32(len(body)))
	binary.LittleEndian.PutUint32(b[start+4:], placedSum(p.Ledger, p.Entry, body))
	return b
}

// appendSizedFacts writes facts behind their length, which takes one byte for all
// but the few that have a long key.
func appendSizedFacts(b []byte, f *edge.Facts) []byte {
	start := len(b)
	b = appendFacts(append(b, 0), f)
	n := len(b) - start - 1
	if n < 0x80 {
		b[start] = byte(n)
		return b
	}
	return appendText(b[:start], append([]byte(nil), b[start+1:]...))
}

// placedSum is the checksum of bytes that belong to a position.
func placedSum(ledger, entry int64, b []byte) uint32 {
	var place [16]byte
	binary.LittleEndian.PutUint64(place[:], uint64(ledger))
	binary.LittleEndian.PutUint64(place[8:], uint64(entry))
	return crc32.Update(crc32.Checksum(place[:], castagnoli), castagnoli, b)
}

// chunkValue is a stored value, wherever it lies.
type chunkValue interface {
	size() int
	// read returns a part of it. Whether the bytes are shared is the value's matter:
	// they are not changed, and not kept beyond the transaction.
	read(offset, n int) ([]byte, error)
}

// mapped is a value in a mapped file.
type mapped []byte

func (v mapped) size() int { return len(v) }

func (v mapped) read(offset, n int) ([]byte, error) {
	if n < 0 || offset < 0 || offset+n > len(v) {
		return nil, errDamaged
	}
	return v[offset : offset+n], nil
}

// chunk is a stored value opened for reading.
type chunk struct {
	ledger   int64
	first    int64
	count    int
	index    uint64
	messages uint64
	newest   int64
	length   int // of the frames
	marks    []byte
	value    chunkValue
}

// openChunk checks the header of a value found at a position.
func openChunk(ledger, first int64, value chunkValue) (chunk, error) {
	damaged := func(err error) (chunk, error) {
		return chunk{}, fmt.Errorf("chunk %d:%d: %w", ledger, first, errors.Join(errDamaged, err))
	}
	head, err := value.read(0, chunkFixed)
	if err != nil || head[0] != chunkVersion {
		return damaged(err)
	}
	c := chunk{
		ledger: ledger, first: first, value: value,
		count:    int(binary.LittleEndian.Uint32(head[4:])),
		index:    binary.LittleEndian.Uint64(head[8:]),
		messages: binary.LittleEndian.Uint64(head[16:]),
		newest:   int64(binary.LittleEndian.Uint64(head[24:])),
		length:   int(binary.LittleEndian.Uint32(head[32:])),
	}
	if c.count < 1 || c.count > maxChunkEntries {
		return damaged(nil)
	}
	if head, err = value.read(0, c.start()); err != nil {
		return damaged(err)
	}
	sum := len(head) - 4
	if placedSum(ledger, first, head[:sum]) != binary.LittleEndian.Uint32(head[sum:]) || value.size() != len(head)+c.length {
		return damaged(nil)
	}
	c.marks = head[chunkFixed:sum]
	return c, nil
}

// start is where the frames start in the value.
func (c *chunk) start() int { return chunkFixed + (c.count-1)/chunkStride*chunkMark + 4 }

func (c *chunk) last() int64 { return c.first + int64(c.count) - 1 }

// frame is one entry's bytes inside a chunk, not yet verified.
type frame struct {
	entry int64
	sum   uint32
	body  []byte
}

// chunkReader walks the frames of a chunk, stride by stride.
type chunkReader struct {
	*chunk
	next   int    // ordinal of the next frame in the chunk
	stride []byte // what is left of the frames up to the next mark
	err    error  // why strides could not be read
}

// at starts at an entry of the chunk.
func (c *chunk) at(entry int64) chunkReader {
	r := chunkReader{chunk: c}
	r.jump(int(entry-c.first) / chunkStride)
	for r.more() && r.first+int64(r.next) < entry {
		r.read()
	}
	return r
}

// jump goes to a mark; the one before the first is the chunk's start.
func (r *chunkReader) jump(mark int) {
	r.next = mark * chunkStride
	r.stride = nil
	if !r.more() {
		return
	}
	from, to := r.mark(mark), r.mark(mark+1)
	stride, err := r.value.read(r.start()+from, to-from)
	if err != nil {
		r.err = err
	}
	r.stride = stride
}

// mark is the offset of a mark's frame, or the end.
func (r *chunkReader) mark(i int) int {
	switch {
	case i == 0:
		return 0
	case i*chunkStride >= r.count:
		return r.length
	}
	return int(binary.LittleEndian.Uint32(r.marks[(i-1)*chunkMark:]))
}

// more reports whether the chunk has a next frame.
func (r *chunkReader) more() bool { return r.next < r.count }

// read returns the next frame and goes on behind it. Without a sound length ok is
// false, and the walk goes on at the next mark: what lies before it is lost.
func (r *chunkReader) read() (f frame, ok bool) {
	f.entry = r.first + int64(r.next)
	mark := r.next/chunkStride + 1
	if len(r.stride) < frameHeader {
		r.skipTo(mark)
		return f, false
	}
	n := binary.LittleEndian.Uint32(r.stride)
	f.sum = binary.LittleEndian.Uint32(r.stride[4:])
	if uint64(n) > uint64(len(r.stride)-frameHeader) {
		r.skipTo(mark)
		return f, false
	}
	f.body, r.stride = r.stride[frameHeader:frameHeader+n], r.stride[frameHeader+n:]
	if r.next++; r.next == mark*chunkStride {
		r.jump(mark)
	}
	return f, true
}

func (r *chunkReader) skipTo(mark int) {
	r.jump(mark)
	r.next = min(r.next, r.count)
}

// open verifies a frame and decodes it. Facts are copies, data is shared with the value.
func (c *chunk) open(f frame, names *interned) (e edge.Entry, err error) {
	e.Position = edge.Position{Ledger: c.ledger, Entry: f.entry}
	d := decoder{b: f.body}
	e.Index = c.index + d.uvarint()
	facts := d.text()
	if d.bad || placedSum(c.ledger, f.entry, f.body) != f.sum {
		return edge.Entry{}, fmt.Errorf("entry %v: %w", e.Position, errDamaged)
	}
	e.Data = d.b
	e.Facts, err = decodeFacts(facts, names)
	return e, err
}
