package wiretest_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"wayside/wire"
	"wayside/wire/pulsarpb"
	"wayside/wire/wiretest"
)

// pair connects a client and a broker end without anything between.
func pair(t *testing.T) (client, broker *wiretest.Peer) {
	t.Helper()
	ln, err := wiretest.Listen(patience)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if client, err = wiretest.Dial(ln.Addr(), patience); err != nil {
		t.Fatal(err)
	}
	if broker, err = ln.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		broker.Close()
	})
	return client, broker
}

func TestPeerConversation(t *testing.T) {
	client, broker := pair(t)
	accepted := make(chan error, 1)
	go func() {
		_, err := broker.Accept()
		accepted <- err
	}()
	connected, err := client.Connect()
	if err != nil || <-accepted != nil {
		t.Fatal(err)
	}
	if connected.GetProtocolVersion() != 21 || connected.GetMaxMessageSize() != wire.DefaultMaxMessageSize {
		t.Errorf("%v", connected)
	}
	entry, err := wire.Build(&pulsarpb.MessageMetadata{
		ProducerName: proto.String("p"), SequenceId: proto.Uint64(0), PublishTime: proto.Uint64(1),
	}, []byte("hello"))
	if err != nil {
		t.Fatal(err)
	}
	send := &pulsarpb.CommandSend{ProducerId: proto.Uint64(1), SequenceId: proto.Uint64(0)}
	if err := client.SendEntry(send, entry); err != nil {
		t.Fatal(err)
	}
	got, err := broker.Expect(pulsarpb.BaseCommand_SEND)
	if err != nil || string(got.Entry) != string(entry) {
		t.Fatalf("%v, %v", got, err)
	}
	if err := broker.SendFrame([]byte(wire.PingFrame)); err != nil {
		t.Fatal(err)
	}
	if err := client.ExpectQuiet(20 * time.Millisecond); err != nil {
		t.Error(err)
	}
	if pong, err := broker.Next(); err != nil || pong.GetType() != pulsarpb.BaseCommand_PONG {
		t.Errorf("a PING got %v, %v", pong, err)
	}
	broker.Close()
	if err := client.ExpectClose(); err != nil {
		t.Error(err)
	}
	const want = `> CONNECT {client_version:"wiretest" protocol_version:21 feature_flags {supports_auth_refresh:true}}
< CONNECTED {server_version:"wiretest" protocol_version:21 max_message_size:5242880 feature_flags {}}
> SEND {producer_id:1 sequence_id:0} meta{producer_name:"p" sequence_id:0 publish_time:1} crc=ok payload=5 "hello"
< PING {}
> PONG {}`
	if got := client.Transcript(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// TestPeerDisappointed: each expectation fails when it should.
func TestPeerDisappointed(t *testing.T) {
	client, broker := pair(t)
	success := &pulsarpb.CommandSuccess{RequestId: proto.Uint64(7)}
	say := func() {
		if err := broker.Send(success); err != nil {
			t.Fatal(err)
		}
	}
	for name, expect := range map[string]func() error{
		"other type": func() error { _, err := client.Expect(pulsarpb.BaseCommand_ERROR); return err },
		"quiet":      func() error { return client.ExpectQuiet(patience) },
		"close":      func() error { return client.ExpectClose() },
	} {
		say()
		if err := expect(); err == nil || !strings.Contains(err.Error(), "SUCCESS {request_id:7}") {
			t.Errorf("%s: %v", name, err)
		}
	}
	hasty := wiretest.NewPeer(client.Conn(), time.Millisecond)
	if err := hasty.ExpectClose(); err == nil {
		t.Error("an open connection counts as closed")
	}
	if _, err := hasty.Expect(pulsarpb.BaseCommand_SUCCESS); err == nil {
		t.Error("nothing counts as SUCCESS")
	}
	if err := broker.Reset(); err != nil {
		t.Fatal(err)
	}
	if err := client.ExpectQuiet(patience); err == nil {
		t.Error("a reset counts as quiet")
	}
}

func TestReadGolden(t *testing.T) {
	all, err := wiretest.ReadGolden("../testdata/golden.txt")
	if err != nil || len(all) == 0 {
		t.Fatal(err)
	}
	for _, g := range all {
		if g.Name == "" || g.Text == "" || g.Origin == "" || len(g.Frame) < 8 || g.Sender != "client" && g.Sender != "broker" {
			t.Errorf("%+v", g)
		}
	}
	if _, err := wiretest.ReadGolden("../doc.go"); err == nil {
		t.Error("a file of other content was read")
	}
}
