package uplink

import (
	"fmt"
	"testing"
	"time"

	"wayside/edge"
	"wayside/wire/pulsarpb"
)

func testPlanner(p plan) *planner {
	l := &planner{
		set:  sizes{count: 10, batchBytes: 1000, hardBytes: 5000, singles: 10, flying: 100, step: 100},
		name: func(epoch uint64) string { return fmt.Sprint("edge:", epoch) },
	}
	l.load(p, "edge", "t")
	return l
}

func openPlan() plan {
	p := plan{edge: "edge", target: "t", next: 100, open: []segment{
		{first: 100, last: 109, batch: true, by: identity{"edge:0", "t", 10}},
		{first: 110, last: 119, batch: true, by: identity{"edge:0", "t", 10}},
		{first: 120, last: 300, by: identity{"edge:0", "t", 10}},
	}}
	read, err := decodePlan(p.encode())
	if err != nil {
		panic(err)
	}
	return read
}

// A cursor that was moved forward, by a skip or because data expired.
func TestCursorMovedForward(t *testing.T) {
	l := testPlanner(openPlan())
	if l.begin(110, 110) || len(l.plan.open) != 2 || l.plan.next != 110 {
		t.Errorf("%+v", l.plan)
	}
	// Into a batch: the rest of it can only go singly, and only once that is synced.
	l = testPlanner(openPlan())
	l.begin(105, 112)
	if s := l.plan.open[0]; s.batch || s.first != 105 || s.last != 109 || s.durable > s.first || s.left != 110 || !l.dirty {
		t.Errorf("%+v", l.plan)
	}
	l = testPlanner(openPlan())
	if l.begin(500, 500) || len(l.plan.open) != 0 {
		t.Errorf("%+v", l.plan)
	}
}

// An entry whose first messages are settled is no cursor set back.
func TestCursorInsideAnEntry(t *testing.T) {
	l := testPlanner(openPlan())
	if l.begin(95, 130) || l.plan.epoch != 0 || l.plan.next != 100 || len(l.plan.open) != 3 {
		t.Errorf("%+v", l.plan)
	}
}

func TestCursorSetBackRaisesTheEpoch(t *testing.T) {
	l := testPlanner(openPlan())
	if !l.begin(50, 50) || l.plan.epoch != 1 || len(l.plan.open) != 0 || l.plan.next != 50 {
		t.Errorf("%+v", l.plan)
	}
}

// What is open finishes under the identity that it was planned with; what is new has
// another one.
func TestChangedTargetRaisesTheEpoch(t *testing.T) {
	for _, c := range []struct {
		edge, target string
		epoch        uint64
	}{{"edge", "t", 0}, {"edge", "u", 1}, {"other", "t", 1}} {
		l := testPlanner(plan{})
		l.load(openPlan(), c.edge, c.target)
		if l.plan.epoch != c.epoch || len(l.plan.open) != 3 || l.plan.open[0].by.target != "t" || l.plan.open[0].by.producer != "edge:0" {
			t.Errorf("%+v: %+v", c, l.plan)
		}
	}
}

// A receipt of −1:−1 counts where an earlier life may have sent the message.
func TestDuplicatesOfAnEarlierLife(t *testing.T) {
	l := testPlanner(openPlan())
	l.begin(100, 100)
	for i := uint64(100); i < 110; i++ {
		l.window.add(item{first: i, last: i, size: 10})
	}
	if s := l.next(); s.do != doOpen || s.by.count != 10 {
		t.Fatalf("%+v", s)
	}
	l.opened(identity{"edge:0", "t", 10})
	if s := l.next(); s.do != doSend || s.n != 10 || !s.batch {
		t.Fatalf("%+v", s)
	}
	if v := l.answered(100, true); v != duplicate {
		t.Errorf("verdict %d", v)
	}
	if v := l.answered(100, true); v != unknown {
		t.Errorf("verdict %d for the second", v)
	}
	if v := l.answered(7, false); v != unknown {
		t.Errorf("verdict %d for a stranger", v)
	}
}

