package pulsar

import (
	"go/ast"
	"go/parser"
	"go/token"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"wayside/edge"
	"wayside/wire"
	"wayside/wire/pulsarpb"
)

// Traps of protocol.md, section 4, that have to do with connections. testdata/traps.txt
// lists all of them.

func TestTrap9ClientsStayOnTheAddressThatTheyDialled(t *testing.T) {
	m := serve(t).connect().answered(&pulsarpb.CommandLookupTopic{Topic: proto.String(public + "x"), RequestId: num(1)}).GetLookupTopicResponse()
	if !m.GetProxyThroughServiceUrl() || !m.GetAuthoritative() {
		t.Errorf("%v", m)
	}
}

func TestTrap10AProxiedConnectIsTaken(t *testing.T) {
	c := serve(t).dial()
	m := connectCmd(proto.Int32(20))
	m.ProxyToBrokerUrl = proto.String("192.0.2.1:6650")
	c.say(m)
	c.hear("CONNECTED *")
	c.producing("proxied")
}

// What the Go client v0.19.0 and the C++ client 4.2.0 take, of what a broker may send.
// A command beyond these closes their connection.
var taken = []string{
	"SUCCESS", "PRODUCER_SUCCESS", "PARTITIONED_METADATA_RESPONSE", "LOOKUP_RESPONSE", "CONSUMER_STATS_RESPONSE",
	"GET_LAST_MESSAGE_ID_RESPONSE", "GET_TOPICS_OF_NAMESPACE_RESPONSE", "GET_SCHEMA_RESPONSE",
	"GET_OR_CREATE_SCHEMA_RESPONSE", "ERROR", "SEND_ERROR", "CLOSE_PRODUCER", "CLOSE_CONSUMER", "TOPIC_MIGRATED",
	"AUTH_CHALLENGE", "SEND_RECEIPT", "MESSAGE", "ACK_RESPONSE", "PING", "PONG", "ACTIVE_CONSUMER_CHANGE", "CONNECTED",
	"TC_CLIENT_CONNECT_RESPONSE", "NEW_TXN_RESPONSE", "ADD_PARTITION_TO_TXN_RESPONSE",
	"ADD_SUBSCRIPTION_TO_TXN_RESPONSE", "END_TXN_RESPONSE",
	// Only to those who asked, or who say that they are Java: numbers 11 and 12.
	"WATCH_TOPIC_LIST_SUCCESS", "WATCH_TOPIC_UPDATE", "REACHED_END_OF_TOPIC",
}

func TestTrap13NothingIsSentThatClientsDoNotKnow(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			lit, ok := n.(*ast.CompositeLit)
			if !ok {
				return true
			}
			of, ok := lit.Type.(*ast.SelectorExpr)
			if !ok || !strings.HasPrefix(of.Sel.Name, "Command") {
				return true
			}
			found++
			if !isTaken(of.Sel.Name) {
				t.Errorf("%s makes a %s", f.Name(), of.Sel.Name)
			}
			return true
		})
	}
	if found < 20 {
		t.Errorf("only %d commands are made", found)
	}
}

// isTaken knows messages by their Go names.
func isTaken(message string) bool {
	same := func(s string) string { return strings.ToLower(strings.ReplaceAll(s, "_", "")) }
	name := strings.TrimPrefix(message, "Command")
	for long, short := range map[string]string{"LookupTopic": "Lookup", "PartitionedTopicMetadata": "PartitionedMetadata", "WatchTopicListSuccess": "WatchTopicListSuccess"} {
		name = strings.Replace(name, long, short, 1)
	}
	return slices.ContainsFunc(taken, func(s string) bool { return same(s) == same(name) })
}

// A PING before CONNECTED would be taken for the answer.
func TestTrap14ConnectedComesFirst(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig, dial func() *client) {
		r.server.opts.KeepAlive = time.Second
		c := dial()
		time.Sleep(5 * time.Second)
		c.say(connectCmd(proto.Int32(20)))
		got, err := c.Next()
		if err != nil || got.GetType() != pulsarpb.BaseCommand_CONNECTED {
			t.Fatalf("first came %v, %v", got, err)
		}
		got, err = c.Next()
		if err != nil || got.GetType() != pulsarpb.BaseCommand_PING {
			t.Fatalf("then came %v, %v", got, err)
		}
	})
}

func TestTrap15And16And19ConnectedIsComplete(t *testing.T) {
	r := serve(t)
	for _, version := range []int32{1, 20, 21} {
		c := r.dial()
		m := c.answered(connectCmd(&version)).GetConnected()
		if m.GetServerVersion() == "" || m.GetProtocolVersion() != version || m.GetMaxMessageSize() <= 0 {
			t.Errorf("%v", m)
		}
	}
}

func TestTrap17PingsAreAnsweredAtOnce(t *testing.T) {
	r := serve(t)
	c := r.connect().producing("busy")
	r.store.Hold()
	c.publish(1, 0, "waits for its commit")
	c.say(subscribeCmd("busy", "s", shared, 1, 2)) // waits too
	c.sync()
	r.store.Release()
	c.hearInAnyOrder("SEND_RECEIPT *", "SUCCESS {request_id:2}")
}

