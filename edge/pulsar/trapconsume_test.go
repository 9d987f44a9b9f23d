package pulsar

import (
	"errors"
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	"wayside/wire/pulsarpb"
)

// Traps of protocol.md, section 4, that have to do with consumers. testdata/traps.txt
// lists all of them.

// Go clients wait for these answers in their event loop.
func TestTrap32And33EveryCloseIsAnswered(t *testing.T) {
	r := serve(t)
	c := r.connect()
	closeAll := func(request uint64) {
		t.Helper()
		c.say(closeProducerCmd(1, request), closeConsumerCmd(1, request+1))
		c.hearInAnyOrder(fmt.Sprintf("SUCCESS {request_id:%d}", request), fmt.Sprintf("SUCCESS {request_id:%d}", request+1))
	}
	closeAll(10) // never there
	c.producing("close").consuming("close", "s", shared, 1)
	closeAll(20)
	closeAll(30) // gone
	c.producing("close").consuming("close", "s", shared, 1)
	c.say(flowCmd(1, 1))
	c.sync()
	r.unload("close")
	c.hearInAnyOrder("CLOSE_PRODUCER *", "CLOSE_CONSUMER *")
	closeAll(40) // closed from our side
	r.store.Hold()
	p := producerCmd("close", 1, 50)
	p.ProducerAccessMode = pulsarpb.ProducerAccessMode_Exclusive.Enum() // waits for a commit
	c.say(p, subscribeCmd("close", "t", shared, 1, 51))
	closeAll(52) // being made
	r.store.Release()
	c.consuming("close", "s", shared, 2)
	r.store.Fail(errors.New("no space"))
	m := &pulsarpb.CommandUnsubscribe{ConsumerId: num(2), RequestId: num(60)}
	c.say(m)
	c.hear("ERROR {request_id:60 *")
	c.say(closeConsumerCmd(2, 61))
	c.hear("SUCCESS {request_id:61}")
	r.store.Fail(nil)
}

func TestTrap34SuccessComesBeforeTheMessages(t *testing.T) {
	r := serve(t)
	c := r.connect().producing("first")
	for i := range uint64(20) {
		c.publish(1, i, "m")
		c.hear("SEND_RECEIPT *")
	}
	for i := range uint64(50) {
		sub := fmt.Sprint("s", i)
		c.say(subscribeCmd("first", sub, shared, i, i))
		for range 3 {
			c.say(flowCmd(i, 1)) // as soon as it may have become ready
		}
		c.hear(fmt.Sprintf("SUCCESS {request_id:%d}", i))
		c.say(closeConsumerCmd(i, 999))
		for got := c.receive(); got.GetSuccess() == nil; got = c.receive() {
			if got.GetMessage().GetConsumerId() != i {
				t.Fatalf("%v", got.BaseCommand)
			}
		}
	}
}

// What waits in the outbox for a client that reads slowly does not come behind the close.
func TestTrap35NothingComesBehindAClose(t *testing.T) {
	slowly(t, 100, 16<<10, func(t *testing.T, r *rig, slow *client, dial func() *client) {
		slow.say(closeConsumerCmd(1, 7))
		taken := 0 // those that were in hand
		for got := slow.receive(); got.GetSuccess() == nil; got = slow.receive() {
			if taken++; got.GetMessage() == nil {
				t.Fatalf("%v", got.BaseCommand)
			}
		}
		slow.sync()
		if taken == 100 {
			t.Error("nothing was waiting")
		}
	})
}

func TestTrap40And41And42AcksAreAnsweredAlways(t *testing.T) {
	r, c, l := ackRig(t)
	answered := func(m *pulsarpb.CommandAck) *pulsarpb.CommandAckResponse {
		t.Helper()
		a := c.answered(m).GetAckResponse()
		if a == nil || a.RequestId == nil || a.GetRequestId() != m.GetRequestId() || a.GetConsumerId() != m.GetConsumerId() {
			t.Fatalf("%v was answered by %v", m, a)
		}
		return a
	}
	for i, m := range []*pulsarpb.CommandAck{
		ackCmd(1, 0, id(l, 0)), ackCmd(1, 0, id(l, 0)), ackCmd(1, 0), ackCmd(2, 0, id(9, 9)), cumulative(ackCmd(2, 0, id(l, 1))),
		cumulative(ackCmd(1, 0)), ackCmd(2, 0, id(l, 6, 0x3FE)), ackCmd(2, 0, id(l, 1), id(l, 2), id(l, 3)),
	} {
		m.RequestId = num(uint64(100 + i))
		if a := answered(m); a.Error != nil || a.GetMessage() != "" {
			t.Errorf("%v failed: %v", m, a)
		}
	}
	r.store.Fail(errors.New("no space"))
	if a := answered(ackCmd(1, 200, id(l, 1))); a.Error == nil || a.GetMessage() == "" {
		t.Errorf("it was not stored, and the answer is %v", a)
	}
	r.store.Fail(nil)
	if a := answered(ackCmd(1, 201, id(l, 1))); a.Error != nil {
		t.Errorf("again: %v", a)
	}
}

