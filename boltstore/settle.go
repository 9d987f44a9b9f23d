package boltstore

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"wayside/boltstore/journal"
	"wayside/edge"
)

// What the journal holds is brought into the files in two ways, both in steps between
// commits. Saving writes what a start would have to find out again: cursors, sequences,
// ledgers and records; it is due when much of that is new, and before a segment can go.
// Filing moves chunks from the oldest segment into the main file, when the journal has
// reached its size; those of ledgers that were trimmed meanwhile never touch it.
const (
	saveBytes  = 8 << 20 // of journal between two savings
	saveAfter  = time.Minute
	saveTopics = 128       // in one transaction
	maxUnsaved = 4096      // topics
	fileBytes  = 512 << 10 // moved in one transaction
	fileTopics = 64        // in one transaction
	maxLoose   = 48 << 10
	// mergedBytes is where chunks that are put together end, wholeBytes where one is not
	// put together with others.
	mergedBytes = 256 << 10
	wholeBytes  = 16 << 10
)

// noFile is the place of a ledger none of whose entries are in a file.
const noFile = 0

// metaSettled is the commit up to which the main file knows all but chunks.
var metaSettled = []byte("settled")

// firstFile is where a new ledger lies.
func (s *Store) firstFile() uint64 {
	if s.log != nil {
		return noFile
	}
	return s.main.number
}

// saving is one under way.
type saving struct {
	upTo   uint64
	topics []*topic
}

// noteCommit counts what a commit brought to the journal.
func (s *Store) noteCommit(at journal.Place, number uint64, bytes int) {
	if s.fresh == 0 {
		s.since = time.Now()
	}
	s.fresh += int64(bytes)
	s.ends[at.Segment] = number
}

// forgetTopic is dropTopic for who holds topicsMu.
func (s *Store) forgetTopic(t *topic) {
	delete(s.unsaved, t)
	s.tighten(t, len(t.loose))
}

// saveDue reports whether it is time to save.
func (s *Store) saveDue() bool {
	return s.fresh >= saveBytes || s.fresh > 0 && time.Since(s.since) >= saveAfter || len(s.unsaved) >= maxUnsaved
}

// saveIn is how long it is until then, negative for ever. After a failure of the store it
// comes with the repair.
func (s *Store) saveIn() time.Duration {
	if s.log == nil || s.fresh == 0 || s.failure() != nil {
		return -1
	}
	return max(0, saveAfter-time.Since(s.since), time.Until(s.pause))
}

// saveStep saves some topics. The step after the last of them notes how far the main
// file knows everything.
func (s *Store) saveStep() error {
	if s.saving == nil {
		s.saving = &saving{upTo: s.log.Next() - 1}
		for t := range s.unsaved {
			s.saving.topics = append(s.saving.topics, t)
		}
		s.fresh = 0
	}
	v := s.saving
	n := min(len(v.topics), saveTopics)
	batch := v.topics[:n]
	last := n == len(v.topics)
	s.makeTail(int64(n) * cursorBytes)
	err := s.sparing(func(g *group, at **topic) error {
		for _, *at = range batch {
			if err := g.save(*at); err != nil {
				return err
			}
		}
		*at = nil
		if !last {
			return nil
		}
		g.changed = true
		return putNumber(g.tx.Bucket(bucketMeta), metaSettled, int64(v.upTo))
	})
	if err != nil {
		s.saving = nil
		s.fresh = max(s.fresh, 1)
		return fmt.Errorf("save state of topics: %w", err)
	}
	v.topics = v.topics[n:]
	if last {
		s.settled, s.saving = v.upTo, nil
	}
	return nil
}

// save brings a topic's record up to date, and all that saveTopic does.
func (g *group) save(t *topic) error {
	if g.store.topics[t.name] != t {
		return nil
	}
	if t.bad != nil {
		g.store.dropTopic(t)
		return nil
	}
	w, err := g.touchAny(t)
	if err == nil && t.led == nil { // nobody has counted its cursors
		w.marks, w.marked = w.led.marks, true
	}
	return err
}

// sparing makes a transaction on several topics. One whose pages are damaged, at says
// which is worked on, is given up, and it is tried again without that one.
func (s *Store) sparing(apply func(g *group, at **topic) error) error {
	for {
		var at *topic
		err := s.change(func(g *group) error { return apply(g, &at) })
		if at == nil || !errors.Is(err, errDamaged) {
			return err
		}
		s.giveUp(at, err)
	}
}

// giveUp lets a topic take no changes until the next start has looked at the file. What
// the journal has of it would keep segments from being used again, and is dropped.
func (s *Store) giveUp(t *topic, cause error) {
	t.bad = fmt.Errorf("%w: topic %s: %w", edge.ErrStorage, t.name, cause)
	s.logger().Error("topic is damaged, it takes no changes, and what was new of it is lost",
		"topic", t.name.String(), "chunks", len(t.loose), "error", cause)
	s.dropTopic(t)
}

