package uplink

import (
	"fmt"
	"strings"
	"testing"

	"wayside/wire/pulsarpb"
)

// PT-07 of the cases that people met with other brokers: the forwarding of one partition
// stops for good after a burst, others go on. Here each drains by itself, over cuts too;
// one that the cloud does not have waits alone, its lag told, until it is there.
func TestFieldPT07EachPartitionDrainsByItself(t *testing.T) {
	r := newRig(t, func(o *Options) { o.BatchMessages = 20 })
	r.cloud.set(func() {
		r.cloud.refuse = func(topic string) (pulsarpb.ServerError, bool) {
			return pulsarpb.ServerError_TopicNotFound, strings.HasSuffix(topic, "out-a-partition-3")
		}
	})
	in := func(i int) string { return fmt.Sprint("in-a-partition-", i) }
	out := func(i int) string { return fmt.Sprint("out-a-partition-", i) }
	const burst = 600
	for i := range 4 {
		r.publish(in(i), 0, 10)
	}
	for n := 10; n < burst; n += 118 {
		r.publish(in(2), n, n+118)
		if !raced && (n == 128 || n == 364) { // see TestCutsLoseNothing
			r.cloud.cut()
		}
	}
	for i, want := range []int{10, 10, burst} {
		r.expect(out(i), want)
		r.settled(in(i))
	}
	if s := r.status(in(3), inState(Refused)); s.Backlog != 10 {
		t.Errorf("the one that is missing: %+v", s)
	}
	r.cloud.set(func() { r.cloud.refuse = nil })
	r.expect(out(3), 10)
	r.settled(in(3))
}
