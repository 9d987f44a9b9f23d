package pulsar

// FLOW (protocol version 0 on).
//
// Adds permits, in messages. Nothing is answered. For an unknown consumer it is
// ignored: the Go client sends one between the end of a seek and its new SUBSCRIBE. No
// permits at all close the connection.
//
// Deviations: none.

import (
	"math"

	"wayside/wire"
)

func (s *session) handleFlow(cmd []byte) error {
	var m wire.Flow
	if err := wire.ParseFlow(cmd, &m); err != nil {
		return err
	}
	if m.Permits == 0 {
		return breach("FLOW without permits")
	}
	if c, ok := s.consumer(m.ConsumerID); ok {
		c.core.Flow(int(min(m.Permits, math.MaxInt32)))
	}
	return nil
}