// dropTopic drops what the journal has of a topic.
func (s *Store) dropTopic(t *topic) {
	s.topicsMu.Lock()
	defer s.topicsMu.Unlock()
	s.forgetTopic(t)
}

// saveTopic writes what the main file does not know of a topic, but for its record and
// its chunks, into a transaction.
func (g *group) saveTopic(t *topic) error {
	s := g.store
	u := s.unsaved[t]
	if u == nil || g.saved[t] {
		return nil
	}
	b, err := g.bucket(t)
	if err != nil {
		return err
	}
	w := g.touch(t)
	for i := range u.closed {
		p := &u.closed[i]
		if !w.rec.floor.Less(p.span.End()) {
			continue // trimmed
		}
		if err := b.Put(placeKey(p.span.Ledger), p.encode()); err != nil {
			return err
		}
	}
	if err := g.saveCursors(t, u); err != nil {
		return err
	}
	if g.saved == nil {
		g.saved = map[*topic]bool{}
	}
	g.saved[t] = true
	if err := g.saveSequences(w, u); err != nil {
		return err
	}
	g.after = append(g.after, func() {
		s.topicsMu.Lock()
		defer s.topicsMu.Unlock()
		delete(s.unsaved, t)
	})
	return nil
}

func (g *group) saveCursors(t *topic, u *unsaved) error {
	b, err := g.sub(t, bucketCursors)
	if err != nil {
		return err
	}
	for name, value := range u.cursors {
		if err := deleteCursor(b, name); err != nil {
			return fmt.Errorf("cursor %q of %s: %w", name, t.name, err)
		}
		if value == nil {
			continue
		}
		if err := b.Put(cursorKey(prefixCursor, name), value); err != nil {
			return fmt.Errorf("cursor %q of %s: %w", name, t.name, err)
		}
	}
	return nil
}

func (g *group) saveSequences(w *touch, u *unsaved) error {
	if !u.forgotten && len(u.dropped)+len(u.sequences) == 0 {
		return nil
	}
	topic, err := g.bucket(w.topic)
	if err != nil {
		return err
	}
	if u.forgotten && topic.Bucket(bucketSequences) != nil {
		if err := topic.DeleteBucket(bucketSequences); err != nil {
			return err
		}
		w.rec.sequences = 0
	}
	b, err := g.sub(w.topic, bucketSequences)
	if err != nil {
		return err
	}
	for name := range u.dropped {
		if b.Get([]byte(name)) == nil {
			continue
		}
		w.rec.sequences--
		if err := b.Delete([]byte(name)); err != nil {
			return err
		}
	}
	for name, q := range u.sequences {
		if v := b.Get([]byte(name)); v == nil {
			w.rec.sequences++
		} else if old, err := decodeSequence(v); err == nil {
			q.Highest = max(q.Highest, old.Highest)
		}
		if err := b.Put([]byte(name), q.encode()); err != nil {
			return fmt.Errorf("sequence of %s: %w", w.topic.name, err)
		}
	}
	if w.rec.sequences > edge.MaxSequences {
		return g.evictSequences(w, b)
	}
	return nil
}

// fileDue reports whether chunks have to leave the journal.
func (s *Store) fileDue() bool {
	return s.log.Used() > s.opts.JournalBytes || s.loose > maxLoose
}

// fileStep files some of the oldest segment's chunks, or gives the segment back when
// none are left. It reports whether there was something to do.
func (s *Store) fileStep() (bool, error) {
	segments := s.log.Segments()
	if len(segments) < 2 {
		return false, nil
	}
	oldest := segments[0]
	if end, ok := s.ends[oldest]; ok && end > s.settled {
		return true, s.saveStep()
	}
	var batch []*topic
	for t := range s.loosened {
		if t.loose[0].segment <= oldest {
			if batch = append(batch, t); len(batch) == fileTopics {
				break
			}
		}
	}
	if len(batch) == 0 {
		delete(s.ends, oldest)
		return true, s.log.Release(oldest + 1)
	}
	return true, s.file(batch, oldest)
}

// file moves chunks of some topics that lie in segments up to one into the main file.
func (s *Store) file(batch []*topic, upTo uint64) error {
	var moves []filing
	bytes := 0
	s.clearFiling()
	for _, t := range batch {
		f, err := s.readLoose(t, fileBytes-bytes, func(c *looseChunk) bool { return c.segment <= upTo })
		if err != nil {
			return err
		}
		moves = append(moves, f)
		if bytes += f.bytes; bytes >= fileBytes {
			break
		}
	}
	if err := s.turnOverIfDue(int64(bytes)); err != nil || s.turning {
		return err
	}
	return s.fileThese(moves, bytes)
}

