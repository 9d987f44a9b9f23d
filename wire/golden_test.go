package wire_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"google.golang.org/protobuf/proto"

	"wayside/wire"
	"wayside/wire/pulsarpb"
	"wayside/wire/wiretest"
)

// golden reads the frames recorded between official clients and a real broker; see
// testdata/README.md.
func golden(t testing.TB) []wiretest.Golden {
	t.Helper()
	all, err := wiretest.ReadGolden("testdata/golden.txt")
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 80 {
		t.Fatalf("only %d golden frames", len(all))
	}
	return all
}

func goldenFrame(t testing.TB, name string) wire.Frame {
	t.Helper()
	for _, g := range golden(t) {
		if g.Name == name {
			f, err := wire.SplitFrame(g.Frame)
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
	}
	t.Fatalf("no golden frame %s", name)
	return wire.Frame{}
}

// TestGolden decodes each frame and encodes it to the same bytes.
func TestGolden(t *testing.T) {
	for _, g := range golden(t) {
		t.Run(g.Name, func(t *testing.T) {
			f, err := wire.SplitFrame(g.Frame)
			if err != nil {
				t.Fatal(err)
			}
			c, err := wire.Decode(f.CommandBytes)
			if err != nil {
				t.Fatal(err)
			}
			if c.GetType() != f.Type {
				t.Errorf("peeked type %s, command is %s", f.Type, c.GetType())
			}
			got, err := wire.AppendPayloadCommand([]byte("before"), c, f.Entry)
			if err != nil {
				t.Fatal(err)
			}
			if want := "before" + string(g.Frame); string(got) != want {
				t.Errorf("encoded\n%x, want\n%x", got, want)
			}
			if hot := appendHot(c, f.Entry); hot != nil && !bytes.Equal(hot, g.Frame) {
				t.Errorf("encoded by hand\n%x, want\n%x", hot, g.Frame)
			}
		})
	}
}

// appendHot encodes by hand what can be, nil for the rest.
func appendHot(c *pulsarpb.BaseCommand, entry []byte) []byte {
	switch c.GetType() {
	case pulsarpb.BaseCommand_SEND_RECEIPT:
		r := c.GetSendReceipt()
		return wire.AppendSendReceipt(nil, r.GetProducerId(), int64(r.GetSequenceId()), int64(r.GetHighestSequenceId()),
			int64(r.GetMessageId().GetLedgerId()), int64(r.GetMessageId().GetEntryId()))
	case pulsarpb.BaseCommand_ACK_RESPONSE:
		a := c.GetAckResponse()
		return wire.AppendAckResponse(nil, a.GetConsumerId(), a.GetRequestId(), a.GetError(), a.GetMessage())
	case pulsarpb.BaseCommand_MESSAGE:
		h := headOf(c.GetMessage())
		return append(wire.AppendMessage(nil, &h, len(entry)), entry...)
	}
	return nil
}

func headOf(m *pulsarpb.CommandMessage) wire.MessageHead {
	return wire.MessageHead{
		ConsumerID: m.GetConsumerId(),
		Ledger:     int64(m.GetMessageId().GetLedgerId()), Entry: int64(m.GetMessageId().GetEntryId()),
		Partition:       m.GetMessageId().GetPartition(),
		RedeliveryCount: m.GetRedeliveryCount(),
		AckSet:          m.GetAckSet(),
		ConsumerEpoch:   int64(m.GetConsumerEpoch()),
		HasEpoch:        m.ConsumerEpoch != nil,
	}
}

// TestGoldenReader reads all frames as one stream, in chunks of all kinds.
func TestGoldenReader(t *testing.T) {
	var stream []byte
	for _, g := range golden(t) {
		stream = append(stream, g.Frame...)
	}
	sources := map[string]func() io.Reader{
		"whole":           func() io.Reader { return bytes.NewReader(stream) },
		"byte by byte":    func() io.Reader { return iotest.OneByteReader(bytes.NewReader(stream)) },
		"halves":          func() io.Reader { return iotest.HalfReader(bytes.NewReader(stream)) },
		"error with data": func() io.Reader { return iotest.DataErrReader(bytes.NewReader(stream)) },
	}
	for name, source := range sources {
		for _, pool := range []*wire.Buffers{nil, wire.NewBuffers(1, 32<<10), wire.NewBuffers(0, 32<<10)} {
			r := wire.NewReader(source(), wire.MaxFrame(1<<20))
			r.SetBuffers(pool)
			for _, g := range golden(t) {
				h, err := r.Next()
				if err != nil {
					t.Fatalf("%s: %s: %v", name, g.Name, err)
				}
				got := h.AppendTo(nil)
				body := make([]byte, h.Body())
				if err := errors.Join(r.ReadBody(body[:h.Command]), r.ReadBody(body[h.Command:])); err != nil {
					t.Fatalf("%s: %s: %v", name, g.Name, err)
				}
				if got = append(got, body...); !bytes.Equal(got, g.Frame) {
					t.Fatalf("%s: %s: read %x, want %x", name, g.Name, got, g.Frame)
				}
			}
			if _, err := r.Next(); err != io.EOF {
				t.Errorf("%s: at the end: %v, want EOF", name, err)
			}
		}
	}
}

// TestGoldenDump compares the dump with what an independent decoder wrote.
func TestGoldenDump(t *testing.T) {
	const cut = 400
	for _, g := range golden(t) {
		got := wire.Dump(g.Frame)
		if len(got) > cut && len(g.Text) >= cut-1 {
			got = got[:len(g.Text)]
		}
		if got != g.Text {
			t.Errorf("%s:\n%s, want\n%s", g.Name, got, g.Text)
		}
	}
}

// TestGoldenHot scans hot commands by hand and compares with the generated code.
func TestGoldenHot(t *testing.T) {
	seen := map[pulsarpb.BaseCommand_Type]int{}
	for _, g := range golden(t) {
		f, err := wire.SplitFrame(g.Frame)
		if err != nil {
			t.Fatal(err)
		}
		if compareHot(t, f.CommandBytes) {
			seen[f.Type]++
		}
	}
	for _, typ := range hotTypes {
		if seen[typ] == 0 {
			t.Errorf("no golden %s", typ)
		}
	}
}

// TestGoldenEntries checks header and messages of every entry.
func TestGoldenEntries(t *testing.T) {
	for _, g := range golden(t) {
		f, err := wire.SplitFrame(g.Frame)
		if err != nil {
			t.Fatal(err)
		}
		if len(f.Entry) == 0 {
			continue
		}
		_, entry, err := wire.SplitBrokerEntry(f.Entry)
		if err != nil {
			t.Fatal(err)
		}
		m, err := wire.ParseMessage(entry)
		if g.Name == "send-bad-crc" {
			if !errors.Is(err, wire.ErrChecksum) {
				t.Errorf("%s: %v, want a checksum error", g.Name, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", g.Name, err)
		}
		compareMessage(t, &m)
		if err := m.Check(1000); err != nil {
			t.Errorf("%s: %v", g.Name, err)
		}
		payloads := unpack(t, g.Name, entry)
		if len(payloads) != int(m.NumMessages) {
			t.Errorf("%s: %d messages, header says %d", g.Name, len(payloads), m.NumMessages)
		}
		if strings.HasPrefix(g.Name, "send-batch-") && m.NumMessages == 5 {
			checkCompressionRun(t, g.Name, payloads)
		}
	}
}

func unpack(t *testing.T, name string, entry []byte) (payloads []string) {
	t.Helper()
	err := wire.Unpack(entry, 1<<20, func(s wire.Single) error {
		if s.Index != len(payloads) {
			t.Errorf("%s: index %d at %d", name, s.Index, len(payloads))
		}
		payloads = append(payloads, string(s.Payload))
		return nil
	})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return payloads
}

// checkCompressionRun knows the payloads: compression-KIND-INDEX.
func checkCompressionRun(t *testing.T, name string, payloads []string) {
	t.Helper()
	for i, p := range payloads {
		if !strings.HasPrefix(p, "compression-") || !strings.HasSuffix(p, "-"+string(rune('0'+i))) {
			t.Errorf("%s: message %d is %q", name, i, p)
		}
	}
}

// TestPing checks the constants against the encoder.
func TestPing(t *testing.T) {
	for frame, sub := range map[string]proto.Message{
		wire.PingFrame: &pulsarpb.CommandPing{},
		wire.PongFrame: &pulsarpb.CommandPong{},
	} {
		got, err := wire.AppendCommand(nil, wire.Wrap(sub))
		if err != nil || string(got) != frame {
			t.Errorf("%T: %x, %v, want %x", sub, got, err, frame)
		}
	}
}
