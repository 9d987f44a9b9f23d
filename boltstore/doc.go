// Package boltstore keeps topics in bbolt files: it is the edge.Store of the broker.
//
// The way of a message: Ledger.Append puts an operation in the store's line and
// returns. The committer, one goroutine, takes what has gathered while the last sync
// ran (queue.go), makes one group of it (group.go, committer.go), has it synced and then
// calls everybody back in call order. Nothing is confirmed before that, so a kill at any
// moment loses no receipt.
//
// What happens all the time, appends and states of cursors, goes to the journal
// (journaled.go, package journal): one write and one sync. All else, and everything where
// there is no journal, is a transaction of bbolt. What the journal has and the main file
// has not is kept in memory: states and sequences whole (unsaved.go), of chunks where they
// lie, so that they are read from there (loose.go). It is brought into the main file
// between commits (settle.go): states when much of the journal is new (saving.go), chunks
// when the journal has reached its size (filing.go). What was trimmed by then is never written again. A start
// replays what is not in the main file yet (replaying.go). What it says of spans only
// grows, and states are replayed in their order, so it may know more than it thinks.
//
// What lies where in a file (layout.go): a bucket per topic; in it a bucket per
// ledger; in that a bucket per chunk, holding one value, the entries that one commit
// brought, or several small ones (chunk.go). A chunk alone in its bucket is never
// written again by later commits. A ledger that is trimmed is crossed off at once and its pages are given
// back in small steps (sweep.go). Beside the ledgers lie cursors (cursorstore.go),
// producers' sequences and the topic's properties; in one bucket for all topics the
// records, by which a store of ten thousand topics opens without a look at entries.
//
// The files: the one with the highest number is the main file, the only one that is
// written. When it is full of live data it becomes a read-only volume and a new main
// file takes its place (turnover.go), after all of the ledgers that it has a part of has
// come in from the journal; a volume without live ledgers is deleted, one
// that is mostly dead is moved (compact.go). Volumes are read by plain reads (tree.go),
// not through a map. The main file grows by zeros that the committer writes ahead, so
// that bbolt itself never makes a file larger and never meets a full disk (space.go).
//
// Who holds what: the committer alone owns the write transaction, the ids, the list of
// volumes and all that is marked so in Store. Store.topicsMu guards the table of
// topics for readers, the queue's lock the line and the dirty cursors; neither is held
// while something is read, written or called. An open ledger's readers take its view,
// which is replaced when a commit is durable.
//
// What can go wrong: no space refuses appends until there is some; a failed sync
// refuses them until the file has been taken back to the last confirmed transaction,
// opened anew and checked, and the journal goes on in another segment (failure.go); a
// topic whose pages are damaged is given up alone (giveup.go). Opening checks every page
// header by plain reads before bbolt maps the file (check.go), falls back to the older of its two
// states, sets aside what cannot be served and keeps the topics that can be read
// (opening.go, salvage.go).
//
// A stopped store's directory is read without a change (inspection.go, picture.go), all of
// it for a check (verify.go), and worked on in the steps of a running one (squeeze.go,
// mend.go). Backups are copies with ids of their own (backup.go); for one of a running
// store the committer holds it still for a step (freeze.go).
package boltstore
