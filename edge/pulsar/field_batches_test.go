package pulsar

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"wayside/edge"
	"wayside/wire/pulsarpb"
	"wayside/wire/wiretest"
)

// Cases that people met with other brokers, by the numbers that they have among ours:
// acknowledgements within batches. The clients' part is played as they play it.

// batchRig has a topic with a single message, a batch of ten and one of ten more.
func batchRig(t *testing.T, tweaks ...tweak) (*rig, *client, int64) {
	r := serve(t, tweaks...)
	c := r.connect().producing("bi")
	c.publish(1, 0, "single")
	c.hear("SEND_RECEIPT *")
	c.publishBatch(1, 1, 10)
	c.hear("SEND_RECEIPT *")
	c.publishBatch(1, 11, 10)
	return r, c, int64(c.receive().GetSendReceipt().GetMessageId().GetLedgerId())
}

// backlog wants so many entries to be left of subscription s of topic bi.
func (r *rig) backlog(want int64) {
	r.t.Helper()
	topic, err := r.broker.Open(r.t.Context(), topicName(r.t, "bi"), false)
	if err != nil {
		r.t.Fatal(err)
	}
	if n := topic.Stats().Subscriptions["s"].Backlog; n != want {
		r.t.Errorf("backlog %d, want %d", n, want)
	}
}

func nackCmd(consumer uint64, ids ...*pulsarpb.MessageIdData) *pulsarpb.CommandRedeliverUnacknowledgedMessages {
	return &pulsarpb.CommandRedeliverUnacknowledgedMessages{ConsumerId: &consumer, MessageIds: ids}
}

const lastOfTen = 1 << 9 // an ack_set of which the last message is left

// BI-01: nacking one of a batch brings the already acked ones back.
func TestFieldBI01OnlyWhatIsNotAcknowledgedOfABatchComesBack(t *testing.T) {
	r, c, l := batchRig(t)
	c.consuming("bi", "s", shared, 1)
	c.say(flowCmd(1, 100))
	c.hearEntries(1, 0, 2)
	// With batch index acknowledgement: 0 to 8 are acknowledged, 9 is not.
	c.say(ackCmd(1, 2, id(l, 1, lastOfTen)), nackCmd(1, id(l, 1)))
	c.hearInAnyOrder("ACK_RESPONSE {consumer_id:1 request_id:2}",
		fmt.Sprintf("MESSAGE {consumer_id:1 message_id {ledgerId:%d entryId:1 partition:-1} redelivery_count:1 ack_set:512} *", l))
	// Without: the client says nothing before all are done, and the whole batch comes.
	c.say(nackCmd(1, id(l, 2)))
	c.hear(fmt.Sprintf("MESSAGE {consumer_id:1 message_id {ledgerId:%d entryId:2 partition:-1} redelivery_count:1} *", l))
	c.sync()
	c.say(ackCmd(1, 3, id(l, 0), id(l, 1, 0), id(l, 2)))
	c.hear("ACK_RESPONSE {consumer_id:1 request_id:3}")
	r.backlog(0)
}

// BI-03: cumulative ack inside a batch: the consumer resumes at the next batch or acks
// the wrong one.
func TestFieldBI03ACumulativeAckWithinABatchLeavesItsRest(t *testing.T) {
	r, c, l := batchRig(t)
	again := func(consumer uint64, want ...string) {
		t.Helper()
		c.Reset() //nolint:errcheck // the client's connection breaks
		c = r.connect().consuming("bi", "s", exclusive, consumer)
		c.say(flowCmd(consumer, 100))
		for _, w := range want {
			c.hear(fmt.Sprintf("MESSAGE {consumer_id:%d message_id {ledgerId:%d entryId:%s *", consumer, l, w))
		}
		c.sync()
	}
	again(1, "0 partition:-1}}", "1 partition:-1}}", "2 partition:-1}}")
	// Without batch index acknowledgement a client acknowledges what is before the batch.
	c.say(cumulative(ackCmd(1, 2, id(l, 0))))
	c.hear("ACK_RESPONSE {consumer_id:1 request_id:2}")
	again(2, "1 partition:-1}}", "2 partition:-1}}")
	c.say(cumulative(ackCmd(2, 3, id(l, 1, 0x3E0)))) // with it: index 4, five to nine are left
	c.hear("ACK_RESPONSE {consumer_id:2 request_id:3}")
	again(3, "1 partition:-1} ack_set:992}", "2 partition:-1}}")
	r.unload("bi")
	c.hear("CLOSE_CONSUMER *")
	again(4, "1 partition:-1} ack_set:992}", "2 partition:-1}}")
	c.say(cumulative(ackCmd(4, 5, id(l, 2, 0x3FE))))
	c.hear("ACK_RESPONSE {consumer_id:4 request_id:5}")
	again(5, "2 partition:-1} ack_set:1022}")
}

