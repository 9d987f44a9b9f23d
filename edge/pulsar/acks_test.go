package pulsar

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	"wayside/edge"
	"wayside/wire/pulsarpb"
)

// ackRig has a topic of six single messages, a batch of 10 and one of 70, all
// delivered to consumers 1 (Exclusive) and 2 (Shared).
func ackRig(t *testing.T, tweaks ...tweak) (*rig, *client, int64) {
	r := serve(t, tweaks...)
	c := r.connect().producing("acks").consuming("acks", "ex", exclusive, 1).consuming("acks", "sh", shared, 2)
	for i := range 6 {
		c.publish(1, uint64(i), fmt.Sprintf("m%d", i))
		c.hear(fmt.Sprintf("SEND_RECEIPT {producer_id:1 sequence_id:%d *", i))
	}
	c.publishBatch(1, 6, 10)
	c.hear("SEND_RECEIPT {producer_id:1 sequence_id:6 * highest_sequence_id:15}")
	c.publishBatch(1, 16, 70)
	last := c.receive().GetSendReceipt()
	c.say(flowCmd(1, 1000))
	c.hearEntries(1, 0, 7)
	c.say(flowCmd(2, 1000))
	c.hearEntries(2, 0, 7)
	return r, c, int64(last.GetMessageId().GetLedgerId())
}

// hearEntries wants the MESSAGEs of entries first to last, without counts and ack sets.
func (c *client) hearEntries(consumer, first, last int) {
	c.t.Helper()
	for i := first; i <= last; i++ {
		c.hear(fmt.Sprintf("MESSAGE {consumer_id:%d message_id {ledgerId:* entryId:%d partition:-1}} *", consumer, i))
	}
}

func TestEveryAckIsAnswered(t *testing.T) {
	r, c, l := ackRig(t)
	request := uint64(3)
	acked := func(m *pulsarpb.CommandAck) {
		t.Helper()
		request++
		m.RequestId = &request
		c.say(m)
		c.hear(fmt.Sprintf("ACK_RESPONSE {consumer_id:%d request_id:%d}", m.GetConsumerId(), request))
	}
	acked(ackCmd(1, 0, id(l, 2)))
	acked(ackCmd(1, 0, id(l, 2)))
	acked(ackCmd(1, 0, id(l, 99)))
	acked(ackCmd(1, 0, id(l, -1)))
	acked(ackCmd(1, 0, id(999999, 0)))
	acked(ackCmd(1, 0))
	acked(cumulative(ackCmd(1, 0)))
	acked(cumulative(ackCmd(1, 0, id(l, 0), id(l, 3))))
	acked(cumulative(ackCmd(1, 0, id(l, 1))))
	acked(cumulative(ackCmd(1, 0, id(l, 0))))
	acked(cumulative(ackCmd(1, 0, id(l, -1))))
	acked(cumulative(ackCmd(1, 0, id(l, 6, 1008))))
	acked(ackCmd(1, 0, id(l, 7, 0, 32)))
	unreadable := ackCmd(1, 0, id(l, 5))
	unreadable.ValidationError = pulsarpb.CommandAck_ChecksumMismatch.Enum()
	acked(unreadable)
	acked(cumulative(ackCmd(2, 0, id(l, 1))))

	c.say(lastIDCmd(1, 19), lastIDCmd(2, 20))
	c.hear(
		fmt.Sprintf("GET_LAST_MESSAGE_ID_RESPONSE {last_message_id {ledgerId:%d entryId:7 partition:-1 batch_index:69} request_id:19 consumer_mark_delete_position {ledgerId:%d entryId:5}}", l, l),
		fmt.Sprintf("GET_LAST_MESSAGE_ID_RESPONSE {last_message_id {ledgerId:%d entryId:7 partition:-1 batch_index:69} request_id:20 consumer_mark_delete_position {ledgerId:%d entryId:18446744073709551615}}", l, l),
	)
	// A new consumer of the Exclusive subscription gets what remains.
	c.say(closeConsumerCmd(1, 21))
	c.hear("SUCCESS {request_id:21}")
	c.consuming("acks", "ex", exclusive, 3)
	c.say(flowCmd(3, 1000))
	c.hear(
		"MESSAGE {consumer_id:3 message_id {ledgerId:* entryId:6 partition:-1} ack_set:1008} *",
		"MESSAGE {consumer_id:3 message_id {ledgerId:* entryId:7 partition:-1} ack_set:0 ack_set:32} *",
	)
	// REDELIVER with an epoch: all that is left again, and the epoch comes back.
	c.say(&pulsarpb.CommandRedeliverUnacknowledgedMessages{ConsumerId: num(3), MessageIds: []*pulsarpb.MessageIdData{id(l, 7)}, ConsumerEpoch: num(1)})
	c.hear(
		"MESSAGE {consumer_id:3 message_id {ledgerId:* entryId:6 partition:-1} ack_set:1008 consumer_epoch:1} *",
		"MESSAGE {consumer_id:3 message_id {ledgerId:* entryId:7 partition:-1} ack_set:0 ack_set:32 consumer_epoch:1} *",
	)
	c.sync()
	slots := r.only().slots
	eventually(t, "all slots are home", func() bool { return slots.used.Load() == 0 })
}

