package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"wayside/wire/pulsarpb"
)

// twin is a naive model of one subscription. It chooses what is done next by what was delivered so far, has both
// brokers do it, and knows what must be left in the end: all that was published and not acknowledged, in order.
type twin struct {
	rand    *rand.Rand
	run     *pair
	kind    string
	topic   string
	tight   bool // few permits, given one by one; then all messages are single, and on Shared nobody leaves
	entries []*entry
	seats   []*seat
	next    int // number of the next seat
}

// entry is one that was published.
type entry struct {
	label    string
	key      string
	messages int
	left     uint64 // messages that are not acknowledged, a bit each
	given    bool   // delivered at least once
	parted   bool   // acknowledged by parts at some time
	back     bool   // given back at some time
}

// seat is a connection with one consumer.
type seat struct {
	conn conn
	name string
}

const lavish = 100_000 // permits of those that never lack any

func newTwin(seed uint64, run *pair) *twin {
	r := rand.New(rand.NewPCG(seed, 20))
	w := &twin{rand: r, run: run, kind: []string{"Exclusive", "Shared", "Key_Shared", "Failover"}[seed%4], topic: "t", tight: r.IntN(3) == 0}
	if w.kind == "Key_Shared" {
		w.tight = false
	}
	if seed%8 == 7 { // Failover by rank instead of by ring
		w.topic = "t-partition-1"
	}
	run.fold = w.fold
	return w
}

// play does it all.
func (w *twin) play() error {
	steps := []func() error{w.begin, w.join}
	for range operations {
		steps = append(steps, w.operation)
	}
	for _, step := range append(steps, w.end) {
		if err := step(); err != nil {
			return err
		}
		if len(w.run.findings) > 0 {
			return nil
		}
	}
	return nil
}

// begin makes the topic.
func (w *twin) begin() error {
	first := a.producer(1, w.topic, "")
	if base, partition := strings.CutSuffix(w.topic, "-partition-1"); partition {
		first = together(admin("PUT", "/admin/v2/persistent/{ns}/{p}-"+base+"/partitions", "2"), first)
	}
	return w.do(first)
}

// do has both brokers do a step and notes what was delivered.
func (w *twin) do(s step) error {
	if err := w.run.step(&s); err != nil {
		return err
	}
	p := w.run.pulsar
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range w.entries {
		if p.holders[e.label] != "" {
			e.given = true
		}
	}
	return nil
}

// operation is one random thing.
func (w *twin) operation() error {
	type weighed struct {
		weight int
		do     func() error
	}
	all := []weighed{{6, w.publish}, {6, w.acknowledge}, {4, w.giveBack}, {2, w.flow}, {2, w.join}, {2, w.leave}, {1, w.seek}, {2, w.partly}, {2, w.cumulative}}
	n := 0
	for _, o := range all {
		n += o.weight
	}
	n = w.rand.IntN(n)
	for _, o := range all {
		if n -= o.weight; n < 0 {
			return o.do()
		}
	}
	return nil
}

// keys are those of messages; each has a slot of its own.
func keys() []string { return []string{"a", "order-42", "key-1", "b", "c"} }

func (w *twin) publish() error {
	var all []step
	for range 1 + w.rand.IntN(4) {
		e := &entry{label: fmt.Sprintf("m%d", len(w.entries)), key: keys()[w.rand.IntN(len(keys()))], messages: 1}
		if w.tight || w.rand.IntN(3) > 0 {
			all = append(all, a.keyed(1, e.key, e.label))
		} else {
			e.messages = 2 + w.rand.IntN(5)
			all = append(all, a.batch(1, e.label, e.messages, "", fmt.Sprintf("partition_key:%q", e.key)))
		}
		e.left = 1<<e.messages - 1
		w.entries = append(w.entries, e)
	}
	return w.do(together(all...))
}

// unacked are entries that were delivered and not acknowledged.
func (w *twin) unacked() []*entry {
	return slices.DeleteFunc(slices.Clone(w.entries), func(e *entry) bool { return !e.given || e.left == 0 })
}

