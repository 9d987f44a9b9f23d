package edge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"
	"sync"
)

// CompactionSubscription is the subscription whose mark-delete says up to where a topic
// is compacted, as on a real Pulsar. It keeps what is not compacted yet.
const CompactionSubscription = "__compaction"

// compacted is a topic's compacted form: of everything up to its horizon the newest
// message of each key, as copies in a ledger of their own, which know where they come
// from (Facts.Origin).
//
// Why a ledger of the store under a name that no client can say, and not a bucket in the
// topic: appends, rolling, volumes, damage, quota and deletion are there already, with
// the tests that prove them, and one compaction's copies go as a whole by DeleteLedger.
// A reserved cursor at its start lets all of it count as live, so that a full store does
// not thin it out. There are two names for each topic: a compaction writes the one that
// is not in use and then says so in the plan of the subscription's cursor, in one durable
// value with the mark-delete. So a crash leaves either the old or the new form, and a
// leftover, which goes when the topic is opened next.
type compacted struct {
	topic *Topic
	state compactedState

	opening sync.Mutex // held while the ledger is opened, with no other lock

	mu      sync.Mutex
	ledger  Ledger        // nil until it is needed
	failed  error         // why it cannot be used
	pins    int           // who reads it now
	retired bool          // a newer one has taken its place: it goes with the last pin
	gone    chan struct{} // closed once a retired one is deleted, or cannot be
}

func newCompacted(t *Topic, state compactedState, l Ledger) *compacted {
	return &compacted{topic: t, state: state, ledger: l, gone: make(chan struct{})}
}

// compactedState is what the cursor's plan tells of a compacted form.
type compactedState struct {
	Side      int      `json:"side"`  // which of the two names
	Birth     string   `json:"birth"` // of its ledger
	Horizon   Position `json:"horizon"`
	Entries   int64    `json:"entries"`
	First     Position `json:"first"` // of its entries, in the topic
	Last      Position `json:"last"`
	LastIndex int      `json:"lastIndex"` // of the last message in a batch, −1 if Last is none
}

// compactedPlan goes before a state in a cursor's plan.
var compactedPlan = []byte("compacted ")

func (s *compactedState) encode() []byte {
	raw, _ := json.Marshal(s) // numbers and a text
	return append(bytes.Clone(compactedPlan), raw...)
}

func decodeCompacted(plan []byte) (s compactedState, ok bool) {
	raw, ok := bytes.CutPrefix(plan, compactedPlan)
	return s, ok && json.Unmarshal(raw, &s) == nil
}

// compactedDomain stands in the names of compacted forms. ParseTopicName knows it not.
const compactedDomain = "compacted"

// hidden reports whether a name is no topic's own.
func (t TopicName) hidden() bool { return t.Domain == compactedDomain }

// compactedName is one of the two names of a topic's compacted form.
func (t TopicName) compactedName(side int) TopicName {
	t.Domain, t.Local = compactedDomain, fmt.Sprintf("%s/%d", t.Local, side)
	return t
}

// keptAll is the cursor that lets all of a compacted form count as live.
const keptAll = "kept"

var errCompactedGone = errors.New("the compacted form is damaged or gone")

// loadCompacted finds the topic's compacted form and drops what a crash has left of others.
func (t *Topic) loadCompacted() {
	for _, s := range t.subs {
		s.loadBelow()
	}
	s := t.subs[CompactionSubscription]
	if s == nil && !t.broker.forms[t.name] {
		return
	}
	used := -1
	if s != nil {
		if state, ok := decodeCompacted(s.cursor.Plan()); ok {
			used = state.Side
			t.compacted.Store(newCompacted(t, state, nil))
		}
	}
	for side := range 2 {
		if side != used {
			t.broker.store.DeleteLedger(t.name.compactedName(side), func(error) {})
		}
	}
}

