package pulsar

import "wayside/edge"

// standStill gives back to their subscriptions all entries whose frame was not begun,
// and tells no room until the client takes bytes again. Only the frame in hand is held.
func (w *writer) standStill(b *batch) {
	o := w.out
	b.retire(o)
	back := b.shorten()
	o.mu.Lock()
	if !o.stalled {
		o.stalled = true
		o.free.Add(-closed)
	}
	freed := int64(0)
	for i := range back {
		freed += back[i].cost()
	}
	for !o.queue.empty() {
		it := o.queue.pop()
		freed += it.cost()
		back = append(back, it)
	}
	o.free.Add(freed)
	returned, dropped := sortByConsumer(back)
	o.mu.Unlock()
	if b.lent != nil {
		o.control.pool.put(b.lent)
		b.lent = nil
	}
	for _, g := range dropped {
		g.Release()
	}
	for c, ds := range returned {
		c.core.GiveBack(ds)
	}
}

// sortByConsumer divides items by who they are for. The outbox is locked.
func sortByConsumer(items []item) (returned map[*consumer][]edge.Delivery, dropped []edge.Grant) {
	returned = map[*consumer][]edge.Delivery{}
	for _, it := range items {
		if it.to.dead {
			dropped = append(dropped, it.d.Grant)
			continue
		}
		returned[it.to] = append(returned[it.to], it.d)
	}
	return returned, dropped
}
