package edge

import "sync"

// crew runs the dispatch of the subscriptions that were woken: a few goroutines take
// them in the order of their wakes. One that has to wait for the disk or for memory
// goes on beside the crew, so that it holds up none of the others.
type crew struct {
	limit int
	wg    sync.WaitGroup

	mu          sync.Mutex
	first, last *Subscription // those that wait, linked by behind; each is there once
	busy        int           // hands that are not away
}

// hand is one goroutine of a crew.
type hand struct {
	crew *crew
	away bool // it waits, or has waited, and is not counted
}

// maxSteps is how many steps a subscription may do before the next one's turn.
const maxSteps = 8

func newCrew(limit int) *crew { return &crew{limit: max(limit, 1)} }

// add puts a subscription in line. It never blocks.
func (c *crew) add(s *Subscription) {
	c.mu.Lock()
	if c.last == nil {
		c.first = s
	} else {
		c.last.behind = s
	}
	c.last = s
	c.hireLocked()
	c.mu.Unlock()
}

// hireLocked starts one more goroutine if there is work for it.
func (c *crew) hireLocked() {
	if c.first == nil || c.busy == c.limit {
		return
	}
	c.busy++
	c.wg.Add(1)
	go c.work()
}

// work dispatches until nobody waits, or until others do it.
func (c *crew) work() {
	defer c.wg.Done()
	h := hand{crew: c}
	for s := c.take(&h); s != nil; s = c.take(&h) {
		if s.run(&h) {
			c.add(s)
		}
	}
}

// take is the next in line, nil if this hand is not needed any more.
func (c *crew) take(h *hand) *Subscription {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h.away && c.busy == c.limit {
		return nil
	}
	s := c.first
	switch {
	case s == nil && !h.away:
		c.busy--
	case s != nil && h.away:
		c.busy++
		h.away = false
	}
	if s == nil {
		return nil
	}
	if c.first = s.behind; c.first == nil {
		c.last = nil
	}
	s.behind = nil
	return s
}

// leave comes before a hand waits: others may take its place.
func (h *hand) leave() {
	if h.away {
		return
	}
	h.away = true
	c := h.crew
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy--
	c.hireLocked()
}

// wait waits until all goroutines have ended. Every subscription has ended before.
func (c *crew) wait() { c.wg.Wait() }
