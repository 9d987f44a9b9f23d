package pulsar

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"runtime"
	"testing"

	"google.golang.org/protobuf/proto"

	"wayside/edge"
	"wayside/edge/edgetest"
	"wayside/wire"
	"wayside/wire/pulsarpb"
)

// benchRig serves a broker in memory.
func benchRig(b *testing.B) *rig {
	b.Helper()
	r := &rig{store: edgetest.NewMemStore(), log: &logged{}}
	bo, so := edge.DefaultOptions(), DefaultOptions()
	bo.Budget = edge.NewBudget(64 << 20)
	var err error
	if r.broker, err = edge.NewBroker(r.store, bo); err != nil {
		b.Fatal(err)
	}
	if r.server, err = New(r.broker, so); err != nil {
		b.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	r.addr = l.Addr().String()
	go r.server.Serve(l) //nolint:errcheck // it ends with the server
	b.Cleanup(func() {
		r.server.Close(b.Context()) //nolint:errcheck // the process ends
		r.broker.Close(b.Context()) //nolint:errcheck // as above
		r.store.Close()             //nolint:errcheck // as above
	})
	return r
}

func frameOf(b *testing.B, sub proto.Message, entry []byte) []byte {
	b.Helper()
	frame, err := wire.AppendPayloadCommand(nil, wire.Wrap(sub), entry)
	if err != nil {
		b.Fatal(err)
	}
	return frame
}

// wired is a connection that does as little as a client can.
func (r *rig) wired(b *testing.B, topic string) (net.Conn, *bufio.Reader) {
	b.Helper()
	c, err := net.Dial("tcp", r.addr)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close() }) //nolint:errcheck // the process ends
	hello := append(frameOf(b, connectCmd(proto.Int32(21)), nil), frameOf(b, producerCmd(topic, 1, 1), nil)...)
	if _, err := c.Write(hello); err != nil {
		b.Fatal(err)
	}
	in := bufio.NewReaderSize(c, 64<<10)
	for range 2 {
		skipFrame(b, in)
	}
	return c, in
}

func skipFrame(b *testing.B, in *bufio.Reader) {
	head, err := in.Peek(4)
	if err != nil {
		b.Fatal(err)
	}
	n := 4 + int(head[0])<<24 + int(head[1])<<16 + int(head[2])<<8 + int(head[3])
	if _, err := io.CopyN(io.Discard, in, int64(n)); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkPublish sends without waiting for each answer, as fast as one connection takes it.
func BenchmarkPublish(b *testing.B) {
	for _, size := range []int{128, 1024} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			r := benchRig(b)
			c, in := r.wired(b, "bench")
			meta := &pulsarpb.MessageMetadata{ProducerName: proto.String("p"), SequenceId: num(0), PublishTime: num(1)}
			entry, err := wire.Build(meta, make([]byte, size))
			if err != nil {
				b.Fatal(err)
			}
			frame := frameOf(b, &pulsarpb.CommandSend{ProducerId: num(1), SequenceId: num(1 << 20)}, entry)
			const burst = 64
			var many []byte
			for range burst {
				many = append(many, frame...)
			}
			b.SetBytes(int64(len(frame)))
			b.ReportAllocs()
			b.ResetTimer()
			go func() {
				for i := 0; i < b.N; i += burst {
					if _, err := c.Write(many); err != nil {
						return
					}
				}
			}()
			for range b.N {
				skipFrame(b, in)
			}
		})
	}
}

// BenchmarkDeliver lets one consumer take what is there, without acknowledging it.
func BenchmarkDeliver(b *testing.B) {
	r := benchRig(b)
	c, in := r.wired(b, "bench")
	const stored = 10_000
	meta := &pulsarpb.MessageMetadata{ProducerName: proto.String("p"), SequenceId: num(0), PublishTime: num(1)}
	entry, err := wire.Build(meta, make([]byte, 128))
	if err != nil {
		b.Fatal(err)
	}
	frame := frameOf(b, &pulsarpb.CommandSend{ProducerId: num(1), SequenceId: num(1)}, entry)
	go func() {
		for range stored {
			c.Write(frame) //nolint:errcheck // the reader sees it
		}
	}()
	for range stored {
		skipFrame(b, in)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for round := 0; round*stored < b.N; round++ {
		sub := subscribeCmd("bench", fmt.Sprint("s", round), exclusive, uint64(round), 1)
		if _, err := c.Write(append(frameOf(b, sub, nil), frameOf(b, flowCmd(uint64(round), 1), nil)...)); err != nil {
			b.Fatal(err)
		}
		skipFrame(b, in) // SUCCESS
		if _, err := c.Write(frameOf(b, flowCmd(uint64(round), stored), nil)); err != nil {
			b.Fatal(err)
		}
		for range min(stored, b.N-round*stored) {
			skipFrame(b, in)
		}
		if _, err := c.Write(frameOf(b, closeConsumerCmd(uint64(round), 1), nil)); err != nil {
			b.Fatal(err)
		}
		for {
			head, err := in.Peek(10)
			if err != nil {
				b.Fatal(err)
			}
			success := head[9] == byte(pulsarpb.BaseCommand_SUCCESS)
			skipFrame(b, in)
			if success {
				break
			}
		}
	}
}

// BenchmarkIdleSession reports what a client costs that does nothing: objects and
// goroutine stacks, in bytes. Both ends live in this process; the client's end is small.
func BenchmarkIdleSession(b *testing.B) {
	r := benchRig(b)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	const clients = 500
	for range clients {
		c, in := r.wiredBare(b)
		if _, err := c.Write([]byte(wire.PingFrame)); err != nil {
			b.Fatal(err)
		}
		skipFrame(b, in)
	}
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(int64(after.HeapAlloc)-int64(before.HeapAlloc))/clients, "heap-B/session")
	b.ReportMetric(float64(int64(after.StackInuse)-int64(before.StackInuse))/clients, "stack-B/session")
	for range b.N {
	}
}

// wiredBare is a connection after its login, with a reader as small as can be.
func (r *rig) wiredBare(b *testing.B) (net.Conn, *bufio.Reader) {
	b.Helper()
	c, err := net.Dial("tcp", r.addr)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close() }) //nolint:errcheck // the process ends
	if _, err := c.Write(frameOf(b, connectCmd(proto.Int32(21)), nil)); err != nil {
		b.Fatal(err)
	}
	in := bufio.NewReaderSize(c, 256)
	skipFrame(b, in)
	return c, in
}
