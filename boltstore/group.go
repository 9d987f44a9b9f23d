package boltstore

import (
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"wayside/edge"
)

// group is the operations of one transaction and what they make of the topics they
// touch. Until the commit is durable nothing outside the group is changed.
type group struct {
	store *Store
	tx    *bbolt.Tx
	ops   []operation
	errs  []error // why an operation alone was refused

	touched []*touch
	byTopic map[*topic]*touch
	cursors []cursorWrite
	late    []dirtyCursor
	now     int64 // ms since 1970

	appends  int   // bytes that the admitted appends add to files, with overhead
	others   int   // the same of all else
	data     int64 // bytes of entries
	saved    map[*topic]bool
	full     error  // why appends find no space
	enlarged int    // times
	needs    bool   // a transaction is needed
	current  *topic // whose bucket is being worked on
	changed  bool   // and has changed something
	journal  bool   // it goes to the journal, not to the main file

	cursorAt map[cursorID]int          // index in cursors
	created  map[edge.TopicName]*topic // nil for deleted ones
	left     map[uint64]*volume        // volumes as the group leaves them
	after    []func()                  // run once the commit is durable, before anybody is answered
	undo     []func()                  // run when it has failed
}

func (s *Store) newGroup(ops []operation, saves []dirtyCursor) *group {
	return &group{
		store: s, ops: ops, errs: make([]error, len(ops)), late: saves,
		journal: s.log != nil && (len(ops) > 0 && journals(ops[0]) || len(ops) == 0 && len(saves) > 0),
		byTopic: map[*topic]*touch{}, created: map[edge.TopicName]*topic{},
		now: s.opts.Clock().UnixMilli(),
	}
}

// run takes the group from line to disk and answers everybody. What goes wrong is
// told to the callers.
func (g *group) run() {
	g.admit()
	err := g.space()
	if err == nil {
		g.settle()
		g.askCursors()
		err = g.write()
	}
	if err != nil {
		g.failed(err)
	}
	for i, op := range g.ops {
		op.finish(g.errs[i])
	}
}

func (g *group) admit() {
	g.late = slices.DeleteFunc(g.late, func(d dirtyCursor) bool { return d.ledger.closed })
	for i, op := range g.ops {
		if g.errs[i] = op.admit(g); g.errs[i] == nil {
			g.weigh(op)
		}
	}
	for _, d := range g.late {
		g.noteSave(d.ledger, d.name, d.state)
	}
}

// weigh counts what an operation adds to the file.
func (g *group) weigh(op operation) {
	if _, ok := op.(*appendOp); ok {
		g.appends += op.size()
	} else {
		g.others += op.size()
	}
}

// breadth is the number of topics that appends go to, at most.
func (g *group) breadth() (n int64) {
	var last *ledger
	for _, op := range g.ops {
		if l := op.ledger(); l != nil && l != last {
			last = l
			n++
		}
	}
	return min(n, maxGroupTopics)
}

// cursorBytes is what a cursor is expected to take with the path to it.
const cursorBytes = 2 * pageSize

// sweepsWhenFull is how many steps of giving pages back a group waits for before its
// appends are refused.
const sweepsWhenFull = 16

// space makes sure that what the appends need is written space, or refuses them. All
// else may use the reserve.
func (g *group) space() error {
	if !g.needs && len(g.cursors) == 0 {
		return nil
	}
	if err := g.store.failure(); err != nil {
		return err
	}
	if err := g.store.present(); err != nil {
		return err
	}
	if g.journal {
		g.full = g.store.journalRoom(g.appends)
		return nil
	}
	g.store.makeTail(int64(g.others + len(g.cursors)*cursorBytes))
	if g.appends == 0 {
		return nil
	}
	err := g.store.makeRoom(int64(g.appends), g.breadth())
	for range sweepsWhenFull {
		if !errors.Is(err, edge.ErrStoreFull) || !g.store.sweeping {
			break
		}
		if err = g.store.sweep(); err == nil {
			err = g.store.makeRoom(int64(g.appends), g.breadth())
		}
	}
	if errors.Is(err, edge.ErrStoreFull) {
		g.full = err
		g.store.hurry()
		return nil
	}
	return err
}

// settle decides in order which appends are tried, and what barriers say: behind a
// failed one all fail, up to the next Recover.
func (g *group) settle() {
	for i, op := range g.ops {
		if g.errs[i] != nil {
			continue
		}
		switch op := op.(type) {
		case *appendOp:
			g.errs[i] = op.l.failed
			if g.errs[i] == nil && g.full != nil {
				g.errs[i] = fmt.Errorf("append to %s: %w", op.l.topic.name, g.full)
				op.l.fail(g.full)
			}
		case *barrierOp:
			if op.recover {
				op.l.failed = nil
			}
			g.errs[i] = op.l.failed
		}
	}
}

