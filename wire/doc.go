// Package wire reads and writes the Pulsar binary protocol: frames, commands and
// the headers of entries. It has no goroutine, no policy and no state of its own.
//
// The way through, from the socket inwards: a [Reader] takes frames from a
// connection and checks each length before anything is allocated for it. The
// commands that come by the thousand (SEND, ACK, FLOW, redelivery) are scanned by
// hand into structs of the caller: [ParseSend], [ParseAck], [ParseFlow],
// [ParseRedeliver]. All others go through [Decode]. What follows a SEND, the
// entry, is checked and described by [ParseMessage], whose facts decide about
// batches, keys, delays and chunks without anybody looking inside. [Unpacker] does
// look inside: it opens an entry into the messages its producer sent, and for
// compaction writes a batch anew with only some of them.
//
// Outwards: [AppendSendReceipt], [AppendMessage] and [AppendAckResponse] write
// what is sent often, [AppendCommand] the rest. [AppendMessage] ends where the
// stored bytes begin, so that head and entry leave in one vectored write.
//
// [Dump] tells what a frame says in one line for people.
//
// # Bytes
//
// A parsed struct borrows from the bytes it was parsed from: its slices stay valid
// as long as nobody changes those bytes, and keep them alive. Append functions
// copy. Ids are unsigned on the wire and signed everywhere else; the cast is done
// here, so -1 is -1.
package wire
