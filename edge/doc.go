// Package edge is the core of the broker: topics, ledgers, subscriptions, cursors and
// dispatch. It imports nothing of ours. Front ends bring clients in and hand it messages
// with their [Facts]; a [Store] keeps what has to last.
//
// The way of a message: [Broker.Open] gives the [Topic], which admits a [Producer] by
// name and access mode (access.go). [Producer.Publish] checks and queues in one step
// under the topic's lock; [Ledger.Append] never waits. When the entry is durable the
// store's goroutine raises the topic's last entry, wakes the subscriptions, and answers.
// The dispatch of a [Subscription] runs only while there is work, by one of the broker's
// few hands (dispatch.go, crew.go): it asks its dispatcher for a plan, reads (fetch.go),
// the newest entries from memory (tail.go), and hands out what it read. Of dispatchers there
// are two: single (Exclusive, Failover) reads in order and knows no pending entries,
// shared (Shared, Key_Shared: shared.go, pending.go, keyorder.go, chunks.go, delays.go)
// knows who holds what. A [Receiver] takes deliveries as far as it has permits and room.
//
// The way of an acknowledgement: [Consumer.Ack] moves the [Cursor] in memory and hands
// its newest state to [Ledger.SaveCursor]; an answer that is asked for comes behind the
// commit. What comes back is in redeliver.go, what moves a whole subscription in seek.go,
// what ends it in unsubscribe.go.
//
// A topic's compacted form (compacted.go) is a ledger of its own under a hidden name. The
// [Topic.Compact] of one topic after the other writes it (compactor.go, compactround.go,
// compactform.go), with the help of an [Opener]; who has asked for it reads it up to its
// horizon and then the topic (compactread.go).
//
// Transactions begin and end with the [Coordinator] (coordinator.go, txnlog.go, txnend.go).
// A topic holds back what is open (txnbuffer.go, txntopic.go), a subscription what is
// acknowledged in one (txnacks.go, txnsub.go).
//
// Non-persistent topics (nonpersistent.go) are the same on a ledger that keeps nothing.
//
// [Catalog] is what exists besides messages. [Policies] are rules of namespaces and topics,
// one shared value for all topics of the same source (policies.go; what they do stands in
// backlogquota.go, retention.go, ttl.go, compact.go, pace.go, throttle.go, messagerules.go,
// autocreate.go). The housekeeper
// (housekeeper.go) watches the quotas, lets expire, trims (trim.go) and unloads. A [Follower]
// (watch.go) is told which topics come and go. [Budget] divides the memory limit.
//
// # Rules that hold everywhere
//
//   - Locks, outer to inner: Broker.mu, Topic.mu, Subscription.mu, leaves (of the catalog,
//     of the store, of front ends). Nobody holds two subscriptions. Under a lock there is
//     memory only. Methods that need one held end in Locked.
//   - Nobody waits for the store under a lock. What is being made, moved or removed is a
//     placeholder with a channel that closes on every way out: slot.ready and slot.gone of
//     a topic, pause of a subscription.
//   - Functions that the store calls back run on its goroutine: they take locks for a
//     moment, and never wait.
//   - Decisions are made in pure code: [Cursor], [Runs], [Delayed], [Spans] and the
//     dispatchers know neither goroutine nor clock nor disk.
//   - What was admitted is answered in line. What is closed is never saved again, so that
//     nothing removed comes back.
//   - Every goroutine is waited for: dispatch by its topic, the rest by [Broker.Close].
package edge
