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
	o.mu.Unlock()
	if b.lent != nil {
		o.control.pool.put(b.lent)
		b.lent = nil
	}
	// What was decided on before the room was closed may come while the others go back.
	// It goes as well, or it would overtake them.
	for back = o.withdraw(back); len(back) > 0; back = o.withdraw(nil) {
		returned, dropped := sortByConsumer(o, back)
		for _, g := range dropped {
			g.Release()
		}
		for c, ds := range returned {
			c.core.GiveBack(ds)
		}
	}
}

// withdraw adds all that is in line to items that are not written either, and counts
// their bytes as free.
func (o *outbox) withdraw(items []item) []item {
	o.mu.Lock()
	defer o.mu.Unlock()
	for !o.queue.empty() {
		items = append(items, o.queue.pop())
	}
	freed := int64(0)
	for i := range items {
		freed += items[i].cost()
	}
	o.free.Add(freed)
	return items
}

// sortByConsumer divides items by who they are for.
func sortByConsumer(o *outbox, items []item) (returned map[*consumer][]edge.Delivery, dropped []edge.Grant) {
	o.mu.Lock()
	defer o.mu.Unlock()
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
