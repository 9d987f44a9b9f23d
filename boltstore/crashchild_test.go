package boltstore

import (
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"wayside/edge"
)

// crashDir names the directory on which a test binary plays the child of TestCrash,
// crashLife how long it does if nobody kills it.
const (
	crashDir  = "WAYSIDE_CRASH_DIR"
	crashLife = "WAYSIDE_CRASH_LIFE"

	// crashJournal is the size of the store's journal, smallJournal one of few segments.
	crashJournal = "WAYSIDE_CRASH_JOURNAL"
	smallJournal = "262144"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		crashChild(dir)
	}
	goleak.VerifyTestMain(m)
}

// crashChild works on a store until it is killed. It says on standard output what it
// asks for before it asks, and what was confirmed once it was.
func crashChild(dir string) {
	s, err := Open(crashOptions(dir))
	if err != nil {
		fail(err)
	}
	fmt.Println("open")
	if life, err := time.ParseDuration(os.Getenv(crashLife)); err == nil {
		time.AfterFunc(life, func() { os.Exit(1) })
	}
	turns := make(chan struct{}, 1)
	for i := range 3 {
		go crashWorker(s, fmt.Sprint("t", i), uint64(i), turns)
	}
	go crashSettings(s, turns)
	select {}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "child:", err)
	os.Exit(1)
}

// worker is the child's user of one topic.
type worker struct {
	s     *Store
	name  string
	led   edge.Ledger
	birth string
	r     *rand.Rand

	last    edge.Position // confirmed
	seq     int64
	version uint64
	cursors map[string]*atomic.Pointer[version]
}

// firstVersion is above all versions of earlier lives.
func firstVersion() uint64 { return uint64(time.Now().UnixMicro()) }

// crashWorker works on a topic, and now and then lets a value have its turn.
func crashWorker(s *Store, name string, seed uint64, turns chan<- struct{}) {
	w := &worker{
		s: s, name: name, r: rand.New(rand.NewPCG(seed, uint64(os.Getpid()))), version: firstVersion(),
		cursors: map[string]*atomic.Pointer[version]{},
	}
	for _, c := range crashCursors {
		w.cursors[c] = new(atomic.Pointer[version])
	}
	w.open()
	for {
		if w.r.IntN(10) == 0 {
			select {
			case turns <- struct{}{}:
			default: // one is waiting
			}
		}
		switch n := w.r.IntN(200); {
		case n < 135:
			w.publish(1 + w.r.IntN(20))
		case n < 165:
			w.save(w.last)
		case n < 175:
			w.save(w.earlier())
		case n < 181:
			w.drop()
		case n < 185:
			w.setProperties()
		case n < 189:
			w.wait(w.led.Roll)
		case n < 197:
			w.trim()
		case n < 199:
			w.wait(w.led.Close)
			w.open()
		default:
			w.remove()
		}
	}
}

// crashSettings is the child's user of values, one a turn: others shall not wait for it all
// the time.
func crashSettings(s *Store, turns <-chan struct{}) {
	w := &worker{s: s, name: "-", birth: "-", r: rand.New(rand.NewPCG(9, uint64(os.Getpid()))), version: firstVersion()}
	for range turns {
		key := fmt.Sprint("key", w.r.IntN(4))
		w.version++
		value, what := crashValue(key, w.version), "put:"
		if w.r.IntN(4) == 0 {
			value, what = nil, "unset:"
		}
		w.say(what+key, edge.Position{}, w.version, 0)
		w.wait(func(done func(error)) { s.PutValue(key, value, done) })
		w.say("put-done:"+key, edge.Position{}, w.version, 0)
	}
}

func (w *worker) say(what string, p edge.Position, index uint64, seq int64) {
	fmt.Println(what, w.name, w.birth, p.Ledger, p.Entry, index, seq)
}

func (w *worker) wait(call func(func(error))) {
	done := make(chan error, 1)
	call(func(err error) { done <- err })
	if err := <-done; err != nil {
		fail(err)
	}
}

func (w *worker) open() {
	led, err := w.s.OpenLedger(crashName(w.name), []string{crashCursors[0], "keep"})
	if err != nil {
		fail(err)
	}
	w.led, w.birth = led, led.BirthID()
	w.last = led.Spans().End()
	states, err := led.Sequences()
	if err != nil {
		fail(err)
	}
	if w.seq = 0; states["p"].Highest >= 0 && len(states) > 0 {
		w.seq = states["p"].Highest + 1
	}
	w.say("birth", edge.Position{}, 0, 0)
}

// publish appends some messages and waits for the last.
func (w *worker) publish(n int) {
	var all sync.WaitGroup
	all.Add(n)
	for range n {
		m := crashMessage(w.name, w.seq)
		w.seq++
		w.led.Append(m, func(e edge.Entry, err error) {
			defer all.Done()
			if err != nil {
				fail(err)
			}
			w.say("append", e.Position, e.Index, e.Facts.Sequence)
			w.last = e.Position
		})
	}
	all.Wait()
}

// ask says what a cursor is to become.
func (w *worker) ask(what string, x version) (cursor string) {
	cursor = crashCursors[w.r.IntN(len(crashCursors))]
	w.version++
	x.n = w.version
	w.say(what+cursor, x.at, x.n, 0)
	if !x.gone { // a save that was asked for before may still come
		w.cursors[cursor].Store(&x)
	}
	return cursor
}

// save moves a cursor, half the time without waiting.
func (w *worker) save(at edge.Position) {
	cursor := w.ask("ask:", version{at: at})
	n, now := w.version, w.cursors[cursor]
	state := func() edge.CursorState { return crashState(w.name+" "+cursor, *now.Load()) }
	if w.r.IntN(2) == 0 {
		w.led.SaveCursor(cursor, state, nil)
		return
	}
	w.wait(func(done func(error)) { w.led.SaveCursor(cursor, state, done) })
	w.say("saved:"+cursor, edge.Position{}, n, 0)
}

// earlier is a place to seek to.
func (w *worker) earlier() edge.Position {
	s := w.led.Spans()
	span := s.At(w.r.IntN(s.Len()))
	return edge.Position{Ledger: span.Ledger, Entry: span.First - 1 + w.r.Int64N(span.Entries()+1)}
}

// drop deletes a cursor.
func (w *worker) drop() {
	cursor := w.ask("drop:", version{gone: true})
	w.wait(func(done func(error)) { w.led.DeleteCursor(cursor, done) })
	w.say("saved:"+cursor, edge.Position{}, w.version, 0)
}

func (w *worker) setProperties() {
	w.version++
	w.say("property", edge.Position{}, w.version, 0)
	w.wait(func(done func(error)) { w.led.SetProperties(crashValue(w.name, w.version), done) })
	w.say("propertied", edge.Position{}, w.version, 0)
}

func (w *worker) trim() {
	w.say("trim", w.last, 0, 0)
	w.wait(func(done func(error)) { w.led.Trim(w.last, done) })
}

func (w *worker) remove() {
	w.say("delete", edge.Position{}, 0, 0)
	w.wait(func(done func(error)) { w.s.DeleteLedger(crashName(w.name), done) })
	w.say("deleted", edge.Position{}, 0, 0)
	w.open()
}
