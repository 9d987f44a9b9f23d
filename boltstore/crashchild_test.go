package boltstore

import (
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
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
	for i := range 3 {
		go crashWorker(s, fmt.Sprint("t", i), uint64(i))
	}
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

	last edge.Position // confirmed
	seq  int64
}

func crashWorker(s *Store, name string, seed uint64) {
	w := &worker{s: s, name: name, r: rand.New(rand.NewPCG(seed, uint64(os.Getpid())))}
	w.open()
	for {
		switch n := w.r.IntN(200); {
		case n < 150:
			w.publish(1 + w.r.IntN(20))
		case n < 185:
			w.save()
		case n < 190:
			w.wait(w.led.Roll)
		case n < 199:
			w.trim()
		default:
			w.remove()
		}
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
	led, err := w.s.OpenLedger(crashName(w.name), []string{"c"})
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
		m := edge.Message{
			Facts:     edge.Facts{Producer: "p", Sequence: w.seq, Highest: w.seq, Messages: 1},
			Data:      []byte(crashData(w.name, w.seq)),
			Sequenced: true,
		}
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

// save moves the cursor to the last entry, half the time without waiting.
func (w *worker) save() {
	at := w.last
	state := func() edge.CursorState { return edge.CursorState{MarkDelete: at} }
	w.say("ask", at, 0, 0)
	if w.r.IntN(2) == 0 {
		w.led.SaveCursor("c", state, nil)
		return
	}
	w.wait(func(done func(error)) { w.led.SaveCursor("c", state, done) })
	w.say("saved", at, 0, 0)
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
