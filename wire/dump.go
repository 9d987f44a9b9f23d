package wire

import (
	"encoding/binary"
	"encoding/hex"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"wayside/wire/pulsarpb"
)

const (
	dumpLength  = 4 << 10 // bytes of a dump, give or take the last value
	dumpPreview = 48      // bytes shown of a payload
	dumpString  = 256     // bytes shown of a string in a command or header
	dumpHex     = 48      // bytes shown of what cannot be read
	dumpSingles = 12      // messages shown of a batch
)

// Dump tells in one line what a frame says, size field included: the command with
// its fields in the order they came, and for SEND and MESSAGE the header of the
// entry, the state of its checksum and the start of its payload. It reads what it
// can of a frame that is broken, shows no credentials, and is bounded in length.
func Dump(frame []byte) string {
	f, err := SplitFrame(frame)
	if err != nil {
		return string(appendBroken(nil, frame, err))
	}
	var d dumper
	d.command(f)
	if f.Payload() > 0 {
		d.entry(f.Entry)
	}
	return string(d.out)
}

func appendBroken(dst, b []byte, err error) []byte {
	dst = append(dst, "? "...)
	dst = append(dst, err.Error()...)
	dst = append(dst, ": "...)
	dst = hex.AppendEncode(dst, b[:min(len(b), dumpHex)])
	if len(b) > dumpHex {
		dst = append(dst, "..."...)
	}
	return dst
}

// dumper writes fields the way protobuf's text format does, on one line.
type dumper struct {
	out []byte
}

// command writes type and fields of the command that belongs to it.
func (d *dumper) command(f Frame) {
	num, sub, ok := namedCommand(f.CommandBytes)
	if !ok {
		d.out = appendBroken(d.out, f.CommandBytes, ErrMalformed)
		return
	}
	d.out = append(d.out, pulsarpb.BaseCommand_Type(num).String()...)
	d.out = append(d.out, " {"...)
	base := (*pulsarpb.BaseCommand)(nil).ProtoReflect().Descriptor()
	if desc := base.Fields().ByNumber(num); desc != nil && desc.Message() != nil {
		d.message(desc.Message(), sub)
	}
	d.out = append(d.out, '}')
}

// namedCommand returns the type a BaseCommand names and the command of that type.
func namedCommand(cmd []byte) (num protowire.Number, sub []byte, ok bool) {
	var f field
	var subs [128][]byte // by number; known types are below
	for all := fields(cmd); ; {
		more, bad := all.more(&f)
		if bad {
			return 0, nil, false
		}
		if !more {
			break
		}
		switch {
		case f.varint(1):
			num = protowire.Number(f.v)
		case f.typ == protowire.BytesType && int(f.num) < len(subs):
			subs[f.num] = f.b
		}
	}
	if num > 0 && int(num) < len(subs) {
		sub = subs[num]
	}
	return num, sub, num != 0
}

// entry writes what follows a SEND or MESSAGE.
func (d *dumper) entry(b []byte) {
	b, ok := d.brokerEntry(b)
	if !ok {
		return
	}
	checksum := "absent"
	if len(b) >= checksumLength && binary.BigEndian.Uint16(b) == magicChecksum {
		checksum = "ok"
		if crc32c(b[checksumLength:]) != binary.BigEndian.Uint32(b[magicLength:]) {
			checksum = "BAD"
		}
		b = b[checksumLength:]
	}
	m, err := ParseMessage(b) // without its checksum
	if err != nil {
		d.out = append(append(d.out, " crc="...), checksum...)
		d.out = appendBroken(append(d.out, ' '), b, err)
		return
	}
	d.out = append(d.out, " meta{"...)
	d.message((*pulsarpb.MessageMetadata)(nil).ProtoReflect().Descriptor(), m.Metadata)
	d.out = append(append(d.out, "} crc="...), checksum...)
	d.out = strconv.AppendInt(append(d.out, " payload="...), int64(len(m.Payload)), 10)
	d.payload(&m)
}

// brokerEntry writes the broker entry metadata, if there is one, and returns what
// follows it.
func (d *dumper) brokerEntry(b []byte) ([]byte, bool) {
	meta, rest, err := SplitBrokerEntry(b)
	if err != nil {
		d.out = appendBroken(append(d.out, ' '), b, err)
		return nil, false
	}
	if meta != nil {
		d.out = append(d.out, " entry{"...)
		d.message((*pulsarpb.BrokerEntryMetadata)(nil).ProtoReflect().Descriptor(), meta)
		d.out = append(d.out, '}')
	}
	return rest, true
}

// payload shows the start of a payload, of a batch that of each message. What is
// compressed or encrypted is not shown.
func (d *dumper) payload(m *Message) {
	if m.Compression != pulsarpb.CompressionType_NONE || m.EncryptionKeys > 0 {
		return
	}
	if !m.Batch {
		d.preview(m.Payload)
		return
	}
	var s Single
	for b, i := m.Payload, 0; len(b) > 0; i++ {
		if i == dumpSingles {
			d.out = append(d.out, " ..."...)
			return
		}
		rest, err := takeSingle(b, &s)
		if err != nil {
			d.out = appendBroken(append(d.out, ' '), b, err)
			return
		}
		d.out = strconv.AppendInt(append(d.out, " ["...), int64(i), 10)
		d.out = append(d.out, "]{"...)
		size := binary.BigEndian.Uint32(b)
		d.message((*pulsarpb.SingleMessageMetadata)(nil).ProtoReflect().Descriptor(), b[sizeField:sizeField+size])
		d.out = append(d.out, '}')
		d.preview(s.Payload)
		b = rest
	}
}

func (d *dumper) preview(b []byte) {
	if len(b) > 0 {
		d.quote(append(d.out, ' '), b, dumpPreview)
	}
}

// message writes the fields of a serialized message, unknown ones by number.
func (d *dumper) message(desc protoreflect.MessageDescriptor, b []byte) {
	var f field
	for all, first := fields(b), true; ; first = false {
		ok, bad := all.more(&f)
		if bad {
			d.out = appendBroken(append(d.out, ' '), all, ErrMalformed)
			return
		}
		if !ok {
			return
		}
		if !first {
			d.out = append(d.out, ' ')
		}
		if len(d.out) > dumpLength {
			d.out = append(d.out, "..."...)
			return
		}
		d.field(desc.Fields().ByNumber(f.num), &f)
	}
}
