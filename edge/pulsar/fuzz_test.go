package pulsar

import (
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"wayside/edge"
	"wayside/edge/edgetest"
	"wayside/wire"
	"wayside/wire/pulsarpb"
	"wayside/wire/wiretest"
)

// FuzzSession feeds a session whatever comes after the login. It must end by itself
// when its client has gone, show no defect, hold no memory, and leave nothing in the
// core.
func FuzzSession(f *testing.F) {
	seeds(f)
	r := fuzzRig(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		a, b := net.Pipe()
		s := newSession(r.server, b)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			s.serve()
		}()
		drained := make(chan struct{})
		go func() {
			defer close(drained)
			io.Copy(io.Discard, a) //nolint:errcheck // until it is closed
		}()
		a.SetWriteDeadline(time.Now().Add(10 * time.Second)) //nolint:errcheck // a pipe takes it
		login, err := wire.AppendCommand(nil, wire.Wrap(connectCmd(proto.Int32(21))))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.Write(append(login, data...)); err == nil {
			a.Write([]byte(wire.PingFrame)) //nolint:errcheck // closed meanwhile, perhaps
		}
		a.Close() //nolint:errcheck // it is meant to end
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			t.Fatal("the session does not end")
		}
		<-drained
		if lines := r.log.with("defect"); len(lines) > 0 {
			t.Fatal(lines[0])
		}
		if n := s.slots.used.Load(); len(s.producers.entries)+len(s.consumers.entries) > 0 || n < 0 {
			t.Fatalf("left: %d producers, %d consumers, %d slots", len(s.producers.entries), len(s.consumers.entries), n)
		}
		if st := r.broker.Stats(); st.Producers > 0 || st.Consumers > 0 {
			t.Fatalf("left in the core: %d producers, %d consumers", st.Producers, st.Consumers)
		}
	})
}

// fuzzRig has a broker whose topics are few, so that it does not grow with the inputs.
func fuzzRig(f *testing.F) *rig {
	r := &rig{store: edgetest.NewMemStore(), log: &logged{}}
	bo, so := edge.DefaultOptions(), DefaultOptions()
	bo.Budget, bo.Topics, bo.SubscriptionsPerTopic = edge.NewBudget(8<<20), 20, 20
	so.Logger = slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelError}))
	so.MaxMessageSize = 64 << 10
	so.LivenessTimeout = time.Millisecond
	var err error
	if r.broker, err = edge.NewBroker(r.store, bo); err != nil {
		f.Fatal(err)
	}
	if r.server, err = New(r.broker, so); err != nil {
		f.Fatal(err)
	}
	return r
}

// seeds are recorded frames of official clients, alone and as a session.
func seeds(f *testing.F) {
	golden, err := wiretest.ReadGolden("../../wire/testdata/golden.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, g := range golden {
		f.Add(g.Frame)
	}
	frames := func(subs ...proto.Message) (all []byte) {
		for _, sub := range subs {
			if all, err = wire.AppendCommand(all, wire.Wrap(sub)); err != nil {
				f.Fatal(err)
			}
		}
		return all
	}
	send := func(entry []byte) []byte {
		b, err := wire.AppendPayloadCommand(nil, wire.Wrap(&pulsarpb.CommandSend{ProducerId: num(1), SequenceId: num(0)}), entry)
		if err != nil {
			f.Fatal(err)
		}
		return b
	}
	f.Add(append(frames(producerCmd("f", 1, 1), closeProducerCmd(1, 2)), send(entryOf(f, 0, 0, []byte("x")))...))
	f.Add(append(frames(producerCmd("f", 1, 1)), send(entryOf(f, 0, 3, make([]byte, 40)))...))
	for _, kind := range []pulsarpb.CommandSubscribe_SubType{exclusive, shared, failover, keyShared_} {
		f.Add(frames(
			subscribeCmd("f", "s"+kind.String(), kind, 1, 1), flowCmd(1, 100), ackCmd(1, 2, id(1, 0, 5)), cumulative(ackCmd(1, 2, id(1, 1))),
			&pulsarpb.CommandRedeliverUnacknowledgedMessages{ConsumerId: num(1)}, lastIDCmd(1, 3), seekTo(1, 4, 1, 0), closeConsumerCmd(1, 5),
		))
	}
	f.Add(frames(subscribeCmd("f", "u", shared, 1, 1), &pulsarpb.CommandUnsubscribe{ConsumerId: num(1), RequestId: num(2)}, flowCmd(1, 0)))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add(binary.BigEndian.AppendUint32(nil, 1<<31))
}
