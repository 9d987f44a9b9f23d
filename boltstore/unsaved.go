package boltstore

import (
	"maps"

	"wayside/edge"
)

// unsaved is what the main file does not know of a topic yet, but for its chunks. The
// committer changes it under Store.topicsMu.
type unsaved struct {
	cursors   map[string][]byte // states, nil for those that were deleted
	closed    []place
	sequences map[string]storedSequence
	forgotten bool // what the main file has of sequences does not count
	dropped   map[string]bool
}

func (s *Store) unsavedOf(t *topic) *unsaved {
	u := s.unsaved[t]
	if u == nil {
		u = &unsaved{}
		s.unsaved[t] = u
	}
	return u
}

func (u *unsaved) cursor(name string, value []byte) {
	if u.cursors == nil {
		u.cursors = map[string][]byte{}
	}
	u.cursors[name] = value
}

// note counts an entry for its producer's sequence.
func (u *unsaved) note(f *edge.Facts, generated bool, uptime int64) {
	if u.sequences == nil {
		u.sequences = map[string]storedSequence{}
	}
	q, ok := u.sequences[f.Producer]
	if !ok {
		q.Highest = -1
	}
	q.SequenceState = q.Advance(f)
	q.Generated, q.used = generated, uptime
	u.sequences[f.Producer] = q
}

func (u *unsaved) forget(names []string) {
	if names == nil {
		u.sequences, u.dropped, u.forgotten = nil, nil, true
		return
	}
	for _, name := range names {
		delete(u.sequences, name)
		if u.dropped == nil {
			u.dropped = map[string]bool{}
		}
		u.dropped[name] = true
	}
}

// unsavedCursors copies the states that the main file does not know. Any goroutine may
// call it.
func (s *Store) unsavedCursors(t *topic) map[string][]byte {
	s.topicsMu.RLock()
	defer s.topicsMu.RUnlock()
	if u := s.unsaved[t]; u != nil {
		return maps.Clone(u.cursors)
	}
	return nil
}

// unsavedSequences copies what the main file does not know of sequences. Any goroutine
// may call it.
func (s *Store) unsavedSequences(t *topic) unsaved {
	s.topicsMu.RLock()
	defer s.topicsMu.RUnlock()
	if u := s.unsaved[t]; u != nil {
		return unsaved{sequences: maps.Clone(u.sequences), dropped: maps.Clone(u.dropped), forgotten: u.forgotten}
	}
	return unsaved{}
}

// over changes what was read from the main file.
func (u *unsaved) over(stored map[string]storedSequence) {
	if u.forgotten {
		clear(stored)
	}
	for name := range u.dropped {
		delete(stored, name)
	}
	for name, q := range u.sequences {
		if old, ok := stored[name]; ok {
			q.Highest = max(q.Highest, old.Highest)
		}
		stored[name] = q
	}
	if len(stored) <= edge.MaxSequences {
		return
	}
	all := make([]namedSequence, 0, len(stored))
	for name, q := range stored {
		all = append(all, namedSequence{name, q})
	}
	for _, q := range forgettable(all) {
		delete(stored, q.name)
	}
}
