package pulsar

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"wayside/edge"
	"wayside/wire/pulsarpb"
)

// Traps of protocol.md, section 4, that have to do with producers. testdata/traps.txt
// lists all of them.

func TestTrap1ProducersAreToldASchemaVersion(t *testing.T) {
	c := serve(t).connect()
	if m := c.answered(producerCmd("plain", 1, 1)).GetProducerSuccess(); m.SchemaVersion == nil || len(m.SchemaVersion) != 0 {
		t.Errorf("without a schema: %v", m)
	}
	p := producerCmd("typed", 2, 2)
	p.Schema = schemaOf(pulsarpb.Schema_String, "")
	if m := c.answered(p).GetProducerSuccess(); len(m.SchemaVersion) != 8 {
		t.Errorf("with a schema: %v", m)
	}
}

// Whatever becomes of them, SENDs are answered one after the other.
func TestTrap20And24AnswersComeInTheOrderOfTheSends(t *testing.T) {
	r := serve(t, func(_ *Options, o *edge.Options) { o.Deduplication = true })
	c := r.connect()
	p := producerCmd("order", 1, 1)
	p.ProducerName = proto.String("p")
	c.say(p)
	c.hear("PRODUCER_SUCCESS *")
	broken := func(sequence uint64) {
		data := entryOf(t, sequence, 0, []byte("bad"))
		data[len(data)-1] ^= 1
		c.sendEntry(&pulsarpb.CommandSend{ProducerId: num(1), SequenceId: &sequence}, data)
	}
	r.store.Hold()
	c.publish(1, 0, "a")
	c.publish(1, 0, "a") // repeats what is not durable yet
	broken(1)
	c.publish(1, 2, "c")
	c.publish(1, 2, "c")
	c.sync()
	r.store.Release()
	const duplicate = "{ledgerId:18446744073709551615 entryId:18446744073709551615}"
	c.hear(
		"SEND_RECEIPT {producer_id:1 sequence_id:0 message_id {ledgerId:* entryId:0} *",
		"SEND_RECEIPT {producer_id:1 sequence_id:0 message_id "+duplicate+" *",
		"SEND_ERROR {producer_id:1 sequence_id:1 error:ChecksumError *",
		"SEND_RECEIPT {producer_id:1 sequence_id:2 message_id {ledgerId:* entryId:1} *",
		"SEND_RECEIPT {producer_id:1 sequence_id:2 message_id "+duplicate+" *",
	)
	c.publish(1, 1, "late") // below what is stored
	c.hear("SEND_RECEIPT {producer_id:1 sequence_id:1 message_id " + duplicate + " *")
}

func TestTrap23EveryReceiptHasAnID(t *testing.T) {
	r := serve(t, func(_ *Options, o *edge.Options) { o.Deduplication = true })
	c := r.connect()
	lasting, passing := producerCmd("ids", 1, 1), producerCmd("ids", 2, 2)
	passing.Topic = proto.String("non-persistent://public/default/ids")
	for _, m := range []*pulsarpb.CommandProducer{lasting, passing} {
		m.ProducerName = proto.String("p")
		c.say(m)
		c.hear("PRODUCER_SUCCESS *")
	}
	for _, producer := range []uint64{1, 1, 2} { // the second is a duplicate
		c.publish(producer, 0, "m")
		if m := c.receive().GetSendReceipt(); m.GetMessageId() == nil || m.MessageId.LedgerId == nil || m.MessageId.EntryId == nil {
			t.Errorf("receipt %v", m)
		}
	}
}

// What happens to a topic is told by CLOSE_PRODUCER, not by SEND_ERRORs, which would
// cost the Go and C++ clients the whole connection or the answers to come. Of what was
// sent before the client knew nothing is answered, and nothing is taken amiss.
func TestTrap25And26And27And28CloseComesInPlaceOfSendErrors(t *testing.T) {
	ctx, name := t.Context(), topicName(t, "t")
	for what, happen := range map[string]func(r *rig, other *client){
		"store fails": func(r *rig, _ *client) { r.store.Fail(errors.New("no space")) },
		"terminated":  func(r *rig, _ *client) { r.meanwhile(func() { r.broker.Terminate(ctx, name) }) },    //nolint:errcheck // seen on the wire
		"unloaded":    func(r *rig, _ *client) { r.meanwhile(func() { r.broker.Unload(ctx, name) }) },       //nolint:errcheck // as above
		"deleted":     func(r *rig, _ *client) { r.meanwhile(func() { r.broker.Delete(ctx, name, true) }) }, //nolint:errcheck // as above
		"fenced": func(r *rig, other *client) {
			m := producerCmd("t", 1, 1)
			m.ProducerAccessMode = pulsarpb.ProducerAccessMode_ExclusiveWithFencing.Enum()
			r.meanwhile(func() { other.say(m) })
		},
	} {
		t.Run(what, func(t *testing.T) {
			r := serve(t)
			other := r.connect()
			c := r.connect().producing("t")
			r.store.Hold()
			c.publish(1, 0, "before")
			c.sync()
			happen(r, other)
			for i := range uint64(5) {
				c.publish(1, 1+i, "meanwhile")
			}
			c.publishBatch(1, 6, 3)
			c.sync()
			r.store.Release()
			got := c.receive()
			if got.GetSendReceipt() != nil { // of the one before
				got = c.receive()
			}
			if got.GetCloseProducer() == nil {
				t.Fatalf("got %v\n%s", got.BaseCommand, c.story())
			}
			c.publish(1, 9, "later")
			bad := entryOf(t, 10, 0, []byte("bad"))
			bad[len(bad)-1] ^= 1
			c.sendEntry(&pulsarpb.CommandSend{ProducerId: num(1), SequenceId: num(10)}, bad)
			c.sync()
			r.store.Fail(nil)
		})
	}
}

