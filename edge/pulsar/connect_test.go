package pulsar

import (
	"context"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"wayside/edge"
	"wayside/wire"
	"wayside/wire/pulsarpb"
)

func connectCmd(version *int32) *pulsarpb.CommandConnect {
	return &pulsarpb.CommandConnect{ClientVersion: proto.String("Hand-made-1.0"), ProtocolVersion: version}
}

func TestConnectAnswersTheLowerVersion(t *testing.T) {
	r := serve(t)
	for _, test := range []struct {
		version *int32
		want    string
	}{
		{nil, "0"}, {proto.Int32(0), "0"}, {proto.Int32(5), "5"}, {proto.Int32(19), "19"}, {proto.Int32(21), "21"}, {proto.Int32(99), "21"}, {proto.Int32(-3), "0"},
	} {
		c := r.dial()
		c.say(connectCmd(test.version))
		c.hear(`CONNECTED {server_version:"Wayside" protocol_version:` + test.want + ` max_message_size:1048576 feature_flags {supports_topic_watchers:true supports_get_partitioned_metadata_without_auto_creation:true}}`)
	}
}

func TestConnectTakesProxiedAndUnknownMethods(t *testing.T) {
	r := serve(t)
	c := r.dial()
	c.say(&pulsarpb.CommandConnect{
		ClientVersion: proto.String("Hand-made-1.0"), ProtocolVersion: proto.Int32(21), ProxyToBrokerUrl: proto.String("elsewhere:6650"),
		AuthMethodName: proto.String("magic"), AuthData: []byte("abc"),
	})
	c.hear("CONNECTED *")
	c.say(&pulsarpb.CommandLookupTopic{Topic: proto.String(public + "x"), RequestId: num(1), AdvertisedListenerName: proto.String("nope")})
	c.hear(`LOOKUP_RESPONSE {brokerServiceUrl:"pulsar://` + r.addr + `" response:Connect request_id:1 authoritative:true proxy_through_service_url:true}`)
}

func TestBreachesCloseTheConnection(t *testing.T) {
	connected := true
	for name, test := range map[string]struct {
		after      bool // the login
		frame, why string
	}{
		"LOOKUP before CONNECT":       {!connected, "0000000e 0000000a 0817 ba0105 0a0178 1001", "LOOKUP before login"},
		"SEND before CONNECT":         {!connected, "00000010 00000008 0806 3204 0800 1000 00000000", "SEND before login"},
		"a large frame before":        {!connected, "00010000 00000005 0812920100", "too large"},
		"AUTH_RESPONSE before":        {!connected, "00000009 00000005 0825 aa0200", "AUTH_RESPONSE before login"},
		"CONNECT":                     {connected, "0000000d 00000009 0802 1205 0a0178 2015", "a second CONNECT"},
		"CONNECTED":                   {connected, "0000000b 00000007 0803 1a03 0a0178", "CONNECTED comes only from brokers"},
		"SEND_RECEIPT":                {connected, "0000000c 00000008 0807 3a04 0801 1001", "SEND_RECEIPT comes only from brokers"},
		"MESSAGE":                     {connected, "00000010 0000000c 0809 4a08 0801 1204 0801 1001", "MESSAGE comes only from brokers"},
		"SUCCESS":                     {connected, "0000000a 00000006 080d 6a02 0807", "SUCCESS comes only from brokers"},
		"AUTH_RESPONSE without any":   {connected, "00000009 00000005 0825 aa0200", "without a response"},
		"type 90":                     {connected, "0000000b 00000007 085a d205020801", "90 is not a known command"},
		"type 71":                     {connected, "0000000b 00000007 0847 ba04020801", "71 is not a known command"},
		"a type that is not first":    {connected, "00000009 00000005 920100 0812", "is not a known command"},
		"a type said twice":           {connected, "00000013 0000000f 0812 920100 0817 ba0105 0a01781001", "PING that is LOOKUP too"},
		"FLOW without its permits":    {connected, "0000000a 00000006 080b 5a02 0801", "messagePermits missing"},
		"FLOW of none":                {connected, "0000000c 00000008 080b 5a04 0801 1000", "FLOW without permits"},
		"not protobuf":                {connected, "00000008 00000004 ffffffff", "is not a known command"},
		"LOOKUP without its command":  {connected, "00000006 00000002 0817", "without its command"},
		"LOOKUP without its topic":    {connected, "0000000b 00000007 0817 ba0102 1001", "malformed"},
		"commandSize over the frame":  {connected, "00000009 00000032 0812920100", "malformed"},
		"commandSize 0":               {connected, "00000004 00000000", "malformed"},
		"totalSize 0":                 {connected, "00000000", "malformed"},
		"totalSize 2":                 {connected, "00000002 0101", "malformed"},
		"totalSize ffffffff":          {connected, "ffffffff", "too large"},
		"one over the limit":          {connected, "001027fd", "too large"},
		"a command over its limit":    {connected, "00100005 00100001 0817ba", "too large"},
		"HTTP":                        {connected, hex.EncodeToString([]byte("GET / HTTP/1.1\r\n\r\n")), "too large"},
		"HTTP at once":                {!connected, hex.EncodeToString([]byte("GET / HTTP/1.1\r\n\r\n")), "HTTP"},
		"TLS at once":                 {!connected, "160301020001000155", "TLS"},
		"SEND to an unknown producer": {connected, "00000011 00000008 0806 3204 0807 1000 0000000000", "SEND to a producer that does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			r := serve(t)
			other := r.connect().producing("bystander")
			c := r.dial()
			if test.after {
				if _, err := c.Connect(); err != nil {
					t.Fatal(err)
				}
			}
			raw, err := hex.DecodeString(strings.ReplaceAll(test.frame, " ", ""))
			if err != nil {
				t.Fatal(err)
			}
			if err := c.SendFrame(raw); err != nil {
				t.Fatal(err)
			}
			c.closed()
			other.publish(1, 0, "undisturbed")
			other.hear("SEND_RECEIPT *")
			r.stop()
			lines := r.log.with("WARN")
			if len(lines) != 1 || !strings.Contains(lines[0], test.why) || !strings.Contains(lines[0], "peer="+c.Conn().LocalAddr().String()) {
				t.Errorf("want one line in the log about %q and who did it, got %q", test.why, lines)
			}
		})
	}
}

