package wire_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"google.golang.org/protobuf/proto"

	"wayside/wire"
	"wayside/wire/pulsarpb"
)

// Findings of the fuzzer are kept in testdata/fuzz. The seeds are the golden frames
// and what the tables of the other tests make.

// FuzzReader: frames of any bytes, read whole, in two parts or not at all, are the
// bytes themselves; the limit holds; all errors are of a known kind.
func FuzzReader(f *testing.F) {
	var stream []byte
	for _, g := range golden(f) {
		f.Add(g.Frame, uint16(2000), false)
		stream = append(stream, g.Frame...)
	}
	f.Add(stream, uint16(5000), true)
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"), uint16(5000), true)
	f.Fuzz(func(t *testing.T, b []byte, limit uint16, pooled bool) {
		r := wire.NewReader(bytes.NewReader(b), int(limit))
		if pooled {
			r.SetBuffers(wire.NewBuffers(1, 2048))
		}
		for at := 0; ; {
			h, err := r.Next()
			if err != nil {
				checkReaderEnd(t, err, len(b)-at)
				return
			}
			if h.Total+4 > int(limit) || h.Command < 1 || h.Payload() < 0 {
				t.Fatalf("header %+v with limit %d", h, limit)
			}
			body := make([]byte, h.Body())
			err = errors.Join(r.ReadBody(body[:h.Command]), r.ReadBody(body[h.Command:]))
			if err != nil {
				if !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Fatal(err)
				}
				return
			}
			frame := append(h.AppendTo(nil), body...)
			if !bytes.Equal(frame, b[at:at+len(frame)]) {
				t.Fatalf("frame at %d: %x", at, frame)
			}
			at += len(frame)
			if s, err := wire.SplitFrame(frame); err != nil || s.Header != h {
				t.Fatalf("%+v split as %+v, %v", h, s.Header, err)
			}
		}
	})
}

func checkReaderEnd(t *testing.T, err error, left int) {
	if err == io.EOF && left == 0 || err == io.ErrUnexpectedEOF && left > 0 ||
		errors.Is(err, wire.ErrTooLarge) || errors.Is(err, wire.ErrMalformed) {
		return
	}
	t.Fatalf("%d bytes left: %v", left, err)
}

// FuzzDecode: what is accepted can be encoded and means the same again; the hand
// scanners agree with the generated code; a dump is one bounded line.
func FuzzDecode(f *testing.F) {
	for _, g := range golden(f) {
		s, err := wire.SplitFrame(g.Frame)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(s.CommandBytes)
	}
	f.Fuzz(func(t *testing.T, cmd []byte) {
		c, err := wire.Decode(cmd)
		if err != nil {
			if !errors.Is(err, wire.ErrMalformed) {
				t.Fatal(err)
			}
			return
		}
		compareHot(t, cmd)
		frame, err := wire.AppendCommand(nil, c)
		if err != nil {
			t.Fatal(err)
		}
		again, err := wire.Decode(frame[8:])
		if err != nil || !proto.Equal(c, again) {
			t.Fatalf("%v again is %v, %v", c, again, err)
		}
		if text := wire.Dump(frame); len(text) > 8<<10 || bytes.ContainsRune([]byte(text), '\n') {
			t.Fatalf("dump of %d characters", len(text))
		}
	})
}

// FuzzAck: the scanners of commands with ids take any bytes, agree with the
// generated code where that accepts them, and are not disturbed by what was in the
// struct before.
func FuzzAck(f *testing.F) {
	for _, a := range []*pulsarpb.CommandAck{ackOf(), ackOf(nil), ackOf([]int64{-1, 2}, nil, []int64{5})} {
		f.Add(commandBytes(f, a))
		f.Add(commandBytes(f, &pulsarpb.CommandRedeliverUnacknowledgedMessages{ConsumerId: a.ConsumerId, MessageIds: a.MessageId}))
	}
	for _, name := range []string{"ack-go", "ack-batch-index", "ack-in-txn", "redeliver", "redeliver-epoch"} {
		f.Add(goldenFrame(f, name).CommandBytes)
	}
	old := commandBytes(f, ackOf([]int64{7, 8, 9}, []int64{10}))
	f.Fuzz(func(t *testing.T, cmd []byte) {
		var fresh, used wire.Ack
		if err := wire.ParseAck(old, &used); err != nil {
			t.Fatal(err)
		}
		err := wire.ParseAck(cmd, &fresh)
		if again := wire.ParseAck(cmd, &used); (again == nil) != (err == nil) || err == nil && !sameAck(fresh, used) {
			t.Fatalf("%+v, %v; in a used struct %+v, %v", fresh, err, used, again)
		}
		if err != nil && !errors.Is(err, wire.ErrMalformed) && !errors.Is(err, wire.ErrTooLarge) {
			t.Fatal(err)
		}
		var r wire.Redeliver
		if err := wire.ParseRedeliver(cmd, &r); err != nil && !errors.Is(err, wire.ErrMalformed) && !errors.Is(err, wire.ErrTooLarge) {
			t.Fatal(err)
		}
		compareHot(t, cmd)
	})
}

