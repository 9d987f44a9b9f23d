package wire

import (
	"encoding/binary"
	"fmt"
	"math"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"wayside/wire/pulsarpb"
)

// Decode reads a serialized BaseCommand of any type. A type that is unknown or
// comes without its command, and a required field missing anywhere, are
// ErrMalformed. Unknown fields are dropped. The command owns its bytes.
func Decode(cmd []byte) (*pulsarpb.BaseCommand, error) {
	var c pulsarpb.BaseCommand
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(cmd, &c); err != nil {
		return nil, fmt.Errorf("wire: command: %w: %w", ErrMalformed, err)
	}
	if err := checkCommand(&c); err != nil {
		return nil, err
	}
	return &c, nil
}

// Wrap returns the envelope for one of the Command messages, for Decode's inverse
// [AppendCommand]. For anything else it is empty, which AppendCommand refuses.
func Wrap(sub proto.Message) *pulsarpb.BaseCommand {
	var c pulsarpb.BaseCommand
	if sub == nil || !sub.ProtoReflect().IsValid() {
		return &c
	}
	m := sub.ProtoReflect()
	want := m.Descriptor().FullName()
	all := c.ProtoReflect().Descriptor().Fields()
	for i := range all.Len() {
		f := all.Get(i)
		if f.Kind() == protoreflect.MessageKind && f.Message().FullName() == want {
			c.ProtoReflect().Set(f, protoreflect.ValueOfMessage(m))
			c.Type = pulsarpb.BaseCommand_Type(f.Number()).Enum()
			break
		}
	}
	return &c
}

// AppendCommand appends the frame of a command without payload to dst. On an
// error dst comes back as it was.
func AppendCommand(dst []byte, c *pulsarpb.BaseCommand) ([]byte, error) {
	return AppendPayloadCommand(dst, c, nil)
}

// AppendPayloadCommand appends the frame of a SEND or MESSAGE with its entry.
func AppendPayloadCommand(dst []byte, c *pulsarpb.BaseCommand, entry []byte) ([]byte, error) {
	if err := checkCommand(c); err != nil {
		return dst, err
	}
	out, err := proto.MarshalOptions{}.MarshalAppend(append(dst, make([]byte, prefixLength)...), c)
	if err != nil {
		return dst, fmt.Errorf("wire: encode %s: %w", c.GetType(), err)
	}
	command := len(out) - len(dst) - prefixLength
	if uint64(command)+uint64(len(entry))+sizeField > math.MaxUint32 {
		return dst, fmt.Errorf("wire: encode %s: %w", c.GetType(), ErrTooLarge)
	}
	putPrefix(out[len(dst):], command, len(entry))
	return append(out, entry...), nil
}

// putPrefix writes the two size fields of a frame.
func putPrefix(b []byte, command, entry int) {
	binary.BigEndian.PutUint32(b, uint32(sizeField+command+entry))
	binary.BigEndian.PutUint32(b[sizeField:], uint32(command))
}

// checkCommand tells whether a command of the named type is there. A field's
// number is its type's value.
func checkCommand(c *pulsarpb.BaseCommand) error {
	m := c.ProtoReflect()
	f := m.Descriptor().Fields().ByNumber(protoreflect.FieldNumber(c.GetType()))
	if c == nil || c.Type == nil || f == nil || f.Kind() != protoreflect.MessageKind || !m.Has(f) {
		return malformed(c.GetType(), "type unknown or without its command")
	}
	return nil
}
