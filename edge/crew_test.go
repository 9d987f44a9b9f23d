package edge_test

import (
	"errors"
	"fmt"
	"testing"

	"wayside/edge"
)

// Subscriptions whose reads are stuck hold up none of those that need no reading, though
// they are more than there are processors.
func TestStuckReadsHoldUpNobody(t *testing.T) {
	k := newKit(t, func(o *edge.Options) { o.ConcurrentReads = 2 })
	fast := k.topic("fast")
	q, _ := k.producer(fast, edge.ProducerOptions{})
	c, in := k.subscribe(fast, subscription("s", edge.Shared))
	c.Flow(1000)
	k.publish(q, "first")
	in.await(t, 1) // what comes from now on is waited for, and hence kept in memory
	release := make(chan struct{})
	stuck := func([]edge.Range) error { <-release; return errors.New("released") }
	t.Cleanup(func() {
		k.hooks.read.Store(nil)
		close(release)
	})
	slow := k.topic("slow")
	p, _ := k.producer(slow, edge.ProducerOptions{})
	k.publish(p, "x")
	k.broker.DropTail()
	k.hooks.read.Store(&stuck)
	for i := range 64 {
		c, _ := k.subscribe(slow, subscription(fmt.Sprint("s", i), edge.Shared))
		c.Flow(1)
	}
	for i := range 100 {
		k.publish(q, fmt.Sprint(i))
		in.await(t, i+2)
	}
}
