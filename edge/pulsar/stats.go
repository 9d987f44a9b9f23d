package pulsar

// CONSUMER_STATS (protocol version 8 on).
//
// Figures of one consumer, with every field set. An unknown one is ConsumerNotFound
// inside the answer.
//
// Deviations: the reference closes the connection over an unknown consumer.
// msgRateExpired is always 0.

import (
	"time"

	"google.golang.org/protobuf/proto"

	"wayside/edge"
	"wayside/wire/pulsarpb"
)

func (s *session) handleStats(d *pulsarpb.BaseCommand) error {
	m := d.GetConsumerStats()
	c, ok := s.consumer(m.GetConsumerId())
	if !ok {
		s.out.reply(&pulsarpb.CommandConsumerStatsResponse{
			RequestId: m.RequestId,
			ErrorCode: pulsarpb.ServerError_ConsumerNotFound.Enum(), ErrorMessage: proto.String("Consumer not found"),
		})
		return nil
	}
	answer := statsAnswer(c.core.Stats())
	answer.RequestId = m.RequestId
	s.out.reply(answer)
	return nil
}

func statsAnswer(st edge.ConsumerStats) *pulsarpb.CommandConsumerStatsResponse {
	return &pulsarpb.CommandConsumerStatsResponse{
		MsgRateOut:                   &st.RateOut,
		MsgThroughputOut:             &st.ThroughputOut,
		MsgRateRedeliver:             &st.RateRedeliver,
		ConsumerName:                 &st.Name,
		AvailablePermits:             proto.Uint64(uint64(st.Permits)), // below zero in two's complement
		UnackedMessages:              proto.Uint64(uint64(st.Unacked)),
		BlockedConsumerOnUnackedMsgs: &st.Blocked,
		Address:                      proto.String("/" + st.Address),
		ConnectedSince:               proto.String(st.Connected.UTC().Format(time.RFC3339Nano)),
		Type:                         proto.String(st.Kind.String()),
		MsgRateExpired:               proto.Float64(0),
		MsgBacklog:                   proto.Uint64(uint64(st.Backlog)),
		MessageAckRate:               proto.Float64(0),
	}
}
