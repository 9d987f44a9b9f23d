package wire

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"wayside/wire/pulsarpb"
)

// field is one field of a protobuf message: v for a varint or fixed64, b for a
// string, bytes or message. Other wire types are passed over; nothing here uses
// them.
type field struct {
	num protowire.Number
	typ protowire.Type
	v   uint64
	b   []byte
}

// fields walks through the fields of a protobuf message. A field whose wire type
// is not the expected one counts as unknown, as in the generated code.
type fields []byte

// more takes the next field. It returns false at the end and on bytes that are
// not protobuf; bad tells the two apart.
func (f *fields) more(out *field) (ok, bad bool) {
	if len(*f) == 0 {
		return false, false
	}
	num, typ, n := protowire.ConsumeTag(*f)
	if n < 0 || num > protowire.MaxValidNumber {
		return false, true
	}
	b := (*f)[n:]
	*out = field{num: num, typ: typ}
	switch typ {
	case protowire.VarintType:
		out.v, n = protowire.ConsumeVarint(b)
	case protowire.BytesType:
		out.b, n = protowire.ConsumeBytes(b)
	case protowire.Fixed64Type:
		out.v, n = protowire.ConsumeFixed64(b)
	default:
		n = protowire.ConsumeFieldValue(num, typ, b)
	}
	if n < 0 {
		return false, true
	}
	*f = b[n:]
	return true, false
}

// varint tells whether the field is number num in its expected type.
func (f *field) varint(num protowire.Number) bool {
	return f.num == num && f.typ == protowire.VarintType
}

func (f *field) bytes(num protowire.Number) bool {
	return f.num == num && f.typ == protowire.BytesType
}

// countBytes counts the fields num that are strings or messages, so that room for
// them can be bounded and made at once.
func countBytes(b []byte, num protowire.Number) (count int) {
	var f field
	for all := fields(b); ; {
		if ok, _ := all.more(&f); !ok {
			return count
		}
		if f.bytes(num) {
			count++
		}
	}
}

// subCommand finds the command of type want within a serialized BaseCommand.
func subCommand(cmd []byte, want pulsarpb.BaseCommand_Type) ([]byte, error) {
	var (
		f     field
		typ   pulsarpb.BaseCommand_Type
		sub   []byte
		found int
	)
	for all := fields(cmd); ; {
		ok, bad := all.more(&f)
		if bad {
			return nil, malformed(want, "not protobuf")
		}
		if !ok {
			break
		}
		switch {
		case f.varint(1):
			typ = pulsarpb.BaseCommand_Type(int32(f.v))
		case f.bytes(protowire.Number(want)):
			sub = f.b
			found++
		}
	}
	if typ != want || found != 1 {
		return nil, malformed(want, "type or command missing")
	}
	return sub, nil
}

func malformed(typ pulsarpb.BaseCommand_Type, what string) error {
	return fmt.Errorf("wire: %s: %s: %w", typ, what, ErrMalformed)
}
