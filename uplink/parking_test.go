package uplink

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"wayside/edge"
	"wayside/wire"
	"wayside/wire/pulsarpb"
)

func testContext(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}

// crash forgets the uplink without a last word to the store.
func (r *rig) crash() {
	ctx, cancel := testContext(0)
	cancel()
	_ = r.up.Close(ctx)
	_ = r.broker.Close(r.context())
	_ = r.store.Close()
	r.up = nil
	r.store = r.store.Reopen()
}

// parked reads what is on the parking topic.
func (r *rig) parked(n int) []wire.Message {
	r.t.Helper()
	got := make(receiver, 1000)
	c, err := r.topic("wayside.parked").Subscribe(r.context(), edge.SubscribeOptions{Name: "look", Epoch: -1, Start: &edge.Earliest}, got, self{})
	if err != nil {
		r.t.Fatal(err)
	}
	defer c.Close()
	c.Flow(1000)
	var all []wire.Message
	for range n {
		d := <-got
		d.Grant.Release()
		m, err := wire.ParseMessage(d.Entry.Data)
		if err != nil {
			r.t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

func reasonOf(t *testing.T, m *wire.Message) string {
	var meta pulsarpb.MessageMetadata
	if err := proto.Unmarshal(m.Metadata, &meta); err != nil {
		t.Fatal(err)
	}
	for _, p := range meta.Properties {
		if p.GetKey() == "wayside.parked.reason" {
			return p.GetValue()
		}
	}
	return ""
}

// A message that is too large for the cloud is set aside, alone, also out of a batch.
func TestTooLargeIsParked(t *testing.T) {
	r := newRig(t, func(o *Options) { o.BatchMessages = 6 })
	r.cloud.set(func() {
		r.cloud.largest = 2000
		r.cloud.refuse = deny(pulsarpb.ServerError_ServiceNotReady)
	})
	r.publish("in-a", 0, 4)
	large := make([]byte, 3000)
	r.put("in-a", &pulsarpb.MessageMetadata{PartitionKey: proto.String("key")}, edge.Facts{}, large)
	r.publish("in-a", 5, 30)
	r.cloud.set(func() { r.cloud.refuse = nil })
	frames := r.cloud.frames(t, "out-a", 29)
	if got := texts(frames); got != count(0, 4)+" "+count(5, 30) {
		t.Errorf("the cloud has %q", got)
	}
	if s := r.settled("in-a"); s.Parked != 1 {
		t.Errorf("%+v", s)
	}
	m := r.parked(1)[0]
	if reason := reasonOf(t, &m); reason != "larger than the cloud takes" || len(m.Payload) != len(large) || string(m.PartitionKey) != "key" {
		t.Errorf("%q: %d bytes, key %q", reason, len(m.Payload), m.PartitionKey)
	}
}

// What cannot be opened is set aside as it is.
func TestSealedAndBrokenAreParked(t *testing.T) {
	r := newRig(t, nil)
	r.publish("in-a", 0, 1)
	key := &pulsarpb.EncryptionKeys{Key: proto.String("k"), Value: []byte("v")}
	r.put("in-a", &pulsarpb.MessageMetadata{EncryptionKeys: []*pulsarpb.EncryptionKeys{key}}, edge.Facts{Encrypted: true}, []byte("sealed"))
	three := int32(3)
	r.put("in-a", &pulsarpb.MessageMetadata{NumMessagesInBatch: &three}, edge.Facts{Messages: 3, Batch: true}, []byte("no batch at all"))
	r.put("in-a", &pulsarpb.MessageMetadata{}, edge.Facts{}, []byte("1"))
	frames := r.expect("out-a", 2)
	if last := frames[1].meta.GetSequenceId(); last != 5 {
		t.Errorf("sequence %d behind an entry of one and one of three", last)
	}
	if s := r.settled("in-a"); s.Parked != 2 {
		t.Errorf("%+v", s)
	}
	all := r.parked(2)
	if reason := reasonOf(t, &all[0]); reason != "encrypted end to end" || string(all[0].Payload) != "sealed" || all[0].EncryptionKeys != 1 {
		t.Errorf("%q: %+v", reason, all[0])
	}
	if reason := reasonOf(t, &all[1]); reason == "" || all[1].Batch {
		t.Errorf("%q: %+v", reason, all[1])
	}
	inner, err := wire.ParseMessage(all[1].Payload)
	if err != nil || string(inner.Payload) != "no batch at all" {
		t.Errorf("%v: %+v", err, inner)
	}
}

// A batch that is found too large only when the client closes it, others behind it
// already: its messages may not follow those under the same name, or the cloud would
// drop them.
func TestBatchFoundTooLargeLate(t *testing.T) {
	r := newRig(t, func(o *Options) { o.BatchMessages, o.BatchBytes, o.Routes[0].Provenance = 10, 100<<10, ProvenanceNone })
	r.cloud.set(func() {
		r.cloud.largest = 3000
		r.cloud.refuse = deny(pulsarpb.ServerError_ServiceNotReady)
	})
	sizes := []int{284, 30} // batches just too large with their header, and small ones
	for i := range 100 {
		r.put("in-a", &pulsarpb.MessageMetadata{}, edge.Facts{}, fmt.Appendf(nil, "%-*d", sizes[i/10%2], i))
	}
	r.cloud.set(func() { r.cloud.refuse = nil })
	s := r.settled("in-a")
	if s.Conflicts == 0 || s.Parked != 0 {
		t.Errorf("%+v", s)
	}
	seen := map[string]bool{}
	for _, f := range r.cloud.frames(t, "out-a", 100) {
		for _, m := range f.messages {
			seen[strings.TrimSpace(m.payload)] = true
		}
	}
	if len(seen) != 100 {
		t.Errorf("%d of 100 messages", len(seen))
	}
}

// Chunks are set aside as they are, so that a client can put them together.
func TestChunksAreParked(t *testing.T) {
	r := newRig(t, nil)
	for i := range int32(2) {
		r.put("in-a", &pulsarpb.MessageMetadata{Uuid: proto.String("u"), NumChunksFromMsg: proto.Int32(2), ChunkId: &i, TotalChunkMsgSize: proto.Int32(8)},
			edge.Facts{Chunk: edge.Chunk{UUID: "u", ID: i, Of: 2}}, []byte("half"))
	}
	r.publish("in-a", 0, 1)
	r.expect("out-a", 1)
	for i, m := range r.parked(2) {
		if !m.IsChunk() || m.ChunkID != int32(i) || string(m.Payload) != "half" {
			t.Errorf("%+v", m)
		}
	}
}

// The cloud refuses a message with an error that the client keeps to itself.
func TestRefusedMessageIsParked(t *testing.T) {
	r := newRig(t, nil)
	r.cloud.set(func() {
		r.cloud.judge = func(s *stubSend) stubAnswer {
			if s.sequence == 2 {
				return answerRefusal
			}
			return answerReceipt
		}
	})
	r.publish("in-a", 0, 5)
	frames := r.cloud.frames(t, "out-a", 4)
	if got := texts(frames); got != "0 1 3 4" {
		t.Errorf("the cloud has %q", got)
	}
	m := r.parked(1)[0]
	if reason := reasonOf(t, &m); reason != "the cloud does not take it: by script" {
		t.Errorf("%q", reason)
	}
}

// A crash between parking and the cursor's save does not park twice.
func TestParkingTwiceIsDropped(t *testing.T) {
	r := newRig(t, nil)
	r.cloud.set(func() { r.cloud.refuse = deny(pulsarpb.ServerError_ServiceNotReady) })
	key := &pulsarpb.EncryptionKeys{Key: proto.String("k"), Value: []byte("v")}
	r.put("in-a", &pulsarpb.MessageMetadata{EncryptionKeys: []*pulsarpb.EncryptionKeys{key}}, edge.Facts{Encrypted: true}, []byte("sealed"))
	r.status("in-a", func(s TopicStatus) bool { return s.Parked == 1 })
	o := r.up.o
	name := "wayside.uplink.in-any"
	r.restart(o)
	if err := r.topic("in-a").ResetSubscription(r.context(), name, edge.SeekTarget{Position: edge.Earliest}); err != nil {
		t.Fatal(err)
	}
	r.status("in-a", func(s TopicStatus) bool { return s.Parked == 1 })
	park, _ := edge.ParseTopicName("wayside.parked")
	for _, rec := range r.broker.Records() {
		if rec.Name == park && rec.Entries != 1 {
			t.Errorf("%d entries are parked", rec.Entries)
		}
	}
}
