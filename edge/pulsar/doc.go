// Package pulsar is the front end for the Pulsar binary protocol, versions up to 21:
// unmodified official clients talk to it. It holds connections and the ids that clients
// gave to their producers and consumers; everything else is the core's.
//
// The way through: [Server.Serve] accepts and starts a session, which has two
// goroutines. Its reader takes frames (read.go), finds the command's handler
// (commands.go) and the producer or consumer it names (table.go), and calls the core. A
// message's buffer is made when the budget has granted its memory; waiting for that is
// what holds a publisher back. What may wait for disk, commit or another client runs on
// a goroutine of the request (session.go); handlers stand in a file of their own each.
// The other goroutine writes the outbox (outbox.go, writer.go), or who has delivered, if
// that is little and the socket takes it at once (dash.go): answers first, which
// are bounded by the slots that their requests took before they were read, then
// entries, which are bounded by the room told to the core. errors.go is the one table
// from the core's errors to what clients are told.
//
// # Rules that hold everywhere
//
//   - The core is called with none of our locks held. It calls us with its own held, and
//     then we touch the outbox only.
//   - A table entry goes from creating to ready to closing to gone, by compare-and-set.
//     Whoever makes something and finds its entry gone undoes it.
//   - What a client may not do closes its connection, is logged once with its address,
//     and disturbs nobody else.
//   - Everything that grows has a bound: frames, commands, names, tables, requests at
//     work, answers owed, entries that wait.
//
// # Commands
//
// C is sent by clients, B by brokers. "closes" means that a client which sends it loses
// its connection, without an answer.
//
//	CONNECT                            C   connect.go: CONNECTED, or ERROR and closes
//	CONNECTED                          B   connect.go; closes
//	SUBSCRIBE                          C   subscribe.go: SUCCESS
//	PRODUCER                           C   producer.go: PRODUCER_SUCCESS
//	SEND                               C   send.go: SEND_RECEIPT or SEND_ERROR
//	SEND_RECEIPT                       B   send.go; closes
//	SEND_ERROR                         B   send.go; closes
//	MESSAGE                            B   writer.go; closes
//	ACK                                C   ack.go: ACK_RESPONSE, if wanted
//	FLOW                               C   flow.go: no answer
//	UNSUBSCRIBE                        C   unsubscribe.go: SUCCESS
//	SUCCESS                            B   request.go; closes
//	ERROR                              B   request.go; closes
//	CLOSE_PRODUCER                     CB  closeproducer.go: SUCCESS
//	CLOSE_CONSUMER                     CB  closeconsumer.go: SUCCESS
//	PRODUCER_SUCCESS                   B   producer.go; closes
//	PING                               CB  ping.go: PONG
//	PONG                               CB  ping.go: a sign of life
//	REDELIVER_UNACKNOWLEDGED_MESSAGES  C   redeliver.go: no answer
//	PARTITIONED_METADATA               C   partitions.go: PARTITIONED_METADATA_RESPONSE
//	PARTITIONED_METADATA_RESPONSE      B   partitions.go; closes
//	LOOKUP                             C   lookup.go: LOOKUP_RESPONSE
//	LOOKUP_RESPONSE                    B   lookup.go; closes
//	CONSUMER_STATS                     C   stats.go: CONSUMER_STATS_RESPONSE
//	CONSUMER_STATS_RESPONSE            B   stats.go; closes
//	REACHED_END_OF_TOPIC               B   consumer.go, to Java clients only; closes
//	SEEK                               C   seek.go: SUCCESS
//	GET_LAST_MESSAGE_ID                C   lastid.go: GET_LAST_MESSAGE_ID_RESPONSE
//	GET_LAST_MESSAGE_ID_RESPONSE       B   lastid.go; closes
//	ACTIVE_CONSUMER_CHANGE             B   consumer.go; closes
//	GET_TOPICS_OF_NAMESPACE            C   topics.go: GET_TOPICS_OF_NAMESPACE_RESPONSE
//	GET_TOPICS_OF_NAMESPACE_RESPONSE   B   topics.go; closes
//	GET_SCHEMA                         C   schema.go: GET_SCHEMA_RESPONSE
//	GET_SCHEMA_RESPONSE                B   schema.go; closes
//	AUTH_CHALLENGE                     B   not sent; closes
//	AUTH_RESPONSE                      C   connect.go: refused, nobody asked; ERROR and closes
//	ACK_RESPONSE                       B   ack.go; closes
//	GET_OR_CREATE_SCHEMA               C   schema.go: GET_OR_CREATE_SCHEMA_RESPONSE
//	GET_OR_CREATE_SCHEMA_RESPONSE      B   schema.go; closes
//	NEW_TXN                            C   txn.go: NEW_TXN_RESPONSE
//	NEW_TXN_RESPONSE                   B   txn.go; closes
//	ADD_PARTITION_TO_TXN               C   txn.go: ADD_PARTITION_TO_TXN_RESPONSE
//	ADD_PARTITION_TO_TXN_RESPONSE      B   txn.go; closes
//	ADD_SUBSCRIPTION_TO_TXN            C   txn.go: ADD_SUBSCRIPTION_TO_TXN_RESPONSE
//	ADD_SUBSCRIPTION_TO_TXN_RESPONSE   B   txn.go; closes
//	END_TXN                            C   txn.go: END_TXN_RESPONSE
//	END_TXN_RESPONSE                   B   txn.go; closes
//	END_TXN_ON_PARTITION               B   txn.go: refused, ERROR NotAllowedError
//	END_TXN_ON_PARTITION_RESPONSE      B   not sent; closes
//	END_TXN_ON_SUBSCRIPTION            B   txn.go: refused, ERROR NotAllowedError
//	END_TXN_ON_SUBSCRIPTION_RESPONSE   B   not sent; closes
//	TC_CLIENT_CONNECT_REQUEST          C   txn.go: TC_CLIENT_CONNECT_RESPONSE
//	TC_CLIENT_CONNECT_RESPONSE         B   txn.go; closes
//	WATCH_TOPIC_LIST                   C   watch.go: WATCH_TOPIC_LIST_SUCCESS
//	WATCH_TOPIC_LIST_SUCCESS           B   watch.go; closes
//	WATCH_TOPIC_UPDATE                 B   watch.go; closes
//	WATCH_TOPIC_LIST_CLOSE             C   watch.go: SUCCESS
//	TOPIC_MIGRATED                     B   not sent; closes
package pulsar
