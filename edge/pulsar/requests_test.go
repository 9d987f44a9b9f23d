package pulsar

import (
	"google.golang.org/protobuf/proto"

	"wayside/wire/pulsarpb"
)

func num(n uint64) *uint64 { return &n }

func producerCmd(topic string, id, request uint64) *pulsarpb.CommandProducer {
	return &pulsarpb.CommandProducer{Topic: proto.String(public + topic), ProducerId: &id, RequestId: &request}
}

func subscribeCmd(topic, sub string, kind pulsarpb.CommandSubscribe_SubType, id, request uint64) *pulsarpb.CommandSubscribe {
	return &pulsarpb.CommandSubscribe{
		Topic: proto.String(public + topic), Subscription: &sub, SubType: kind.Enum(), ConsumerId: &id, RequestId: &request,
		InitialPosition: pulsarpb.CommandSubscribe_Earliest.Enum(),
	}
}

const (
	exclusive  = pulsarpb.CommandSubscribe_Exclusive
	shared     = pulsarpb.CommandSubscribe_Shared
	failover   = pulsarpb.CommandSubscribe_Failover
	keyShared_ = pulsarpb.CommandSubscribe_Key_Shared
)

func flowCmd(id uint64, permits uint32) *pulsarpb.CommandFlow {
	return &pulsarpb.CommandFlow{ConsumerId: &id, MessagePermits: &permits}
}

func closeConsumerCmd(id, request uint64) *pulsarpb.CommandCloseConsumer {
	return &pulsarpb.CommandCloseConsumer{ConsumerId: &id, RequestId: &request}
}

func closeProducerCmd(id, request uint64) *pulsarpb.CommandCloseProducer {
	return &pulsarpb.CommandCloseProducer{ProducerId: &id, RequestId: &request}
}

func id(ledger, entry int64, set ...int64) *pulsarpb.MessageIdData {
	return &pulsarpb.MessageIdData{LedgerId: num(uint64(ledger)), EntryId: num(uint64(entry)), AckSet: set}
}

func ackCmd(consumer, request uint64, ids ...*pulsarpb.MessageIdData) *pulsarpb.CommandAck {
	return &pulsarpb.CommandAck{
		ConsumerId: &consumer, AckType: pulsarpb.CommandAck_Individual.Enum(), MessageId: ids, RequestId: &request,
	}
}

func cumulative(m *pulsarpb.CommandAck) *pulsarpb.CommandAck {
	m.AckType = pulsarpb.CommandAck_Cumulative.Enum()
	return m
}

func lastIDCmd(consumer, request uint64) *pulsarpb.CommandGetLastMessageId {
	return &pulsarpb.CommandGetLastMessageId{ConsumerId: &consumer, RequestId: &request}
}