// deleteCompacted deletes what a topic that is gone had of it.
func (b *Broker) deleteCompacted(name TopicName) {
	for side := range 2 {
		b.store.DeleteLedger(name.compactedName(side), func(error) {})
	}
}

// dropOrphans deletes compacted forms whose topic is gone: a crash came between. Those
// of other topics are looked at when these are opened.
func (b *Broker) dropOrphans() {
	b.forms = map[TopicName]bool{}
	for _, r := range b.store.Records() {
		if !r.Name.hidden() {
			continue
		}
		base := r.Name
		base.Domain, base.Local = Persistent, base.Local[:max(strings.LastIndexByte(base.Local, '/'), 0)]
		if _, ok := b.known[base]; ok {
			b.forms[base] = true
		} else {
			b.store.DeleteLedger(r.Name, func(error) {})
		}
	}
}

// pin returns the ledger, which stays until unpin. It may wait for the disk.
func (c *compacted) pin() (Ledger, error) {
	c.opening.Lock()
	defer c.opening.Unlock()
	c.mu.Lock()
	l, err := c.ledger, c.failed
	if l != nil || err != nil {
		defer c.mu.Unlock()
		return c.pinLocked()
	}
	c.mu.Unlock()
	l, err = c.open()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil && !errors.Is(err, errCompactedGone) {
		return nil, err // another try may succeed
	}
	c.ledger, c.failed = l, err
	return c.pinLocked()
}

func (c *compacted) pinLocked() (Ledger, error) {
	switch {
	case c.failed != nil:
		return nil, c.failed
	case c.retired && c.pins == 0:
		return nil, ErrGone
	}
	c.pins++
	return c.ledger, nil
}

// open opens the ledger and looks whether it is the right one.
func (c *compacted) open() (Ledger, error) {
	b := c.topic.broker
	name := c.topic.name.compactedName(c.state.Side)
	l, err := b.store.OpenLedger(name, []string{keptAll})
	if err != nil {
		return nil, fmt.Errorf("open compacted form of %s: %w: %w", c.topic.name, ErrStorage, err)
	}
	entries, _, _ := l.Spans().Totals()
	if l.BirthID() == c.state.Birth && entries == c.state.Entries {
		return l, nil
	}
	b.store.DeleteLedger(name, func(error) {})
	b.opts.Logger.Error("the compacted form of a topic is damaged and is dropped; readers get what the topic itself still has",
		"topic", c.topic.name.String(), "entries", entries, "expected", c.state.Entries)
	c.topic.compacted.CompareAndSwap(c, nil)
	return nil, errCompactedGone
}

func (c *compacted) unpin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pins--
	if c.retired && c.pins == 0 {
		c.dropLocked()
	}
}

// retire deletes the form once nobody reads it any more. The next but one to be written
// takes its name and has to wait for gone.
func (c *compacted) retire() {
	c.topic.mu.Lock()
	c.topic.retiring = c
	c.topic.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.retired = true; c.pins == 0 {
		c.dropLocked()
	}
}

func (c *compacted) dropLocked() {
	c.ledger, c.failed = nil, ErrGone
	c.topic.broker.store.DeleteLedger(c.topic.name.compactedName(c.state.Side), func(err error) {
		if err != nil { // the next opening of the topic does it
			c.topic.broker.opts.Logger.Warn("an old compacted form cannot be deleted", "topic", c.topic.name.String(), "error", err)
		}
		close(c.gone)
	})
}

// bytes is what the form takes, 0 as long as nobody has used it.
func (c *compacted) bytes() (n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ledger != nil {
		_, _, n = c.ledger.Spans().Totals()
	}
	return n
}

// close closes the ledger. Nobody reads it any more.
func (c *compacted) close(done func(error)) {
	c.mu.Lock()
	l := c.ledger
	if c.ledger = nil; c.failed == nil {
		c.failed = ErrUnloaded
	}
	c.mu.Unlock()
	if l == nil {
		done(nil)
		return
	}
	l.Close(done)
}

