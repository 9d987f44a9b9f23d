package pulsar

// ACK, ACK_RESPONSE (protocol version 0 on; several ids since 12, answers since 17).
//
// Without ack_set an id stands for its whole entry, otherwise for the messages whose
// bits are clear. With a request id it is answered when the acknowledgement is
// durable; success is an answer without error and text. For an unknown consumer nothing
// happens and nothing is answered. A validation_error says that the client could not
// read the message and dropped it: it counts as acknowledged.
//
// Deviations: in a transaction that is not open, or in which the subscription takes no
// part, it is NotAllowedError: the reference takes it, and keeps the message for ever.

import (
	"errors"
	"slices"

	"wayside/edge"
	"wayside/wire"
	"wayside/wire/pulsarpb"
)

func (s *session) handleAck(cmd []byte) error {
	a := s.srv.acks.Get().(*acks)
	defer s.srv.putAcks(a)
	m := &a.cmd
	if err := wire.ParseAck(cmd, m); err != nil {
		return err
	}
	c, ok := s.consumer(m.ConsumerID)
	if !ok {
		return nil
	}
	if m.HasRequestID {
		if err := s.takeSlot(); err != nil {
			return err
		}
	}
	if m.HasTxn && !s.srv.broker.Options().Transactions {
		if m.HasRequestID {
			s.answerAck(c.id, m.RequestID, pulsarpb.ServerError_NotAllowedError, "Server don't support transaction ack!")
		}
		return nil
	}
	if m.HasValidationError {
		s.srv.opts.Logger.Debug("client could not read a message", "peer", s.address, "client", s.client,
			"topic", c.topic.String(), "subscription", c.name, "error", m.ValidationError.String())
	}
	a.parts = slices.Grow(a.parts[:0], len(m.IDs))
	for i := range m.IDs {
		id := &m.IDs[i]
		a.parts = append(a.parts, edge.AckPart{Position: edge.Position{Ledger: id.Ledger, Entry: id.Entry}, Rest: words(id.AckSet), Size: int(id.BatchSize)})
	}
	if m.HasTxn {
		c.core.AckIn(edge.TxnID{Most: m.TxnMost, Least: m.TxnLeast}, a.parts, m.Cumulative, s.acknowledged(c.id, m))
		return nil
	}
	c.core.Ack(a.parts, m.Cumulative, s.acknowledged(c.id, m))
	return nil
}

// acknowledged makes the answer to an ACK, nil if none is wanted. It runs on the
// store's goroutine, or at once.
func (s *session) acknowledged(id uint64, m *wire.Ack) func(error) {
	if !m.HasRequestID {
		return nil
	}
	request := m.RequestID
	return func(err error) {
		if err == nil {
			s.answerAck(id, request, 0, "")
			return
		}
		code, text := s.tell(err)
		if !errors.Is(err, edge.ErrNotAllowed) && !errors.Is(err, edge.ErrTxnConflict) {
			code = pulsarpb.ServerError_UnknownError
		}
		s.answerAck(id, request, code, text)
	}
}

// answerAck queues an ACK_RESPONSE, a failure if there is a text.
func (s *session) answerAck(id, request uint64, code pulsarpb.ServerError, text string) {
	var room [64]byte
	s.out.frame(wire.AppendAckResponse(room[:0], id, request, code, text))
}

// words copies an ack_set, nil for none, since the core may keep it.
func words(set []int64) []uint64 {
	if len(set) == 0 {
		return nil
	}
	w := make([]uint64, len(set))
	for i, v := range set {
		w[i] = uint64(v)
	}
	return w
}

// acks is room for one ACK, which sessions share: most of them are idle.
type acks struct {
	cmd   wire.Ack
	parts []edge.AckPart
}

// putAcks keeps the room for the next, but for what a large command needed.
func (s *Server) putAcks(a *acks) {
	const kept = 256
	a.cmd.Shrink()
	if clear(a.parts); cap(a.parts) > kept {
		a.parts = nil
	}
	s.acks.Put(a)
}
