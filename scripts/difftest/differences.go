package main

import "slices"

// Parts of what rows of the table match.
const (
	anyMessages = `(MESSAGE [^;]*(; )?)*`
	anyStats    = `CONSUMER_STATS_RESPONSE .*`
)

// differences is the table of all ways in which the two are known to differ, with the cause in the code of either:
// ServerCnx, PersistentTopic and the like are classes of the real broker 4.0.7, files in small letters are ours.
func differences() []difference {
	return slices.Concat(ofSessions(), ofLookups(), ofProducers(), ofMessages(), ofSubscriptions(), ofSeeks(), ofOperations(), ofFeatures())
}

func ofSessions() []difference {
	return []difference{
		{name: "replication by position", kind: deliberate,
			pulsar: `CONNECTED .*supports_repl_dedup_by_lid_and_eid:true.*`, wayside: `CONNECTED .*`,
			cause: "ServerCnx tells every client that it can deduplicate replicated messages by position; connect.go does not, since nothing replicates here"},
		{name: "stats of an unknown consumer", kind: deliberate, programs: "stats-unknown-consumer",
			pulsar: `closed`, wayside: ``,
			cause: "ServerCnx.handleConsumerStats trips over the null that it finds, and the connection is closed; stats.go answers"},
		{name: "stats of an unknown consumer, answer", kind: deliberate, programs: "stats-unknown-consumer",
			pulsar: ``, wayside: `CONSUMER_STATS_RESPONSE {request_id:1 error_code:ConsumerNotFound error_message:<text>}|PONG {}`,
			cause: "the answer that 4.0.7 owes, and the connection that lives on"},
	}
}

func ofLookups() []difference {
	return []difference{
		{name: "unknown listener", kind: deliberate, programs: "lookup-listener",
			pulsar: `LOOKUP_RESPONSE {response:Failed request_id:1 error:ServiceNotReady message:<text>}`, wayside: `LOOKUP_RESPONSE {brokerServiceUrl:<text> response:Connect .*`,
			cause: "TopicLookupBase refuses a listener that is not configured, with a code that costs clients their connection; lookup.go ignores the name"},
		{name: "base of a partitioned topic", kind: deliberate, programs: "partitioned-base",
			pulsar: `PRODUCER_SUCCESS .*|SUCCESS .*`, wayside: ``,
			cause: "BrokerService opens a plain topic of that name beside the partitions; Broker.Open refuses, as 4.1 does"},
		{name: "base of a partitioned topic, answer", kind: deliberate, programs: "partitioned-base",
			pulsar: ``, wayside: `ERROR {request_id:\d error:NotAllowedError message:<text>}`,
			cause: "the refusal of the row before"},
		{name: "namespace that is not there", kind: deliberate, programs: "namespace-missing",
			pulsar: `ERROR {request_id:\d error:ServiceNotReady message:<text>}`, wayside: `ERROR {request_id:\d error:TopicNotFound message:<text>}`,
			cause: "BrokerService finds no owner for the bundle of a namespace that does not exist, and has clients try for ever; opening.go knows that there is none"},
		{name: "topics of a tenant that is not there", kind: deliberate, programs: "topics-of-nothing",
			pulsar: `ERROR {request_id:2 error:MetadataError message:<text>}`, wayside: `GET_TOPICS_OF_NAMESPACE_RESPONSE {request_id:2 filtered:false topics_hash:"00000000" changed:true}`,
			cause: "NamespaceService lists non-persistent topics by asking the namespace's policies, and fails where there are none, though in mode PERSISTENT it answers with an empty list; topics.go always does"},
		{name: "topics of what is no namespace", kind: deliberate, programs: "topics-bad-namespace",
			pulsar: `closed`, wayside: ``,
			cause: "NamespaceName.get throws in ServerCnx.handleGetTopicsOfNamespace, and the connection is closed; topics.go answers"},
		{name: "topics of what is no namespace, answer", kind: deliberate, programs: "topics-bad-namespace",
			pulsar: ``, wayside: `ERROR {request_id:1 error:MetadataError message:<text>}`,
			cause: "the answer of the row before"},
		{name: "pattern that does not compile", kind: deliberate, programs: "topics-bad-pattern",
			pulsar: `ERROR {request_id:2 error:MetadataError message:<text>}`, wayside: `GET_TOPICS_OF_NAMESPACE_RESPONSE {request_id:2 filtered:false .*`,
			cause: "TopicList compiles patterns with the clients' own kind of expressions; topics.go has another kind, and leaves to the client what that cannot read"},
	}
}