func TestTrap48CountsRiseByNacksOnSharedAlone(t *testing.T) {
	_, c, l := ackRig(t)
	again := func(consumer uint64) {
		c.say(&pulsarpb.CommandRedeliverUnacknowledgedMessages{ConsumerId: &consumer, MessageIds: []*pulsarpb.MessageIdData{id(l, 0)}})
	}
	again(1)
	for i := range 8 { // Exclusive: all of them come again
		if m := c.receive().GetMessage(); m.GetConsumerId() != 1 || m.RedeliveryCount != nil {
			t.Fatalf("message %d: %v", i, m)
		}
	}
	for want := uint32(1); want < 4; want++ {
		again(2)
		if m := c.receive().GetMessage(); m.GetConsumerId() != 2 || m.GetRedeliveryCount() != want {
			t.Fatalf("nack %d: %v", want, m)
		}
	}
	c.consuming("acks", "sh", shared, 4)
	c.say(closeConsumerCmd(2, 9))
	c.hear("SUCCESS *")
	c.say(flowCmd(4, 1000))
	for i := range 8 { // the holder has left: no count has risen
		want := uint32(0)
		if i == 0 {
			want = 3
		}
		if m := c.receive().GetMessage(); m.GetConsumerId() != 4 || m.GetRedeliveryCount() != want {
			t.Fatalf("message %d: %v", i, m)
		}
	}
}

func TestTrap49MessagesCarryTheEpochThatTheClientIsIn(t *testing.T) {
	r := serve(t)
	c := r.connect().producing("epochs")
	for i := range uint64(3) {
		c.publish(1, i, "m")
		c.hear("SEND_RECEIPT *")
	}
	s := subscribeCmd("epochs", "java", exclusive, 1, 2)
	s.ConsumerEpoch = num(0)
	c.say(s)
	c.hear("SUCCESS *")
	c.say(flowCmd(1, 100))
	for epoch := range uint64(4) {
		for range 3 {
			if m := c.receive().GetMessage(); m.ConsumerEpoch == nil || m.GetConsumerEpoch() != epoch {
				t.Fatalf("in epoch %d came %v", epoch, m)
			}
		}
		c.say(&pulsarpb.CommandRedeliverUnacknowledgedMessages{ConsumerId: num(1), ConsumerEpoch: num(epoch + 1)})
	}
	for range 3 {
		c.receive()
	}
	c.consuming("epochs", "go", exclusive, 2)
	c.say(flowCmd(2, 100))
	for range 3 {
		if m := c.receive().GetMessage(); m.ConsumerEpoch != nil {
			t.Fatalf("a client without epochs got %v", m)
		}
	}
}

func TestTrap50And51And52PermitsAndAckSetsAreInMessages(t *testing.T) {
	r := serve(t)
	c := r.connect().producing("batches").consuming("batches", "s", shared, 1)
	var l int64
	for i := range uint64(4) {
		c.publishBatch(1, 10*i, 10)
		l = int64(c.receive().GetSendReceipt().GetMessageId().GetLedgerId())
	}
	c.say(flowCmd(1, 10))
	c.hearEntries(1, 0, 0)
	c.sync() // ten messages for ten permits
	c.say(flowCmd(1, 5))
	c.hearEntries(1, 1, 1)
	c.sync() // five are owed
	c.say(flowCmd(1, 5))
	c.sync()
	c.say(ackCmd(1, 3, id(l, 0, 0x3FF&^0x0F0))) // six of entry 0 are left
	c.hear("ACK_RESPONSE {consumer_id:1 request_id:3}")
	c.say(&pulsarpb.CommandRedeliverUnacknowledgedMessages{ConsumerId: num(1), MessageIds: []*pulsarpb.MessageIdData{id(l, 0)}}, flowCmd(1, 6))
	if m := c.receive().GetMessage(); m.GetMessageId().GetEntryId() != 0 || len(m.AckSet) != 1 || m.AckSet[0] != 0x30F {
		t.Fatalf("%v", m)
	}
	c.sync() // six came for six
	c.say(flowCmd(1, 1))
	if m := c.receive().GetMessage(); m.GetMessageId().GetEntryId() != 2 || m.AckSet != nil {
		t.Fatalf("%v", m)
	}
	c.sync()
}