// meanwhile begins something that ends the shared producer of topic t, and waits until
// the core has sent that away. Its client need not know.
func (r *rig) meanwhile(begin func()) {
	r.t.Helper()
	topic, err := r.broker.Open(r.t.Context(), topicName(r.t, "t"), false)
	if err != nil {
		r.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		begin()
	}()
	r.t.Cleanup(func() { <-done })
	eventually(r.t, "the producer is sent away", func() bool {
		for _, p := range topic.Stats().Publishers {
			if p.Access == edge.AccessShared {
				return false
			}
		}
		return true
	})
}

func TestTrap29ASendErrorNamesTheEndOfTheBatch(t *testing.T) {
	c := serve(t).connect().producing("batch")
	data := entryOf(t, 3, 3, make([]byte, 60))
	data[len(data)-1] ^= 1
	c.sendEntry(&pulsarpb.CommandSend{ProducerId: num(1), SequenceId: num(3), HighestSequenceId: num(5), NumMessages: proto.Int32(3)}, data)
	c.hear("SEND_ERROR {producer_id:1 sequence_id:5 error:ChecksumError *")
	c.publish(1, 6, "good")
	c.hear("SEND_RECEIPT {producer_id:1 sequence_id:6 *")
}

// A producer that came back under its old id gets no receipts of its former life.
func TestTrap30And31TheFormerLifeOfAProducerIsOver(t *testing.T) {
	r := serve(t)
	c := r.connect().producing("life")
	r.store.Hold()
	for i := range uint64(5) {
		c.publish(1, i, "m")
	}
	c.sync()
	r.store.Fail(errors.New("no space"))
	r.store.Release()
	c.hear("CLOSE_PRODUCER {producer_id:1 *")
	for i := range uint64(100) { // still on their way
		c.publish(1, 5+i, "m")
	}
	c.sync()
	r.store.Fail(nil)
	again := producerCmd("life", 1, 4)
	again.Epoch = num(1)
	c.say(again)
	for i := range 105 {
		if i == 0 {
			c.hear("PRODUCER_SUCCESS {request_id:4 *")
		}
		c.publish(1, uint64(i), "m")
		c.hear(fmt.Sprintf("SEND_RECEIPT {producer_id:1 sequence_id:%d message_id {ledgerId:* entryId:%d} *", i, i))
	}
	c.sync()
}

func TestTrap57And58AWaitingProducerIsToldAtOnceAndUnderItsNumber(t *testing.T) {
	r := serve(t)
	owner := r.connect()
	m := producerCmd("turns", 1, 1)
	m.ProducerAccessMode = pulsarpb.ProducerAccessMode_Exclusive.Enum()
	owner.say(m)
	owner.hear("PRODUCER_SUCCESS *")
	c := r.connect()
	m = producerCmd("turns", 1, 77)
	m.ProducerAccessMode = pulsarpb.ProducerAccessMode_WaitForExclusive.Enum()
	if got := c.answered(m).GetProducerSuccess(); got == nil || got.GetProducerReady() || got.GetRequestId() != 77 {
		t.Fatalf("first %v", got)
	}
	owner.say(closeProducerCmd(1, 2))
	owner.hear("SUCCESS {request_id:2}")
	if got := c.receive().GetProducerSuccess(); !got.GetProducerReady() || got.GetRequestId() != 77 || got.TopicEpoch == nil || got.SchemaVersion == nil {
		t.Fatalf("then %v", got)
	}
}

func TestTrap59FencedAndBusyAreNotTheSame(t *testing.T) {
	r := serve(t)
	refusal := func(topic string, first, second pulsarpb.ProducerAccessMode) string {
		c := r.connect()
		a, b := producerCmd(topic, 1, 1), producerCmd(topic, 2, 2)
		a.ProducerAccessMode, b.ProducerAccessMode = &first, &second
		c.say(a)
		c.hear("PRODUCER_SUCCESS *")
		return c.answered(b).GetError().GetError().String()
	}
	const sharedMode, exclusiveMode = pulsarpb.ProducerAccessMode_Shared, pulsarpb.ProducerAccessMode_Exclusive
	for want, got := range map[string]string{
		"Shared beside Exclusive: ProducerBusy":      "Shared beside Exclusive: " + refusal("a", exclusiveMode, sharedMode),
		"Exclusive beside Shared: ProducerFenced":    "Exclusive beside Shared: " + refusal("b", sharedMode, exclusiveMode),
		"Exclusive beside Exclusive: ProducerFenced": "Exclusive beside Exclusive: " + refusal("c", exclusiveMode, exclusiveMode),
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// The Go client searches for these words in whole texts, names that clients chose in them.
func TestTrap60NoTextHoldsTheNameOfAnotherError(t *testing.T) {
	r := serve(t)
	c := r.connect()
	for _, word := range []string{"TopicNotFound", "TopicTerminatedError", "ProducerBlockedQuotaExceededException", "ProducerFenced"} {
		p := producerCmd("names", 1, 1)
		p.ProducerName = &word
		c.say(p)
		c.hear("PRODUCER_SUCCESS *")
		p.ProducerId, p.RequestId = num(2), num(2)
		if m := c.answered(p).GetError(); m.GetError() != pulsarpb.ServerError_ProducerBusy || strings.Contains(m.GetMessage(), word) || m.GetMessage() == "" {
			t.Errorf("%v", m)
		}
		c.say(closeProducerCmd(1, 3))
		c.hear("SUCCESS *")
	}
	for _, f := range faults() {
		if misleading(f.code, f.text) {
			t.Errorf("%q names another error", f.text)
		}
	}
}
