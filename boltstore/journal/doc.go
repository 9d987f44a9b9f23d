// Package journal is a log of groups of bytes in segment files that are written ahead
// with zeros and used again. It knows nothing of what the bytes mean.
//
// The way of a group: one goroutine, the owner, calls Append. The group becomes one
// frame behind the last, is written and synced, and only then does Append return. A
// segment that has no room for the next group is followed by another, which was made
// ready before (supply.go), so that this costs no sync of its own.
//
// What a segment holds (segment.go, frame.go): a page of head, which gives it a number
// that only grows and a random mark, then frames. Every frame bears the mark, so that
// what an earlier use of the file has left is never taken for one, and the number of
// its commit. The first frame of a segment is a link: it says where the log before it
// ends. So what lies behind that end, torn or written by a commit that failed, never
// comes back.
//
// After a start the log is replayed (replay.go), then it goes on in a new segment. Only
// the last group can be torn by a loss of power, since no two are under way: a frame that
// is bad and has good ones behind it is damage, which is passed over and named.
//
// Segments that are needed no more are given back by Release; readers pin what they read.
package journal