func (s *Store) fileThese(moves []filing, bytes int) error {
	if err := s.makeRoom(int64(bytes), int64(len(moves))); err != nil {
		return err
	}
	err := s.sparing(func(g *group, at **topic) error {
		for i := range moves {
			if *at = moves[i].t; (*at).bad != nil {
				continue
			}
			if err := g.file(&moves[i]); err != nil {
				return err
			}
		}
		*at = nil
		return nil
	})
	if err != nil {
		return fmt.Errorf("move entries from the journal: %w", err)
	}
	return nil
}

// clearFiling frees the values of the last transaction for use by the next.
func (s *Store) clearFiling() {
	if s.filing = s.filing[:0]; cap(s.filing) == 0 {
		s.filing = make([]byte, 0, fileBytes+fileBytes/8)
	}
}

// filing is what of one topic is moved.
type filing struct {
	t      *topic
	n      int // loose chunks that it stands for
	chunks []filedChunk
	bytes  int
	last   edge.Position
}

type filedChunk struct {
	ledger int64
	storedChunk
}

// readLoose reads the first loose chunks of a topic that are wanted, about so many bytes,
// and puts small ones together.
func (s *Store) readLoose(t *topic, most int, wanted func(*looseChunk) bool) (filing, error) {
	f := filing{t: t}
	m := merger{arena: s.filing}
	defer func() { s.filing = m.arena }()
	for i := range t.loose {
		c := &t.loose[i]
		if !wanted(c) || f.n > 0 && f.bytes+int(c.length) > most {
			break
		}
		f.n++
		f.bytes += int(c.length)
		f.last = c.last()
		if !t.rec.floor.Less(c.last()) {
			continue // trimmed
		}
		err := s.viewLoose(t.loose[i:i+1], c.ledger, func(src chunkSource) error {
			src.seek(c.first)
			_, value, ok := src.at()
			if !ok {
				return errSettled
			}
			opened, err := openChunk(c.ledger, c.first, value)
			if err != nil {
				return err
			}
			if c.length >= wholeBytes {
				return m.copy(&opened)
			}
			return m.add(&opened)
		})
		if errors.Is(err, errDamaged) {
			s.logger().Error("entries are damaged in the journal and lost", "topic", t.name.String(), "entry", edge.Position{Ledger: c.ledger, Entry: c.first}.String(), "count", c.count)
			continue
		}
		if err != nil {
			return f, err
		}
	}
	f.chunks = m.end()
	return f, nil
}

// merger puts chunks that follow each other together.
type merger struct {
	out     []filedChunk
	arena   []byte // values; what does not fit gets memory of its own
	entries []edge.Entry
	bytes   int
	names   interned
}

func (m *merger) add(c *chunk) error {
	walk := c.at(c.first)
	for walk.more() {
		f, ok := walk.read()
		if !ok {
			continue
		}
		e, err := c.open(f, &m.names)
		if err != nil {
			continue
		}
		if n := len(m.entries); n > 0 && (m.entries[n-1].Position.Next() != e.Position || m.entries[n-1].LastIndex()+1 != e.Index || m.bytes >= mergedBytes) {
			m.flush()
		}
		m.entries = append(m.entries, e)
		m.bytes += len(e.Data) + frameOverhead
	}
	return nil
}

// copy takes a chunk as it is. What in it is rotten stays so: readers see it.
func (m *merger) copy(c *chunk) error {
	m.flush()
	value := m.room(c.value.size())
	err := c.value.(*looseValue).readAll(value)
	if err == nil {
		m.out = append(m.out, filedChunk{c.ledger, storedChunk{c.first, c.last(), value}})
	}
	return err
}

// room is memory for a value: of the arena, unless that is used up.
func (m *merger) room(n int) []byte {
	start := len(m.arena)
	if start+n > cap(m.arena) {
		return make([]byte, n)
	}
	m.arena = m.arena[:start+n]
	return m.arena[start : start+n : start+n]
}

func (m *merger) flush() {
	if len(m.entries) == 0 {
		return
	}
	first := &m.entries[0]
	start := len(m.arena)
	value := appendChunk(m.arena, first.Position, first.Index, len(m.entries), func(i int) (*edge.Facts, []byte) {
		return &m.entries[i].Facts, m.entries[i].Data
	})
	if cap(value) == cap(m.arena) {
		m.arena = value
	}
	value = value[start:len(value):len(value)]
	last := m.entries[len(m.entries)-1].Position.Entry
	m.out = append(m.out, filedChunk{first.Position.Ledger, storedChunk{first.Position.Entry, last, value}})
	m.entries, m.bytes = m.entries[:0], 0
}

func (m *merger) end() []filedChunk {
	m.flush()
	return m.out
}

