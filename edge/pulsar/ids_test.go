package pulsar

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"wayside/wire/pulsarpb"
)

// What is said to ids that do not exist, or exist already.

func TestUnknownIDs(t *testing.T) {
	r := serve(t)
	c := r.connect()
	c.say(
		ackCmd(9, 50, id(1, 1)), flowCmd(9, 10),
		&pulsarpb.CommandRedeliverUnacknowledgedMessages{ConsumerId: num(9)},
	)
	c.sync()
	c.say(&pulsarpb.CommandUnsubscribe{ConsumerId: num(9), RequestId: num(51)})
	c.hear(`ERROR {request_id:51 error:MetadataError message:"Consumer not found"}`)
	c.say(&pulsarpb.CommandSeek{ConsumerId: num(9), RequestId: num(52), MessageId: id(1, 1)})
	c.hear(`ERROR {request_id:52 error:MetadataError message:"Consumer not found"}`)
	c.say(lastIDCmd(9, 53))
	c.hear(`ERROR {request_id:53 error:MetadataError message:"Consumer not found"}`)
	c.say(closeConsumerCmd(9, 55), closeProducerCmd(9, 56))
	c.hear("SUCCESS {request_id:55}", "SUCCESS {request_id:56}")
	c.say(&pulsarpb.CommandWatchTopicListClose{RequestId: num(57), WatcherId: num(9)})
	c.hear("SUCCESS {request_id:57}")
	c.say(&pulsarpb.CommandConsumerStats{RequestId: num(54), ConsumerId: num(9)})
	c.hear(`CONSUMER_STATS_RESPONSE {request_id:54 error_code:ConsumerNotFound error_message:"Consumer not found"}`)
}

func TestSameProducerIDAgain(t *testing.T) {
	r := serve(t)
	c := r.connect()
	c.say(producerCmd("ids", 1, 1))
	const first = `producer_name:"standalone-0-0" last_sequence_id:-1 schema_version:"" producer_ready:true}`
	c.hear("PRODUCER_SUCCESS {request_id:1 " + first)
	c.say(producerCmd("ids", 1, 2))
	c.hear("PRODUCER_SUCCESS {request_id:2 " + first)
	c.say(producerCmd("ids2", 1, 3))
	c.hear("PRODUCER_SUCCESS {request_id:3 " + first)
	m := producerCmd("ids", 1, 4)
	m.ProducerName = proto.String("other")
	c.say(m)
	c.hear("PRODUCER_SUCCESS {request_id:4 " + first)
}

func TestSameConsumerIDAgain(t *testing.T) {
	r := serve(t)
	c := r.connect()
	c.say(subscribeCmd("ids", "s", exclusive, 1, 5))
	c.hear("SUCCESS {request_id:5}")
	c.say(subscribeCmd("ids", "s", exclusive, 1, 6), subscribeCmd("ids", "s2", shared, 1, 7))
	c.hear("SUCCESS {request_id:6}", "SUCCESS {request_id:7}")
}

func TestProducerWhileItIsMade(t *testing.T) {
	r := serve(t)
	c := r.connect()
	r.store.Hold()
	first := producerCmd("ids3", 2, 60)
	first.ProducerAccessMode = pulsarpb.ProducerAccessMode_Exclusive.Enum() // waits for a commit
	c.say(first, producerCmd("ids3", 2, 61))
	c.hear(`ERROR {request_id:61 error:ServiceNotReady message:"Producer is already present on the connection"}`)
	r.store.Release()
	c.hear("PRODUCER_SUCCESS {request_id:60 *")
}

func TestConsumerWhileItIsMade(t *testing.T) {
	r := serve(t)
	c := r.connect()
	r.store.Hold()
	c.say(subscribeCmd("ids3", "s", shared, 2, 62), subscribeCmd("ids3", "s", shared, 2, 63))
	c.hear(`ERROR {request_id:63 error:ServiceNotReady message:"Consumer is already present on the connection"}`)
	r.store.Release()
	c.hear("SUCCESS {request_id:62}")
}