// BI-07: a message acked in its last round still lands in the dead letter topic. Clients
// move there what a delivery with a count of more than so many brings.
func TestFieldBI07TheLastRoundOfABatchBringsOnlyWhatFailed(t *testing.T) {
	r, c, l := batchRig(t)
	c.consuming("bi", "s", shared, 1)
	c.say(flowCmd(1, 1000))
	c.hearEntries(1, 0, 2)
	for round := 1; round <= 2; round++ {
		c.say(nackCmd(1, id(l, 1)))
		c.hear(fmt.Sprintf("MESSAGE {consumer_id:1 message_id {ledgerId:%d entryId:1 partition:-1} redelivery_count:%d} *", l, round))
	}
	for i := range 9 { // one by one, as applications do
		c.say(ackCmd(1, 3, id(l, 1, 0x3FF&^(1<<i))))
		c.hear("ACK_RESPONSE *")
	}
	c.say(nackCmd(1, id(l, 1)))
	c.hear(fmt.Sprintf("MESSAGE {consumer_id:1 message_id {ledgerId:%d entryId:1 partition:-1} redelivery_count:3 ack_set:512} *", l))
	c.say(ackCmd(1, 4, id(l, 0), id(l, 1), id(l, 2)))
	c.hear("ACK_RESPONSE *")
	r.backlog(0)
}

// BI-09: an ack lost in a network cut; redelivered messages are then refused as
// duplicates and stay unacked.
func TestFieldBI09WhatALostAckLeavesComesAgain(t *testing.T) {
	r, c, l := batchRig(t)
	proxy, err := wiretest.StartProxy(wiretest.ProxyOptions{Target: r.addr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { proxy.Close() }) //nolint:errcheck // nothing is left to lose
	through := func() *client {
		p, err := wiretest.Dial(proxy.Addr(), patientFor)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close() }) //nolint:errcheck // reset by the link, often
		c := &client{p, t}
		if _, err := c.Connect(); err != nil {
			t.Fatal(err)
		}
		return c
	}
	d := through().consuming("bi", "s", exclusive, 1)
	d.say(flowCmd(1, 100))
	d.hearEntries(1, 0, 2)
	proxy.Swallow(wiretest.NextOf(1, pulsarpb.BaseCommand_ACK))
	d.say(cumulative(ackCmd(1, 2, id(l, 1))))
	d.sync() // behind the lost one
	proxy.ResetAll()
	d = through().consuming("bi", "s", exclusive, 1)
	d.say(flowCmd(1, 100))
	d.hearEntries(1, 0, 2)
	d.say(cumulative(ackCmd(1, 3, id(l, 2))))
	d.hear("ACK_RESPONSE {consumer_id:1 request_id:3}")
	r.backlog(0)
	_ = c
}

// DD-03: a batch that holds old and new ids is dropped whole. It is, as in the reference,
// by its first id; whoever sent it is named in the log, with the ids that went with it.
func TestFieldDD03ABatchOfOldAndNewIsDroppedAndNamed(t *testing.T) {
	r := serve(t, func(o *Options, e *edge.Options) { e.Deduplication, e.Logger = true, o.Logger })
	c := r.connect()
	m := producerCmd("dd03", 1, 1)
	m.ProducerName = proto.String("meter")
	c.say(m)
	c.hear("PRODUCER_SUCCESS *")
	send := func(first, last uint64, want string) {
		t.Helper()
		c.sendEntry(&pulsarpb.CommandSend{ProducerId: num(1), SequenceId: &first, HighestSequenceId: &last, NumMessages: proto.Int32(int32(last - first + 1))},
			entryOf(t, first, int(last-first+1), make([]byte, 200)))
		c.hear(fmt.Sprintf("SEND_RECEIPT {producer_id:1 sequence_id:%d message_id {%s} *", first, want))
	}
	const dropped = "ledgerId:18446744073709551615 entryId:18446744073709551615"
	send(0, 5, "ledgerId:* entryId:0")
	send(6, 8, "ledgerId:* entryId:1")
	send(7, 8, dropped)
	send(7, 10, dropped)
	send(12, 15, "ledgerId:* entryId:2")
	if lines := r.log.with("with new messages in it"); len(lines) != 1 || !strings.Contains(lines[0], "producer=meter") || !strings.Contains(lines[0], "dd03") {
		t.Errorf("%q", lines)
	}
	if n := r.broker.Stats().Duplicates; n != 6 {
		t.Errorf("%d duplicates are counted", n)
	}
}
