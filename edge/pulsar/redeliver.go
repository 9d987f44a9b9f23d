package pulsar

// REDELIVER_UNACKNOWLEDGED_MESSAGES (protocol version 2 on; consumer_epoch since 20).
//
// Shared and Key_Shared: the ids given, or all without any, as far as this consumer
// holds them, are delivered again and their redelivery_count rises. Exclusive and
// Failover: all that is unacknowledged is read anew, whatever the ids, and MESSAGEs
// carry the epoch. Nothing is answered; an unknown consumer is ignored.
//
// Deviations: none.

import (
	"wayside/edge"
	"wayside/wire"
)

func (s *session) handleRedeliver(cmd []byte) error {
	m := &s.again
	if err := wire.ParseRedeliver(cmd, m); err != nil {
		return err
	}
	defer s.shrinkRedeliver()
	c, ok := s.consumer(m.ConsumerID)
	if !ok {
		return nil
	}
	epoch := int64(-1)
	if m.HasConsumerEpoch {
		epoch = m.ConsumerEpoch
	}
	if len(m.IDs) == 0 {
		c.core.Redeliver(nil, epoch)
		return nil
	}
	s.positions = s.positions[:0]
	for i := range m.IDs {
		s.positions = append(s.positions, edge.Position{Ledger: m.IDs[i].Ledger, Entry: m.IDs[i].Entry})
	}
	c.core.Redeliver(s.positions, epoch)
	return nil
}

// shrinkRedeliver lets go of what a large command needed.
func (s *session) shrinkRedeliver() {
	const kept = 8
	s.again.Shrink()
	if cap(s.positions) > kept {
		s.positions = nil
	}
}
