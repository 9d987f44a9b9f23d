package pulsar

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"wayside/wire/pulsarpb"
)

// A transaction as a real broker has it on the wire (captured from 4.0.7): the receipt
// comes at once, what is behind waits, the last id stands before it.
func TestTransactionOnTheWire(t *testing.T) {
	for _, commit := range []bool{true, false} {
		c := serve(t).connect()
		topic, sub := proto.String(public+"txn"), proto.String("s")
		c.say(&pulsarpb.CommandNewTxn{RequestId: num(1), TxnTtlSeconds: num(60_000), TcId: num(0)})
		c.hear("NEW_TXN_RESPONSE {request_id:1 txnid_most_bits:0 error:TransactionCoordinatorNotFound *")
		c.say(&pulsarpb.CommandTcClientConnectRequest{RequestId: num(2), TcId: num(77)})
		c.hear("TC_CLIENT_CONNECT_RESPONSE {request_id:2 error:ServiceNotReady *")
		c.say(&pulsarpb.CommandTcClientConnectRequest{RequestId: num(2), TcId: num(0)})
		c.hear("TC_CLIENT_CONNECT_RESPONSE {request_id:2}")
		c.producing("txn").consuming("txn", "s", shared, 1)
		c.say(flowCmd(1, 100))
		c.publish(1, 0, "plain 0")
		l := int64(0)
		for range 2 { // receipt and message, in whatever order
			if r := c.receive().GetSendReceipt(); r != nil {
				l = int64(r.GetMessageId().GetLedgerId())
			}
		}
		c.say(&pulsarpb.CommandNewTxn{RequestId: num(3), TxnTtlSeconds: num(60_000), TcId: num(0)})
		c.hear("NEW_TXN_RESPONSE {request_id:3 txnid_least_bits:0 txnid_most_bits:0}")
		c.say(&pulsarpb.CommandAddPartitionToTxn{RequestId: num(4), TxnidLeastBits: num(0), TxnidMostBits: num(0), Partitions: []string{*topic}})
		c.hear("ADD_PARTITION_TO_TXN_RESPONSE {request_id:4 txnid_least_bits:0 txnid_most_bits:0}")
		c.say(&pulsarpb.CommandAddSubscriptionToTxn{
			RequestId: num(5), TxnidLeastBits: num(0), TxnidMostBits: num(0),
			Subscription: []*pulsarpb.Subscription{{Topic: topic, Subscription: sub}},
		})
		c.hear("ADD_SUBSCRIPTION_TO_TXN_RESPONSE {request_id:5 txnid_least_bits:0 txnid_most_bits:0}")
		c.sendEntry(&pulsarpb.CommandSend{ProducerId: num(1), SequenceId: num(1), TxnidLeastBits: num(0), TxnidMostBits: num(0)}, entryOf(t, 1, 0, []byte("in")))
		c.hear("SEND_RECEIPT {producer_id:1 sequence_id:1 *")
		c.publish(1, 2, "behind")
		c.hear("SEND_RECEIPT {producer_id:1 sequence_id:2 *")
		ack := ackCmd(1, 6, id(l, 0))
		ack.TxnidLeastBits, ack.TxnidMostBits = num(0), num(0)
		c.say(ack)
		c.hear("ACK_RESPONSE {consumer_id:1 request_id:6}")
		c.say(ack)
		c.hear("ACK_RESPONSE {consumer_id:1 error:TransactionConflict *")
		c.say(&pulsarpb.CommandGetLastMessageId{ConsumerId: num(1), RequestId: num(7)})
		c.hear("GET_LAST_MESSAGE_ID_RESPONSE {last_message_id {ledgerId:* entryId:0 *")
		action := pulsarpb.TxnAction_ABORT
		if commit {
			action = pulsarpb.TxnAction_COMMIT
		}
		end := &pulsarpb.CommandEndTxn{RequestId: num(8), TxnidLeastBits: num(0), TxnidMostBits: num(0), TxnAction: &action}
		c.say(&pulsarpb.CommandEndTxn{RequestId: num(9), TxnidLeastBits: num(0), TxnidMostBits: num(0)})
		c.hear("END_TXN_RESPONSE {request_id:9 txnid_least_bits:0 txnid_most_bits:0 error:MetadataError message:\"END_TXN says neither commit nor abort\"}")
		c.say(end)
		want := []string{"END_TXN_RESPONSE {request_id:8 txnid_least_bits:0 txnid_most_bits:0}", "MESSAGE {consumer_id:1 message_id {ledgerId:* entryId:2 *"}
		if commit {
			want = append(want, "MESSAGE {consumer_id:1 message_id {ledgerId:* entryId:1 *")
		} else {
			want = append(want, "MESSAGE {consumer_id:1 message_id {ledgerId:* entryId:0 partition:-1} redelivery_count:1} *")
		}
		c.hearInAnyOrder(want...)
		c.say(end)
		c.hear("END_TXN_RESPONSE {request_id:8 txnid_least_bits:0 txnid_most_bits:0 error:TransactionNotFound *")
	}
}
