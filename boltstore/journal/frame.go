package journal

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// A frame starts at a multiple of 8:
//
//	mark(8) crc(4) length(4) commit(8) kind(1) zero(7) payload
//
// crc covers all that follows it. length counts the payload; zeros fill it up to a
// multiple of 8.
const (
	// FrameHead is what a frame takes before its payload, bytes.
	FrameHead = 32

	frameAlign = 8
)

// Kinds of frames.
const (
	kindGroup = 1
	kindLink  = 2
)

// linkBytes is the payload of a link: number and end of the segment before, both zero
// for the first.
const linkBytes = 16

// frameBytes is what a frame with a payload of n bytes takes.
func frameBytes(n int) int64 { return (int64(n) + FrameHead + frameAlign - 1) &^ (frameAlign - 1) }

// frame is a frame's head.
type frame struct {
	sum    uint32
	length int
	commit uint64
	kind   byte
}

// seal fills in the head of a frame, whose payload starts at FrameHead.
func seal(b []byte, mark, commit uint64, kind byte) {
	clear(b[:FrameHead])
	binary.LittleEndian.PutUint64(b, mark)
	binary.LittleEndian.PutUint32(b[12:], uint32(len(b)-FrameHead))
	binary.LittleEndian.PutUint64(b[16:], commit)
	b[24] = kind
	binary.LittleEndian.PutUint32(b[8:], crc32.Checksum(b[12:], castagnoli))
}

// parseFrame reads a head that has to bear the mark. room is what there is for the frame.
func parseFrame(b []byte, mark uint64, room int64) (frame, bool) {
	f := frame{
		sum:    binary.LittleEndian.Uint32(b[8:]),
		length: int(binary.LittleEndian.Uint32(b[12:])),
		commit: binary.LittleEndian.Uint64(b[16:]),
		kind:   b[24],
	}
	ok := binary.LittleEndian.Uint64(b) == mark && f.length >= 0 && frameBytes(f.length) <= room && (f.kind == kindGroup || f.kind == kindLink && f.length == linkBytes)
	return f, ok
}

// sound reports whether a whole frame, head and payload, is as it was written.
func (f frame) sound(b []byte) bool {
	return crc32.Checksum(b[12:FrameHead+f.length], castagnoli) == f.sum
}

// link says where the log ends before a segment.
type link struct {
	before uint64 // number of a segment
	end    int64  // offset in it
}

// appendLink appends the frame of a link to a buffer that is a multiple of 8 long.
func appendLink(b []byte, mark, commit uint64, l link) []byte {
	start := len(b)
	b = append(b, make([]byte, FrameHead)...)
	b = binary.LittleEndian.AppendUint64(b, l.before)
	b = binary.LittleEndian.AppendUint64(b, uint64(l.end))
	seal(b[start:], mark, commit, kindLink)
	return b
}

func parseLink(payload []byte) link {
	return link{binary.LittleEndian.Uint64(payload), int64(binary.LittleEndian.Uint64(payload[8:]))}
}

// readLink reads the link that a segment starts with. Without one it is not in use.
func (s *segment) readLink() (l link, commit uint64, err error) {
	var b [FrameHead + linkBytes]byte
	if err := s.read(b[:], headBytes); err != nil {
		return link{}, 0, fmt.Errorf("link: %w", err)
	}
	f, ok := parseFrame(b[:], s.mark, s.size-headBytes)
	if !ok || f.kind != kindLink || !f.sound(b[:]) {
		return link{}, 0, fmt.Errorf("segment %d has no link: %w", s.number, ErrDamaged)
	}
	return parseLink(b[FrameHead:]), f.commit, nil
}
