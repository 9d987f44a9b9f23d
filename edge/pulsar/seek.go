package pulsar

// SEEK (protocol version 0 on; by time since 13).
//
// The next entry is the one named, or the first published at the time or later. First
// CLOSE_CONSUMER goes to those that have to come back, then the subscription moves,
// then SUCCESS follows, though the consumer that asked may exist no longer. ack_set
// names the messages of a batch that are still wanted; batch_index is ignored.
//
// Deviations: none.

import (
	"context"
	"errors"

	"wayside/edge"
	"wayside/wire/pulsarpb"
)

func (s *session) handleSeek(d *pulsarpb.BaseCommand) error {
	m := d.GetSeek()
	c, ok := s.consumer(m.GetConsumerId())
	if !ok {
		s.failRequest(m.GetRequestId(), edge.ErrConsumerNotFound)
		return nil
	}
	var to edge.SeekTarget
	switch {
	case m.MessageId != nil:
		to.Position = position(m.GetMessageId())
		to.Rest = words(m.GetMessageId().GetAckSet())
	case m.MessagePublishTime != nil:
		to.ByTime, to.Time = true, int64(m.GetMessagePublishTime())
	default:
		s.refuseRequest(m.GetRequestId(), pulsarpb.ServerError_MetadataError, "Message id and message publish time were not present")
		return nil
	}
	err := c.queue(func(ctx context.Context) {
		err := missing(c.core.Seek(ctx, to))
		switch {
		case err == nil:
			s.succeed(m.GetRequestId())
		case errors.Is(err, edge.ErrConsumerNotFound):
			s.failRequest(m.GetRequestId(), err)
		default:
			_, text := s.tell(err)
			s.refuseRequest(m.GetRequestId(), pulsarpb.ServerError_UnknownError, text)
		}
	})
	s.noteReset(c)
	return err
}