func ofProducers() []difference {
	return []difference{
		{name: "empty producer name", kind: deliberate, programs: "producer-empty-name",
			pulsar: `PRODUCER_SUCCESS {request_id:1 producer_name:"" .*`, wayside: `PRODUCER_SUCCESS {request_id:1 producer_name:<generated> .*`,
			cause: "ServerCnx takes a name that is there but empty; producer.go takes it for none, else all clients that send one would meet under it"},
		{name: "fenced out without a word", kind: deliberate, programs: "access-fencing*",
			pulsar: ``, wayside: `CLOSE_PRODUCER {producer_id:\d request_id:-1}`,
			cause: "AbstractTopic removes fenced producers and tells them nothing, so that their next SEND ends the whole connection; access.go closes them"},
		{name: "made before it was cancelled", kind: deliberate, programs: "*-cancelled", rare: true,
			pulsar: `SUCCESS {request_id:2}`, wayside: `(PRODUCER_)?SUCCESS {request_id:1.*}; SUCCESS {request_id:2}`,
			cause: "ServerCnx makes producers and consumers of a new topic in several steps elsewhere and reads on meanwhile; here producer.go and subscribe.go may have done so before the next frame is read, and then there is nothing to cancel"},
		{name: "turn of a waiter that has left", kind: deliberate, programs: "access-wait-given-up",
			pulsar: `PRODUCER_SUCCESS .* topic_epoch:2 producer_ready:true}`, wayside: `PRODUCER_SUCCESS .* topic_epoch:1 producer_ready:true}`,
			cause: "ServerCnx.handleCloseProducer leaves a waiting producer in AbstractTopic's queue, where its turn comes, uses up an epoch and passes; access.go takes it out"},
		{name: "retried while in flight", kind: deliberate, programs: "dedup-pipelined",
			pulsar: `SEND_ERROR of m0 {producer_id:1 sequence_id:0 error:PersistenceError message:<text>}; SEND_RECEIPT of m0x .*`, wayside: `SEND_RECEIPT of m0 .*; SEND_RECEIPT of m0x {producer_id:1 sequence_id:0 message_id:none}; SEND_RECEIPT of m1 .*`,
			cause: "MessageDeduplication cannot tell as long as the first write is not done, and Producer's answer overtakes that write's; dedup.go keeps the answer in line behind it"},
		{name: "retried while in flight, labels", kind: deliberate, programs: "dedup-pipelined",
			pulsar: `MESSAGE m0x altered .*`, wayside: `MESSAGE m0 .*`,
			cause: "by the error that overtakes, the harness takes the receipt of the first for that of the second"},
		{name: "repeated chunk", kind: deliberate, programs: "dedup-chunks",
			pulsar: `SEND_RECEIPT of c0x {producer_id:1 sequence_id:3 message_id:c0x}`, wayside: `SEND_RECEIPT of c0x {producer_id:1 sequence_id:3 message_id:none}`,
			cause: "MessageDeduplication looks at last chunks only, and stores the others again; dedup.go keeps the progress of a chunked message"},
		{name: "repeated chunk, delivered", kind: deliberate, programs: "dedup-chunks",
			pulsar: `.*MESSAGE c0x .*`, wayside: `MESSAGE m0 [^;]*; MESSAGE c0 [^;]*; MESSAGE c1 [^;]*; MESSAGE m4 [^;]*`,
			cause: "what the row before has stored"},
	}
}

