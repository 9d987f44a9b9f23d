package pulsar

// CLOSE_PRODUCER (protocol version 0 on; from the broker since 5).
//
// From a client: answered by SUCCESS behind the answers to all that the producer sent;
// for an unknown id too. While the producer is being made it cancels that.
// From the broker: with request id 2^64-1, behind all answers; what the client sent
// before it knew is ignored for 30 s.
//
// Deviations: none.

import "wayside/wire/pulsarpb"

func (s *session) handleCloseProducer(c *pulsarpb.BaseCommand) error {
	m := c.GetCloseProducer()
	p, ok := s.producers.find(m.GetProducerId())
	switch {
	case ok && p.forget(creating):
		p.cancel()
	case ok && p.move(ready, closing):
		p.core.Close(func() {
			p.forget(closing)
			s.succeed(m.GetRequestId())
		})
		return nil
	}
	s.succeed(m.GetRequestId())
	return nil
}
