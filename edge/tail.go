package edge

import "sync"

// tails keeps the newest entries of topics that somebody waits on, so that they are
// handed out as the publisher's own bytes instead of being read back, once for every
// subscription. It lives on ShareTail: what is oldest, of whatever topic, makes room.
type tails struct {
	budget  *Budget
	largest int64 // entry that is kept, with its overhead

	mu     sync.Mutex
	topics map[*Topic]*tail
	line   []kept // in the order of arrival, from head on
	head   int
	looked int // entries that were in line at the last age, and are still
}

// tail is one topic's newest entries: consecutive ones of one ledger.
type tail struct{ entries []Entry }

// kept is one entry's place in the line of all.
type kept struct {
	topic    *Topic
	position Position
	grant    Grant
}

// tailOverhead is what an entry takes in the tail beside its data.
const tailOverhead = 768

// maxTailEntry is the part of the share that one entry may take: a larger one is read
// back.
const maxTailEntry = 4

func newTails(b *Budget) *tails {
	_, limit := b.Usage(ShareTail)
	return &tails{budget: b, largest: limit / maxTailEntry, topics: map[*Topic]*tail{}}
}

// keep takes the newest entry of a topic. It runs on the store's goroutine.
func (ts *tails) keep(t *Topic, e *Entry) {
	size := int64(len(e.Data)) + tailOverhead
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if size > ts.largest {
		ts.forgetLocked(t)
		return
	}
	grant, ok := ts.budget.TryTake(ShareTail, size)
	for !ok && ts.dropOldest() {
		grant, ok = ts.budget.TryTake(ShareTail, size)
	}
	if !ok {
		ts.forgetLocked(t)
		return
	}
	l := ts.topics[t]
	if l == nil {
		l = &tail{}
		ts.topics[t] = l
	}
	if n := len(l.entries); n > 0 && l.entries[n-1].Position.Next() != e.Position {
		clear(l.entries)
		l.entries = l.entries[:0]
	}
	l.entries = append(l.entries, *e)
	ts.line = append(ts.line, kept{t, e.Position, grant})
}

// dropOldest lets the oldest entry go, and returns false if there is none.
func (ts *tails) dropOldest() bool {
	if ts.head == len(ts.line) {
		return false
	}
	k := ts.line[ts.head]
	ts.line[ts.head] = kept{}
	ts.head++
	ts.looked = max(0, ts.looked-1)
	if ts.head > len(ts.line)/2 { // the line is moved up at the price of a step for each entry
		ts.line = ts.line[:copy(ts.line, ts.line[ts.head:])]
		ts.head = 0
	}
	k.grant.Release()
	if l := ts.topics[k.topic]; l != nil && l.entries[0].Position == k.position {
		l.entries[0] = Entry{}
		if l.entries = l.entries[1:]; len(l.entries) == 0 {
			delete(ts.topics, k.topic)
		}
	}
	return true
}

// age lets go what was there at the last call already: whoever waited has it by now.
func (ts *tails) age() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for ts.looked > 0 {
		ts.dropOldest()
	}
	ts.looked = len(ts.line) - ts.head
}

// drop lets everything go.
func (ts *tails) drop() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for ts.dropOldest() {
	}
}

// forget lets a topic's entries go.
func (ts *tails) forget(t *Topic) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.forgetLocked(t)
}

func (ts *tails) forgetLocked(t *Topic) { delete(ts.topics, t) }

// read is Ledger.Read of what is kept, appended to list, which is empty. It returns false
// if the first entry that is wanted is not kept, and ends early where a further one is not.
func (ts *tails) read(list []Entry, t *Topic, want []Range, maxEntries, maxBytes int) (_ []Entry, bytes int64, ok bool) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	l := ts.topics[t]
	if l == nil {
		return list, 0, false
	}
	for _, w := range want {
		for p := w.First; !w.Last.Less(p); p = p.Next() {
			e := l.at(p)
			if e == nil || len(list) == maxEntries || len(list) > 0 && bytes >= int64(maxBytes) {
				return list, bytes, len(list) > 0
			}
			if cap(list) == 0 {
				list = make([]Entry, 0, max(4, l.expect(want, maxEntries)))
			}
			list = append(list, *e)
			bytes += int64(len(e.Data))
		}
	}
	return list, bytes, len(list) > 0
}

// at is the entry at a position, nil if it is not kept.
func (l *tail) at(p Position) *Entry {
	first := l.entries[0].Position
	if i := p.Entry - first.Entry; p.Ledger == first.Ledger && i >= 0 && i < int64(len(l.entries)) {
		return &l.entries[i]
	}
	return nil
}

// expect is how many entries a read may find at most.
func (l *tail) expect(want []Range, maxEntries int) int {
	newest := l.entries[len(l.entries)-1].Position
	n := int64(0)
	for _, w := range want {
		n += max(0, min(newest.Entry, w.Last.Entry)-w.First.Entry+1)
	}
	return int(min(n, int64(maxEntries), int64(len(l.entries))))
}
