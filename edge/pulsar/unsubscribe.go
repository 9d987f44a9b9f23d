package pulsar

// UNSUBSCRIBE (protocol version 0 on; force since 19).
//
// Removes the subscription with its consumer, and is answered by SUCCESS; the consumer's
// id is gone then. Without force it has to be the only consumer, otherwise MetadataError;
// by force the others get CLOSE_CONSUMER.
//
// Deviations: none.

import (
	"context"
	"errors"

	"wayside/edge"
	"wayside/wire/pulsarpb"
)

func (s *session) handleUnsubscribe(d *pulsarpb.BaseCommand) error {
	m := d.GetUnsubscribe()
	c, ok := s.consumer(m.GetConsumerId())
	if !ok {
		s.failRequest(m.GetRequestId(), edge.ErrConsumerNotFound)
		return nil
	}
	err := c.queue(func(ctx context.Context) {
		err := c.core.Unsubscribe(ctx, m.GetForce())
		switch {
		case err == nil:
			c.stop()
			c.forget(ready)
			s.succeed(m.GetRequestId())
		case errors.Is(err, edge.ErrTopicInUse):
			s.refuseRequest(m.GetRequestId(), pulsarpb.ServerError_MetadataError, "Unconnected or shared consumer attempting to unsubscribe")
		default:
			s.failRequest(m.GetRequestId(), missing(err))
		}
	})
	s.noteReset(c)
	return err
}

// missing is the error of a request to a consumer that is gone.
func missing(err error) error {
	if errors.Is(err, edge.ErrGone) || errors.Is(err, edge.ErrUnloaded) {
		return edge.ErrConsumerNotFound
	}
	return err
}