// compactedPlace is where a reader goes on in a compacted form, so that it need not
// look for its place each time.
type compactedPlace struct {
	form *compacted
	from Position // in the topic
	at   Position // of the first copy that is not before it
}

// read returns copies from a position of the topic on, under their own positions and
// indexes. Everything up to passed is in them or was compacted away. It reads.
func (c *compacted) read(from Position, place *compactedPlace, maxEntries, maxBytes int) (list []Entry, passed Position, err error) {
	l, err := c.pin()
	if err != nil {
		return nil, Position{}, err
	}
	defer c.unpin()
	at := place.at
	if place.form != c || place.from != from {
		if at, err = firstCopy(l, from); err != nil {
			return nil, Position{}, err
		}
	}
	end := l.Spans().End()
	for !end.Less(at) {
		b, err := l.Read([]Range{{at, end}}, maxEntries, maxBytes)
		if err != nil {
			return nil, Position{}, err
		}
		at = behind(&b, end)
		c.noteLost(&b)
		if list = originals(b.Entries, from); len(list) > 0 {
			break
		}
	}
	passed = c.state.Horizon
	if len(list) > 0 && !end.Less(at) {
		passed = list[len(list)-1].Position
	}
	*place = compactedPlace{c, passed.Next(), at}
	return list, passed, nil
}

// behind is where reading goes on behind a batch: past the end if it brought nothing.
func behind(b *Batch, end Position) Position {
	switch e, l := len(b.Entries), len(b.Lost); {
	case e > 0:
		return b.Entries[e-1].Position.Next()
	case l > 0:
		return b.Lost[l-1].Last.Next()
	}
	return end.Next()
}

// noteLost counts copies that are damaged. Nobody gets them.
func (c *compacted) noteLost(b *Batch) {
	if len(b.Lost) == 0 {
		return
	}
	c.topic.counts.lost.Add(int64(len(b.Lost)))
	c.topic.broker.counts.lost.Add(int64(len(b.Lost)))
	c.topic.broker.opts.Logger.Warn("entries of a compacted form are damaged and are skipped", "topic", c.topic.name.String())
}

// originals gives copies the place that they have in the topic, and drops those before from.
func originals(list []Entry, from Position) []Entry {
	kept := list[:0]
	for _, e := range list {
		if o := e.Facts.Origin; o != nil && !o.Position.Less(from) {
			e.Position, e.Index, e.Facts.Origin = o.Position, o.Index, nil
			kept = append(kept, e)
		}
	}
	return kept
}

// firstCopy finds the first copy of an entry at or behind a position. One that cannot be
// read counts as behind it, so that none is passed over.
func firstCopy(l Ledger, from Position) (Position, error) {
	spans := l.Spans()
	n, _, _ := spans.Totals()
	start := spans.Start().Next()
	var failed error
	i := sort.Search(int(n), func(i int) bool {
		p, ok := spans.nth(start, int64(i)+1)
		found := true
		if ok && failed == nil {
			failed = l.Scan(Range{p, p}, func(_ Position, f Facts) bool {
				found = f.Origin == nil || !f.Origin.Position.Less(from)
				return false
			})
		}
		return found
	})
	if failed != nil {
		return Position{}, failed
	}
	p, ok := spans.nth(start, int64(i)+1)
	if !ok {
		return spans.End().Next(), nil
	}
	return p, nil
}

// find is the first entry of the compacted form that was published at a time or later.
func (c *compacted) find(ms int64) (at Position, ok bool, err error) {
	l, err := c.pin()
	if err != nil {
		return Position{}, false, err
	}
	defer c.unpin()
	p, ok, err := l.Find(l.Spans().Start(), ms)
	if err != nil || !ok {
		return Position{}, false, err
	}
	ok = false
	err = l.Scan(Range{p, p}, func(_ Position, f Facts) bool {
		if f.Origin != nil {
			at, ok = f.Origin.Position, true
		}
		return false
	})
	return at, ok, err
}