func TestSecondConnectCloses(t *testing.T) {
	r := serve(t)
	c := r.connect()
	c.say(connectCmd(proto.Int32(21)))
	c.closed()
}

func TestForeignProtocolsAreNamedInTheLog(t *testing.T) {
	r := serve(t)
	c := r.dial()
	if err := c.SendFrame([]byte("GET /admin HTTP/1.1\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	c.closed()
	r.stop()
	if lines := r.log.with("HTTP"); len(lines) != 1 {
		t.Errorf("want one line about HTTP, got %q", lines)
	}
}

func TestPingIsAnsweredAtAnyTime(t *testing.T) {
	r := serve(t)
	c := r.dial()
	c.say(&pulsarpb.CommandPing{})
	c.hear("PONG {}")
	if _, err := c.Connect(); err != nil {
		t.Fatal(err)
	}
	// Bytes behind a simple command are ignored.
	if err := c.SendFrame([]byte("\x00\x00\x00\x0d\x00\x00\x00\x05\x08\x12\x92\x01\x00more")); err != nil {
		t.Fatal(err)
	}
	c.hear("PONG {}")
	c.say(&pulsarpb.CommandPong{})
	c.sync()
}

func TestUnaskedAuthResponseIsRefused(t *testing.T) {
	r := serve(t)
	c := r.connect()
	c.say(&pulsarpb.CommandAuthResponse{Response: &pulsarpb.AuthData{AuthMethodName: proto.String("none")}})
	c.hear(`ERROR {request_id:18446744073709551615 error:AuthenticationError message:"Failed to authenticate"}`)
	c.closed()
}

func TestLoginHasToComeInTime(t *testing.T) {
	r := serve(t, func(o *Options, _ *edge.Options) { o.HandshakeTimeout = 30 * time.Millisecond })
	silent := r.dial()
	silent.closed()
	trickling := r.dial() // announces 64 KiB and never sends them
	if err := trickling.SendFrame([]byte("\x00\x00\xff\xf0\x00\x00\xff\x00\x08\x02")); err != nil {
		t.Fatal(err)
	}
	trickling.closed()
	used, _ := r.broker.Budget().Usage(edge.SharePublish)
	if used != 0 {
		t.Errorf("publishers' memory was taken before a login: %d bytes", used)
	}
	r.stop()
	if lines := r.log.with("too slow"); len(lines) != 1 {
		t.Errorf("want one line for both, got %q", lines)
	}
}

func TestFrameHasToComeInTime(t *testing.T) {
	r := serve(t, func(o *Options, _ *edge.Options) { o.FrameTimeout = 20 * time.Millisecond })
	c := r.connect().producing("late")
	frame, err := wire.AppendPayloadCommand(nil, wire.Wrap(&pulsarpb.CommandSend{ProducerId: num(1), SequenceId: num(0)}), entryOf(t, 0, 0, []byte("x")))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.SendFrame(frame[:len(frame)-1]); err != nil {
		t.Fatal(err)
	}
	c.closed()
	r.stop()
	if used, _ := r.broker.Budget().Usage(edge.SharePublish); used != 0 {
		t.Errorf("memory of a frame that never came is still held: %d bytes", used)
	}
}

func TestConnectionsAreLimited(t *testing.T) {
	r := serve(t, func(o *Options, _ *edge.Options) { o.Connections = 1 })
	first := r.connect()
	r.dial().closed()
	first.sync()
}

type onlyToken struct{ token, role string }

func (a onlyToken) Authenticate(_ context.Context, c Credentials) (string, error) {
	if c.Method != "token" || string(c.Data) != a.token {
		return "", errors.New("wrong token")
	}
	return a.role, nil
}

func TestAuthenticatorDecides(t *testing.T) {
	r := serve(t, func(o *Options, _ *edge.Options) { o.Authenticator = onlyToken{"secret", "sensor"} })
	c := r.dial()
	c.say(connectCmd(proto.Int32(21)))
	c.hear(`ERROR {request_id:18446744073709551615 error:AuthenticationError message:"Failed to authenticate"}`)
	c.closed()
	c = r.dial()
	m := connectCmd(proto.Int32(21))
	m.AuthMethodName, m.AuthData = proto.String("token"), []byte("secret")
	c.say(m)
	c.hear("CONNECTED *")
	c.producing("authenticated")
	if lines := r.log.with("authentication failed"); len(lines) != 1 {
		t.Errorf("want one line about the refusal, got %q", lines)
	}
}

func TestComplaintsAreNotRepeated(t *testing.T) {
	r := serve(t)
	for range 5 {
		c := r.connect()
		c.say(flowCmd(1, 0))
		c.closed()
	}
	r.stop()
	if lines := r.log.with("FLOW without permits"); len(lines) != 1 {
		t.Errorf("want one line for five clients of one host, got %q", lines)
	}
}