// A window that has become smaller than a planned batch still takes it whole.
func TestBatchWiderThanTheWindow(t *testing.T) {
	r := newRig(t, func(o *Options) { o.BatchMessages, o.ReceiptTimeout = 50, time.Minute })
	r.cloud.set(func() {
		r.cloud.judge = func(*stubSend) stubAnswer { return answerNothing }
		r.cloud.refuse = deny(pulsarpb.ServerError_ServiceNotReady)
	})
	payload := make([]byte, 800)
	for range 60 {
		r.put("in-a", &pulsarpb.MessageMetadata{}, edge.Facts{}, payload)
	}
	r.cloud.set(func() { r.cloud.refuse = nil })
	r.cloud.until(t, "a batch", func() bool {
		held := r.cloud.topics["persistent://public/default/out-a"]
		return held != nil && len(held.frames) > 0 && len(held.frames[len(held.frames)-1].messages) > 20
	})
	o := r.up.o
	o.WindowBytes, o.WindowMessages, o.BatchMessages, o.BatchBytes, o.ReceiptTimeout = 3000, 4, 2, 1000, 500*time.Millisecond
	r.cloud.cut()
	r.crash()
	r.cloud.set(func() { r.cloud.judge = nil })
	r.restart(o)
	r.settled("in-a")
	n := 0
	for _, f := range r.cloud.frames(t, "out-a", 60) {
		n += len(f.messages)
	}
	if n != 60 {
		t.Errorf("%d messages", n)
	}
}

// A plan that cannot be read leads to a name that was never used.
func TestUnreadablePlan(t *testing.T) {
	r := newRig(t, nil)
	r.publish("in-a", 0, 3)
	first := r.expect("out-a", 3)
	r.settled("in-a")
	o := r.up.o
	r.stop()
	r.store = r.store.Reopen()
	spoil(t, r, "in-a", "wayside.uplink.in-any")
	r.restart(o)
	r.publish("in-a", 3, 5)
	if frames := r.expect("out-a", 5); frames[len(frames)-1].producer == first[0].producer {
		t.Errorf("both under %s", first[0].producer)
	}
}

// spoil puts another plan into a cursor.
func spoil(t *testing.T, r *rig, topic, subscription string) {
	t.Helper()
	ledger, err := r.store.OpenLedger(mustName(t, topic), nil)
	if err != nil {
		t.Fatal(err)
	}
	all, err := ledger.Cursors()
	if err != nil {
		t.Fatal(err)
	}
	state := all[subscription]
	state.Plan = []byte("what is this")
	saved := make(chan error, 2)
	ledger.SaveCursor(subscription, func() edge.CursorState { return state }, func(err error) { saved <- err })
	ledger.Close(func(err error) { saved <- err })
	for range 2 {
		if err := <-saved; err != nil {
			t.Fatal(err)
		}
	}
}

// Each partition of a topic leads to the partition of the same number.
func TestPartitionsAreMirrored(t *testing.T) {
	r := newRig(t, nil)
	for i := range 3 {
		r.publish(fmt.Sprint("in-a-partition-", i), 0, 3)
		r.expect(fmt.Sprint("out-a-partition-", i), 3)
	}
}

// Many idle topics keep no goroutines, and one more message finds its way.
func TestManyTopics(t *testing.T) {
	r := newRig(t, func(o *Options) { o.IdleClose = 20 * time.Millisecond })
	const topics = 300
	for i := range topics {
		r.publish(fmt.Sprint("in-", i), 0, 1)
	}
	for i := range topics {
		r.expect(fmt.Sprint("out-", i), 1)
	}
	r.cloud.until(t, "all to rest", func() bool {
		for _, f := range r.up.forwarders() {
			f.inbox.mu.Lock()
			running := f.inbox.running
			f.inbox.mu.Unlock()
			if running {
				return false
			}
		}
		return len(r.cloud.names) == 0
	})
	r.publish("in-7", 1, 2)
	r.expect("out-7", 2)
}