func ofMessages() []difference {
	const refused = `SEND_ERROR of m0 {producer_id:1 sequence_id:0 error:MetadataError message:<text>}`
	return []difference{
		{name: "metadata that nobody can read", kind: deliberate, programs: "send-*-metadata",
			pulsar: `SEND_RECEIPT of m0 {producer_id:1 sequence_id:0 message_id:m0}`, wayside: refused,
			cause: "ManagedLedger stores what PersistentTopic does not read, and dispatchers pass it over; send.go refuses it"},
		{name: "nothing for an entry", kind: deliberate, programs: "send-nothing",
			pulsar: `closed`, wayside: ``,
			cause: "Commands.parseMessageMetadata reads past the end in ServerCnx.handleSend, and the connection is closed; send.go answers"},
		{name: "nothing for an entry, what follows", kind: deliberate, programs: "send-nothing",
			pulsar: ``, wayside: refused + `|SEND_RECEIPT of m1 .*|MESSAGE m1 .*`,
			cause: "the connection of the row before lives on"},
		{name: "highest sequence below the first", kind: deliberate, programs: "send-sequences",
			pulsar: `SEND_RECEIPT of m3 {producer_id:1 sequence_id:20 message_id:m3}`, wayside: `SEND_RECEIPT of m3 {producer_id:1 sequence_id:20 message_id:m3 highest_sequence_id:7}`,
			cause: "Producer.publishMessage takes such a highest_sequence_id for none; send.go repeats in the receipt what was sent"},
		{name: "messages counted by the command", kind: deliberate, programs: "send-fields",
			pulsar: `200 subscriptions/s/msgBacklog=5 msgInCounter=11`, wayside: `200 subscriptions/s/msgBacklog=5 msgInCounter=5`,
			cause: "Producer counts num_messages of SEND; topic.go counts what the metadata says, by which both dispatch"},
		{name: "as many entries as permits", kind: deliberate, programs: "send-batches-few-permits",
			pulsar: `MESSAGE b0 .*; MESSAGE b1 .*; MESSAGE m0 .*|`, wayside: `MESSAGE (b0|b1|m0) [^;]*`,
			cause: "PersistentDispatcherSingleActiveConsumer reads as many entries as there are permits and sends them all, however many messages they hold; dispatch.go stops when no permit is left"},
		{name: "permits beyond an integer", kind: deliberate, programs: "permits-large",
			pulsar: ``, wayside: `MESSAGE m0 .*`,
			cause: "Consumer.messagePermits overflows to less than none; consumer.go keeps to its most"},
		{name: "permits beyond an integer, stats", kind: deliberate, programs: "permits-large",
			pulsar: `.*availablePermits:-2 .*`, wayside: `.*availablePermits:\d+ .*`,
			cause: "the permits of the row before"},
		{name: "chunk without a first one", kind: deliberate, programs: "shared-chunk-without-first",
			pulsar: ``, wayside: `MESSAGE (c1|m0) .*`,
			cause: "SharedConsumerAssignor has no owner for it and puts it back, again and again, with all that follows; chunks.go makes the next consumer its owner"},
	}
}

func ofSubscriptions() []difference {
	return []difference{
		{name: "standby told before its answer", kind: deliberate, programs: "*",
			pulsar: `ACTIVE_CONSUMER_CHANGE {consumer_id:1 is_active:false}; SUCCESS {request_id:\d}`, wayside: `SUCCESS {request_id:\d}; ACTIVE_CONSUMER_CHANGE {consumer_id:1 is_active:false}`,
			cause: "AbstractDispatcherSingleActiveConsumer.addConsumer tells before ServerCnx answers; consumer.go answers first, since older clients ignore notices for what they do not know yet"},
		{name: "count of a batch that was acknowledged in part", kind: deliberate, programs: "parts-count",
			pulsar: `MESSAGE b0 {consumer_id:1 message_id:its own/partition -1 redelivery_count:1 ack_set:\[988\]}`, wayside: `MESSAGE b0 {consumer_id:1 message_id:its own/partition -1 redelivery_count:3 ack_set:\[988\]}`,
			cause: "PersistentSubscription.acknowledgeMessage forgets the count of every position that it is given, though a part of the batch is still to come; cursor.go forgets it with the last message"},
	}
}

