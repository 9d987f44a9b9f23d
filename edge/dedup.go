package edge

import (
	"cmp"
	"fmt"
	"sort"
)

// sequence is what deduplication knows of a producer name (protocol 3.18).
type sequence struct {
	pushed    int64 // highest handed to the ledger
	persisted int64 // highest that is durable
	chunk     chunkProgress
	generated bool  // the broker made the name up
	users     int   // producers that have it
	used      int64 // when the last one came, in the order of coming; below zero before the load
}

// let goes with a producer that has the name.
func (s *sequence) let() { s.users-- }

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
			chunk:     chunkProgress{s.ChunkUUID, s.ChunkID, s.ChunkID},
			generated: s.Generated, used: -s.Idle - 1,
		}
	}
	return nil
}

// generated reports whether the broker made the producer's name up, now or before it
// came back.
func (p *Producer) generated() bool { return p.opts.Name == "" || !p.opts.UserProvided }

// useSequenceLocked lets a producer's sequences be looked at where deduplication is on.
// Where it is not, what was known of the name holds no longer: what it publishes now
// may count from the start.
func (t *Topic) useSequenceLocked(p *Producer) {
	if !t.deduplicates() && !p.opts.Deduplicate || !t.name.IsPersistent() {
		if t.sequences[p.name] != nil {
			t.dropSequencesLocked([]string{p.name})
		}
		return
	}
	t.takeSequenceLocked(p)
	p.last = p.seq.pushed
}

// takeSequenceLocked lets what the producer publishes from now on count.
func (t *Topic) takeSequenceLocked(p *Producer) {
	s := t.sequences[p.name]
	if s == nil {
		if len(t.sequences) >= MaxSequences {
			t.forgetSequencesLocked()
		}
		s = &sequence{pushed: -1, persisted: -1}
		t.sequences[p.name] = s
	}
	t.comings++
	s.generated, s.used = p.generated(), t.comings
	s.users++
	p.seq = s
}

// adoptDeduplication lets a rule that was changed hold for the producers that are there.
// What they published before it was switched on is not known.
func (t *Topic) adoptDeduplication() {
	t.mu.Lock()
	defer t.mu.Unlock()
	on := t.deduplicates() && t.name.IsPersistent()
	for _, p := range t.allProducersLocked() {
		switch {
		case on && p.seq == nil:
			t.takeSequenceLocked(p)
		case !on && p.seq != nil && !p.opts.Deduplicate:
			p.seq.let()
			p.seq = nil
		}
	}
}

// deduplicates reports whether sequences count on this topic, whoever publishes.
func (t *Topic) deduplicates() bool {
	if rule := t.policies.Load().Deduplication; rule != nil {
		return *rule
	}
	return t.broker.opts.Deduplication
}

// forgetAtOnce is how many names are forgotten together, so that a producer more than
// there may be does not have all of them looked through each time.
const forgetAtOnce = MaxSequences / 100

// forgetSequencesLocked drops names that nobody uses now: first those that were made
// up, then those that were used longest ago.
func (t *Topic) forgetSequencesLocked() {
	type named struct {
		name string
		*sequence
	}
	var idle []named
	for name, s := range t.sequences {
		if s.users == 0 {
			idle = append(idle, named{name, s})
		}
	}
	sort.Slice(idle, func(i, j int) bool { return idle[i].compare(idle[j].sequence) < 0 })
	var names []string
	for _, s := range idle[:min(len(idle), forgetAtOnce)] {
		names = append(names, s.name)
	}
	t.dropSequencesLocked(names)
}

// compare orders names by how soon they are to be forgotten.
func (s *sequence) compare(o *sequence) int {
	switch {
	case s.generated && !o.generated:
		return -1
	case o.generated && !s.generated:
		return 1
	}
	return cmp.Compare(s.used, o.used)
}

func (t *Topic) dropSequencesLocked(names []string) {
	if len(names) == 0 {
		return
	}
	for _, name := range names {
		delete(t.sequences, name)
	}
	t.ledger.DropSequences(names, func(error) {})
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

// goesBeyond reports whether a duplicate is a batch that does not end with what is known.
func (s *sequence) goesBeyond(f *Facts) bool { return !f.Chunk.IsChunk() && f.Highest > s.pushed }

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
