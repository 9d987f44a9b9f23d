package edge

// What a subscription that shares remembers of entries one by one: who holds them, and
// which came back. How it chooses is in shared.go.

// requeue puts an entry among those that are served first. With keys it makes a
// running read stale, or later entries of its key would overtake it.
func (d *shared) requeue(p Position, slot uint16) {
	if d.replay.Add(p) && d.keys != nil {
		d.keys.wait(p, slot)
		d.keys.idle = false
		d.s.generation++
	}
}

// unqueue takes an entry out of them.
func (d *shared) unqueue(p Position) {
	if d.replay.Remove(p) && d.keys != nil {
		d.keys.unwait(p)
	}
}

// release forgets that a consumer holds an entry.
func (d *shared) release(p Position, h pend) {
	delete(d.pending, p)
	d.settle(h.c, int(h.messages))
	if d.keys != nil {
		d.keys.free(h.slot)
	}
}

// settle lowers the counts of what is unacknowledged.
func (d *shared) settle(c *Consumer, messages int) {
	d.unacked -= messages
	c.unacked -= messages
	if each, _ := d.limits(); c.blocked && c.unacked <= each/2 {
		d.open(c)
	}
}

// limits are how many messages each consumer, and all together, may hold; 0 is no limit.
func (d *shared) limits() (each, all int) {
	if !d.s.durable {
		return 0, 0
	}
	o, p := &d.s.topic.broker.opts, d.s.topic.policies.Load()
	return unackedLimit(p.UnackedPerConsumer, o.UnackedPerConsumer), unackedLimit(p.UnackedPerSubscription, o.UnackedPerSubscription)
}

// adopt obeys the limits that hold now.
func (s *Subscription) adopt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, ok := s.dispatch.(*shared)
	if !ok {
		return
	}
	each, all := d.limits()
	for _, c := range s.consumers {
		switch over := each > 0 && c.unacked >= each; {
		case over:
			c.blocked = true
		case c.blocked:
			d.open(c)
		}
	}
	was := d.blocked
	d.blocked = all > 0 && d.unacked >= all
	d.opened = d.opened || was && !d.blocked
}

// open lets a blocked consumer go on with the permits that came meanwhile.
func (d *shared) open(c *Consumer) {
	c.blocked, d.opened = false, true
	c.permits = addPermits(c.permits, c.aside)
	c.aside = 0
}

func (d *shared) unblock() {
	if _, all := d.limits(); d.blocked && d.unacked < max(all/2, 1) {
		d.blocked, d.opened = false, true
	}
}

func (d *shared) acked(p Position, out AckOutcome, by *Consumer) {
	h, held := d.pending[p]
	switch {
	case held && out.Entry:
		d.release(p, h)
	case held:
		freed := out.FreedOf(int(h.messages))
		h.messages -= int32(freed)
		d.pending[p] = h
		d.settle(h.c, freed)
	case out.Entry:
		d.unqueue(p)
		d.chunks.drop(Range{p, p})
		d.delayed.Remove(p)
		delete(d.slots, p)
	}
	if len(d.pending) == 0 {
		d.shrink()
	}
	d.unblock()
}

func (d *shared) skipTo(p Position) {
	for at, h := range d.pending {
		if !p.Less(at) {
			d.release(at, h)
		}
	}
	d.replay.RemoveUpTo(p)
	d.chunks.drop(Range{Position{}, p})
	if d.keys != nil {
		d.keys.unwaitIn(Range{Position{}, p})
	}
	d.unblock()
}

func (d *shared) lost(r Range) {
	for p, h := range d.pending {
		if r.Contains(p) {
			d.release(p, h)
		}
	}
	d.replay.RemoveRange(r)
	d.chunks.drop(r)
	if d.keys != nil {
		d.keys.unwaitIn(r)
	}
	d.unblock()
}

// clear forgets all deliveries; only without consumers, or when they are told to
// come back.
func (d *shared) clear() {
	for p, h := range d.pending {
		d.release(p, h)
	}
	d.replay.Clear()
	d.delayed.Clear()
	clear(d.slots)
	d.chunks = chunkOwners{}
	if d.keys != nil {
		d.keys.clear()
	}
	d.unacked, d.blocked = 0, false
	d.read = d.s.cursor.MarkDelete()
	d.memory.Release()
	d.memory, d.reserve = Grant{}, 0
}

func (d *shared) leave(c *Consumer) {
	for p, h := range d.pending {
		if h.c == c {
			d.release(p, h)
			d.requeue(p, h.slot)
		}
	}
	d.chunks.leave(c)
	d.chunks.unpark(c, func(p Position) { d.requeue(p, 0) })
	if d.keys != nil {
		d.keys.leave(c)
	}
	d.unblock()
}

// kept is how many entries are remembered one by one.
func (d *shared) kept() int {
	return len(d.pending) + int(d.replay.Len()) + d.chunks.waiting() + d.delayed.Len()
}

// grow reserves memory for so many more entries, and returns for how many there is.
func (d *shared) grow(more int) int {
	kept := d.kept()
	for kept+more > d.reserve {
		g, ok := d.s.topic.broker.budget.TryTake(ShareSubscription, pendStep*pendBytes)
		if !ok {
			break
		}
		d.memory.Join(g)
		d.reserve += pendStep
	}
	return d.reserve - kept
}

// shrink gives memory back that is not needed any more; with nothing kept all of it.
func (d *shared) shrink() {
	need := 0
	if kept := d.kept(); kept > 0 {
		need = (kept/pendStep + 2) * pendStep
	}
	if d.reserve > need {
		d.memory.Split(int64((d.reserve - need) * pendBytes)).Release()
		d.reserve = need
	}
}
