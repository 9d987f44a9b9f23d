package wire_test

import (
	"bytes"
	"testing"

	"google.golang.org/protobuf/proto"

	"wayside/wire"
	"wayside/wire/pulsarpb"
)

// TestNoGarbage: what happens for every message allocates nothing.
func TestNoGarbage(t *testing.T) {
	set := []int64{-1, 5}
	send := goldenFrame(t, "send-batch-highest")
	keyed := metadata()
	keyed.PartitionKey, keyed.PartitionKeyB64Encoded = proto.String("YWJj"), proto.Bool(true)
	keyedEntry := build(t, keyed, "x")
	ackCommand := commandBytes(t, ackOf(set, nil, set))
	flowCommand := commandBytes(t, &pulsarpb.CommandFlow{ConsumerId: proto.Uint64(1), MessagePermits: proto.Uint32(500)})
	redeliverCommand := commandBytes(t, &pulsarpb.CommandRedeliverUnacknowledgedMessages{
		ConsumerId: proto.Uint64(1), MessageIds: ackOf(set, nil).MessageId, ConsumerEpoch: proto.Uint64(3)})
	var (
		s    wire.Send
		f    wire.Flow
		a    wire.Ack
		r    wire.Redeliver
		m    wire.Message
		out  = make([]byte, 0, 1024)
		head = wire.MessageHead{ConsumerID: 1, Ledger: 5, Entry: -1, Partition: -1, RedeliveryCount: 2, AckSet: set, HasEpoch: true}
	)
	for name, run := range map[string]func() error{
		"ParseSend":      func() error { return wire.ParseSend(send.CommandBytes, &s) },
		"ParseFlow":      func() error { return wire.ParseFlow(flowCommand, &f) },
		"ParseAck":       func() error { return wire.ParseAck(ackCommand, &a) },
		"ParseRedeliver": func() error { return wire.ParseRedeliver(redeliverCommand, &r) },
		"ParseMessage":   func() (err error) { m, err = wire.ParseMessage(send.Entry); return err },
		"Check":          func() error { return m.Check(1000) },
		"Slot": func() error {
			k, err := wire.ParseMessage(keyedEntry)
			if k.Slot() == 0 || m.Slot() == 0 {
				t.Error("slot 0")
			}
			return err
		},
		"AppendSendReceipt": func() error { out = wire.AppendSendReceipt(out[:0], 1, -1, 0, 5, 6); return nil },
		"AppendMessage":     func() error { out = wire.AppendMessage(out[:0], &head, 100); return nil },
		"AppendAckResponse": func() error {
			out = wire.AppendAckResponse(out[:0], 1, 2, pulsarpb.ServerError_NotAllowedError, "no")
			return nil
		},
	} {
		if err := run(); err != nil { // the first time makes room
			t.Errorf("%s: %v", name, err)
		}
		allocated := testing.AllocsPerRun(100, func() {
			if run() != nil {
				t.Error(name)
			}
		})
		if allocated != 0 {
			t.Errorf("%s: %v allocations", name, allocated)
		}
	}
}

// TestNoGarbageReader reads frames of all sizes into a buffer of the caller's.
func TestNoGarbageReader(t *testing.T) {
	var stream []byte
	for _, g := range golden(t) {
		stream = append(stream, g.Frame...)
	}
	frames := len(golden(t))
	src := bytes.NewReader(nil)
	r := wire.NewReader(src, 1<<20)
	r.SetBuffers(wire.NewBuffers(2, 8<<10))
	buf := make([]byte, 64<<10)
	allocated := testing.AllocsPerRun(20, func() {
		src.Reset(stream)
		for range frames {
			h, err := r.Next()
			if err == nil {
				err = r.ReadBody(buf[:h.Body()])
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	})
	if allocated != 0 {
		t.Errorf("%v allocations for %d frames", allocated, frames)
	}
}

func BenchmarkParseSend(b *testing.B) {
	f := goldenFrame(b, "send-batch-highest")
	var s wire.Send
	b.ReportAllocs()
	for b.Loop() {
		if err := wire.ParseSend(f.CommandBytes, &s); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseMessage(b *testing.B) {
	f := goldenFrame(b, "send-with-key-and-properties")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := wire.ParseMessage(f.Entry); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseAck(b *testing.B) {
	cmd := commandBytes(b, ackOf(make([][]int64, 1000)...))
	var a wire.Ack
	b.ReportAllocs()
	for b.Loop() {
		if err := wire.ParseAck(cmd, &a); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReader(b *testing.B) {
	f := goldenFrame(b, "send-with-key-and-properties")
	frame := append(f.Header.AppendTo(nil), append(f.CommandBytes, f.Entry...)...)
	stream := bytes.Repeat(frame, 1000)
	src := bytes.NewReader(nil)
	r := wire.NewReader(src, 1<<20)
	r.SetBuffers(wire.NewBuffers(1, 32<<10))
	buf := make([]byte, 1<<10)
	b.ReportAllocs()
	b.SetBytes(int64(len(frame)))
	src.Reset(stream)
	for b.Loop() {
		if src.Len() == 0 && r.Left() == 0 {
			src.Reset(stream)
		}
		h, err := r.Next()
		if err != nil {
			src.Reset(stream)
			continue
		}
		if err := r.ReadBody(buf[:h.Body()]); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendMessage(b *testing.B) {
	head := wire.MessageHead{ConsumerID: 1, Ledger: 5, Entry: 100000, Partition: -1}
	out := make([]byte, 0, 256)
	b.ReportAllocs()
	for b.Loop() {
		out = wire.AppendMessage(out[:0], &head, 100)
	}
}
