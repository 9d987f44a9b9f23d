package pulsar

// SEND, SEND_RECEIPT, SEND_ERROR (protocol version 0 on; highest_sequence_id since 14,
// chunks since 15).
//
// The entry is taken as it is, its checksum verified if it has one, and nothing of it
// is changed. The answers come in the order of the SENDs: SEND_RECEIPT, with the
// sequence ids exactly as they were sent and always a message id, -1:-1 for a
// duplicate; or SEND_ERROR, whose sequence id is the higher of the two. When the broker
// closed the producer nothing is answered, since CLOSE_PRODUCER says it all (protocol
// 2.8). A SEND to an id that never was, or that its client has closed, closes the
// connection.
//
// What a publish rate holds back is answered later, in line, and all else that comes on
// the connection is handled meanwhile; only beyond the bounds it is not read from.
//
// Deviations: above a publish rate the reference does not read from the connection at all.
// Metadata that is not protobuf, and a batch that claims more messages than it can hold,
// are refused with MetadataError, where the reference stores them. An entry that fits the
// frame of its SEND and would not fit that of a MESSAGE is refused with NotAllowedError,
// where the reference stores it and loses every consumer by it (protocol 4, number 18).
// In a transaction that is not open, or in which the topic takes no part, it is
// NotAllowedError: the reference stores it, and the topic stands still for ever behind it.

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"wayside/edge"
	"wayside/wire"
	"wayside/wire/pulsarpb"
)

// noTransactions is what the reference says to a SEND in a transaction.
const noTransactions = "Transaction buffer disable!"

// handleSend handles a SEND with the entry behind it. The entry's buffer is made when
// there is memory for it: that wait is what holds a publisher back.
func (s *session) handleSend(h wire.Header) error {
	if h.Command > maxSendCommand {
		return fmt.Errorf("SEND of %d bytes without its payload, limit %d: %w", h.Command, maxSendCommand, wire.ErrTooLarge)
	}
	p, err := s.sender(h.Command)
	if err != nil || p == nil {
		return err // the reader skips the entry
	}
	if err := s.takeRoomOf(p); err != nil {
		return err
	}
	if err := s.takeSlot(); err != nil {
		return err
	}
	m, err := s.entry(h.Payload())
	if err != nil {
		s.slots.give(1) // nobody answers what did not come
		return err
	}
	done := p.answers(s.send.SequenceID, s.send.HighestSequenceID)
	if err := s.describe(&m); err != nil {
		p.core.Refuse(m, err, done)
		return nil
	}
	m.Facts.Producer = p.core.Name()
	p.core.Publish(m, done)
	return nil
}

// takeRoomOf waits, without reading, while the topic's rate holds sends back and they take
// all the memory that they may.
func (s *session) takeRoomOf(p *producer) error {
	if p.core.TryRoom() {
		return nil
	}
	return s.wait(func() error { return p.core.Room(s.ctx) })
}

// entry reads the entry of a SEND. On an error the session's end gives the loan back.
func (s *session) entry(size int) (m edge.Message, err error) {
	if err := s.takeMemory(size + entryOverhead); err != nil {
		return m, err
	}
	m.Data = make([]byte, size)
	if err := s.fill(m.Data); err != nil {
		return m, err
	}
	m.Grant, s.loan = s.loan, edge.Grant{}
	return m, nil
}

// sender reads the command of a SEND and returns its producer, nil if what it sends is
// to be ignored.
func (s *session) sender(size int) (*producer, error) {
	cmd := s.scratch[:]
	if size > len(cmd) {
		cmd = make([]byte, size)
	}
	cmd = cmd[:size]
	if err := s.fill(cmd); err != nil {
		return nil, err
	}
	if err := wire.ParseSend(cmd, &s.send); err != nil {
		return nil, err
	}
	p, ok := s.producers.find(s.send.ProducerID)
	if !ok {
		return nil, breach("SEND to a producer that does not exist")
	}
	if p.state.Load() == creating {
		return nil, breach("SEND to a producer that is not ready")
	}
	p.touch(s.out, p)
	if p.state.Load() != ready {
		return nil, nil
	}
	if p.waits.Load() {
		return nil, breach("SEND to a producer that waits for exclusive access")
	}
	return p, nil
}

