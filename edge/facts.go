package edge

// Facts are what the broker must know of an entry without opening it. Whoever
// brings a message in states them; they are stored whole beside the entry's bytes.
type Facts struct {
	Producer string // its name
	Sequence int64  // sequence id of the first message
	Highest  int64  // of the last one; equal to Sequence where the producer did not say
	Messages int32  // in the entry, ≥ 1: what permits, backlog and indexes count
	Batch    bool   // the entry is a batch, be it of one

	Slot      uint16 // of the sticky key in Pulsar's 65536 (protocol 3.8)
	Key       []byte // partition key as text of the metadata, nil if none: for compaction; not beyond 64 KiB
	KeyBinary bool   // Key is base64 of the real key
	Tombstone bool   // the message's value is null
	Encrypted bool   // end to end: nobody here can open it

	Chunk  Chunk // part of a chunked message; the zero value if not
	Marker int32 // marker type of server-only entries, 0 for user messages
	Txn    TxnID // transaction of the entry; the zero value if none
	InTxn  bool  // Txn is meant, whatever its value

	Publish   int64 // producer's clock, ms since 1970
	Event     int64 // application's time, ms since 1970, 0 if none
	DeliverAt int64 // ms since 1970, 0 for at once

	Receive     int64  // own wall clock when it came in, ms since 1970
	ReceiveMono int64  // ms since boot at that moment: with Boot it can mend Receive
	Boot        uint64 // id of that boot of the machine

	Schema []byte // schema version of the metadata, nil if none

	Origin *Origin // of an entry in a topic's compacted form, nil elsewhere

	// Tail holds tagged fields that this version does not know, exactly as read.
	// They are written back unchanged.
	Tail []byte
}

// Origin is where an entry of a compacted form comes from (see compacted). It is not
// changed any more.
type Origin struct {
	Position Position // in the topic's own ledgers
	Index    uint64   // of its first message there
}

// Chunk tells a part of a chunked message from the others.
type Chunk struct {
	UUID string // of the whole message
	ID   int32  // 0 … Of−1
	Of   int32  // number of chunks, 0 when the entry is none
}

// IsChunk reports whether the entry is a part of a chunked message.
func (c Chunk) IsChunk() bool { return c.Of > 0 }

// Last reports whether it is the one that completes the message.
func (c Chunk) Last() bool { return c.Of > 0 && c.ID == c.Of-1 }

// TxnID names a transaction as Pulsar does, by two 64-bit halves.
type TxnID struct{ Most, Least uint64 }

// Message is an entry on its way into a ledger: the producer's own bytes, from the
// checksum's magic on, and what is known of them. Data must not change any more.
type Message struct {
	Facts Facts
	Data  []byte
	Grant Grant // memory that Data takes; the ledger releases it when the write has ended
	// Sequenced asks the ledger to note the producer's sequence in the same commit:
	// deduplication is on.
	Sequenced bool
	// Generated says that the broker made the producer's name up: of the sequences
	// kept it is the first to be forgotten.
	Generated bool
}

// Entry is a message in its ledger.
type Entry struct {
	Position Position
	Index    uint64 // ordinal of its first message in the topic, counted from 0 for the life of the ledger's birth id
	Facts    Facts
	Data     []byte // shared by all readers, written by nobody
}

// LastIndex is the ordinal of the entry's last message.
func (e *Entry) LastIndex() uint64 { return e.Index + uint64(e.Facts.Messages) - 1 }
