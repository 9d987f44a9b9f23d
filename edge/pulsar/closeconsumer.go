package pulsar

// CLOSE_CONSUMER (protocol version 0 on; from the broker since 5).
//
// From a client: answered by SUCCESS, for an unknown id too, and no MESSAGE comes behind
// it. While the consumer is being made it cancels that. From the broker, with request
// id 2^64-1, see consumer.go; what the client sent before it knew is ignored.
//
// Deviations: none.

import "wayside/wire/pulsarpb"

func (s *session) handleCloseConsumer(d *pulsarpb.BaseCommand) error {
	m := d.GetCloseConsumer()
	if c, ok := s.consumers.find(m.GetConsumerId()); ok {
		c.leave()
	}
	s.succeed(m.GetRequestId())
	return nil
}