func TestAcksAndRedeliveryOnShared(t *testing.T) {
	_, c, l := ackRig(t)
	c.consuming("acks", "sh", shared, 4)
	c.say(ackCmd(4, 24, id(l, 0)))
	c.hear("ACK_RESPONSE {consumer_id:4 request_id:24}")
	// Not held by consumer 4: ignored.
	c.say(&pulsarpb.CommandRedeliverUnacknowledgedMessages{ConsumerId: num(4), MessageIds: []*pulsarpb.MessageIdData{id(l, 1)}})
	c.sync()
	c.say(&pulsarpb.CommandConsumerStats{RequestId: num(25), ConsumerId: num(2)})
	c.hear(`CONSUMER_STATS_RESPONSE {request_id:25 msgRateOut:* msgThroughputOut:* msgRateRedeliver:* consumerName:"" availablePermits:914 unackedMessages:85 blockedConsumerOnUnackedMsgs:false address:"/127.0.0.1:*" connectedSince:"*" type:"Shared" msgRateExpired:0 msgBacklog:7 messageAckRate:0}`)
	redeliver := &pulsarpb.CommandRedeliverUnacknowledgedMessages{ConsumerId: num(2), MessageIds: []*pulsarpb.MessageIdData{id(l, 1), id(l, 2), id(l, 0)}}
	c.say(redeliver)
	c.hear(
		"MESSAGE {consumer_id:2 message_id {ledgerId:* entryId:1 partition:-1} redelivery_count:1} *",
		"MESSAGE {consumer_id:2 message_id {ledgerId:* entryId:2 partition:-1} redelivery_count:1} *",
	)
	// Consumer 2 leaves: what it held goes to consumer 4, counts kept, not raised.
	c.say(closeConsumerCmd(2, 26))
	c.hear("SUCCESS {request_id:26}")
	c.say(flowCmd(4, 1000))
	c.hear(
		"MESSAGE {consumer_id:4 message_id {ledgerId:* entryId:1 partition:-1} redelivery_count:1} *",
		"MESSAGE {consumer_id:4 message_id {ledgerId:* entryId:2 partition:-1} redelivery_count:1} *",
	)
	c.hearEntries(4, 3, 7)
	// The last one leaves and comes back: the counts are gone.
	c.say(closeConsumerCmd(4, 27))
	c.hear("SUCCESS {request_id:27}")
	c.consuming("acks", "sh", shared, 5)
	c.say(flowCmd(5, 1000))
	c.hearEntries(5, 1, 7)
}

func TestAckIsAnsweredWhenItIsDurable(t *testing.T) {
	r, c, l := ackRig(t)
	r.store.Hold()
	c.say(ackCmd(1, 4, id(l, 0)))
	c.sync()
	r.store.Release()
	c.hear("ACK_RESPONSE {consumer_id:1 request_id:4}")
}

func TestTransactionsAreRefusedWhereTheyAreOff(t *testing.T) {
	_, c, l := ackRig(t, func(_ *Options, o *edge.Options) { o.Transactions = false })
	const off = `error:NotAllowedError message:"Transactions are not enabled."}`
	least, most := num(1), num(0)
	topic := proto.String(public + "acks")
	for _, m := range []proto.Message{
		&pulsarpb.CommandTcClientConnectRequest{RequestId: num(3), TcId: num(0)},
		&pulsarpb.CommandNewTxn{RequestId: num(3)},
		&pulsarpb.CommandAddPartitionToTxn{RequestId: num(3), TxnidLeastBits: least, TxnidMostBits: most},
		&pulsarpb.CommandAddSubscriptionToTxn{RequestId: num(3), TxnidLeastBits: least, TxnidMostBits: most},
		&pulsarpb.CommandEndTxn{RequestId: num(3), TxnidLeastBits: least, TxnidMostBits: most},
		&pulsarpb.CommandEndTxnOnPartition{RequestId: num(3), Topic: topic},
		&pulsarpb.CommandEndTxnOnSubscription{RequestId: num(3)},
	} {
		c.say(m)
		c.hear("ERROR {request_id:3 " + off)
	}
	ack := ackCmd(1, 13, id(l, 0))
	ack.TxnidLeastBits, ack.TxnidMostBits = least, most
	c.say(ack)
	c.hear(`ACK_RESPONSE {consumer_id:1 error:NotAllowedError message:"Server don't support transaction ack!" request_id:13}`)
	c.sendEntry(&pulsarpb.CommandSend{ProducerId: num(1), SequenceId: num(86), TxnidLeastBits: least, TxnidMostBits: most}, entryOf(t, 86, 0, []byte("x")))
	c.hear(`SEND_ERROR {producer_id:1 sequence_id:86 error:NotAllowedError message:"Transaction buffer disable!"}`)
}