func TestTrap55And56EverybodyIsToldWhoIsActiveBehindSuccess(t *testing.T) {
	r := serve(t)
	if err := r.broker.CreatePartitions(t.Context(), topicName(t, "active"), 1); err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"A", "B", "C"} { // the first by name stays the active one
		c := r.connect()
		m := subscribeCmd("active-partition-0", "f", failover, 1, 5)
		m.ConsumerName = &name
		c.say(m)
		c.hear("SUCCESS {request_id:5}", fmt.Sprintf("ACTIVE_CONSUMER_CHANGE {consumer_id:1 is_active:%t}", i == 0))
	}
}

func TestTrap71PermitsOfBeforeDoNotCount(t *testing.T) {
	r := serve(t)
	c := r.connect().producing("permits").consuming("permits", "s", shared, 1)
	c.say(flowCmd(1, 1000))
	c.publish(1, 0, "a")
	c.hearInAnyOrder("SEND_RECEIPT *", "MESSAGE *")
	c.say(seekTo(1, 3, 0, 0))
	c.hear("CLOSE_CONSUMER *", "SUCCESS {request_id:3}")
	c.say(flowCmd(1, 1000)) // Go's, for the id that is gone
	c.consuming("permits", "s", shared, 1)
	c.sync()
	c.say(flowCmd(1, 1))
	c.hearEntries(1, 0, 0)
	c.publish(1, 1, "b")
	c.hear("SEND_RECEIPT *")
	c.sync()
	r.unload("permits")
	c.hearInAnyOrder("CLOSE_PRODUCER *", "CLOSE_CONSUMER *")
	c.consuming("permits", "s", shared, 1)
	c.sync()
	c.say(flowCmd(1, 1))
	c.hearEntries(1, 0, 0)
	c.sync()
}

func TestTrap76CommandsForIDsThatAreGoneAreIgnored(t *testing.T) {
	r := serve(t)
	c := r.connect().consuming("gone", "s", shared, 1)
	c.say(closeConsumerCmd(1, 2))
	c.hear("SUCCESS {request_id:2}")
	for _, consumer := range []uint64{1, 9} { // gone, and never there
		c.say(flowCmd(consumer, 10), ackCmd(consumer, 3, id(1, 1)), &pulsarpb.CommandRedeliverUnacknowledgedMessages{ConsumerId: &consumer})
		c.sync()
	}
}

// Go acknowledges single messages without a payload itself, as unreadable.
func TestTrap80AnEmptyMessageIsNoCorruption(t *testing.T) {
	r := serve(t)
	c := r.connect().producing("empty").consuming("empty", "s", exclusive, 1)
	c.publish(1, 0, "")
	at := c.receive().GetSendReceipt().GetMessageId()
	c.say(flowCmd(1, 1))
	c.hearEntries(1, 0, 0)
	m := ackCmd(1, 3, id(int64(at.GetLedgerId()), 0))
	m.ValidationError = pulsarpb.CommandAck_BatchDeSerializeError.Enum()
	c.say(m)
	c.hear("ACK_RESPONSE {consumer_id:1 request_id:3}")
	topic, err := r.broker.Open(t.Context(), topicName(t, "empty"), false)
	if err != nil {
		t.Fatal(err)
	}
	if s := topic.Stats().Subscriptions["s"]; s.Backlog != 0 {
		t.Errorf("backlog %d", s.Backlog)
	}
	if lines := r.log.with("level=WARN"); len(lines) != 0 {
		t.Errorf("logged %q", lines)
	}
}

func TestTrap77AReaderWithoutAStartGoesOnWhereItsSeekWent(t *testing.T) {
	_, c, _ := seekRig(t)
	reader := func(consumer, request uint64, start *pulsarpb.MessageIdData) *pulsarpb.CommandSubscribe {
		m := subscribeCmd("seeks", "nd", exclusive, consumer, request)
		m.Durable, m.StartMessageId = proto.Bool(false), start
		return m
	}
	c.say(reader(5, 78, id(-1, -1)))
	c.hear("SUCCESS {request_id:78}")
	c.say(&pulsarpb.CommandSeek{ConsumerId: num(5), RequestId: num(79), MessagePublishTime: num(3000)})
	c.hear("CLOSE_CONSUMER {consumer_id:5 *", "SUCCESS {request_id:79}")
	c.say(reader(5, 80, nil))
	c.hear("SUCCESS {request_id:80}")
	c.say(flowCmd(5, 2))
	c.hearEntries(5, 3, 4)
}
