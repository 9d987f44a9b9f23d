package pulsar

import "wayside/wire/pulsarpb"

// command is what becomes of the commands of one type.
type command struct {
	// handle works on the reader's goroutine. An error ends the session.
	handle func(s *session, c *pulsarpb.BaseCommand) error
	// scan does so for the commands that come by the thousand. cmd is valid until it returns.
	scan     func(s *session, cmd []byte) error
	payload  bool   // an entry follows: handled by handleSend
	answered bool   // it holds a slot, which the handler gives back with the answer
	early    bool   // allowed before the login
	refusal  string // not handled: why the connection is closed
}

// Why connections are closed.
const (
	fromBroker  = "comes only from brokers"
	unknownToUs = "is not a known command"
)

// commandFor is the table of all commands; doc.go says it in words.
func commandFor(t pulsarpb.BaseCommand_Type) command {
	switch t {
	case pulsarpb.BaseCommand_CONNECT:
		return command{handle: (*session).handleConnect, answered: true, early: true}
	case pulsarpb.BaseCommand_AUTH_RESPONSE:
		return command{handle: (*session).handleAuthResponse, answered: true, early: true}
	case pulsarpb.BaseCommand_PING:
		return command{handle: (*session).handlePing, answered: true, early: true}
	case pulsarpb.BaseCommand_PONG:
		return command{handle: (*session).handlePong, early: true}

	case pulsarpb.BaseCommand_LOOKUP:
		return command{handle: (*session).handleLookup, answered: true}
	case pulsarpb.BaseCommand_PARTITIONED_METADATA:
		return command{handle: (*session).handlePartitions, answered: true}
	case pulsarpb.BaseCommand_GET_TOPICS_OF_NAMESPACE:
		return command{handle: (*session).handleTopics, answered: true}
	case pulsarpb.BaseCommand_WATCH_TOPIC_LIST:
		return command{handle: (*session).handleWatch, answered: true}
	case pulsarpb.BaseCommand_WATCH_TOPIC_LIST_CLOSE:
		return command{handle: (*session).handleCloseWatch, answered: true}
	case pulsarpb.BaseCommand_GET_SCHEMA:
		return command{handle: (*session).handleGetSchema, answered: true}
	case pulsarpb.BaseCommand_GET_OR_CREATE_SCHEMA:
		return command{handle: (*session).handlePutSchema, answered: true}

	case pulsarpb.BaseCommand_PRODUCER:
		return command{handle: (*session).handleProducer, answered: true}
	case pulsarpb.BaseCommand_SEND:
		return command{payload: true}
	case pulsarpb.BaseCommand_CLOSE_PRODUCER:
		return command{handle: (*session).handleCloseProducer, answered: true}

	case pulsarpb.BaseCommand_SUBSCRIBE:
		return command{handle: (*session).handleSubscribe, answered: true}
	case pulsarpb.BaseCommand_FLOW:
		return command{scan: (*session).handleFlow}
	case pulsarpb.BaseCommand_ACK:
		return command{scan: (*session).handleAck}
	case pulsarpb.BaseCommand_REDELIVER_UNACKNOWLEDGED_MESSAGES:
		return command{scan: (*session).handleRedeliver}
	case pulsarpb.BaseCommand_UNSUBSCRIBE:
		return command{handle: (*session).handleUnsubscribe, answered: true}
	case pulsarpb.BaseCommand_CLOSE_CONSUMER:
		return command{handle: (*session).handleCloseConsumer, answered: true}
	case pulsarpb.BaseCommand_SEEK:
		return command{handle: (*session).handleSeek, answered: true}
	case pulsarpb.BaseCommand_GET_LAST_MESSAGE_ID:
		return command{handle: (*session).handleLastID, answered: true}
	case pulsarpb.BaseCommand_CONSUMER_STATS:
		return command{handle: (*session).handleStats, answered: true}
	}
	return transaction(t)
}

// transaction is the part of transactions.
func transaction(t pulsarpb.BaseCommand_Type) command {
	switch t {
	case pulsarpb.BaseCommand_TC_CLIENT_CONNECT_REQUEST:
		return command{handle: (*session).handleCoordinator, answered: true}
	case pulsarpb.BaseCommand_NEW_TXN:
		return command{handle: (*session).handleNewTransaction, answered: true}
	case pulsarpb.BaseCommand_ADD_PARTITION_TO_TXN:
		return command{handle: (*session).handleAddPartitions, answered: true}
	case pulsarpb.BaseCommand_ADD_SUBSCRIPTION_TO_TXN:
		return command{handle: (*session).handleAddSubscriptions, answered: true}
	case pulsarpb.BaseCommand_END_TXN:
		return command{handle: (*session).handleEndTransaction, answered: true}
	}
	return refused(t)
}

// refused has what no client gets done: with an answer, or by closing the connection.
func refused(t pulsarpb.BaseCommand_Type) command {
	switch t {
	case pulsarpb.BaseCommand_END_TXN_ON_PARTITION, pulsarpb.BaseCommand_END_TXN_ON_SUBSCRIPTION:
		return command{handle: (*session).refuseTransaction, answered: true}

	case pulsarpb.BaseCommand_CONNECTED, pulsarpb.BaseCommand_SEND_RECEIPT, pulsarpb.BaseCommand_SEND_ERROR,
		pulsarpb.BaseCommand_MESSAGE, pulsarpb.BaseCommand_SUCCESS, pulsarpb.BaseCommand_ERROR,
		pulsarpb.BaseCommand_PRODUCER_SUCCESS, pulsarpb.BaseCommand_PARTITIONED_METADATA_RESPONSE,
		pulsarpb.BaseCommand_LOOKUP_RESPONSE, pulsarpb.BaseCommand_CONSUMER_STATS_RESPONSE,
		pulsarpb.BaseCommand_REACHED_END_OF_TOPIC, pulsarpb.BaseCommand_GET_LAST_MESSAGE_ID_RESPONSE,
		pulsarpb.BaseCommand_ACTIVE_CONSUMER_CHANGE, pulsarpb.BaseCommand_GET_TOPICS_OF_NAMESPACE_RESPONSE,
		pulsarpb.BaseCommand_GET_SCHEMA_RESPONSE, pulsarpb.BaseCommand_AUTH_CHALLENGE,
		pulsarpb.BaseCommand_ACK_RESPONSE, pulsarpb.BaseCommand_GET_OR_CREATE_SCHEMA_RESPONSE,
		pulsarpb.BaseCommand_NEW_TXN_RESPONSE, pulsarpb.BaseCommand_ADD_PARTITION_TO_TXN_RESPONSE,
		pulsarpb.BaseCommand_ADD_SUBSCRIPTION_TO_TXN_RESPONSE, pulsarpb.BaseCommand_END_TXN_RESPONSE,
		pulsarpb.BaseCommand_END_TXN_ON_PARTITION_RESPONSE, pulsarpb.BaseCommand_END_TXN_ON_SUBSCRIPTION_RESPONSE,
		pulsarpb.BaseCommand_TC_CLIENT_CONNECT_RESPONSE, pulsarpb.BaseCommand_WATCH_TOPIC_LIST_SUCCESS,
		pulsarpb.BaseCommand_WATCH_TOPIC_UPDATE, pulsarpb.BaseCommand_TOPIC_MIGRATED:
		return command{refusal: fromBroker}
	}
	return command{refusal: unknownToUs}
}
