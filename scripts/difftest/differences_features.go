package main

import "slices"

// ofFeatures are the rows about what only some clients use.
func ofFeatures() []difference {
	return slices.Concat(ofTransactions(), ofPendingAcks(), ofCompaction(), ofWatchers(), ofNonPersistent(), ofRules(), ofTrimmed(), ofLevels())
}

func ofTransactions() []difference {
	return []difference{
		{name: "end without an action", kind: deliberate, programs: "txn-without-action",
			pulsar: `closed`, wayside: ``,
			cause: "CommandEndTxn.getTxnAction throws in ServerCnx.handleEndTxn where none is set, and the connection is closed; txn.go refuses it alone"},
		{name: "end without an action, answer", kind: deliberate, programs: "txn-without-action",
			pulsar: ``, wayside: `END_TXN_RESPONSE {request_id:3 txnid_least_bits:txnA txnid_most_bits:0 error:MetadataError message:<text>}`,
			cause: "the answer of the row before"},
		{name: "coordinator of any number", kind: deliberate, programs: "txn-connect",
			pulsar: `TC_CLIENT_CONNECT_RESPONSE {request_id:3}`, wayside: `TC_CLIENT_CONNECT_RESPONSE {request_id:3 error:ServiceNotReady message:<text>}`,
			cause: "TransactionMetadataStoreService.handleTcClientConnect asks who owns partition 99 of the coordinators' topic, not whether there is one, and a standalone owns all; txn.go has one coordinator, 0"},
		{name: "coordinator of any number, transaction", kind: deliberate, programs: "txn-connect",
			pulsar: `NEW_TXN_RESPONSE {request_id:5 txnid_least_bits:another's txnid_most_bits:99}`, wayside: `NEW_TXN_RESPONSE {request_id:5 txnid_most_bits:99 error:TransactionCoordinatorNotFound message:<text>}`,
			cause: "the coordinator of the row before"},
		{name: "published in what the topic has no part in", kind: deliberate, programs: "txn-not-joined",
			pulsar: `SEND_RECEIPT of x0 .*`, wayside: `SEND_ERROR of x0 {producer_id:1 sequence_id:0 error:NotAllowedError message:<text>}`,
			cause: "TopicTransactionBuffer.appendBufferToTxn does not ask the coordinator, and an entry of a transaction that never comes to an end here holds up all behind it; Coordinator.mayPublish refuses it"},
		{name: "published in what the topic has no part in, held up", kind: deliberate, programs: "txn-not-joined",
			pulsar: ``, wayside: `MESSAGE m0 .*`,
			cause: "what the entry of the row before holds up"},
		{name: "published in what the topic has no part in, committed", kind: deliberate, programs: "txn-not-joined",
			pulsar: `MESSAGE x0 [^;]*; MESSAGE m0 [^;]*`, wayside: ``,
			cause: "the topic has joined after all, and the commit takes in what was there before"},
		{name: "published in what has ended", kind: deliberate, programs: "txn-timeout",
			pulsar: `SEND_RECEIPT of x1 .*`, wayside: `SEND_ERROR of x1 {producer_id:1 sequence_id:2 error:NotAllowedError message:<text>}`,
			cause: "TopicTransactionBuffer.appendBufferToTxn again; Coordinator.mayPublish knows that the transaction has ended"},
	}
}

func ofPendingAcks() []difference {
	const message = `MESSAGE (m1|m2|b0) [^;]*`
	return []difference{
		{name: "acknowledged in what the subscription has no part in", kind: deliberate, programs: "txn-ack-[nu]*",
			pulsar: `ACK_RESPONSE {consumer_id:1 request_id:2}`, wayside: `ACK_RESPONSE {consumer_id:1 error:NotAllowedError message:<text> request_id:2}`,
			cause: "PendingAckHandleImpl.individualAcknowledgeMessage does not ask the coordinator, and the entry is neither delivered nor acknowledged until the subscription is loaded anew; Coordinator.mayAck refuses it"},
		{name: "acknowledged in what the subscription has no part in, delivered", kind: deliberate, programs: "txn-ack-[nu]*",
			pulsar: `(` + message + `(; )?){3}`, wayside: `MESSAGE m0 [^;]*; (` + message + `(; )?){3}`,
			cause: "the entry of the row before"},
		{name: "refused, and yet not redelivered", kind: deliberate, programs: "txn-ack-conflict",
			pulsar: `MESSAGE m2 [^;]*; MESSAGE b0 [^;]*`, wayside: `MESSAGE m1 [^;]*; MESSAGE m2 [^;]*; MESSAGE b0 [^;]*`,
			cause: "Consumer.individualAckWithTransaction takes entries out of pendingAcks whether PendingAckHandleImpl takes them or refuses them all; AckIn refuses before it touches anything"},
		{name: "count of a batch that a transaction has acknowledged in part", kind: deliberate, programs: "txn-ack-parts",
			pulsar: `(MESSAGE m\d [^;]*; )+MESSAGE b0 {[^;]*redelivery_count:1 ack_set:\[28\]}`, wayside: `(MESSAGE m\d [^;]*; )+MESSAGE b0 {[^;]*redelivery_count:2 ack_set:\[28\]}`,
			cause: "PersistentSubscription.acknowledgeMessage, by which PendingAckHandleImpl commits, forgets the count of every position that it is given; cursor.go forgets it with the last message"},
	}
}

