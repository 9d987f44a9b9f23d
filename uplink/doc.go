// Package uplink stores and forwards: it brings local topics to a cloud Pulsar with
// the official client, every message once and in order where the cloud deduplicates.
//
// # The way through
//
// An [Uplink] is made of [Options] by [New], gives the broker the names of its
// subscriptions by Reserved, and starts. Its watch compares the topics that exist with
// the routes and makes a forwarder for each that matches. A forwarder is an ordinary
// exclusive consumer of a durable subscription: entries come to its inbox, as many as
// its window has room for, and are opened into messages, each with its topic-wide
// index. The planner decides what leaves next and how; the session, one producer of
// the official client, takes it; receipts come back to the inbox. What is settled
// leaves the window at its head, moves the cursor, and makes room for more. What the
// cloud will never take is parked on a local topic with its reason.
//
// # What makes it exactly once
//
// The cloud drops what it has seen by producer name and sequence id. The name is made
// of everything that could make equal ids mean other messages (identity.go), the id is
// the index. A batch is known to the cloud by its first id only, so its bounds are
// written into the cursor's plan and synced before it leaves (plan.go, planner.go,
// batching.go, progress.go); after a restart it goes again with the same bounds. The
// planner is pure: model_test.go runs it against a model of the client and of the cloud
// through crashes at every point.
//
// A session ends with its connection or its first failure: then all that was
// unanswered has ended so and is sent again, by the same plan, through a new one. Only
// the receipt of that very send settles a message; "duplicate" counts for those that
// an earlier session may have brought there.
//
// # What does not pass
//
// The official client cannot mark a value as null: a tombstone arrives empty. It cannot
// mark a key as binary: such a key arrives as its base64. A delayed message loses its
// schema version, and a batch its ordering key, though each message in it keeps its
// own. Entries that are encrypted end to end, chunked, or cannot be opened are parked.
// A cloud topic with partitions is refused: a partition has to be named, as the
// mirrored partitions of a local topic do.
//
// # Who runs
//
// A forwarder has a goroutine while it has something to do, and none while it is idle.
// Opening a topic, creating and closing producers and parking wait for others, so they
// have goroutines of their own, for which Close waits. The client's goroutines only
// leave events in the inbox, and never wait there.
//
// One link is shared by all topics: one client, which is replaced when it has gone
// silent, and one gate, which lets a single topic try while the cloud cannot be
// reached.
package uplink
