package pulsar

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	"wayside/wire"
	"wayside/wire/pulsarpb"
)

// seekRig has a topic with entries 0 to 4 single, 5 a batch of 4, 6 single. Entry i
// was published at second i.
func seekRig(t *testing.T) (*rig, *client, int64) {
	r := serve(t)
	c := r.connect().producing("seeks")
	ledger := int64(0)
	for i := range 7 {
		meta := &pulsarpb.MessageMetadata{ProducerName: proto.String("p"), SequenceId: num(uint64(i)), PublishTime: num(uint64(i) * 1000)}
		payload := fmt.Appendf(nil, "m%d", i)
		if i == 5 {
			meta.NumMessagesInBatch, payload = proto.Int32(4), make([]byte, 64)
		}
		data, err := wire.Build(meta, payload)
		if err != nil {
			t.Fatal(err)
		}
		c.sendEntry(&pulsarpb.CommandSend{ProducerId: num(1), SequenceId: num(uint64(i))}, data)
		ledger = int64(c.receive().GetSendReceipt().GetMessageId().GetLedgerId())
	}
	return r, c, ledger
}

func TestTrap36And46Seeks(t *testing.T) {
	_, c, l := seekRig(t)
	at := func(m *pulsarpb.MessageIdData) *pulsarpb.CommandSeek { return &pulsarpb.CommandSeek{MessageId: m} }
	byTime := func(ms uint64) *pulsarpb.CommandSeek { return &pulsarpb.CommandSeek{MessagePublishTime: &ms} }
	const latest = 1<<63 - 1
	inBatch := id(l, 5)
	inBatch.BatchIndex, inBatch.BatchSize = proto.Int32(2), proto.Int32(4)
	consumer := uint64(10)
	for _, test := range []struct {
		name string
		kind pulsarpb.CommandSubscribe_SubType
		seek *pulsarpb.CommandSeek
		mark int64
		next []string
	}{
		{"forward", exclusive, at(id(l, 4)), 3, []string{"4 partition:-1}}", "5 partition:-1}}"}},
		{"backward", exclusive, at(id(l, 1)), 0, []string{"1 partition:-1}}", "2 partition:-1}}"}},
		{"into a batch as Go does", exclusive, at(inBatch), 4, []string{"5 partition:-1}}"}},
		{"into a batch as Java does", exclusive, at(id(l, 5, 12)), 4, []string{"5 partition:-1} ack_set:12}"}},
		{"to earliest", exclusive, at(id(-1, -1)), -1, []string{"0 partition:-1}}", "1 partition:-1}}"}},
		{"to latest", exclusive, at(id(latest, latest)), 6, nil},
		{"to latest, truncated", exclusive, at(id(latest, 1<<48-1)), 6, nil},
		{"beyond the end", exclusive, at(id(l, 99)), 6, nil},
		{"before all ledgers", exclusive, at(id(0, 0)), -1, []string{"0 partition:-1}}", "1 partition:-1}}"}},
		{"to a time", exclusive, byTime(3000), 2, []string{"3 partition:-1}}", "4 partition:-1}}"}},
		{"to a time between", exclusive, byTime(2500), 2, []string{"3 partition:-1}}", "4 partition:-1}}"}},
		{"to time 0", exclusive, byTime(0), -1, []string{"0 partition:-1}}", "1 partition:-1}}"}},
		{"to the future", exclusive, byTime(1 << 50), 6, nil},
		{"on Shared", shared, at(id(l, 2)), 1, []string{"2 partition:-1}}", "3 partition:-1}}"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c.t = t
			sub := "s-" + test.kind.String()
			consumer += 2
			c.consuming("seeks", sub, test.kind, consumer)
			test.seek.ConsumerId, test.seek.RequestId = num(consumer), num(3)
			c.say(test.seek)
			c.hear(fmt.Sprintf("CLOSE_CONSUMER {consumer_id:%d request_id:18446744073709551615}", consumer), "SUCCESS {request_id:3}")
			// What Go sends to the old id is ignored.
			c.say(flowCmd(consumer, 1))
			c.consuming("seeks", sub, test.kind, consumer+1)
			c.say(lastIDCmd(consumer+1, 5))
			c.hear(fmt.Sprintf("GET_LAST_MESSAGE_ID_RESPONSE {*request_id:5 consumer_mark_delete_position {ledgerId:%d entryId:%d}}", l, uint64(test.mark)))
			c.say(flowCmd(consumer+1, 2))
			for _, next := range test.next {
				c.hear(fmt.Sprintf("MESSAGE {consumer_id:%d message_id {ledgerId:%d entryId:%s *", consumer+1, l, next))
			}
			c.sync()
			c.say(closeConsumerCmd(consumer+1, 6))
			c.hear("SUCCESS {request_id:6}")
		})
	}
	c.t = t
}

func TestSeekToNothing(t *testing.T) {
	_, c, _ := seekRig(t)
	c.consuming("seeks", "s", exclusive, 1)
	c.say(&pulsarpb.CommandSeek{ConsumerId: num(1), RequestId: num(58)})
	c.hear(`ERROR {request_id:58 error:MetadataError message:"Message id and message publish time were not present"}`)
	c.say(flowCmd(1, 1))
	c.hearEntries(1, 0, 0)
}

