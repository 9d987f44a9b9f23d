package wire

import (
	"encoding/binary"
	"fmt"

	"wayside/wire/pulsarpb"
)

const (
	// DefaultMaxMessageSize is the reference broker's maxMessageSize, in bytes.
	DefaultMaxMessageSize = 5 << 20
	// frameAllowance is what a frame may have beyond the largest message.
	frameAllowance = 10 << 10

	sizeField    = 4 // each of totalSize, commandSize, metadataSize, checksum
	prefixLength = 2 * sizeField
)

// MaxFrame returns the length of the longest legal frame in bytes, size field
// included, on a connection whose CONNECTED announced maxMessageSize.
func MaxFrame(maxMessageSize int) int { return maxMessageSize + frameAllowance }

// Header is what the first bytes of a frame tell.
type Header struct {
	Total   int // bytes that follow the totalSize field
	Command int // bytes of the command
	// Type is the command's type, or 0 when the command does not begin with it;
	// all known peers write it first. It may be a number that has no name.
	Type pulsarpb.BaseCommand_Type
}

// Body returns how many bytes follow the two size fields: command and payload.
func (h Header) Body() int { return h.Total - sizeField }

// Payload returns how many bytes follow the command: the entry of a SEND or
// MESSAGE, nothing that matters for others.
func (h Header) Payload() int { return h.Body() - h.Command }

// Frame is one whole frame. Its slices borrow from the bytes it was split from.
type Frame struct {
	Header
	CommandBytes []byte // the serialized BaseCommand
	Entry        []byte // what follows it
}

// SplitFrame splits exactly one frame, size field included.
func SplitFrame(b []byte) (Frame, error) {
	if len(b) < prefixLength {
		return Frame{}, fmt.Errorf("wire: frame of %d bytes: %w", len(b), ErrMalformed)
	}
	total, command := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[sizeField:])
	if uint64(total) != uint64(len(b)-sizeField) {
		return Frame{}, fmt.Errorf("wire: frame says %d bytes, has %d: %w", total, len(b)-sizeField, ErrMalformed)
	}
	if err := checkSizes(total, command, len(b)); err != nil {
		return Frame{}, err
	}
	end := prefixLength + int(command)
	f := Frame{CommandBytes: b[prefixLength:end:end], Entry: b[end:]}
	f.Header = Header{Total: int(total), Command: int(command), Type: peekType(f.CommandBytes)}
	return f, nil
}

// checkTotal checks a frame's totalSize as soon as it is known. The limit counts
// the field itself.
func checkTotal(total uint32, limit int) error {
	if uint64(total)+sizeField > uint64(max(limit, 0)) {
		return fmt.Errorf("wire: frame of %d bytes, limit %d: %w", uint64(total)+sizeField, limit, ErrTooLarge)
	}
	if total < sizeField {
		return fmt.Errorf("wire: frame without room for a command (totalSize %d): %w", total, ErrMalformed)
	}
	return nil
}

func checkSizes(total, command uint32, limit int) error {
	if err := checkTotal(total, limit); err != nil {
		return err
	}
	if command == 0 || command > total-sizeField {
		return fmt.Errorf("wire: command of %d bytes in a frame of %d: %w", command, total, ErrMalformed)
	}
	return nil
}

// typePeek is how many bytes of a command show its type: a tag and a varint
// below 2^14, which leaves room for all types there will be.
const typePeek = 3

// peekType reads the type from the first bytes of a command.
func peekType(b []byte) pulsarpb.BaseCommand_Type {
	const typeTag = 1 << 3
	if len(b) < 2 || b[0] != typeTag {
		return 0
	}
	if b[1] < 0x80 {
		return pulsarpb.BaseCommand_Type(b[1])
	}
	if len(b) < 3 || b[2] >= 0x80 {
		return 0
	}
	return pulsarpb.BaseCommand_Type(int32(b[1]&0x7f) | int32(b[2])<<7)
}

// AppendTo appends the two size fields, with which the frame begins.
func (h Header) AppendTo(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(h.Total))
	return binary.BigEndian.AppendUint32(dst, uint32(h.Command))
}
