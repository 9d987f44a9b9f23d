package wire

import (
	"math"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// field writes one field as its descriptor says, nil for an unknown one.
func (d *dumper) field(desc protoreflect.FieldDescriptor, f *field) {
	if desc == nil {
		d.out = strconv.AppendInt(d.out, int64(f.num), 10)
	} else {
		d.out = append(d.out, desc.Name()...)
	}
	switch f.typ {
	case protowire.VarintType:
		d.varint(desc, f.v)
	case protowire.Fixed64Type:
		d.out = strconv.AppendFloat(append(d.out, ':'), math.Float64frombits(f.v), 'g', -1, 64)
	case protowire.BytesType:
		d.bytes(desc, f.b)
	default:
		d.out = append(d.out, ":?"...)
	}
}

func (d *dumper) varint(desc protoreflect.FieldDescriptor, v uint64) {
	d.out = append(d.out, ':')
	d.number(desc, v)
}

func (d *dumper) number(desc protoreflect.FieldDescriptor, v uint64) {
	kind := protoreflect.Uint64Kind
	if desc != nil {
		kind = desc.Kind()
	}
	switch kind {
	case protoreflect.EnumKind:
		if e := desc.Enum().Values().ByNumber(protoreflect.EnumNumber(v)); e != nil {
			d.out = append(d.out, e.Name()...)
			return
		}
	case protoreflect.BoolKind:
		d.out = strconv.AppendBool(d.out, v != 0)
		return
	case protoreflect.Int32Kind, protoreflect.Int64Kind:
		d.out = strconv.AppendInt(d.out, int64(v), 10)
		return
	}
	d.out = strconv.AppendUint(d.out, v, 10)
}

// bytes writes a string, a message, a packed list, or the length of a secret.
func (d *dumper) bytes(desc protoreflect.FieldDescriptor, b []byte) {
	kind := protoreflect.BytesKind
	if desc != nil {
		kind = desc.Kind()
	}
	switch {
	case kind == protoreflect.MessageKind:
		d.out = append(d.out, " {"...)
		d.message(desc.Message(), b)
		d.out = append(d.out, '}')
	case desc != nil && len(b) > 0 && isSecret(string(desc.Name())):
		d.out = strconv.AppendInt(append(d.out, ":<"...), int64(len(b)), 10)
		d.out = append(d.out, " bytes>"...)
	case kind == protoreflect.BytesKind || kind == protoreflect.StringKind:
		d.quote(append(d.out, ':'), b, dumpString)
	default:
		d.packed(desc, b)
	}
}

// isSecret knows the fields that carry tokens and passwords.
func isSecret(name string) bool { return strings.HasSuffix(name, "auth_data") }

func (d *dumper) packed(desc protoreflect.FieldDescriptor, b []byte) {
	d.out = append(d.out, ":["...)
	for first := true; len(b) > 0 && len(d.out) < dumpLength; first = false {
		v, n := protowire.ConsumeVarint(b)
		if n < 0 {
			d.out = append(d.out, " ?"...)
			break
		}
		if !first {
			d.out = append(d.out, ", "...)
		}
		d.number(desc, v)
		b = b[n:]
	}
	d.out = append(d.out, ']')
}

// quote appends up to limit bytes to dst: printable ASCII as it is, the rest \xHH.
func (d *dumper) quote(dst, b []byte, limit int) {
	const hexDigits = "0123456789abcdef"
	dst = append(dst, '"')
	for _, c := range b[:min(len(b), limit)] {
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < ' ' || c > '~':
			dst = append(dst, '\\', 'x', hexDigits[c>>4], hexDigits[c&15])
		default:
			dst = append(dst, c)
		}
	}
	dst = append(dst, '"')
	if len(b) > limit {
		dst = append(dst, "..."...)
	}
	d.out = dst
}