// A message that could be sent can be received: not even with an ack_set, an epoch and
// the largest ids is its frame longer than clients take.
func TestTrap18NoFrameIsTooLong(t *testing.T) {
	const m = 64 << 10
	r := serve(t, func(o *Options, _ *edge.Options) { o.MaxMessageSize = m })
	c := r.connect().producing("long")
	batch := func(n, size int) []byte {
		data, err := wire.Build(&pulsarpb.MessageMetadata{
			ProducerName: proto.String("p"), SequenceId: num(0), PublishTime: num(1), NumMessagesInBatch: proto.Int32(int32(n)),
		}, make([]byte, size))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	s := subscribeCmd("long", "s", shared, 1<<63, 2)
	c.say(s)
	c.hear("SUCCESS *")
	// With the shortest command: two fields of one byte in a SEND, two bytes of type.
	const command = 2 + 2 + 4
	for _, n := range []int{1, 64, 6400, 9000} {
		most := m + 10<<10 - 8 - command
		room := most - len(batch(n, 0))
		stored := false
		for _, less := range []int{0, 64, 200, 4 << 10, 10 << 10} {
			c.sendEntry(&pulsarpb.CommandSend{ProducerId: num(1), SequenceId: num(0)}, batch(n, room-less))
			got := c.receive()
			early := got.GetMessage() != nil // there were permits left, and it came before its receipt
			if early {
				got = c.receive()
			}
			if got.GetSendReceipt() == nil {
				if got.GetSendError().GetError() != pulsarpb.ServerError_NotAllowedError {
					t.Fatalf("%v", got)
				}
				continue
			}
			stored = true
			at := id(int64(got.GetSendReceipt().GetMessageId().GetLedgerId()), int64(got.GetSendReceipt().GetMessageId().GetEntryId()))
			c.say(flowCmd(1<<63, uint32(n)))
			if !early {
				c.receive()
			}
			for range (n + 63) / 64 { // all but the last of each word
				at.AckSet = append(at.AckSet, -1<<63)
			}
			c.say(ackCmd(1<<63, 3, at))
			c.hear("ACK_RESPONSE *")
			c.say(&pulsarpb.CommandRedeliverUnacknowledgedMessages{ConsumerId: num(1 << 63), MessageIds: []*pulsarpb.MessageIdData{at}}, flowCmd(1<<63, uint32(n)))
			if again := c.receive(); again.Frame == nil || len(again.Frame) > m+10<<10 || less == 10<<10 && n == 6400 && len(again.GetMessage().GetAckSet()) == 0 {
				t.Errorf("a batch of %d, %d bytes, came in a frame of %d", n, room-less, len(again.Frame))
			}
			at.AckSet = nil
			c.say(ackCmd(1<<63, 4, at))
			c.hear("ACK_RESPONSE *")
		}
		if !stored {
			t.Errorf("no batch of %d was stored", n)
		}
	}
}

func TestTrap69OneClientTooManyIsClosedWithoutAWord(t *testing.T) {
	r := serve(t, func(o *Options, _ *edge.Options) { o.Connections = 1 })
	first := r.connect()
	r.dial().closed()
	first.sync()
}

func TestTrap70SmallAnswersAreNotHeldBack(t *testing.T) {
	r := serve(t)
	c := r.connect()
	c.sync()
	conn, ok := r.only().conn.(*net.TCPConn)
	if !ok {
		t.Fatalf("%T", r.only().conn)
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	set := 0
	if e := raw.Control(func(fd uintptr) { set, err = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_NODELAY) }); e != nil || err != nil {
		t.Fatal(e, err)
	}
	if set == 0 {
		t.Error("TCP_NODELAY is not set")
	}
}

// One number for a lookup and two other requests at the same time, as the C++ client
// counts, and as large as Java's.
func TestTrap73RequestIDsAreNoKeys(t *testing.T) {
	r := serve(t)
	c := r.connect()
	r.store.Hold()
	const n = 1<<63 - 5
	p := producerCmd("same", 1, n)
	p.ProducerAccessMode = pulsarpb.ProducerAccessMode_Exclusive.Enum() // waits for a commit
	c.say(p, subscribeCmd("same", "s", shared, 1, n), &pulsarpb.CommandLookupTopic{Topic: proto.String(public + "same"), RequestId: num(n)},
		&pulsarpb.CommandPartitionedTopicMetadata{Topic: proto.String(public + "same"), RequestId: num(n)})
	c.hear("LOOKUP_RESPONSE {*request_id:9223372036854775803 *", "PARTITIONED_METADATA_RESPONSE {*request_id:9223372036854775803 *")
	r.store.Release()
	c.hearInAnyOrder("PRODUCER_SUCCESS {request_id:9223372036854775803 *", "SUCCESS {request_id:9223372036854775803}")
}

func TestTrap74ZeroIsAnID(t *testing.T) {
	r := serve(t)
	c := r.connect()
	c.say(producerCmd("zero", 0, 0), subscribeCmd("other", "s", shared, 0, 0))
	c.hearInAnyOrder("PRODUCER_SUCCESS {request_id:0 *", "SUCCESS {request_id:0}")
	c.say(subscribeCmd("zero", "s", shared, 1, 0), flowCmd(1, 1))
	c.hear("SUCCESS {request_id:0}")
	c.publish(0, 0, "first")
	c.say(flowCmd(1, 1))
	c.hearInAnyOrder("SEND_RECEIPT {producer_id:0 sequence_id:0 *", `MESSAGE {consumer_id:1 *"first"`)
	c.say(closeConsumerCmd(0, 0), closeProducerCmd(0, 0))
	c.hearInAnyOrder("SUCCESS {request_id:0}", "SUCCESS {request_id:0}")
	c.sync()
}

func TestTrap83AFailingLoginIsOneLine(t *testing.T) {
	r := serve(t, func(o *Options, _ *edge.Options) { o.Authenticator = onlyToken{"secret", "sensor"} })
	for range 20 {
		c := r.dial()
		c.say(connectCmd(proto.Int32(20)))
		c.hear("ERROR *")
		c.closed()
	}
	r.stop()
	if lines := r.log.with("authentication failed"); len(lines) != 1 {
		t.Errorf("%d lines", len(lines))
	}
}