// ofCompaction has a row for each last message that its programs end in, so that both have to tell the same.
func ofCompaction() []difference {
	all := []difference{
		{name: "null value whose size is not said", kind: deliberate, programs: "compact-null-*",
			pulsar: `(MESSAGE m\d [^;]*; )*MESSAGE m5 [^;]*(; MESSAGE m[67] [^;]*)+`, wayside: `(MESSAGE m\d [^;]*; )*MESSAGE m5 [^;]*`,
			cause: "AbstractTwoPhaseCompactor.extractKeyAndSize counts the metadata too where uncompressed_size is not set, as C++ clients leave it, and never looks at null_value; compactround.go takes a null value for what it says"},
		{name: "null value whose size is not said, last", kind: deliberate, programs: "compact-null-*",
			pulsar: `GET_LAST_MESSAGE_ID_RESPONSE {last_message_id:m[67]/.*`, wayside: `GET_LAST_MESSAGE_ID_RESPONSE {last_message_id:m5/.*`,
			cause: "what the row before has kept is the last"},
		{name: "seek of a reader from the start", kind: deliberate, programs: "compact-seek",
			pulsar: `MESSAGE m2 [^;]*; MESSAGE m3 [^;]*; MESSAGE m5 [^;]*`, wayside: `MESSAGE m3 [^;]*; MESSAGE m5 [^;]*`,
			cause: "CompactedTopicImpl.asyncReadEntriesOrWait reads from the earliest whenever a reader's start id says so, though its cursor was set elsewhere since; compactread.go goes by the cursor"},
	}
	for _, last := range []string{"m3", "m5", "m6", "m7", "b0"} {
		all = append(all, difference{name: "place of a compacted reader, before " + last, kind: deliberate, programs: "compact-*",
			pulsar:  `GET_LAST_MESSAGE_ID_RESPONSE {last_message_id:` + last + `/.* consumer_mark_delete_position:before the first}`,
			wayside: `GET_LAST_MESSAGE_ID_RESPONSE {last_message_id:` + last + `/.* consumer_mark_delete_position:m\d}`,
			cause:   "CompactedTopicImpl reads past what was compacted away and leaves the cursor before it; passLocked of compactread.go counts it as acknowledged, so that it is no backlog"})
	}
	return all
}

func ofWatchers() []difference {
	return []difference{
		{name: "watched pattern that does not compile", kind: deliberate, programs: "watch-bad-pattern",
			pulsar: `ERROR {request_id:1 error:InvalidTopicName message:<text>}`, wayside: `ERROR {request_id:1 error:NotAllowedError message:<text>}`,
			cause: "ServerCnx.handleCommandWatchTopicList makes an InvalidTopicName of what TopicsPatternFactory throws; watch.go cannot tell a bad pattern from one that only Go's expressions cannot say, and refuses both so that clients poll"},
		{name: "watcher of what is no namespace", kind: deliberate, programs: "watch-bad-namespace",
			pulsar: `closed`, wayside: ``,
			cause: "NamespaceName.get throws in ServerCnx.handleCommandWatchTopicList, and the connection is closed; watch.go answers"},
		{name: "watcher of what is no namespace, answer", kind: deliberate, programs: "watch-bad-namespace",
			pulsar: ``, wayside: `ERROR {request_id:1 error:MetadataError message:<text>}|PONG {}`,
			cause: "the answer of the row before, and the connection that lives on"},
		{name: "watcher in another's place", kind: deliberate, programs: "watch-same-id",
			pulsar: `WATCH_TOPIC_UPDATE {watcher_id:1 new_topics:\["persistent://public/default/{p}-t"\] .*`, wayside: ``,
			cause: "TopicListService.handleWatchTopicList answers for the watcher that has the id and forgets the new pattern; startWatch puts the new one in its place. No client asks twice on one connection"},
		{name: "watcher in another's place, new pattern", kind: deliberate, programs: "watch-same-id",
			pulsar: ``, wayside: `WATCH_TOPIC_UPDATE {watcher_id:1 new_topics:\["persistent://public/default/{p}-u"\] .*`,
			cause: "what the pattern of the row before matches"},
	}
}

