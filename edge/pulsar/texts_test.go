package pulsar

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"wayside/edge"
	"wayside/wire"
	"wayside/wire/pulsarpb"
)

// What clients say of their producers and consumers is bounded for all together, and
// free again when these are gone.
func TestTextsOfAllClientsAreBounded(t *testing.T) {
	r := serve(t)
	limit := r.server.texts.limit
	long := strings.Repeat("v", maxProducerMetadata-1)
	producer := func(id uint64) *pulsarpb.CommandProducer {
		m := producerCmd("texts", id, id)
		m.Metadata = []*pulsarpb.KeyValue{{Key: proto.String("k"), Value: &long}}
		return m
	}
	c, d := r.connect(), r.connect()
	fit := uint64(limit / int64(maxProducerMetadata-freeTexts))
	for i := range fit {
		c.say(producer(i))
		c.hear("PRODUCER_SUCCESS *")
	}
	const refused = `error:NotAllowedError message:"names and metadata of all clients together are too long"}`
	d.say(producer(1))
	d.hear("ERROR {request_id:1 " + refused)
	m := subscribeCmd("texts", "s", keyShared_, 2, 2)
	m.KeySharedMeta = &pulsarpb.KeySharedMeta{KeySharedMode: pulsarpb.KeySharedMode_STICKY.Enum()}
	for i := range int32(30_000) {
		m.KeySharedMeta.HashRanges = append(m.KeySharedMeta.HashRanges, &pulsarpb.IntRange{Start: proto.Int32(2 * i), End: proto.Int32(2 * i)})
	}
	d.say(m)
	d.hear("ERROR {request_id:2 " + refused)
	d.producing("texts") // official clients are not concerned
	d.consuming("texts", "s", shared, 7)
	c.say(closeProducerCmd(0, 0))
	c.hear("SUCCESS *")
	c.say(producer(99))
	c.hear("PRODUCER_SUCCESS *")
	c.Close() //nolint:errcheck // it has done its work
	eventually(t, "the texts are gone", func() bool { return r.server.texts.used.Load() == 0 })
	d.say(producer(3))
	d.hear("PRODUCER_SUCCESS *")
	r.stop()
	if n := r.server.texts.used.Load(); n != 0 {
		t.Errorf("%d bytes are still counted", n)
	}
}

// Those who are logging in hold little memory, however many they are.
func TestLongLoginsShareTheirMemory(t *testing.T) {
	r := serve(t)
	login, err := wire.AppendCommand(nil, wire.Wrap(&pulsarpb.CommandConnect{ClientVersion: proto.String("x"), AuthData: make([]byte, preLogin-100)}))
	if err != nil {
		t.Fatal(err)
	}
	many := int(r.server.logins.limit / (2 * preLogin))
	for i := range many {
		if err := r.dial().SendFrame(login[:len(login)-1]); err != nil {
			t.Fatal(err)
		}
		eventually(t, "it has begun", func() bool { return r.server.logins.used.Load() >= int64(i+1)*2*(preLogin-200) })
	}
	for range 3 {
		c := r.dial()
		if err := c.SendFrame(login); err == nil {
			c.closed()
		}
	}
	eventually(t, "they have gone", func() bool { return r.server.Sessions() == many })
	if lines := r.log.with("too many long logins at once"); len(lines) != 1 {
		t.Errorf("want one line, got %q", lines)
	}
	r.connect() // a short one is let in
	for s := range r.all() {
		s.fail(edge.ErrClosing)
	}
	eventually(t, "their memory is free", func() bool { return r.server.logins.used.Load() == 0 })
}

// all lists the sessions there are.
func (r *rig) all() map[*session]struct{} {
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	all := map[*session]struct{}{}
	for s := range r.server.sessions {
		all[s] = struct{}{}
	}
	return all
}