// FuzzParseMessage: any metadata under a good checksum is refused or accepted as
// the generated code does, and says the same.
func FuzzParseMessage(f *testing.F) {
	for _, g := range golden(f) {
		s, err := wire.SplitFrame(g.Frame)
		if err != nil {
			f.Fatal(err)
		}
		if m, err := wire.ParseMessage(s.Entry); err == nil {
			f.Add(m.Metadata, m.Payload)
		}
	}
	f.Fuzz(func(t *testing.T, meta, payload []byte) {
		official := proto.Unmarshal(meta, new(pulsarpb.MessageMetadata))
		m, err := wire.ParseMessage(raw(meta, string(payload)))
		if (err == nil) != (official == nil) {
			t.Fatalf("%x: %v, the generated code says %v", meta, err, official)
		}
		if err != nil {
			if !errors.Is(err, wire.ErrMetadata) {
				t.Fatal(err)
			}
			return
		}
		compareMessage(t, &m)
		if !bytes.Equal(m.Payload, payload) || !bytes.Equal(m.Metadata, meta) {
			t.Fatal("metadata or payload is not what was framed")
		}
		if m.Slot() == 0 {
			t.Fatal("slot 0")
		}
		if m.Check(100) == nil && (m.NumMessages < 1 && m.Batch || m.NumMessages > 100 && m.Batch) {
			t.Fatalf("%d messages passed", m.NumMessages)
		}
	})
}

// FuzzEntry: whole entries of any bytes, checksum and broker metadata included,
// and their dump.
func FuzzEntry(f *testing.F) {
	for _, g := range golden(f) {
		if s, err := wire.SplitFrame(g.Frame); err == nil && len(s.Entry) > 0 {
			f.Add(s.Entry)
		}
	}
	send := &pulsarpb.CommandSend{ProducerId: proto.Uint64(1), SequenceId: proto.Uint64(2)}
	f.Fuzz(func(t *testing.T, entry []byte) {
		meta, rest, err := wire.SplitBrokerEntry(entry)
		if err == nil && meta != nil && len(meta)+len(rest)+6 != len(entry) {
			t.Fatalf("%d bytes split into %d and %d", len(entry), len(meta), len(rest))
		}
		if m, err := wire.ParseMessage(entry); err == nil && len(m.Payload)+m.PayloadAt != len(entry) {
			t.Fatalf("payload of %d at %d of %d", len(m.Payload), m.PayloadAt, len(entry))
		}
		wire.Dump(frameOf(t, send, entry))
	})
}

// FuzzUnpack: any payload in any compression gives exactly the messages that its
// header claims, within the limit, or none; Check refuses no batch that opens.
func FuzzUnpack(f *testing.F) {
	plain := batch(f, 5)
	for _, kind := range kinds {
		f.Add(compress(f, kind, plain), uint8(kind), int32(5), uint32(len(plain)))
	}
	f.Add(zstdStream(f, plain), uint8(3), int32(5), uint32(len(plain)))
	f.Add([]byte("ten bytes "), uint8(0), int32(1<<31-1), uint32(0))
	const limit = 64 << 10
	f.Fuzz(func(t *testing.T, payload []byte, kind uint8, count int32, size uint32) {
		meta := batchMetadata(int(count), pulsarpb.CompressionType(kind), int64(size))
		entry := build(t, meta, string(payload))
		visits, bytes := 0, 0
		err := wire.Unpack(entry, limit, func(s wire.Single) error {
			visits++
			bytes += len(s.Payload)
			return nil
		})
		if err != nil && visits > 0 {
			t.Fatalf("%d visits and %v", visits, err)
		}
		if err == nil && (visits != int(count) || bytes > limit) {
			t.Fatalf("%d messages of %d bytes, header claims %d", visits, bytes, count)
		}
		m, parse := wire.ParseMessage(entry)
		if parse != nil {
			t.Fatal(parse)
		}
		if err == nil && m.Check(limit) != nil {
			t.Fatalf("opens, but: %v", m.Check(limit))
		}
	})
}