func TestCloseCancelsTheMaking(t *testing.T) {
	r := serve(t)
	c := r.connect()
	r.store.Hold()
	exclusiveProducer := producerCmd("ids4", 3, 64)
	exclusiveProducer.ProducerAccessMode = pulsarpb.ProducerAccessMode_Exclusive.Enum() // waits for a commit
	c.say(exclusiveProducer, closeProducerCmd(3, 65), subscribeCmd("ids4", "s", exclusive, 3, 66), closeConsumerCmd(3, 67))
	c.hear("SUCCESS {request_id:65}", "SUCCESS {request_id:67}")
	// The same ids again: the cancelled ones are undone first.
	exclusiveProducer.RequestId = num(68)
	c.say(exclusiveProducer, subscribeCmd("ids4", "s", exclusive, 3, 69))
	c.sync()
	r.store.Release()
	c.hearInAnyOrder("PRODUCER_SUCCESS {request_id:68 *", "SUCCESS {request_id:69}")
	c.sync()
}

func TestFlowOfNothingCloses(t *testing.T) {
	r := serve(t)
	c := r.connect().consuming("ids", "s", exclusive, 1)
	c.say(flowCmd(1, 0))
	c.closed()
}

func TestSendAfterOwnCloseCloses(t *testing.T) {
	r := serve(t)
	c := r.connect().producing("ids")
	c.say(closeProducerCmd(1, 70))
	c.hear("SUCCESS {request_id:70}")
	c.publish(1, 0, "late")
	c.closed()
}

func TestSendsAfterTheBrokersCloseAreIgnored(t *testing.T) {
	r := serve(t)
	c := r.connect().producing("unloaded").consuming("unloaded", "s", shared, 1)
	c.say(flowCmd(1, 10))
	c.sync()
	r.unload("unloaded")
	c.hearInAnyOrder("CLOSE_PRODUCER {producer_id:1 request_id:18446744073709551615}", "CLOSE_CONSUMER {consumer_id:1 request_id:18446744073709551615}")
	c.publish(1, 0, "late")
	c.say(flowCmd(1, 1), ackCmd(1, 3, id(1, 1)))
	c.sync()
	again := producerCmd("unloaded", 1, 4)
	again.Epoch = num(1)
	c.say(again)
	c.hear("PRODUCER_SUCCESS {request_id:4 *")
	c.say(subscribeCmd("unloaded", "s", shared, 1, 5))
	c.hear("SUCCESS {request_id:5}")
	c.publish(1, 0, "again")
	c.hear("SEND_RECEIPT {producer_id:1 sequence_id:0 *")
	c.say(flowCmd(1, 1))
	c.hear(`MESSAGE {consumer_id:1 *"again"`)
}

func TestClosesOfIDsThatTheBrokerClosed(t *testing.T) {
	r := serve(t)
	c := r.connect().producing("unloaded").consuming("unloaded", "s", shared, 1)
	r.unload("unloaded")
	c.hearInAnyOrder("CLOSE_PRODUCER *", "CLOSE_CONSUMER *")
	c.say(closeProducerCmd(1, 8), closeConsumerCmd(1, 9))
	c.hear("SUCCESS {request_id:8}", "SUCCESS {request_id:9}")
}

func TestTablesAreLimited(t *testing.T) {
	r := serve(t, limits(2, 2))
	c := r.connect()
	c.say(producerCmd("t", 1, 1))
	c.hear("PRODUCER_SUCCESS *")
	c.say(producerCmd("t", 2, 2))
	c.hear("PRODUCER_SUCCESS *")
	c.say(producerCmd("t", 3, 3))
	c.hear(`ERROR {request_id:3 error:NotAllowedError message:"one connection may have 2 producers"}`)
	c.say(closeProducerCmd(1, 4))
	c.hear("SUCCESS {request_id:4}")
	c.say(producerCmd("t", 3, 5))
	c.hear("PRODUCER_SUCCESS {request_id:5 *")
	c.consuming("t", "a", shared, 1).consuming("t", "b", shared, 2)
	c.say(subscribeCmd("t", "c", shared, 3, 6))
	c.hear(`ERROR {request_id:6 error:NotAllowedError message:"one connection may have 2 consumers"}`)
}
