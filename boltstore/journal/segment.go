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

// openSegment reads the head of a file. Without a sound one it is no segment.
func openSegment(path string) (*segment, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	s, err := readHead(f)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", filepath.Base(path), err), f.Close())
	}
	return s, nil
}

func readHead(f *os.File) (*segment, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	var b [headUsed]byte
	if _, err := f.ReadAt(b[:], 0); err != nil {
		return nil, fmt.Errorf("head: %w: %w", ErrDamaged, err)
	}
	sum := binary.LittleEndian.Uint32(b[headUsed-4:])
	if !bytes.Equal(b[:8], headMagic) || sum != crc32.Checksum(b[:headUsed-4], castagnoli) {
		return nil, fmt.Errorf("head: %w", ErrDamaged)
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != headVersion {
		return nil, fmt.Errorf("form %d: %w", v, errForeign)
	}
	return &segment{
		number: binary.LittleEndian.Uint64(b[16:]), mark: binary.LittleEndian.Uint64(b[24:]),
		file: f, size: st.Size(),
	}, nil
}

// rescueSegment opens a file with a rotten head: its name has the number, its link the
// mark.
func rescueSegment(path string, number uint64) (*segment, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	s := &segment{number: number, file: f, size: st.Size()}
	var mark [8]byte
	if err := s.read(mark[:], headBytes); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	s.mark = binary.LittleEndian.Uint64(mark[:])
	if _, _, err := s.readLink(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: no head and %w", filepath.Base(path), err), f.Close())
	}
	return s, nil
}