// file puts what was read into the transaction. A ledger whose first entries these are
// lies in the main file from now on.
func (g *group) file(f *filing) error {
	t, main := f.t, g.store.main.number
	w, err := g.touchAny(t)
	if err != nil {
		return err
	}
	b, err := g.bucket(t)
	if err != nil {
		return err
	}
	for i := range f.chunks {
		c := &f.chunks[i]
		if err := putChunks(b, c.ledger, []storedChunk{c.storedChunk}); err != nil {
			return err
		}
		if err := g.settleIn(w, b, c.ledger, main); err != nil {
			return err
		}
	}
	w.rec.filed = edge.Max(w.rec.filed, f.last.Next())
	w.tight = f.n
	return nil
}

// settleIn notes the file of a ledger that had none.
func (g *group) settleIn(w *touch, b *bbolt.Bucket, ledger int64, main uint64) error {
	if w.rec.open.span.Ledger == ledger {
		if w.rec.open.file == noFile {
			w.rec.open.file = main
		}
		return nil
	}
	list := w.closedPlaces()
	i := slices.IndexFunc(list, func(p place) bool { return p.span.Ledger == ledger })
	if i < 0 || list[i].file != noFile {
		return nil
	}
	list[i].file = main
	w.setClosed(list)
	return b.Put(placeKey(ledger), list[i].encode())
}

// partial is a topic with a ledger of which a part lies in the main file and another is
// loose, or nil.
func (s *Store) partial() *topic {
	for t := range s.loosened {
		if first := t.loose[0]; t.rec.filed.Ledger == first.ledger && t.rec.filed.Entry > 0 {
			return t
		}
	}
	return nil
}

// finishStep brings some more of the ledgers in that lie partly in the main file, so that
// it can turn over. It reports false when there are none.
func (s *Store) finishStep() (bool, error) {
	t := s.partial()
	if t == nil {
		s.turning = false
		return false, nil
	}
	if id := t.loose[0].ledger; id == t.rec.open.span.Ledger {
		if err := s.rollAway(t); err != nil {
			return true, err
		}
	}
	return true, s.fileLedger(t)
}

// fileLedger files chunks of the ledger of a topic's first.
func (s *Store) fileLedger(t *topic) error {
	s.clearFiling()
	id := t.loose[0].ledger
	f, err := s.readLoose(t, fileBytes, func(c *looseChunk) bool { return c.ledger == id })
	if err != nil {
		return err
	}
	return s.fileThese([]filing{f}, f.bytes)
}

// pushed reports whether settling cannot wait until the store is quiet.
func (s *Store) pushed() bool {
	return s.turning || s.saving != nil || s.fresh >= 2*saveBytes || s.fileDue()
}

// settleStep does one step of saving or filing, if one is due, and reports whether it did.
func (s *Store) settleStep() (did bool) {
	if s.failure() != nil || time.Now().Before(s.pause) {
		return false
	}
	var err error
	if s.turning {
		did, err = s.finishStep()
	}
	switch {
	case did || err != nil:
	case s.saving != nil || s.saveDue():
		did, err = true, s.saveStep()
	case s.fileDue():
		did, err = s.fileStep()
	}
	if err != nil {
		s.pause = time.Now().Add(settlePause)
		s.logger().Warn("bringing the journal into the files failed", "error", err)
		return false
	}
	return did
}

// settlePause is how long settling waits after a failure.
const settlePause = time.Second

// saveAll leaves nothing for a replay.
func (s *Store) saveAll() {
	if s.log == nil || s.failure() != nil {
		return
	}
	for len(s.unsaved) > 0 || s.saving != nil {
		if err := s.saveStep(); err != nil {
			s.logger().Warn("state stays in the journal", "error", err)
			return
		}
	}
}

// roomAhead sees to it that appends leave acknowledgements some room even if the disk
// gives no further segment.
func (s *Store) roomAhead(appends int) error {
	reserve := s.opts.JournalSegment / 8
	if s.log.Room() >= int64(appends)+reserve {
		return nil
	}
	if err := s.log.Prepare(); err != nil && isFull(err) {
		return fmt.Errorf("%w: no room for another segment of the journal: %w", edge.ErrStoreFull, err)
	}
	return nil
}

// journalRoom says why appends have no room in the journal.
func (s *Store) journalRoom(appends int) error {
	if appends == 0 {
		return nil
	}
	if err := s.roomAhead(appends); err != nil {
		return err
	}
	limit := s.opts.JournalBytes + 2*max(s.opts.JournalSegment, int64(appends))
	for range sweepsWhenFull {
		if s.log.Used() <= limit {
			return nil
		}
		if !s.settleStep() {
			break
		}
	}
	if s.log.Used() <= limit {
		return nil
	}
	return fmt.Errorf("%w: the journal takes %d bytes and cannot be brought into the files", edge.ErrStoreFull, s.log.Used())
}
