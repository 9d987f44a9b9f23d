package edge

// Redeliver gives entries back for another delivery (protocol 3.9). On kinds that
// share these are the given ones, or all for nil, as far as this consumer holds them,
// and their count rises. On the others everything unacknowledged is read anew, and
// epoch, if it is higher, is what deliveries carry from then on.
func (c *Consumer) Redeliver(ids []Position, epoch int64) {
	s := c.sub
	s.mu.Lock()
	if c.gone || s.closed != nil || s.pause != nil {
		s.mu.Unlock()
		return
	}
	switch d := s.dispatch.(type) {
	case *shared:
		if d.giveUp(c, ids) {
			s.changedLocked(nil)
		}
	case *single:
		c.epoch = max(c.epoch, epoch)
		if d.active == c {
			d.rewind()
		}
	}
	s.mu.Unlock()
	s.wake()
}

// giveUp takes entries from a consumer that wants them delivered again.
func (d *shared) giveUp(c *Consumer, ids []Position) bool {
	if ids == nil {
		for p, h := range d.pending {
			if h.c == c {
				ids = append(ids, p)
			}
		}
	}
	any := false
	for _, p := range ids {
		h, ok := d.pending[p]
		if !ok || h.c != c {
			continue
		}
		d.release(p, h)
		d.s.cursor.Raise(p)
		d.requeue(p, h.slot)
		any = true
	}
	if any && c.blocked {
		d.open(c)
	}
	d.unblock()
	return any
}

// GiveBack returns deliveries that never reached the client. Permits are restored and
// counts stay; the grants are released.
func (c *Consumer) GiveBack(ds []Delivery) {
	s := c.sub
	for i := range ds {
		ds[i].Grant.Release()
	}
	s.mu.Lock()
	if c.gone || s.closed != nil {
		s.mu.Unlock()
		return
	}
	for i := range ds {
		s.backLocked(c, &ds[i])
	}
	s.mu.Unlock()
	s.wake()
}

func (s *Subscription) backLocked(c *Consumer, d *Delivery) {
	s.countLocked(c, -unackedOf(&d.Entry, d.Rest), -len(d.Entry.Data), d.Redelivered > 0)
	if !s.topic.name.IsPersistent() { // nobody has it any more
		s.counts.dropped.Add(int64(d.Entry.Facts.Messages))
		s.topic.counts.dropped.Add(int64(d.Entry.Facts.Messages))
	}
	switch f := s.dispatch.(type) {
	case *shared:
		p := d.Entry.Position
		if h, ok := f.pending[p]; ok && h.c == c {
			f.release(p, h)
			f.requeue(p, h.slot)
			f.unblock()
		}
	case *single:
		if f.active == c {
			f.back(d.Entry.Position)
		}
	}
}
