package edge

import "fmt"

// sequence is what deduplication knows of a producer name (protocol 3.18).
type sequence struct {
	pushed    int64 // highest handed to the ledger
	persisted int64 // highest that is durable
	chunk     chunkProgress
}

// chunkProgress is the newest chunk that was pushed and the newest that is durable.
type chunkProgress struct {
	uuid              string
	pushed, persisted int32
}

// loadSequences reads them also where the broker does not deduplicate: a single
// producer may ask for it, and then they are stored.
func (t *Topic) loadSequences() error {
	states, err := t.ledger.Sequences()
	if err != nil {
		return fmt.Errorf("read sequences: %w", err)
	}
	for name, s := range states {
		t.sequences[name] = &sequence{
			pushed: s.Highest, persisted: s.Highest,
			chunk: chunkProgress{s.ChunkUUID, s.ChunkID, s.ChunkID},
		}
	}
	return nil
}

// admit decides whether a message is new for its producer name and notes it as
// pushed. A duplicate is told by the sequence that has to be durable before it may
// be called one. Only the last chunk of a message moves the sequence; the others
// are told apart by their number.
func (s *sequence) admit(f *Facts) (duplicate bool) {
	if f.Marker != 0 {
		return false
	}
	if f.Chunk.IsChunk() && !f.Chunk.Last() {
		if f.Sequence <= s.pushed {
			return true
		}
		if s.chunk.uuid == f.Chunk.UUID {
			if f.Chunk.ID <= s.chunk.pushed {
				return true
			}
			s.chunk.pushed = f.Chunk.ID
			return false
		}
		s.chunk = chunkProgress{f.Chunk.UUID, f.Chunk.ID, -1}
		return false
	}
	if f.Sequence <= s.pushed {
		return true
	}
	s.pushed = max(f.Highest, f.Sequence)
	return false
}

// settled notes a message as durable.
func (s *sequence) settled(f *Facts) {
	if f.Marker != 0 {
		return
	}
	if f.Chunk.IsChunk() && !f.Chunk.Last() {
		if s.chunk.uuid == f.Chunk.UUID {
			s.chunk.persisted = max(s.chunk.persisted, f.Chunk.ID)
		}
		return
	}
	s.persisted = max(s.persisted, f.Highest, f.Sequence)
}

// covers reports whether what a message repeats is durable.
func (s *sequence) covers(f *Facts) bool {
	if f.Sequence <= s.persisted {
		return true
	}
	return f.Chunk.IsChunk() && !f.Chunk.Last() && s.chunk.uuid == f.Chunk.UUID && f.Chunk.ID <= s.chunk.persisted
}

// fallBack forgets what was pushed and did not become durable.
func (s *sequence) fallBack() {
	s.pushed = s.persisted
	s.chunk.pushed = s.chunk.persisted
}
