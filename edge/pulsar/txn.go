package pulsar

// TC_CLIENT_CONNECT_REQUEST, NEW_TXN, ADD_PARTITION_TO_TXN, ADD_SUBSCRIPTION_TO_TXN,
// END_TXN (protocol version 19 on), END_TXN_ON_PARTITION, END_TXN_ON_SUBSCRIPTION.
//
// This broker has no transactions, and says so as the reference does with them switched
// off: ERROR NotAllowedError.
//
// Deviations: the two that only brokers speak are answered alike, where the reference
// closes the connection.

import (
	"wayside/wire/pulsarpb"
)

func (s *session) refuseTransaction(c *pulsarpb.BaseCommand) error {
	s.refuseRequest(transactionRequest(c), pulsarpb.ServerError_NotAllowedError, "Transactions are not enabled.")
	return nil
}

// transactionRequest is the request id of any of them.
func transactionRequest(c *pulsarpb.BaseCommand) uint64 {
	switch c.GetType() {
	case pulsarpb.BaseCommand_TC_CLIENT_CONNECT_REQUEST:
		return c.GetTcClientConnectRequest().GetRequestId()
	case pulsarpb.BaseCommand_NEW_TXN:
		return c.GetNewTxn().GetRequestId()
	case pulsarpb.BaseCommand_ADD_PARTITION_TO_TXN:
		return c.GetAddPartitionToTxn().GetRequestId()
	case pulsarpb.BaseCommand_ADD_SUBSCRIPTION_TO_TXN:
		return c.GetAddSubscriptionToTxn().GetRequestId()
	case pulsarpb.BaseCommand_END_TXN:
		return c.GetEndTxn().GetRequestId()
	case pulsarpb.BaseCommand_END_TXN_ON_PARTITION:
		return c.GetEndTxnOnPartition().GetRequestId()
	}
	return c.GetEndTxnOnSubscription().GetRequestId()
}
