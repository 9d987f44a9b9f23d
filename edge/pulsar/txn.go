package pulsar

// TC_CLIENT_CONNECT_REQUEST, NEW_TXN, ADD_PARTITION_TO_TXN, ADD_SUBSCRIPTION_TO_TXN,
// END_TXN (protocol version 19 on), END_TXN_ON_PARTITION, END_TXN_ON_SUBSCRIPTION.
//
// There is one coordinator, 0. As in the reference NEW_TXN fails until somebody has sent
// TC_CLIENT_CONNECT_REQUEST since the start. txn_ttl_seconds counts milliseconds, whatever
// its name. Every answer, failures too, bears both halves of the transaction's id: the
// Java client finds by it who asked (protocol 4, number 66). A failure is an error and a
// text inside the answer. With transactions switched off all is ERROR NotAllowedError.
//
// Deviations: ADD_* refuses names that are none, where the reference fails in END_TXN and
// keeps the transaction for ever. The two commands that only brokers speak are refused by
// ERROR NotAllowedError.

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"wayside/edge"
	"wayside/wire"
	"wayside/wire/pulsarpb"
)

// Marker is the entry of a marker that ends a transaction's entries, as the reference
// writes it. No client is ever given one.
func Marker(f *edge.Facts) []byte {
	raw, err := wire.Build(&pulsarpb.MessageMetadata{
		ProducerName: proto.String(""), SequenceId: proto.Uint64(0), PublishTime: proto.Uint64(uint64(f.Publish)),
		MarkerType: &f.Marker, TxnidLeastBits: &f.Txn.Least, TxnidMostBits: &f.Txn.Most,
	}, nil)
	if err != nil { // of a few numbers
		return nil
	}
	return raw
}

func (s *session) refuseTransaction(c *pulsarpb.BaseCommand) error {
	request := c.GetEndTxnOnSubscription().GetRequestId()
	if c.GetType() == pulsarpb.BaseCommand_END_TXN_ON_PARTITION {
		request = c.GetEndTxnOnPartition().GetRequestId()
	}
	s.noTransactions(request)
	return nil
}

func (s *session) noTransactions(request uint64) {
	s.refuseRequest(request, pulsarpb.ServerError_NotAllowedError, "Transactions are not enabled.")
}

// transacts reports whether there are transactions, or answers the request.
func (s *session) transacts(request uint64) bool {
	if s.srv.broker.Options().Transactions {
		return true
	}
	s.noTransactions(request)
	return false
}

// failure is what an answer tells of an error, nil without one.
func (s *session) failure(err error) (*pulsarpb.ServerError, *string) {
	if err == nil {
		return nil, nil
	}
	code, text := s.tell(err)
	return &code, &text
}

// noCoordinator says that there is none of that id.
func noCoordinator(id uint64) error {
	return fmt.Errorf("%w: Transaction coordinator with id %d not found", edge.ErrTxnCoordinator, id)
}

func (s *session) handleCoordinator(c *pulsarpb.BaseCommand) error {
	m := c.GetTcClientConnectRequest()
	if !s.transacts(m.GetRequestId()) {
		return nil
	}
	answer := &pulsarpb.CommandTcClientConnectResponse{RequestId: m.RequestId}
	if id := m.GetTcId(); id != 0 {
		_, text := s.tell(noCoordinator(id))
		answer.Error, answer.Message = pulsarpb.ServerError_ServiceNotReady.Enum(), &text
	} else {
		s.srv.coordinating.Store(true)
	}
	s.out.reply(answer)
	return nil
}

func (s *session) handleNewTransaction(c *pulsarpb.BaseCommand) error {
	m := c.GetNewTxn()
	if !s.transacts(m.GetRequestId()) {
		return nil
	}
	most := m.GetTcId()
	answer := func(id edge.TxnID, err error) {
		r := &pulsarpb.CommandNewTxnResponse{RequestId: m.RequestId, TxnidMostBits: &most}
		if r.Error, r.Message = s.failure(err); err == nil {
			r.TxnidLeastBits = &id.Least
		}
		s.out.reply(r)
	}
	if most != 0 || !s.srv.coordinating.Load() {
		answer(edge.TxnID{}, noCoordinator(most))
		return nil
	}
	ttl := time.Duration(min(m.GetTxnTtlSeconds(), longestTxn)) * time.Millisecond
	s.srv.broker.Coordinator().Begin(ttl, answer)
	return nil
}

// longestTxn bounds a time to live before it is a duration, in ms: a century.
const longestTxn = 100 * 365 * 24 * 60 * 60 * 1000

func (s *session) handleAddPartitions(c *pulsarpb.BaseCommand) error {
	m := c.GetAddPartitionToTxn()
	if !s.transacts(m.GetRequestId()) {
		return nil
	}
	id := edge.TxnID{Most: m.GetTxnidMostBits(), Least: m.GetTxnidLeastBits()}
	s.srv.broker.Coordinator().AddTopics(id, m.GetPartitions(), func(err error) {
		r := &pulsarpb.CommandAddPartitionToTxnResponse{RequestId: m.RequestId, TxnidMostBits: &id.Most, TxnidLeastBits: &id.Least}
		r.Error, r.Message = s.failure(err)
		s.out.reply(r)
	})
	return nil
}

func (s *session) handleAddSubscriptions(c *pulsarpb.BaseCommand) error {
	m := c.GetAddSubscriptionToTxn()
	if !s.transacts(m.GetRequestId()) {
		return nil
	}
	id := edge.TxnID{Most: m.GetTxnidMostBits(), Least: m.GetTxnidLeastBits()}
	subs := make([]edge.TxnSubscription, 0, len(m.GetSubscription()))
	for _, sub := range m.GetSubscription() {
		subs = append(subs, edge.TxnSubscription{Topic: sub.GetTopic(), Subscription: sub.GetSubscription()})
	}
	s.srv.broker.Coordinator().AddSubscriptions(id, subs, func(err error) {
		r := &pulsarpb.CommandAddSubscriptionToTxnResponse{RequestId: m.RequestId, TxnidMostBits: &id.Most, TxnidLeastBits: &id.Least}
		r.Error, r.Message = s.failure(err)
		s.out.reply(r)
	})
	return nil
}

func (s *session) handleEndTransaction(c *pulsarpb.BaseCommand) error {
	m := c.GetEndTxn()
	if !s.transacts(m.GetRequestId()) {
		return nil
	}
	id := edge.TxnID{Most: m.GetTxnidMostBits(), Least: m.GetTxnidLeastBits()}
	answer := func(err error) {
		r := &pulsarpb.CommandEndTxnResponse{RequestId: m.RequestId, TxnidMostBits: &id.Most, TxnidLeastBits: &id.Least}
		r.Error, r.Message = s.failure(err)
		s.out.reply(r)
	}
	if m.TxnAction == nil { // the schema's default would commit
		answer(fmt.Errorf("%w: END_TXN says neither commit nor abort", edge.ErrBadRequest))
		return nil
	}
	s.srv.broker.Coordinator().End(id, m.GetTxnAction() == pulsarpb.TxnAction_COMMIT, answer)
	return nil
}
