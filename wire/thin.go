package wire

import (
	"encoding/binary"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"wayside/wire/pulsarpb"
)

// Keyed is what compaction has to know of one message.
type Keyed struct {
	Index int    // in its batch, 0 for one that is alone
	Key   []byte // as the metadata has it; borrowed from the entry, or from bytes made for it
	Has   bool   // a key is there
	Null  bool   // nothing is in it: it voids its key
}

// Keys visits the messages of an entry, but those that compaction has taken out
// before. A message alone is seen even if it is encrypted; a batch that is gives
// ErrEncrypted. Otherwise it fails as [Unpacker.Unpack] does.
func (u *Unpacker) Keys(data []byte, limit int, visit func(Keyed)) error {
	m, err := ParseMessage(data)
	if err != nil {
		return err
	}
	if !m.Batch {
		visit(Keyed{Key: m.PartitionKey, Has: m.HasPartitionKey, Null: m.void()})
		return nil
	}
	return u.Open(&m, limit, func(s Single) error {
		if !s.CompactedOut {
			visit(Keyed{Index: s.Index, Key: s.Key, Has: s.HasKey, Null: s.NullValue || len(s.Payload) == 0})
		}
		return nil
	})
}

// void reports whether a message that is alone has nothing in it. One that is
// compressed or encrypted may say so by its uncompressed size only.
func (m *Message) void() bool {
	if m.NullValue || len(m.Payload) == 0 {
		return true
	}
	var f field
	for all := fields(m.Metadata); ; {
		if ok, _ := all.more(&f); !ok {
			return false
		}
		if f.varint(fieldUncompressedSize) {
			return f.v == 0
		}
	}
}

// fieldUncompressedSize is uncompressed_size of MessageMetadata.
const fieldUncompressedSize = 9

// Thin writes a batch anew in which only the messages stay that keep wants. The others
// keep their place, without content and marked as compacted out, as the reference does
// it; so the indexes in message ids stay true. The header stays, unknown fields and all,
// but for the uncompressed size; the kind of compression stays too.
func (u *Unpacker) Thin(data []byte, limit int, keep func(index int) bool) ([]byte, error) {
	m, err := ParseMessage(data)
	if err != nil {
		return nil, err
	}
	if !m.Batch || m.EncryptionKeys > 0 {
		return nil, fmt.Errorf("wire: thin out what is no open batch: %w", ErrEncrypted)
	}
	payload, err := u.decompress(&m, limit)
	if err != nil {
		return nil, err
	}
	if err := m.walk(payload, nil); err != nil {
		return nil, err
	}
	plain, err := m.thin(payload, keep)
	if err != nil {
		return nil, err
	}
	packed, err := deflate(m.Compression, plain)
	if err != nil {
		return nil, err
	}
	return assemble(m.metadataFor(len(plain)), packed), nil
}

func (m *Message) thin(payload []byte, keep func(int) bool) ([]byte, error) {
	out := make([]byte, 0, len(payload)+len(compactedOut))
	var s Single
	for i := range int(m.NumMessages) {
		s.Index = i
		rest, err := takeSingle(payload, &s)
		if err != nil {
			return nil, err
		}
		if keep(i) && !s.CompactedOut {
			out = append(out, payload[:len(payload)-len(rest)]...)
		} else {
			out = append(out, compactedOut...)
		}
		payload = rest
	}
	return out, nil
}

// compactedOut is the place of a message that was taken out of a batch: the size of its
// header, and in that payload_size 0 and compacted_out true.
const compactedOut = "\x00\x00\x00\x04\x18\x00\x20\x01"

// metadataFor is the header with another uncompressed size, if it had one or needs one.
func (m *Message) metadataFor(size int) []byte {
	out := make([]byte, 0, len(m.Metadata)+binary.MaxVarintLen32)
	had := m.Compression != pulsarpb.CompressionType_NONE
	var f field
	for all := fields(m.Metadata); ; {
		before := all
		if ok, _ := all.more(&f); !ok {
			break
		}
		if f.num == fieldUncompressedSize {
			had = true
			continue
		}
		out = append(out, before[:len(before)-len(all)]...)
	}
	if had {
		out = protowire.AppendTag(out, fieldUncompressedSize, protowire.VarintType)
		out = protowire.AppendVarint(out, uint64(size))
	}
	return out
}

// assemble makes an entry, checksum first, of a serialized header and a payload.
func assemble(metadata, payload []byte) []byte {
	out := make([]byte, 0, checksumLength+sizeField+len(metadata)+len(payload))
	out = binary.BigEndian.AppendUint16(out, magicChecksum)
	out = binary.BigEndian.AppendUint32(out, 0)
	out = binary.BigEndian.AppendUint32(out, uint32(len(metadata)))
	out = append(append(out, metadata...), payload...)
	binary.BigEndian.PutUint32(out[magicLength:], crc32c(out[checksumLength:]))
	return out
}