func ofNonPersistent() []difference {
	return []difference{
		{name: "last id of a non-persistent topic", kind: deliberate, programs: "np-*",
			pulsar: `ERROR {request_id:\d error:UnknownError message:<text>}`, wayside: `GET_LAST_MESSAGE_ID_RESPONSE {last_message_id:none/.*`,
			cause: "ServerCnx.handleGetLastMessageId fails on the transaction buffer that a NonPersistentTopic has not, and readers with it; lastid.go answers that nothing is kept"},
		{name: "active consumer of a non-persistent topic", kind: deliberate, programs: "np-failover",
			pulsar: `SUCCESS {request_id:1}|`, wayside: `(SUCCESS {request_id:1}; )?ACTIVE_CONSUMER_CHANGE {consumer_id:1 is_active:true}`,
			cause: "NonPersistentDispatcherSingleActiveConsumer.scheduleReadOnActiveConsumer is empty, where the persistent one tells who is active, so that a standby that was told of it never hears that it is none any more; failover.go tells"},
		{name: "skipped on a non-persistent topic", kind: deliberate, programs: "np-operated",
			pulsar: `POST .*/skip_all: 500`, wayside: `POST .*/skip_all: 204`,
			cause: "PersistentTopicsBase.internalSkipAllMessages casts the topic to a PersistentTopic; here there is nothing to skip"},
		{name: "transaction on a non-persistent topic", kind: deliberate, programs: "np-txn",
			pulsar: `closed`, wayside: ``,
			cause: "NonPersistentTopic.publishTxnMessage throws, and the connection is closed; barsTxnLocked of txntopic.go refuses"},
		{name: "transaction on a non-persistent topic, answer", kind: deliberate, programs: "np-txn",
			pulsar: ``, wayside: `SEND_ERROR of x0 {producer_id:1 sequence_id:0 error:NotAllowedError message:<text>}`,
			cause: "the answer of the row before"},
	}
}

func ofRules() []difference {
	return []difference{
		{name: "expired while held", kind: deliberate, programs: "rule-expire-held",
			pulsar: anyStats + ` unackedMessages:2 .*`, wayside: anyStats + ` unackedMessages:0 .*`,
			cause: "PersistentMessageExpiryMonitor moves the cursor and leaves Consumer.pendingAcks as it is until somebody acknowledges or gives back, and with it a consumer's block; expire.go frees the consumer too"},
		{name: "lowered limit, one more", kind: deliberate, programs: "rule-unacked-lowered",
			pulsar: `MESSAGE m5 .*`, wayside: ``,
			cause: "Consumer.blockedConsumerOnUnackedMsgs is only set when messages are sent, so that one more goes out after the limit was lowered; pending.go looks at the limit first"},
		{name: "lowered limit, stats", kind: deliberate, programs: "rule-unacked-lowered",
			pulsar: anyStats + `availablePermits:94 .*`, wayside: anyStats + `availablePermits:95 .*`,
			cause: "the message of the row before"},
		{name: "lowered limit, later", kind: deliberate, programs: "rule-unacked-lowered",
			pulsar: `MESSAGE m6 .*`, wayside: `MESSAGE m5 [^;]*; MESSAGE m6 [^;]*`,
			cause: "the message of the row before"},
	}
}

func ofTrimmed() []difference {
	var all []difference
	for _, last := range []string{"none", "m2", "b1"} {
		all = append(all, difference{name: "place in a ledger that is gone, last " + last, kind: deliberate, programs: "trim-*",
			pulsar:  `GET_LAST_MESSAGE_ID_RESPONSE {last_message_id:` + last + `/.* consumer_mark_delete_position:b0}`,
			wayside: `GET_LAST_MESSAGE_ID_RESPONSE {last_message_id:` + last + `/.* consumer_mark_delete_position:before the first}`,
			cause:   "ManagedCursorImpl stands in the dropped ledger until it changes; cursor.go stands in the ledger that follows. Clients find neither to be behind the last id"})
	}
	return all
}

func ofLevels() []difference {
	return []difference{
		{name: "level below 0, taken", kind: deliberate, programs: "level-negative",
			pulsar: `MESSAGE m[12] .*`, wayside: ``,
			cause: "AbstractDispatcherMultipleConsumers.getNextConsumer takes 0 for the highest level there is and looks no further; chooseInTurn of shared.go goes by the numbers. No client lets one set a level below 0"},
		{name: "level below 0, not taken", kind: deliberate, programs: "level-negative",
			pulsar: ``, wayside: `MESSAGE m[12] .*`,
			cause: "the messages of the row before"},
	}
}