// describe states the facts of a message, or says why it is refused.
func (s *session) describe(m *edge.Message) error {
	w, err := wire.ParseMessage(m.Data)
	switch {
	case errors.Is(err, wire.ErrChecksum):
		return edge.ErrChecksum
	case err != nil:
		return fmt.Errorf("%w: Metadata cannot be read", edge.ErrBadMessage)
	case s.send.HasMessageID:
		return fmt.Errorf("%w: Only shadow topic supports sending messages with messageId", edge.ErrNotAllowed)
	case (s.send.HasTxn || w.HasTxn) && !s.srv.broker.Options().Transactions:
		return fmt.Errorf("%w: %s", edge.ErrNotAllowed, noTransactions)
	case len(m.Data) > s.srv.longest():
		return fmt.Errorf("%w: Exceed maximum message size", edge.ErrNotAllowed)
	case w.Check(maxBatch) != nil:
		return fmt.Errorf("%w: The batch cannot hold as many messages as it claims", edge.ErrBadMessage)
	}
	f := &m.Facts
	f.Sequence = s.send.SequenceID
	f.Highest = max(f.Sequence, s.send.HighestSequenceID)
	f.Messages, f.Batch = max(w.NumMessages, 1), w.Batch
	f.Slot = w.Slot()
	s.describeTxn(f, &w)
	s.describeContent(f, &w)
	f.Publish, f.Event = w.PublishTime, w.EventTime
	if w.HasDeliverAt {
		f.DeliverAt = w.DeliverAt
	}
	f.Receive = s.srv.opts.Clock().UnixMilli()
	f.ReceiveMono = s.srv.opts.SinceBoot().Milliseconds()
	f.Boot = s.srv.boot
	return nil
}

// describeTxn states the transaction of a message. The Go client names it in the command
// alone; the reference then delivers what was aborted (watched on 4.0.7).
func (s *session) describeTxn(f *edge.Facts, w *wire.Message) {
	switch {
	case s.send.HasTxn:
		f.InTxn, f.Txn = true, edge.TxnID{Most: s.send.TxnMost, Least: s.send.TxnLeast}
	case w.HasTxn && !w.HasMarker:
		f.InTxn, f.Txn = true, edge.TxnID{Most: w.TxnMost, Least: w.TxnLeast}
	}
}

// describeContent states what kind of content an entry has.
func (s *session) describeContent(f *edge.Facts, w *wire.Message) {
	if w.HasPartitionKey && len(w.PartitionKey) <= maxKey {
		f.Key, f.KeyBinary = w.PartitionKey, w.PartitionKeyB64
	}
	f.Tombstone = w.NullValue
	f.Encrypted = w.EncryptionKeys > 0
	if w.HasMarker {
		f.Marker = w.Marker
	}
	if w.HasSchemaVersion {
		f.Schema = w.SchemaVersion
	}
	if w.IsChunk() && len(w.UUID) <= maxChunkID && w.ChunkID >= 0 && w.ChunkID < w.NumChunks {
		f.Chunk = edge.Chunk{UUID: string(w.UUID), ID: w.ChunkID, Of: w.NumChunks}
	}
}

// answers makes the answer to one SEND. It runs on the store's goroutine.
func (p *producer) answers(sequence, highest int64) func(edge.Receipt, error) {
	return func(r edge.Receipt, err error) {
		out := p.s.out
		switch {
		case err == nil && p.state.Load() != gone:
			at := r.Position
			if r.Duplicate {
				at = edge.Earliest // -1:-1
			}
			out.receipt(p.id, sequence, highest, at)
		case err == nil || p.state.Load() == gone || unanswered(err):
			out.slots.give(1)
		default:
			code, text := p.s.tell(err)
			out.reply(&pulsarpb.CommandSendError{
				ProducerId: &p.id, SequenceId: proto.Uint64(uint64(max(sequence, highest))),
				Error: &code, Message: &text,
			})
		}
	}
}

// unanswered knows the errors behind which CLOSE_PRODUCER comes.
func unanswered(err error) bool {
	for _, e := range []error{
		edge.ErrGone, edge.ErrUnloaded, edge.ErrTerminated, edge.ErrClosing, edge.ErrFenced,
		edge.ErrStorage, edge.ErrStoreFull, edge.ErrLedgerFailed, edge.ErrQuotaHold, edge.ErrQuotaFail,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
