package edge

// Opener looks into entries, which the core itself never does: compaction has to know
// the key of each message, also of those in a batch. It may be called by one goroutine
// at a time.
type Opener interface {
	// Keys visits the messages of an entry in order, but those that compaction has
	// taken out before. A key is borrowed for the call. The error says that the entry
	// cannot be opened: a batch encrypted end to end, above all.
	Keys(data []byte, visit func(MessageKey)) error
	// Thin writes a batch anew in which only the messages stay that keep wants; all
	// keep their indexes.
	Thin(data []byte, keep func(index int) bool) ([]byte, error)
}

// MessageKey is what compaction knows of a message.
type MessageKey struct {
	Index int // in its batch, 0 for one that is alone
	Key   []byte
	Has   bool // it has a key
	Null  bool // it has no content: it voids its key
}
