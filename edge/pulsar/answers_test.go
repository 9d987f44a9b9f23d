package pulsar

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/protobuf/proto"

	"wayside/edge"
	"wayside/wire"
	"wayside/wire/pulsarpb"
)

// hoarding sends the same request again and again on connections that read nothing, until
// no more is read from them, and returns how many bytes of answers wait.
func hoarding(t *testing.T, r *rig, dial func() *client, m proto.Message) (waiting int64) {
	frame, err := wire.AppendCommand(nil, wire.Wrap(m))
	if err != nil {
		t.Fatal(err)
	}
	var hoarders []*client
	for range 3 {
		c := dial()
		hoarders = append(hoarders, c)
		if _, err := c.Connect(); err != nil {
			t.Fatal(err)
		}
		go func() {
			for range 500 {
				if c.SendFrame(frame) != nil {
					return
				}
			}
		}()
	}
	synctest.Wait()
	for s := range r.server.sessions {
		waiting += s.slots.weight.Load()
	}
	for _, c := range hoarders {
		c.Close() //nolint:errcheck // it has done its work
	}
	return waiting
}

// Answers to clients that do not read them are bounded by their bytes, not only by their
// number.
func TestAnswersThatNobodyReadsAreBounded(t *testing.T) {
	const schema = 100 << 10
	for name, test := range map[string]struct {
		m    proto.Message
		most int64
	}{
		"texts":   {&pulsarpb.CommandGetTopicsOfNamespace{RequestId: num(1), Namespace: proto.String(strings.Repeat("\n", 500_000))}, 3 * (heavy + 2<<10)},
		"schemas": {&pulsarpb.CommandGetSchema{RequestId: num(1), Topic: proto.String("hoard")}, 3 * 2 * (schema + 1<<10)},
		"topics":  {&pulsarpb.CommandGetTopicsOfNamespace{RequestId: num(1), Namespace: proto.String("public/default")}, 3 * 2 * (heavy + 50*2048)},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig, dial func() *client) {
				c := dial()
				if _, err := c.Connect(); err != nil {
					t.Fatal(err)
				}
				c.producing("hoard")
				c.say(&pulsarpb.CommandGetOrCreateSchema{
					RequestId: num(2), Topic: proto.String("hoard"),
					Schema: &pulsarpb.Schema{Name: proto.String("s"), SchemaData: make([]byte, schema), Type: pulsarpb.Schema_String.Enum()},
				})
				c.hear("GET_OR_CREATE_SCHEMA_RESPONSE *")
				for i := range 50 {
					c.say(producerCmd(fmt.Sprintf("%02d%s", i, strings.Repeat("x", 1990)), uint64(10+i), 3))
					c.hear("PRODUCER_SUCCESS *")
				}
				if waiting := hoarding(t, r, dial, test.m); waiting > test.most || waiting < heavy {
					t.Errorf("%d bytes of answers wait, want %d at most", waiting, test.most)
				}
				synctest.Wait()
				if held := r.reads(); held != 0 {
					t.Errorf("%d bytes are still held", held)
				}
			})
		})
	}
}

func TestListThatNoClientCouldReadIsRefused(t *testing.T) {
	r := serve(t, func(o *Options, _ *edge.Options) { o.MaxMessageSize = 64 << 10 })
	c := r.connect()
	for i := range 33 {
		c.say(producerCmd(fmt.Sprintf("%02d%s", i, strings.Repeat("x", 1990)), uint64(i), 3))
		c.hear("PRODUCER_SUCCESS *")
	}
	c.say(&pulsarpb.CommandGetTopicsOfNamespace{RequestId: num(1), Namespace: proto.String("public/default")})
	c.hear(`ERROR {request_id:1 error:NotAllowedError message:"the names of 33 topics make more than 65536 bytes"}`)
	c.say(&pulsarpb.CommandGetTopicsOfNamespace{RequestId: num(2), Namespace: proto.String("public/default"), TopicsPattern: proto.String("public/default/00.*")})
	c.hear("GET_TOPICS_OF_NAMESPACE_RESPONSE {request_id:2 *")
}

func TestLongTextsAreShortened(t *testing.T) {
	for _, text := range []string{strings.Repeat("a", maxDetail+1), strings.Repeat("ä", maxDetail), "a" + strings.Repeat("ä", maxDetail)} {
		got := shortened(text)
		if len(got) > maxDetail+len("…") || len(got) < maxDetail || !strings.HasPrefix(text, strings.TrimSuffix(got, "…")) {
			t.Errorf("%q became %q", text, got)
		}
	}
	if got := shortened("short"); got != "short" {
		t.Errorf("short became %q", got)
	}
}

// What a client may choose freely makes no new line in the log.
func TestUnknownCommandsAreLoggedOnce(t *testing.T) {
	r := serve(t)
	for _, number := range []byte{71, 72, 73, 90, 100} {
		c := r.connect()
		if err := c.SendFrame([]byte{0, 0, 0, 8, 0, 0, 0, 4, 8, number, 8, number}); err != nil {
			t.Fatal(err)
		}
		c.closed()
	}
	eventually(t, "all sessions have ended", func() bool { return r.server.Sessions() == 0 })
	if lines := r.log.with("is not a known command"); len(lines) != 1 {
		t.Errorf("want one line, got %q", lines)
	}
}