func TestSeekClosesAllSharedConsumers(t *testing.T) {
	r, c, l := seekRig(t)
	d := r.connect().consuming("seeks", "s", shared, 1)
	c.consuming("seeks", "s", shared, 1)
	c.say(&pulsarpb.CommandSeek{ConsumerId: num(1), RequestId: num(74), MessageId: id(l, 2)})
	d.hear("CLOSE_CONSUMER {consumer_id:1 request_id:18446744073709551615}")
	c.hear("CLOSE_CONSUMER {consumer_id:1 request_id:18446744073709551615}", "SUCCESS {request_id:74}")
}

func TestSeekByStandbyClosesTheActiveOne(t *testing.T) {
	r, c, l := seekRig(t)
	named := func(name string) *pulsarpb.CommandSubscribe {
		m := subscribeCmd("seeks", "f", failover, 2, 75)
		m.ConsumerName = &name
		return m
	}
	d := r.connect()
	c.say(named("A"))
	c.hear("SUCCESS {request_id:75}", "ACTIVE_CONSUMER_CHANGE {consumer_id:2 is_active:true}")
	d.say(named("B"))
	d.hear("SUCCESS {request_id:75}", "ACTIVE_CONSUMER_CHANGE {consumer_id:2 is_active:false}")
	d.say(&pulsarpb.CommandSeek{ConsumerId: num(2), RequestId: num(77), MessageId: id(l, 2)})
	c.hear("CLOSE_CONSUMER {consumer_id:2 request_id:18446744073709551615}")
	d.hearInAnyOrder("SUCCESS {request_id:77}", "ACTIVE_CONSUMER_CHANGE {consumer_id:2 is_active:true}")
	d.say(flowCmd(2, 1))
	d.hearEntries(2, 2, 2)
}

func TestReaderKeepsASoughtTime(t *testing.T) {
	_, c, l := seekRig(t)
	reader := func(consumer, request uint64) *pulsarpb.CommandSubscribe {
		m := subscribeCmd("seeks", "nd", exclusive, consumer, request)
		m.Durable, m.StartMessageId = proto.Bool(false), id(-1, -1)
		return m
	}
	c.say(reader(5, 78))
	c.hear("SUCCESS {request_id:78}")
	c.say(flowCmd(5, 2))
	c.hearEntries(5, 0, 1)
	c.say(&pulsarpb.CommandSeek{ConsumerId: num(5), RequestId: num(79), MessagePublishTime: num(3000)})
	c.hear("CLOSE_CONSUMER {consumer_id:5 *", "SUCCESS {request_id:79}")
	c.say(reader(5, 80))
	c.hear("SUCCESS {request_id:80}")
	c.say(lastIDCmd(5, 81))
	c.hear(fmt.Sprintf("GET_LAST_MESSAGE_ID_RESPONSE {*consumer_mark_delete_position {ledgerId:%d entryId:2}}", l))
	c.say(flowCmd(5, 2))
	c.hearEntries(5, 3, 4)
}

func TestTrap37ASubscribeBehindASeekWaits(t *testing.T) {
	r, c, l := seekRig(t)
	c.consuming("seeks", "s4", exclusive, 7)
	r.store.Hold()
	c.say(&pulsarpb.CommandSeek{ConsumerId: num(7), RequestId: num(83), MessageId: id(l, 2)}, subscribeCmd("seeks", "s4", exclusive, 8, 84))
	c.hear("CLOSE_CONSUMER {consumer_id:7 *")
	c.sync()
	r.store.Release()
	c.hearInAnyOrder("SUCCESS {request_id:83}", "SUCCESS {request_id:84}")
	c.say(flowCmd(8, 1))
	c.hearEntries(8, 2, 2)
}

func TestTrap37OthersWaitForTheEndOfASeekToo(t *testing.T) {
	r, c, l := seekRig(t)
	c.consuming("seeks", "s", shared, 7)
	d := r.connect()
	r.store.Hold()
	c.say(&pulsarpb.CommandSeek{ConsumerId: num(7), RequestId: num(83), MessageId: id(l, 2)})
	c.hear("CLOSE_CONSUMER {consumer_id:7 *")
	d.say(subscribeCmd("seeks", "s", shared, 8, 84))
	d.sync()
	r.store.Release()
	c.hear("SUCCESS {request_id:83}")
	d.hear("SUCCESS {request_id:84}")
	d.say(flowCmd(8, 1))
	d.hearEntries(8, 2, 2)
}

func TestTwoSeeksPipelined(t *testing.T) {
	_, c, l := seekRig(t)
	c.consuming("seeks", "s5", exclusive, 9)
	c.say(
		&pulsarpb.CommandSeek{ConsumerId: num(9), RequestId: num(86), MessageId: id(l, 2)},
		&pulsarpb.CommandSeek{ConsumerId: num(9), RequestId: num(87), MessageId: id(l, 3)},
	)
	c.hear("CLOSE_CONSUMER {consumer_id:9 *")
	c.hearInAnyOrder("SUCCESS {request_id:86}", `ERROR {request_id:87 error:MetadataError message:"Consumer not found"}`)
}

