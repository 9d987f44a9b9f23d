package edgetest

import (
	"fmt"
	"iter"
	"sync"

	"wayside/edge"
)

// memTopic is what a MemStore keeps of a topic.
type memTopic struct {
	name       edge.TopicName
	birth      string
	chain      []*memSpan // ledgers in order, the open one last
	floor      edge.Position
	damaged    map[edge.Position]bool
	cursors    map[string]edge.CursorState
	sequences  map[string]edge.SequenceState
	properties []byte
	lastAppend int64
}

// memSpan is one ledger with its entries from First on.
type memSpan struct {
	edge.Span
	entries []edge.Entry
}

func (d *memDisk) create(name edge.TopicName, reserved []string) *memTopic {
	d.births++
	t := &memTopic{
		name:      name,
		birth:     fmt.Sprintf("birth-%d", d.births),
		damaged:   map[edge.Position]bool{},
		cursors:   map[string]edge.CursorState{},
		sequences: map[string]edge.SequenceState{},
	}
	t.chain = []*memSpan{d.span()}
	for _, cursor := range reserved {
		t.cursors[cursor] = edge.CursorState{MarkDelete: t.spans().Start()}
	}
	d.topics[name] = t
	return t
}

func (d *memDisk) span() *memSpan {
	d.nextLedger++
	return &memSpan{Span: edge.Span{Ledger: d.nextLedger - 1, Last: -1}}
}

func (t *memTopic) open() *memSpan { return t.chain[len(t.chain)-1] }

func (t *memTopic) append(m edge.Message, d *memDisk) edge.Entry {
	if t.open().Entries() >= d.rollAfter {
		t.roll(d)
	}
	s := t.open()
	e := edge.Entry{
		Position: s.End().Next(),
		Index:    uint64(s.MessagesBefore + s.Messages),
		Facts:    m.Facts,
		Data:     m.Data,
	}
	s.entries = append(s.entries, e)
	s.Last++
	s.Messages += int64(m.Facts.Messages)
	s.Bytes += int64(len(m.Data))
	s.LastTime = m.Facts.Publish
	t.lastAppend = m.Facts.Receive
	if m.Sequenced && m.Facts.Producer != "" {
		t.sequence(&m)
	}
	return e
}

func (t *memTopic) sequence(m *edge.Message) {
	state, ok := t.sequences[m.Facts.Producer]
	if !ok {
		state.Highest = -1
	}
	state = state.Advance(&m.Facts)
	state.Generated = m.Generated
	t.sequences[m.Facts.Producer] = state
	for len(t.sequences) > edge.MaxSequences {
		t.forgetSequence(m.Facts.Producer)
	}
}

// forgetSequence forgets one name beside the given one, a generated one if there is any.
func (t *memTopic) forgetSequence(but string) {
	var victim string
	for name, s := range t.sequences {
		if name != but && (victim == "" || s.Generated) {
			victim = name
		}
		if name != but && s.Generated {
			break
		}
	}
	delete(t.sequences, victim)
}

func (t *memTopic) roll(d *memDisk) {
	old := t.open()
	if old.Entries() == 0 {
		return
	}
	s := d.span()
	s.EntriesBefore = old.EntriesBefore + old.Entries()
	s.MessagesBefore = old.MessagesBefore + old.Messages
	s.BytesBefore = old.BytesBefore + old.Bytes
	t.chain = append(t.chain, s)
}

func (t *memTopic) trim(before edge.Position) {
	for len(t.chain) > 1 && t.chain[0].End().Less(before) {
		t.floor = t.chain[0].End()
		t.chain = t.chain[1:]
	}
}

func (t *memTopic) spans() edge.Spans {
	var s edge.Spans
	for _, closed := range t.chain[:len(t.chain)-1] {
		s.Closed = append(s.Closed, closed.Span)
	}
	s.Open = t.open().Span
	return s
}

func (t *memTopic) entry(p edge.Position) (edge.Entry, bool) {
	for _, s := range t.chain {
		if s.Ledger == p.Ledger && p.Entry >= 0 && p.Entry <= s.Last && !t.damaged[p] {
			return s.entries[p.Entry], true
		}
	}
	return edge.Entry{}, false
}

// walk yields the stored positions of a range. What is gone is added to lost, if
// that is not nil.
func (t *memTopic) walk(r edge.Range, lost *[]edge.Range) iter.Seq[edge.Position] {
	spans := t.spans()
	if lost != nil {
		*lost = append(*lost, t.gone(spans, r)...)
	}
	return func(yield func(edge.Position) bool) {
		p, ok := spans.AtOrAfter(r.First)
		for ok && r.Contains(p) && yield(p) {
			p, ok = spans.After(p)
		}
	}
}

// gone names the part of a range that was trimmed away, and a range inside one
// ledger that is not there, or beyond its end.
func (t *memTopic) gone(spans edge.Spans, r edge.Range) []edge.Range {
	if !r.First.Less(spans.Open.Start()) || r.Empty() || r.First.Ledger < 1 {
		return nil
	}
	if r.First.Ledger == r.Last.Ledger {
		for i := range spans.Closed {
			if span := spans.Closed[i]; span.Ledger == r.First.Ledger {
				r.First.Entry = max(r.First.Entry, span.Last+1)
				return nonEmpty(r)
			}
		}
		return nonEmpty(r)
	}
	r.Last = edge.Min(r.Last, t.floor)
	return nonEmpty(r)
}

func nonEmpty(r edge.Range) []edge.Range {
	if r.Empty() {
		return nil
	}
	return []edge.Range{r}
}

// addLost joins a lost position with the range before it, if it follows on.
func addLost(lost []edge.Range, r edge.Range) []edge.Range {
	if n := len(lost); n > 0 && lost[n-1].Last.Next() == r.First {
		lost[n-1].Last = r.Last
		return lost
	}
	return append(lost, r)
}

// saveCursor sets a cursor's state under the store's lock.
func (t *memTopic) saveCursor(mu *sync.Mutex, name string, state edge.CursorState) {
	mu.Lock()
	defer mu.Unlock()
	t.cursors[name] = state
}

func (t *memTopic) record() edge.TopicRecord {
	spans := t.spans()
	entries, _, bytes := spans.Totals()
	r := edge.TopicRecord{
		Name:          t.name,
		BirthID:       t.birth,
		End:           spans.End(),
		Entries:       entries,
		Bytes:         bytes,
		NextIndex:     uint64(spans.Open.MessagesBefore + spans.Open.Messages),
		Subscriptions: len(t.cursors),
		Slowest:       spans.End(),
		LastAppend:    t.lastAppend,
	}
	for _, c := range t.cursors {
		r.Slowest = edge.Min(r.Slowest, c.MarkDelete)
	}
	r.LiveBytes = spans.BytesBetween(r.Slowest, spans.End())
	return r
}
