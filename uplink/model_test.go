package uplink

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// The planner against a model of the official client and of a cloud with
// deduplication, under random link cuts, crashes and changes of limits. Rules:
//
//  1. Every message that is not parked is in the cloud exactly once.
//  2. They are there in index order.
//  3. No receipt is taken for a conflict of identities.
//  4. The client never sends a batch of other bounds than were synced.

// modelMessage is what the local topic holds.
type modelMessage struct {
	item
	entry  int  // which entry it is in
	poison bool // the client refuses whatever holds it
}

type modelWorld struct {
	rng      *rand.Rand
	messages []modelMessage
	entries  [][2]int // first and one past the last message of each
	cloud    modelCloud
	parked   []uint64

	disk      []byte // synced plan
	mark      int    // entries acknowledged with it
	planless  bool   // the variant that must be caught: bounds are not kept
	conflicts int

	p       *planner
	client  *modelClient
	next    int // entry to deliver next
	first   bool
	acked   int // entries settled
	parking bool
	save    []byte // under way
	saveAck int
	crashes int
}

func newModelWorld(seed uint64, n int, planless bool) *modelWorld {
	w := &modelWorld{rng: rand.New(rand.NewPCG(seed, 7)), planless: planless, cloud: modelCloud{highest: map[string]int64{}}}
	for len(w.messages) < n {
		count := 1
		if w.rng.IntN(3) == 0 {
			count += w.rng.IntN(12)
		}
		from := len(w.messages)
		group := ""
		if w.rng.IntN(6) == 0 {
			group = fmt.Sprint(w.rng.IntN(2))
		}
		for range count {
			i := uint64(len(w.messages))
			m := modelMessage{item: item{first: i, last: i, size: 1 + w.rng.IntN(20), group: group, schema: group != ""}, entry: len(w.entries)}
			switch w.rng.IntN(60) {
			case 0:
				m.alone = true
			case 1:
				m.poison = true
			case 2:
				m.park = "encrypted"
			}
			w.messages = append(w.messages, m)
		}
		w.entries = append(w.entries, [2]int{from, len(w.messages)})
	}
	w.start()
	return w
}

// start begins a life of the program, with limits of its own.
func (w *modelWorld) start() {
	w.p = &planner{
		set: sizes{
			count: 2 + w.rng.IntN(9), batchBytes: 20 + w.rng.IntN(80), hardBytes: 120,
			singles: 1 + w.rng.IntN(12), flying: 10 + w.rng.IntN(30), step: uint64(1 + w.rng.IntN(25)),
		},
		name: func(epoch uint64) string { return fmt.Sprintf("edge:%d", epoch) },
	}
	stored, err := decodePlan(w.disk)
	if err != nil {
		panic(err)
	}
	if w.planless {
		stored.open = nil
	}
	w.p.load(stored, "edge", "cloud")
	w.client, w.save, w.first, w.parking = nil, nil, true, false
	w.next, w.acked = w.mark, w.mark
}

func (w *modelWorld) deliver() {
	if w.next == len(w.entries) || w.p.window.bytes > 300 && !w.p.starved {
		return
	}
	e := w.entries[w.next]
	w.next++
	if w.first {
		w.first = false
		if w.p.begin(uint64(e[0]), uint64(e[1]-1)) {
			panic("cursor taken for set back")
		}
	}
	for i := e[0]; i < e[1]; i++ {
		if uint64(i) >= w.p.plan.next {
			w.p.window.add(w.messages[i].item)
		}
	}
}

// act does what the planner says.
func (w *modelWorld) act() {
	s := w.p.next()
	switch s.do {
	case doOpen:
		w.client = &modelClient{by: s.by}
		w.p.opened(s.by)
	case doSave:
		w.save, w.saveAck = w.p.plan.encode(), w.acked
	case doSend:
		w.send(s)
	case doFlush:
		w.client.asked = true
	case doPark:
		w.parking = true
	}
}

func (w *modelWorld) send(s step) {
	items := w.p.window.items[w.p.window.sent-s.n : w.p.window.sent]
	for _, it := range items {
		if w.client.asked && w.rng.IntN(4) == 0 { // an earlier flush is taken up just now
			w.client.asked = false
			w.client.flush()
		}
		if s.batch || it.schema {
			w.client.join(it.first)
		} else {
			w.client.single(it.first)
		}
	}
	w.client.asked = w.client.asked || s.flush
	w.refuse()
}

// work lets the client take up a flush, and the parking topic answer.
func (w *modelWorld) work() {
	w.p.patient = w.p.patient || w.p.linger
	if w.client != nil && w.client.asked {
		w.client.asked = false
		w.client.flush()
		w.refuse()
	}
	if w.parking && w.rng.IntN(2) == 0 {
		w.parking = false
		if w.rng.IntN(4) == 0 {
			w.p.unparked()
			return
		}
		i := w.p.aside().first
		if !slices.Contains(w.parked, i) { // the parking topic deduplicates by index
			w.parked = append(w.parked, i)
		}
		w.p.parked()
	}
}