func TestTrap35QueuedEntriesAreNotSentBehindASeek(t *testing.T) {
	_, c, l := seekRig(t)
	for round := range 20 {
		consumer := uint64(100 + round)
		c.consuming("seeks", "fast", shared, consumer)
		c.say(flowCmd(consumer, 1000), &pulsarpb.CommandSeek{ConsumerId: &consumer, RequestId: num(3), MessageId: id(l, 0)})
		closed := false
		for {
			got := c.receive()
			if got.GetCloseConsumer() != nil {
				closed = true
			} else if got.GetMessage() != nil && closed {
				t.Fatalf("a MESSAGE behind CLOSE_CONSUMER\n%s", c.story())
			} else if got.GetSuccess() != nil {
				break
			}
		}
		if !closed {
			t.Fatalf("SUCCESS before CLOSE_CONSUMER\n%s", c.story())
		}
		c.sync()
	}
}

func TestUnsubscribe(t *testing.T) {
	r, c, _ := seekRig(t)
	d := r.connect()
	c.consuming("seeks", "a", exclusive, 1)
	c.say(&pulsarpb.CommandUnsubscribe{ConsumerId: num(1), RequestId: num(4)})
	c.hear("SUCCESS {request_id:4}")
	c.say(lastIDCmd(1, 5))
	c.hear(`ERROR {request_id:5 error:MetadataError message:"Consumer not found"}`)

	c.consuming("seeks", "b", shared, 2)
	d.consuming("seeks", "b", shared, 2)
	c.say(&pulsarpb.CommandUnsubscribe{ConsumerId: num(2), RequestId: num(8)})
	c.hear(`ERROR {request_id:8 error:MetadataError message:"Unconnected or shared consumer attempting to unsubscribe"}`)
	c.say(&pulsarpb.CommandUnsubscribe{ConsumerId: num(2), RequestId: num(9), Force: proto.Bool(true)})
	d.hear("CLOSE_CONSUMER {consumer_id:2 request_id:18446744073709551615}")
	c.hear("SUCCESS {request_id:9}")
}

// The mark-delete positions and last ids that a real broker gave.
func TestTrap43And44And45LastIDs(t *testing.T) {
	r := serve(t)
	c := r.connect().consuming("lastid", "e", exclusive, 1)
	ask := func(want string) {
		t.Helper()
		c.say(lastIDCmd(1, 2))
		c.hear("GET_LAST_MESSAGE_ID_RESPONSE {" + want + "}")
	}
	ask("last_message_id {ledgerId:18446744073709551615 entryId:18446744073709551615 partition:-1 batch_index:-1} request_id:2 consumer_mark_delete_position {ledgerId:* entryId:18446744073709551615}")
	c.producing("lastid")
	c.publish(1, 0, "m0")
	c.hear("SEND_RECEIPT *")
	ask("last_message_id {ledgerId:* entryId:0 partition:-1 batch_index:-1} request_id:2 consumer_mark_delete_position {ledgerId:* entryId:18446744073709551615}")
	c.publishBatch(1, 1, 1)
	c.hear("SEND_RECEIPT *")
	ask("last_message_id {ledgerId:* entryId:1 partition:-1 batch_index:0} *")
	c.publishBatch(1, 2, 3)
	last := c.receive().GetSendReceipt().GetMessageId()
	ask("last_message_id {ledgerId:* entryId:2 partition:-1 batch_index:2} *")
	c.say(cumulative(ackCmd(1, 10, id(int64(last.GetLedgerId()), 2))))
	c.hear("ACK_RESPONSE {consumer_id:1 request_id:10}")
	ask("last_message_id {ledgerId:* entryId:2 partition:-1 batch_index:2} request_id:2 consumer_mark_delete_position {ledgerId:* entryId:2}")
	r.unload("lastid")
	c.hearInAnyOrder("CLOSE_PRODUCER *", "CLOSE_CONSUMER *")
	c.consuming("lastid", "e", exclusive, 1)
	ask("last_message_id {ledgerId:* entryId:2 partition:-1 batch_index:2} request_id:2 consumer_mark_delete_position {ledgerId:* entryId:2}")
}

func TestTrap47PartitionsAreTold(t *testing.T) {
	r := serve(t)
	if err := r.broker.CreatePartitions(t.Context(), topicName(t, "parts"), 3); err != nil {
		t.Fatal(err)
	}
	c := r.connect().producing("parts-partition-2").consuming("parts-partition-2", "s", exclusive, 1)
	c.publish(1, 0, "x")
	c.hear("SEND_RECEIPT *")
	c.say(flowCmd(1, 1))
	c.hear("MESSAGE {consumer_id:1 message_id {ledgerId:* entryId:0 partition:2}} *")
	c.say(lastIDCmd(1, 2))
	c.hear("GET_LAST_MESSAGE_ID_RESPONSE {last_message_id {ledgerId:* entryId:0 partition:2 batch_index:-1} *")
}
