package boltstore

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"

	"wayside/edge"
)

// A chunk is the entries that one commit brought to a topic, as one value:
//
//	version(1) 0(3) count(4) index(8) messages(8) newest(8) marks(4 each) crc(4) frames
//
// index is the ordinal of its first message, newest the latest publish time. A mark
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
	chunkFixed   = 32
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

// chunk is a stored value opened for reading. Its bytes are the file's.
type chunk struct {
	ledger   int64
	first    int64
	count    int
	index    uint64
	messages uint64
	newest   int64
	marks    []byte
	frames   []byte
}

// openChunk checks the header of a value found at a position.
func openChunk(ledger, first int64, v []byte) (chunk, error) {
	if len(v) < chunkFixed+4 || v[0] != chunkVersion {
		return chunk{}, fmt.Errorf("chunk %d:%d: %w", ledger, first, errDamaged)
	}
	count := int64(binary.LittleEndian.Uint32(v[4:]))
	end := chunkFixed + (count-1)/chunkStride*chunkMark
	if count < 1 || count > maxChunkEntries || int64(len(v)) < end+4 ||
		placedSum(ledger, first, v[:end]) != binary.LittleEndian.Uint32(v[end:]) {
		return chunk{}, fmt.Errorf("chunk %d:%d: %w", ledger, first, errDamaged)
	}
	return chunk{
		ledger: ledger, first: first, count: int(count),
		index:    binary.LittleEndian.Uint64(v[8:]),
		messages: binary.LittleEndian.Uint64(v[16:]),
		newest:   int64(binary.LittleEndian.Uint64(v[24:])),
		marks:    v[chunkFixed:end],
		frames:   v[end+4:],
	}, nil
}

func (c *chunk) last() int64 { return c.first + int64(c.count) - 1 }

// frame is one entry's bytes inside a chunk, not yet verified.
type frame struct {
	entry int64
	sum   uint32
	body  []byte
}

// chunkReader walks the frames of a chunk.
type chunkReader struct {
	chunk
	next   int // ordinal of the next frame in the chunk
	offset int // where it starts
}

// at starts at an entry of the chunk.
func (c *chunk) at(entry int64) chunkReader {
	r := chunkReader{chunk: *c}
	r.jump(int(entry-c.first) / chunkStride)
	for r.more() && r.first+int64(r.next) < entry {
		r.read()
	}
	return r
}

// jump goes to a mark; the one before the first is the chunk's start.
func (r *chunkReader) jump(mark int) {
	r.next, r.offset = mark*chunkStride, 0
	if mark > 0 {
		r.offset = r.markOffset(mark)
	}
}

func (r *chunkReader) markOffset(mark int) int {
	return int(binary.LittleEndian.Uint32(r.marks[(mark-1)*chunkMark:]))
}

// more reports whether the chunk has a next frame.
func (r *chunkReader) more() bool { return r.next < r.count }

// read returns the next frame and goes on behind it. Without a sound length ok is
// false, and the walk goes on at the next mark: what lies before it is lost.
func (r *chunkReader) read() (f frame, ok bool) {
	f.entry = r.first + int64(r.next)
	mark := r.next/chunkStride + 1
	limit := len(r.frames)
	if mark*chunkStride < r.count {
		limit = min(limit, r.markOffset(mark))
	}
	if f.body, f.sum, ok = r.body(limit); !ok {
		if mark*chunkStride < r.count {
			r.jump(mark)
		} else {
			r.next = r.count
		}
		return f, false
	}
	r.offset += frameHeader + len(f.body)
	r.next++
	if r.next == mark*chunkStride && r.more() {
		r.jump(mark)
	}
	return f, true
}

// body is the next frame's, which ends before limit.
func (r *chunkReader) body(limit int) (body []byte, sum uint32, ok bool) {
	if r.offset < 0 || r.offset+frameHeader > limit {
		return nil, 0, false
	}
	b := r.frames[r.offset:limit]
	n := binary.LittleEndian.Uint32(b)
	if uint64(n) > uint64(len(b)-frameHeader) {
		return nil, 0, false
	}
	return b[frameHeader : frameHeader+int(n)], binary.LittleEndian.Uint32(b[4:]), true
}

// open verifies a frame and decodes it. Facts are copies, data stays the file's.
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
