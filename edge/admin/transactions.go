package admin

import (
	"net/http"
	"strconv"

	"wayside/edge"
)

// Transactions that have not ended (protocol 5, transactionMetadata).

func (s *Server) transactionRoutes() {
	s.handle("GET /admin/v3/transactions/transactionMetadata/{most}/{least}", s.transaction)
}

// transactionState is a transaction as the reference tells it.
type transactionState struct {
	ID       string                         `json:"txnId"`
	Status   string                         `json:"status"`
	Opened   int64                          `json:"openTimestamp"` // ms since 1970
	Timeout  int64                          `json:"timeoutAt"`     // ms, counted from there
	Produced map[string]struct{}            `json:"producedPartitions"`
	Acked    map[string]map[string]struct{} `json:"ackedPartitions"`
}

func (s *Server) transaction(r *http.Request) (any, error) {
	id, err := transactionOf(r)
	if err != nil {
		return nil, err
	}
	info, err := s.broker.Coordinator().Info(id)
	if err != nil {
		return nil, refuse(http.StatusNotFound, "The transaction with this txdID `%v`not found ", id)
	}
	state := transactionState{
		ID: id.String(), Status: info.State.String(), Opened: info.Opened.UnixMilli(), Timeout: info.Timeout.Milliseconds(),
		Produced: map[string]struct{}{}, Acked: map[string]map[string]struct{}{},
	}
	for _, topic := range info.Topics {
		state.Produced[topic] = struct{}{}
	}
	for _, sub := range info.Subscriptions {
		if state.Acked[sub.Topic] == nil {
			state.Acked[sub.Topic] = map[string]struct{}{}
		}
		state.Acked[sub.Topic][sub.Subscription] = struct{}{}
	}
	return state, nil
}

func transactionOf(r *http.Request) (id edge.TxnID, err error) {
	if id.Most, err = strconv.ParseUint(r.PathValue("most"), 10, 64); err == nil {
		id.Least, err = strconv.ParseUint(r.PathValue("least"), 10, 64)
	}
	if err != nil {
		return id, refuse(http.StatusPreconditionFailed, "A transaction is named by two numbers")
	}
	return id, nil
}
