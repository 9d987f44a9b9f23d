package pulsar

// GET_LAST_MESSAGE_ID (protocol version 12 on).
//
// Answers the last entry, -1:-1 on an empty topic, with its partition and with the index
// of its last message if it is a batch (-1 otherwise), and the position up to which the
// subscription has acknowledged everything.
//
// Deviations: none.

import (
	"google.golang.org/protobuf/proto"

	"wayside/edge"
	"wayside/wire/pulsarpb"
)

func (s *session) handleLastID(d *pulsarpb.BaseCommand) error {
	m := d.GetGetLastMessageId()
	c, ok := s.consumer(m.GetConsumerId())
	if !ok {
		s.failRequest(m.GetRequestId(), edge.ErrConsumerNotFound)
		return nil
	}
	id := c.core.LastID()
	last := idData(id.Last)
	last.Partition, last.BatchIndex = &c.partition, proto.Int32(-1)
	if id.Batch {
		last.BatchIndex = proto.Int32(id.Messages - 1)
	}
	answer := &pulsarpb.CommandGetLastMessageIdResponse{LastMessageId: last, RequestId: m.RequestId}
	if id.MarkDelete.Ledger >= 0 {
		answer.ConsumerMarkDeletePosition = idData(id.MarkDelete)
	}
	s.out.reply(answer)
	return nil
}