func ofSeeks() []difference {
	return []difference{
		{name: "standby after a seek", kind: deliberate, programs: "failover-seek-standby",
			pulsar: `SUCCESS {request_id:2}`, wayside: `SUCCESS {request_id:2}; ACTIVE_CONSUMER_CHANGE {consumer_id:1 is_active:true}`,
			cause: "AbstractDispatcherSingleActiveConsumer chooses nobody until somebody joins, so that a subscription whose active consumer does not come back stands still; single.go fills the seat after the failover delay"},
		{name: "subscribed again before being sent away", kind: deliberate, programs: "seek-then-subscribe", rare: true,
			pulsar: `CLOSE_CONSUMER .*; SUCCESS {request_id:3}; SUCCESS {request_id:2}`, wayside: `(SUCCESS {request_id:3}; )?CLOSE_CONSUMER .*; SUCCESS {request_id:2}(; SUCCESS {request_id:3})?`,
			cause: "ServerCnx sends consumers away while it reads SEEK; seek.go does so on a goroutine of its own, and SUBSCRIBE under an id that is still there succeeds at once. No client subscribes before it is told"},
		{name: "backlog after a seek, estimated", kind: deliberate, programs: "seek-shared",
			pulsar: anyStats + `msgBacklog:4 .*`, wayside: anyStats + `msgBacklog:5 .*`,
			cause: "ManagedCursorImpl counts what a reset makes unacknowledged again without what was acknowledged one by one; cursor.go counts what is there"},
		{name: "parts of a batch outlive a seek", kind: deliberate, programs: "seek-parts-*",
			pulsar: `.*MESSAGE b0 [^;]*ack_set:\[28\].*`, wayside: anyMessages,
			cause: "ManagedCursorImpl.internalResetCursor drops the parts of batches before the new position only, so that what a seek goes back to is not all delivered; cursor.go drops all"},
		{name: "parts of a batch outlive a seek, stats", kind: deliberate, programs: "seek-parts-*",
			pulsar: anyStats, wayside: anyStats,
			cause: "the permits and messages of the row before"},
	}
}

func ofOperations() []difference {
	return []difference{
		{name: "end of a topic", kind: deliberate, programs: "terminate",
			pulsar: `REACHED_END_OF_TOPIC {consumer_id:1}`, wayside: ``,
			cause: "PersistentSubscription tells everybody; consumer.go tells Java clients only, since Go and C++ drop their connection over it"},
		{name: "an unload ends a ledger", kind: deliberate, programs: "last-id-unloaded",
			pulsar: `GET_LAST_MESSAGE_ID_RESPONSE {last_message_id:none.*|`, wayside: `GET_LAST_MESSAGE_ID_RESPONSE {last_message_id:m1.*|MESSAGE m0 .*; MESSAGE m1 .*`,
			cause: "ManagedLedgerImpl opens a new ledger with each load and drops the acknowledged one; boltstore keeps acknowledged data as long as there is room, for readers and seeks"},
		{name: "place in a ledger that is gone", kind: deliberate, programs: "last-id-trimmed",
			pulsar: `GET_LAST_MESSAGE_ID_RESPONSE {last_message_id:none.*mark_delete_position:m1}`, wayside: `GET_LAST_MESSAGE_ID_RESPONSE {last_message_id:none.*mark_delete_position:before the first}`,
			cause: "ManagedCursorImpl moves out of a dropped ledger with its next change; cursor.go stands in the ledger that follows as soon as the old one is gone"},
		{name: "counts outlive an unload", kind: deliberate, programs: "unload",
			pulsar: `MESSAGE m0 {consumer_id:1 message_id:its own/partition -1}; .*`, wayside: `MESSAGE m0 {consumer_id:1 message_id:its own/partition -1 redelivery_count:1}; .*`,
			cause: "RedeliveryTracker is in memory; cursor.go keeps counts in the store"},
	}
}