// fail makes the appends that follow fail too.
func (l *ledger) fail(cause error) {
	l.failed = fmt.Errorf("%w: %w", edge.ErrLedgerFailed, cause)
}

// failed gives every operation the error of the transaction that it was part of.
func (g *group) failed(cause error) {
	switch {
	case errors.Is(cause, edge.ErrStoreFull):
	case isFull(cause):
		cause = fmt.Errorf("%w: %w", edge.ErrStoreFull, cause)
	default:
		cause = fmt.Errorf("%w: %w", edge.ErrStorage, cause)
	}
	for i, op := range g.ops {
		if g.errs[i] != nil {
			continue
		}
		switch op := op.(type) {
		case *appendOp:
			g.errs[i] = cause
			op.l.fail(cause)
		case *barrierOp:
			g.errs[i] = op.l.failed
			if op.recover {
				g.errs[i], op.l.failed = nil, nil
			}
		default:
			g.errs[i] = cause
		}
	}
	for _, undo := range g.undo {
		undo()
	}
	g.store.queue.putBack(g.late)
}

// write makes the changes and commits them.
func (g *group) write() error {
	if !g.needs && len(g.cursors) == 0 {
		return nil
	}
	if why := g.store.opts.hooks.refuse; why != nil && why.Load() != nil {
		return *why.Load()
	}
	if g.journal {
		return g.journalGroup()
	}
	for {
		err := g.attempt()
		if err == nil || !g.isolate(err) && !g.enlarge(err) {
			return err
		}
	}
}

// enlarge makes the file larger after a transaction that took more than was expected
// of it. It reports whether the group can be tried again.
func (g *group) enlarge(err error) bool {
	p := &g.store.space
	if !errors.Is(err, errNoPiece) || g.enlarged >= maxEnlarge {
		return false
	}
	g.enlarged++
	size := p.written + max(p.step, int64(g.appends+g.others))<<g.enlarged
	if err := g.store.growTo(min(size, g.store.mainLimit())); err != nil || p.tail() < p.step {
		return false
	}
	g.restart(nil)
	return true
}

// maxEnlarge is how often a group is tried again in a larger file.
const maxEnlarge = 4

func (g *group) attempt() error {
	if err := g.begin(); err != nil {
		return err
	}
	err := protect(g.apply)
	if err != nil || !g.changed {
		return joinRollback(err, g.tx)
	}
	g.current = nil
	if err := g.store.commit(g.tx); err != nil {
		return err
	}
	g.publish()
	return nil
}

func (g *group) begin() (err error) {
	g.store.resetArena(g.appends)
	g.tx, err = g.store.main.db.Begin(true)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	return nil
}

// resetArena frees the last transaction's values for use by the next. A large one,
// made for a large message, is given back.
func (s *Store) resetArena(expected int) {
	if cap(s.arena) > 2*s.opts.GroupBytes {
		s.arena = nil
	}
	s.arena = slices.Grow(s.arena[:0], expected)
}

// applyAll lets the operations that were not refused make their changes.
func (g *group) applyAll() error {
	for i, op := range g.ops {
		if g.errs[i] != nil {
			continue
		}
		if err := op.apply(g); err != nil {
			return err
		}
	}
	return nil
}

func (g *group) apply() error {
	if err := g.applyAll(); err != nil {
		return err
	}
	for _, c := range g.cursors {
		if err := g.writeCursor(c); err != nil {
			return err
		}
	}
	for _, t := range g.touched {
		if err := g.flush(t); err != nil {
			return err
		}
	}
	if err := g.flushVolumes(); err != nil {
		return err
	}
	if g.changed {
		return g.store.writeMeta(g.tx)
	}
	return nil
}

// publish shows the durable state to everybody.
func (g *group) publish() {
	s := g.store
	s.topicsMu.Lock()
	for _, t := range g.touched {
		was := s.topics[t.topic.name] == t.topic
		s.active += t.activeNow() - b2i(was && t.topic.rec.open.span.Entries() > 0)
		s.live.Add(t.liveNow() - t.topic.rec.live*b2i(was))
		t.topic.rec = t.rec
		g.keep(t)
		if t.tight > 0 {
			s.tighten(t.topic, t.tight)
		}
		switch {
		case t.deleted:
			delete(s.topics, t.topic.name)
			s.forgetTopic(t.topic)
		case s.topics[t.topic.name] != t.topic:
			s.topics[t.topic.name] = t.topic
		}
	}
	s.topicsMu.Unlock()
	for _, t := range g.touched {
		t.show()
	}
	s.written.Add(g.data)
	for _, fn := range g.after {
		fn()
	}
}

func b2i(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
