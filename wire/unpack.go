package wire

import (
	"fmt"

	"wayside/wire/pulsarpb"
)

// Unpack opens one entry. Who opens many keeps an [Unpacker], which does not make
// its decoders anew each time.
func Unpack(data []byte, limit int, visit func(Single) error) error {
	var u Unpacker
	defer u.Close()
	return u.Unpack(data, limit, visit)
}

// Unpack opens an entry into its messages and calls visit for each in order. The
// whole entry is checked first: either all of its messages are visited, or none,
// unless visit itself returns an error, which ends it.
//
// limit bounds the uncompressed payload in bytes; above it is ErrTooLarge, before
// anything is allocated. Beyond those of ParseMessage there are ErrEncrypted,
// ErrCompression, and ErrCount when a batch does not hold what its header claims.
func (u *Unpacker) Unpack(data []byte, limit int, visit func(Single) error) error {
	m, err := ParseMessage(data)
	if err != nil {
		return err
	}
	return u.Open(&m, limit, visit)
}

// Open does what Unpack does, for an entry that was parsed already.
func (u *Unpacker) Open(m *Message, limit int, visit func(Single) error) error {
	if m.EncryptionKeys > 0 {
		return fmt.Errorf("wire: open entry: %w", ErrEncrypted)
	}
	payload, err := u.decompress(m, limit)
	if err != nil {
		return err
	}
	if !m.Batch {
		return visit(m.alone(payload))
	}
	if err := m.walk(payload, nil); err != nil {
		return err
	}
	return m.walk(payload, visit)
}

// walk goes through a batch; without visit it only checks it.
func (m *Message) walk(payload []byte, visit func(Single) error) (err error) {
	if m.NumMessages < 1 {
		return fmt.Errorf("wire: batch claims %d messages: %w", m.NumMessages, ErrCount)
	}
	var s Single
	for i := range int(m.NumMessages) {
		s.Index = i
		if payload, err = takeSingle(payload, &s); err != nil {
			return fmt.Errorf("wire: message %d of %d: %w", i, m.NumMessages, err)
		}
		if visit == nil {
			continue
		}
		if !s.hasOwnSequence {
			s.SequenceID = m.SequenceID + int64(i)
		}
		if err = visit(s); err != nil {
			return err
		}
	}
	if len(payload) > 0 {
		return fmt.Errorf("wire: %d bytes behind the last of %d messages: %w", len(payload), m.NumMessages, ErrCount)
	}
	return nil
}

// decompress returns the plain payload, borrowed or newly made. Official clients
// leave uncompressed_size out or set it to the payload's length when they do not
// compress.
func (u *Unpacker) decompress(m *Message, limit int) ([]byte, error) {
	size := uint64(len(m.Payload))
	if m.Compression != pulsarpb.CompressionType_NONE {
		size = uint64(m.UncompressedSize)
	}
	if size > uint64(max(limit, 0)) {
		return nil, fmt.Errorf("wire: uncompressed payload of %d bytes, limit %d: %w", size, limit, ErrTooLarge)
	}
	if m.Compression == pulsarpb.CompressionType_NONE {
		return m.Payload, nil
	}
	plain, err := u.inflate(m.Compression, m.Payload, int(size))
	if err != nil {
		return nil, fmt.Errorf("wire: %s: %w: %w", m.Compression, ErrCompression, err)
	}
	return plain, nil
}
