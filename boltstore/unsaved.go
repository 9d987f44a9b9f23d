package boltstore

import (
	"cmp"
	"maps"
	"slices"
	"sort"
	"strings"

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

// over changes states that were read from the main file.
func (u *unsaved) over(states map[string]edge.SequenceState, uptime int64) {
	if u.forgotten {
		clear(states)
	}
	for name := range u.dropped {
		delete(states, name)
	}
	for name, q := range u.sequences {
		if old, ok := states[name]; ok {
			q.Highest = max(q.Highest, old.Highest)
		}
		q.Idle = max(0, uptime-q.used)
		states[name] = q.SequenceState
	}
	evict(states)
}

// evict forgets names beyond the bound as saving will.
func evict(states map[string]edge.SequenceState) {
	if len(states) <= edge.MaxSequences {
		return
	}
	names := slices.Collect(maps.Keys(states))
	sort.Slice(names, func(i, j int) bool {
		a, b := states[names[i]], states[names[j]]
		return cmp.Or(cmp.Compare(b2i(b.Generated), b2i(a.Generated)), cmp.Compare(b.Idle, a.Idle), strings.Compare(names[i], names[j])) < 0
	})
	for _, name := range names[:len(names)-edge.MaxSequences+evictSequences] {
		delete(states, name)
	}
}