// held finds the connection of whoever was given an entry last; on Exclusive and Failover of anybody.
func (w *twin) held(on *world, e *entry) conn {
	on.mu.Lock()
	defer on.mu.Unlock()
	name, _, _ := strings.Cut(on.holders[e.label], " ")
	for _, s := range w.seats {
		if string(s.conn) == name {
			return s.conn
		}
	}
	return ""
}

// byHolder does something with an entry on the connection of its holder, which need not be the same in both worlds.
func (w *twin) byHolder(e *entry, what func(conn) step) step {
	return step{title: what("holder").title, do: func(on *world) error {
		c := w.held(on, e)
		if c == "" {
			return nil // the holder has left
		}
		return what(c).do(on)
	}}
}

func (w *twin) acknowledge() error {
	all := w.unacked()
	if len(all) == 0 {
		return w.publish()
	}
	e := all[w.rand.IntN(len(all))]
	if w.held(w.run.pulsar, e) == "" || w.held(w.run.wayside, e) == "" {
		return nil
	}
	e.left = 0
	return w.do(w.byHolder(e, func(c conn) step { return c.ack(1, e.label) }))
}

func (w *twin) partly() error {
	all := slices.DeleteFunc(w.unacked(), func(e *entry) bool {
		return e.messages == 1 || w.shares() && e.back // 4.0.7 forgets the count then
	})
	if len(all) == 0 {
		return w.acknowledge()
	}
	e := all[w.rand.IntN(len(all))]
	if w.held(w.run.pulsar, e) == "" || w.held(w.run.wayside, e) == "" {
		return nil
	}
	keep := w.rand.Uint64N(1 << e.messages)
	e.left &= keep
	e.parted = true
	return w.do(w.byHolder(e, func(c conn) step { return c.partly(1, "Individual", e.label, fmt.Sprint(keep)) }))
}

func (w *twin) cumulative() error {
	all := w.unacked()
	if w.shares() || len(all) == 0 {
		return w.acknowledge()
	}
	e := all[w.rand.IntN(len(all))]
	if w.held(w.run.pulsar, e) == "" || w.held(w.run.wayside, e) == "" {
		return nil
	}
	for _, o := range w.entries {
		o.left = 0
		if o == e {
			break
		}
	}
	return w.do(w.byHolder(e, func(c conn) step { return c.cumulative(1, e.label) }))
}

// giveBack redelivers one entry, or all that a consumer has. One that was acknowledged by parts stays where it is:
// 4.0.7 has forgotten its count.
func (w *twin) giveBack() error {
	all := w.unacked()
	whole := slices.DeleteFunc(slices.Clone(all), func(e *entry) bool { return w.shares() && e.parted })
	if len(whole) == 0 {
		return w.publish()
	}
	e := whole[w.rand.IntN(len(whole))]
	if w.held(w.run.pulsar, e) == "" || w.held(w.run.wayside, e) == "" {
		return nil
	}
	e.back = true
	if w.kind == "Shared" || len(whole) < len(all) || w.rand.IntN(2) == 0 { // what else a Shared consumer has differs
		return w.do(w.byHolder(e, func(c conn) step { return c.redeliver(1, e.label) }))
	}
	for _, o := range all {
		o.back = true
	}
	return w.do(w.byHolder(e, func(c conn) step { return c.redeliver(1, "") }))
}

func (w *twin) shares() bool { return w.kind == "Shared" || w.kind == "Key_Shared" }

func (w *twin) flow() error {
	if len(w.seats) == 0 {
		return w.join()
	}
	return w.do(w.seats[w.rand.IntN(len(w.seats))].conn.flow(1, 1+w.rand.IntN(5)))
}

// wait is how long a step is listened to that may change the active consumer.
func (w *twin) wait() time.Duration {
	if w.kind == "Failover" {
		return change
	}
	return 0
}

func (w *twin) join() error {
	if most := map[string]int{"Exclusive": 1, "Failover": 3, "Shared": 3, "Key_Shared": 3}[w.kind]; len(w.seats) >= most {
		return w.flow()
	}
	w.next++
	s := &seat{conn: conn(fmt.Sprintf("c%d", w.next)), name: fmt.Sprintf("n%d", w.rand.IntN(1000))}
	w.seats = append(w.seats, s)
	return w.sit(s)
}