// refuse lets the client find what the cloud would never take, as it does when it
// closes a batch; the producer ends with it.
func (w *modelWorld) refuse() {
	for n, f := range w.client.wire {
		w.checkBounds(f)
		for _, i := range f.indexes {
			if w.messages[i].poison {
				w.client.wire = w.client.wire[:n]
				w.drop()
				w.p.refused(f.indexes[0], "too large", false)
				return
			}
		}
	}
}

// checkBounds proves rule 4.
func (w *modelWorld) checkBounds(f modelFrame) {
	s := w.p.plan.find(f.indexes[0])
	if !w.planless && len(f.indexes) > 1 &&
		(s == nil || !s.batch || s.first != f.indexes[0] || s.last != f.indexes[len(f.indexes)-1] || s.durable <= s.last) {
		panic(fmt.Sprintf("frame %v leaves under segment %+v", f.indexes, s))
	}
}

func (w *modelWorld) sync() {
	if w.save == nil {
		return
	}
	w.disk, w.mark, w.save = w.save, w.saveAck, nil
	w.p.saved()
}

func (w *modelWorld) arrive() {
	if w.client == nil || len(w.client.wire) == 0 {
		return
	}
	f := w.client.wire[0]
	w.client.wire = w.client.wire[1:]
	w.cloud.apply(&f)
	for _, i := range f.indexes {
		w.client.answers = append(w.client.answers, modelAnswer{i, f.dup})
	}
}

func (w *modelWorld) answer() {
	if w.client == nil || len(w.client.answers) == 0 {
		return
	}
	for range 1 + w.rng.IntN(len(w.client.answers)) {
		a := w.client.answers[0]
		w.client.answers = w.client.answers[1:]
		if w.p.answered(a.index, a.dup) == conflict {
			w.conflicts++
			w.drop()
			w.p.renew()
			return
		}
	}
	w.settle()
}

func (w *modelWorld) settle() {
	w.p.settle(func(*item) {})
	for w.acked < len(w.entries) && uint64(w.entries[w.acked][1]) <= w.p.plan.next {
		w.acked++
	}
}

// drop ends the connection: of what was written, a part still arrives.
func (w *modelWorld) drop() {
	w.settle()
	if w.client != nil {
		for range w.rng.IntN(len(w.client.wire) + 1) {
			w.arrive()
		}
	}
	w.client = nil
	w.p.lost()
}

// crash ends the program. What rode along with some commit may have reached the disk.
func (w *modelWorld) crash() {
	w.crashes++
	w.settle()
	switch w.rng.IntN(3) {
	case 0:
		w.disk, w.mark = w.p.plan.encode(), w.acked
	case 1:
		w.sync()
	}
	w.drop()
	w.start()
}

func (w *modelWorld) run(steps int, faults bool) {
	for range steps {
		switch n := w.rng.IntN(1000); {
		case faults && n < 6:
			w.crash()
		case faults && n < 16:
			w.drop()
		case n < 200:
			w.deliver()
		case n < 600:
			w.act()
		case n < 660:
			w.work()
		case n < 720:
			w.sync()
		case n < 850:
			w.arrive()
		case n < 990:
			w.answer()
		default:
			w.settle()
		}
	}
}

// verify compares the cloud with the local topic.
func (w *modelWorld) verify() error {
	var want []uint64
	for i, m := range w.messages {
		if m.park == "" && !m.poison {
			want = append(want, uint64(i))
		}
	}
	if w.conflicts > 0 {
		return fmt.Errorf("%d conflicts", w.conflicts)
	}
	if slices.Equal(w.cloud.log, want) {
		return nil
	}
	seen := map[uint64]int{}
	for _, i := range w.cloud.log {
		seen[i]++
	}
	lost, doubled := 0, 0
	for _, i := range want {
		switch n := seen[i]; {
		case n == 0:
			lost++
		case n > 1:
			doubled++
		}
	}
	return fmt.Errorf("%d lost, %d doubled, %d of %d in the cloud", lost, doubled, len(w.cloud.log), len(want))
}

func TestPlannerModel(t *testing.T) {
	crashes := 0
	for seed := range uint64(400) {
		w := newModelWorld(seed, 400, false)
		w.run(6000, true)
		w.run(40000, false)
		crashes += w.crashes
		if err := w.verify(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	if crashes < 1000 {
		t.Errorf("only %d crashes: the faults do not bite", crashes)
	}
}

// A planner that forgets its bounds must be caught, or the model proves nothing.
func TestPlannerModelCatchesMissingPlan(t *testing.T) {
	caught := 0
	for seed := range uint64(40) {
		w := newModelWorld(seed, 400, true)
		w.run(6000, true)
		w.run(40000, false)
		if w.verify() != nil {
			caught++
		}
	}
	if caught < 20 {
		t.Errorf("caught in %d of 40 runs", caught)
	}
}
