package edge_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"wayside/edge"
)

// keeper is a receiver that keeps the memory of what it is given until it is told to
// let go.
type keeper struct {
	nobody
	mu    sync.Mutex
	kept  []edge.Grant
	going bool
}

func (*keeper) Flush() {}

func (h *keeper) Deliver(d edge.Delivery) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.going {
		d.Grant.Release()
		return
	}
	h.kept = append(h.kept, d.Grant)
}

func (h *keeper) letGo() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.going = true
	for _, g := range h.kept {
		g.Release()
	}
	h.kept = nil
}

// Many subscriptions that read large entries at the same time overdraw the share by one
// of them, not by one each.
func TestLargeEntriesOverdrawTheShareOnce(t *testing.T) {
	const size = 512 << 10
	budget := edge.NewBudget(4 << 20)
	k := newKit(t, func(o *edge.Options) { o.Budget = budget })
	topic := k.topic("large")
	p, _ := k.producer(topic, edge.ProducerOptions{})
	k.publish(p, strings.Repeat("x", size), strings.Repeat("y", size))
	var all []*keeper
	for i := range 12 {
		h := &keeper{}
		all = append(all, h)
		c, err := topic.Subscribe(t.Context(), subscription(fmt.Sprint("s", i), edge.Exclusive), h, &peer{})
		if err != nil {
			t.Fatal(err)
		}
		c.Flow(10)
	}
	eventually(t, "somebody has to wait", func() bool { return budget.Contended(edge.ShareRead) })
	if used, limit := budget.Usage(edge.ShareRead); used > limit+size {
		t.Errorf("%d bytes are held, of %d", used, limit)
	}
	for _, h := range all {
		h.letGo()
	}
	eventually(t, "all is back", func() bool {
		used, _ := budget.Usage(edge.ShareRead)
		return used == 0 && !budget.Contended(edge.ShareRead)
	})
}