// sit subscribes and gives permits.
func (w *twin) sit(s *seat) error {
	permits := lavish
	if w.tight {
		permits = w.rand.IntN(6) + 1
	}
	sub := s.conn.subscribe(1, w.topic, "s", w.kind, fmt.Sprintf("consumer_name:%q %s", s.name, earliest))
	if err := w.do(sub.later(w.wait())); err != nil {
		return err
	}
	return w.do(s.conn.flow(1, permits))
}

func (w *twin) leave() error {
	if len(w.seats) == 0 || w.kind == "Shared" && w.tight { // who has which permits left differs
		return w.publish()
	}
	i := w.rand.IntN(len(w.seats))
	s := w.seats[i]
	w.seats = slices.Delete(w.seats, i, i+1)
	if w.rand.IntN(2) == 0 {
		return w.do(together(s.conn.drop(), seated(w.topic, len(w.seats))).later(w.wait()))
	}
	return w.do(s.conn.leave(1).later(w.wait()))
}

// seek goes to an entry. Those that are sent away come back.
func (w *twin) seek() error {
	parted := slices.ContainsFunc(w.entries, func(e *entry) bool { return e.parted }) // what is left survives on 4.0.7
	if len(w.seats) == 0 || len(w.entries) == 0 || w.kind == "Shared" && w.tight || w.shares() && parted {
		return w.publish()
	}
	to := w.rand.IntN(len(w.entries))
	s := w.seats[w.rand.IntN(len(w.seats))]
	if err := w.do(s.conn.seek(1, "$"+w.entries[to].label)); err != nil {
		return err
	}
	for i, e := range w.entries {
		e.left = 0
		if i >= to {
			e.left = 1<<e.messages - 1
		}
	}
	away := slices.DeleteFunc(slices.Clone(w.seats), func(s *seat) bool { return !w.sentAway(s) })
	for _, s := range away {
		if err := w.sit(s); err != nil {
			return err
		}
	}
	return nil
}

// sentAway tells whether a consumer was closed in the last step.
func (w *twin) sentAway(s *seat) bool {
	for _, line := range w.run.pulsar.heard()[string(s.conn)+" "+consumerStream(1)] {
		if strings.HasPrefix(line, pulsarpb.BaseCommand_CLOSE_CONSUMER.String()) {
			return true
		}
	}
	return false
}

// end sends everybody away and looks at what is left.
func (w *twin) end() error {
	var all []step
	for _, s := range w.seats {
		all = append(all, s.conn.drop())
	}
	all = append(all, seated(w.topic, 0))
	w.seats = nil
	w.run.fold = func(*world) map[string][]string { return nil } // who is given what by whom that leaves first is chance
	if err := w.do(together(all...)); err != nil {
		return err
	}
	w.run.fold = w.fold
	last := conn("last")
	w.seats = []*seat{{conn: last}}
	if err := w.do(last.subscribe(1, w.topic, "s", w.kind, `consumer_name:"last" `+earliest).later(w.wait())); err != nil {
		return err
	}
	if err := w.do(last.flow(1, lavish)); err != nil {
		return err
	}
	if err := w.left(); err != nil {
		return err
	}
	return w.do(figures(w.topic, "subscriptions/s/msgBacklog", "subscriptions/s/unackedMessages"))
}

// left compares what came last with what the model knows to be left.
func (w *twin) left() error {
	var want []string
	for _, e := range w.entries {
		if e.left != 0 {
			want = append(want, e.label)
		}
	}
	for _, on := range []*world{w.run.pulsar, w.run.wayside} {
		var got []string
		for _, line := range on.heard()["last "+consumerStream(1)] {
			if label, ok := strings.CutPrefix(line, pulsarpb.BaseCommand_MESSAGE.String()+" "); ok {
				got = append(got, strings.Fields(label)[0])
			}
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("in the end %s gave %v, the model has %v", on.side.name, got, want)
		}
	}
	return nil
}
