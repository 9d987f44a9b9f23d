package edge

// Store keeps every topic's ledger durable. All methods may be called from any
// goroutine; those with done never wait for the disk.
type Store interface {
	// Records tells of every topic, open or not.
	Records() []TopicRecord
	// OpenLedger opens a topic's ledger and creates it, with a new birth id, if
	// need be. A ledger is opened once; Ledger.Close lets it be opened again.
	// reserved names cursors that the creating commit makes at the earliest position.
	OpenLedger(name TopicName, reserved []string) (Ledger, error)
	// DeleteLedger removes a topic with everything in it, open or not. Ids handed
	// out before are not handed out again. Unknown names are no error.
	DeleteLedger(name TopicName, done func(error))
	Values
	// Stats is a snapshot of the whole store.
	Stats() StoreStats
	// Close drains what is queued, commits and closes the files.
	Close() error
}

// MaxValueKey and MaxValue bound a value's key and the value itself, in bytes.
const (
	MaxValueKey = 1 << 10
	MaxValue    = 1 << 20
)

// Values are small values by key, for what exists besides messages. What is beyond
// MaxValueKey or MaxValue is refused with ErrBadRequest.
type Values interface {
	// ScanValues visits keys with the prefix in order until visit returns false.
	ScanValues(prefix string, visit func(key string, value []byte) bool) error
	// PutValue sets a value, or removes it when value is nil. done runs like those of Append.
	PutValue(key string, value []byte, done func(error))
}

// Ledger is one topic's ordered log of entries, together with its cursors.
// A done function runs on the store's goroutine once the change is synced or has
// failed, those of Append and Barrier in call order. It must not block and must
// not call the ledger's reading methods.
//
// After a failed Append everything queued behind it on the same ledger fails too
// (ErrLedgerFailed), up to the call of Recover, so that nothing later overtakes it. Only
// a message that no store could take fails alone, with ErrBadRequest.
type Ledger interface {
	// Append queues a message and never waits: the message brings its grant, which
	// the ledger releases. The entry given to done shares the message's bytes.
	Append(m Message, done func(Entry, error))
	// Barrier writes nothing; done keeps its place in line behind the appends
	// before it, also when the ledger fails or closes. Its error is theirs.
	Barrier(done func(error))
	// Recover ends the failed state in its place in line: appends behind it are
	// tried again. Without a failure it is a Barrier.
	Recover(done func(error))

	// Read serves new entries, replays, holes and peeks alike: entries of the
	// ranges in the order given, at most maxEntries, and no further one once
	// maxBytes of data are reached; the first comes whatever its size. The caller
	// owns the slices and shares the bytes. A short read transaction, no commit in between.
	Read(want []Range, maxEntries, maxBytes int) (Batch, error)
	// Scan visits the facts of the entries in the range, without their data, in
	// order until visit returns false.
	Scan(want Range, visit func(Position, Facts) bool) error
	// Find returns the first entry at or behind from whose publish time is ≥ ms,
	// and false if there is none.
	Find(from Position, publish int64) (Position, bool, error)

	// Spans is the list of what the ledger holds now.
	Spans() Spans
	// BirthID differs from any earlier ledger of this name, on any disk.
	BirthID() string
	// Trim lets go whole closed ledgers that lie before the position.
	Trim(before Position, done func(error))
	// Roll closes the open ledger, so that Trim can reach it, unless it is empty.
	Roll(done func(error))

	// Sequences returns the last durable sequence of each producer name, at most 10,000.
	Sequences() (map[string]SequenceState, error)
	// DropSequences forgets names, all of them when names is nil.
	DropSequences(names []string, done func(error))
	// Properties and SetProperties keep the topic's own small state (terminated,
	// epoch, partition facts): opaque bytes, at most 64 KiB.
	Properties() ([]byte, error)
	SetProperties(value []byte, done func(error))

	// Cursors returns the durable state of every cursor.
	Cursors() (map[string]CursorState, error)
	// SaveCursor marks a cursor dirty and never waits. The committer asks state
	// for it once, when it writes. Without done it may ride with the topic's next
	// commit, and is written at the latest after the save interval. Saves and deletes
	// act in call order.
	SaveCursor(name string, state func() CursorState, done func(error))
	DeleteCursor(name string, done func(error))

	// Close lets go what is held in memory, behind all that is queued. Dirty
	// cursors are written first.
	Close(done func(error))
}

