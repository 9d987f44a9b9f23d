package journal

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A segment's head is its first page:
//
//	magic(8) version(4) zero(4) number(8) mark(8) crc(4)
//
// All numbers are little endian; crc is Castagnoli's over what is before it.
const (
	headBytes   = 4096
	headUsed    = 36
	headVersion = 1
)

var headMagic = []byte("waysegmt")

// ErrDamaged marks bytes that are not what was written.
var ErrDamaged = errors.New("journal is damaged")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const (
	segmentPrefix = "journal-"
	sparePrefix   = "spare-"
	suffix        = ".seg"
	unfinished    = suffix + ".new" // a file that is being made
)

// segment is one file of the log.
type segment struct {
	number   uint64
	mark     uint64
	file     *os.File
	size     int64 // of the file, all of it written
	end      int64 // of what counts in it, 0 before it is in use
	pins     int   // readers; guarded by Log.mu
	unlinked bool  // has lost its link
}

func segmentName(number uint64) string { return fmt.Sprintf("%s%06d%s", segmentPrefix, number, suffix) }

// numberOf is the number in a file's name.
func numberOf(name, prefix string) (uint64, bool) {
	digits, ok := strings.CutPrefix(name, prefix)
	if !ok {
		return 0, false
	}
	if digits, ok = strings.CutSuffix(digits, suffix); !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, err == nil
}

// newMark is random: whoever writes payloads cannot know it.
func newMark() (mark uint64) {
	var b [8]byte
	for mark == 0 {
		rand.Read(b[:]) //nolint:errcheck // never fails
		mark = binary.LittleEndian.Uint64(b[:])
	}
	return mark
}

// head is the head page of a segment.
func (s *segment) head() []byte {
	b := append(make([]byte, 0, headBytes), headMagic...)
	b = binary.LittleEndian.AppendUint32(b, headVersion)
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = binary.LittleEndian.AppendUint64(b, s.number)
	b = binary.LittleEndian.AppendUint64(b, s.mark)
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	return b[:headBytes]
}

// errForeign is a head that a newer program has written.
var errForeign = errors.New("journal was written by a newer version")

// openSegment opens a file as a segment. One with a rotten head is rescued if it is in use.
// Otherwise it is ErrDamaged.
func openSegment(path string, number uint64, readOnly bool) (*segment, error) {
	flag := os.O_RDWR
	if readOnly {
		flag = os.O_RDONLY
	}
	f, err := os.OpenFile(path, flag, 0)
	if err != nil {
		return nil, err
	}
	s := &segment{file: f}
	st, err := f.Stat()
	if err == nil {
		s.size = st.Size()
		err = s.readHead()
	}
	if err == nil && s.number < number { // it is written before the name is given
		err = fmt.Errorf("head of an earlier use: %w", ErrDamaged)
	}
	if errors.Is(err, ErrDamaged) && s.rescue(number) {
		err = nil
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", filepath.Base(path), err), f.Close())
	}
	return s, nil
}

func (s *segment) readHead() error {
	var b [headUsed]byte
	if err := s.read(b[:], 0); err != nil {
		return err
	}
	sum := binary.LittleEndian.Uint32(b[headUsed-4:])
	if !bytes.Equal(b[:8], headMagic) || sum != crc32.Checksum(b[:headUsed-4], castagnoli) {
		return fmt.Errorf("head: %w", ErrDamaged)
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != headVersion {
		return fmt.Errorf("form %d: %w", v, errForeign)
	}
	s.number, s.mark = binary.LittleEndian.Uint64(b[16:]), binary.LittleEndian.Uint64(b[24:])
	return nil
}

// rescue takes the number from the file's name and the mark from its link, if that is
// sound.
func (s *segment) rescue(number uint64) bool {
	var mark [8]byte
	if s.read(mark[:], headBytes) != nil {
		return false
	}
	earlier := s.mark
	s.number, s.mark = number, binary.LittleEndian.Uint64(mark[:])
	_, _, err := s.readLink()
	return err == nil && s.mark != earlier
}