// Batch is the outcome of a read.
type Batch struct {
	Entries []Entry
	// Lost are ranges that were wanted and exist no longer, or are damaged. They
	// count as acknowledged for whoever wanted them.
	Lost []Range

	passed Position // of a compacted form: everything up to it is read or was taken out
}

// MaxProperties bounds a topic's own small state, in bytes. MaxSequences is the
// number of producer names kept for a topic.
const (
	MaxProperties = 64 << 10
	MaxSequences  = 10_000
)

// SequenceState is what deduplication knows of a producer name (protocol 3.18).
type SequenceState struct {
	Highest   int64  // highest persisted sequence id, −1 for none
	ChunkUUID string // chunked message that is under way, "" for none
	ChunkID   int32  // its last stored chunk
	Idle      int64  // seconds of broker uptime since the name was last used
	Generated bool   // the broker made the name up: first to be forgotten
}

// Advance is the state after an entry of the producer was stored. Only the last chunk
// of a chunked message moves the sequence; markers move nothing.
func (s SequenceState) Advance(f *Facts) SequenceState {
	switch {
	case f.Marker != 0:
	case f.Chunk.IsChunk() && !f.Chunk.Last():
		s.ChunkUUID, s.ChunkID = f.Chunk.UUID, f.Chunk.ID
	default:
		s.Highest = max(s.Highest, f.Highest, f.Sequence)
		s.ChunkUUID, s.ChunkID = "", 0
	}
	return s
}

// CursorState is the durable part of a subscription. A state handed to the store is
// not changed any more.
type CursorState struct {
	MarkDelete Position          // everything up to it is acknowledged; Entry −1 stands before a ledger's first
	Holes      []Run             // acknowledged above it: ascending, apart from each other
	Rests      []BatchRest       // partly acknowledged batches, ascending
	Counts     []RedeliveryCount // entries that were redelivered, ascending
	Properties map[string]string // given by the subscriber at creation
	Plan       []byte            // the uplink's own small state, opaque here
}

// Raised is the state of a cursor when everything up to floor is gone: it counts as
// acknowledged. The lists are shared with s as far as they stay.
func (s CursorState) Raised(floor Position) CursorState {
	if !s.MarkDelete.Less(floor) {
		return s
	}
	s.MarkDelete = floor
	for len(s.Holes) > 0 && !floor.Less(Position{s.Holes[0].Ledger, s.Holes[0].Last}) {
		s.Holes = s.Holes[1:]
	}
	for len(s.Rests) > 0 && !floor.Less(s.Rests[0].Position) {
		s.Rests = s.Rests[1:]
	}
	for len(s.Counts) > 0 && !floor.Less(s.Counts[0].Position) {
		s.Counts = s.Counts[1:]
	}
	return s
}

// Run is a piece of one ledger, entries First to Last.
type Run struct{ Ledger, First, Last int64 }

// BatchRest tells which messages of a batch are still unacknowledged.
type BatchRest struct {
	Position Position
	Words    []uint64 // bit i set: message i is unacknowledged; least significant first
}

// RedeliveryCount is how often an entry was given back by a negative acknowledgement.
type RedeliveryCount struct {
	Position Position
	Count    uint32
}

// TopicRecord is what is known of every topic without opening it, at most 500 bytes
// of memory. The store keeps it with each commit.
type TopicRecord struct {
	Name          TopicName
	BirthID       string
	End           Position // last entry, or one before the first of an empty ledger
	Entries       int64    // stored now
	Bytes         int64    // stored now, data only
	LiveBytes     int64    // of these, not acknowledged by the slowest cursor
	NextIndex     uint64   // ordinal of the next message
	Subscriptions int
	Slowest       Position // mark-delete of the slowest cursor; End when there is none
	LastAppend    int64    // wall clock of the last commit to it, ms since 1970
	NextDue       int64    // when housekeeping has something to do, ms since 1970, 0 for nothing
}

// StoreStats describes the store as a whole.
type StoreStats struct {
	LiveBytes   int64 // what the quota counts
	FileBytes   int64 // what the files take on disk
	Quota       int64
	FileLimit   int64
	Commits     int64
	Syncs       int64
	WrittenData int64    // bytes of entries committed since start
	Failed      error    // why publishes are refused, nil when all is well
	Remarks     []string // what happened to the files at opening, in plain words
}
