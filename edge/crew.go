package edge

import "sync"

// crew runs the dispatch of the subscriptions that were woken: a few goroutines take
// them in the order of their wakes. One that has to wait for the disk or for memory
// goes on beside the crew, so that it holds up none of the others.
type crew struct {
	limit int
	wg    sync.WaitGroup

	mu          sync.Mutex
	come        sync.Cond     // somebody is in line, or it is over
	first, last *Subscription // those that wait, linked by behind; each is there once
	busy        int           // hands that neither rest nor are away
	resting     int           // hands that wait for somebody
	over        bool
}

// hand is one goroutine of a crew, and what it needs for a step again and again.
type hand struct {
	crew    *crew
	away    bool // it waits, or has waited, and is not counted
	view    view
	plan    readPlan
	batch   Batch
	grant   Grant
	ranges  []Range    // room for those of the plan
	entries []Entry    // room for what is read from the tail
	fed     []Receiver // who got something that is not sent off
}

// maxSteps is how many steps a subscription may do before what it gave is sent off and
// the next one's turn comes.
const maxSteps = 8

// maxFed is how many receivers may wait for being told to send off what they got: what is
// for one connection then goes out together.
const maxFed = 32

func newCrew(limit int) *crew {
	c := &crew{limit: max(limit, 1)}
	c.come.L = &c.mu
	return c
}

// add puts a subscription in line. It never blocks.
func (c *crew) add(s *Subscription) {
	c.mu.Lock()
	if c.last == nil {
		c.first = s
	} else {
		c.last.behind = s
	}
	c.last = s
	c.callLocked()
	c.mu.Unlock()
}

// callLocked sees to it that somebody takes the first in line, unless all hands are busy.
func (c *crew) callLocked() {
	switch {
	case c.first == nil:
	case c.resting > 0:
		c.come.Signal()
	case c.busy < c.limit:
		c.busy++
		c.wg.Add(1)
		go c.work()
	}
}

// work dispatches until it is over, or until others do it.
func (c *crew) work() {
	defer c.wg.Done()
	h := hand{crew: c}
	for {
		s := c.take(&h, false)
		if s == nil {
			h.send()
			h.view, h.plan = view{}, readPlan{}
			if s = c.take(&h, true); s == nil {
				return
			}
		}
		if s.run(&h) {
			c.add(s)
		}
	}
}

// take is the next in line. Nil says that nobody is, or to who rests until somebody is,
// that this hand is not needed any more.
func (c *crew) take(h *hand, rest bool) *Subscription {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h.away {
		if c.busy+c.resting >= c.limit || c.over {
			return nil
		}
		c.busy++
		h.away = false
	}
	for c.first == nil {
		if !rest {
			return nil
		}
		c.busy--
		if c.over {
			return nil
		}
		c.resting++
		c.come.Wait()
		c.resting--
		c.busy++
	}
	s := c.first
	if c.first = s.behind; c.first == nil {
		c.last = nil
	}
	s.behind = nil
	return s
}

// leave comes before a hand waits: others may take its place.
func (h *hand) leave() {
	h.send()
	if h.away {
		return
	}
	h.away = true
	c := h.crew
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy--
	c.callLocked()
}

// feed notes that a receiver got something.
func (h *hand) feed(r Receiver) {
	if n := len(h.fed); n > 0 && h.fed[n-1] == r {
		return
	}
	h.fed = append(h.fed, r)
}

// send lets all receivers send off what they got.
func (h *hand) send() {
	for _, r := range h.fed {
		r.Flush()
	}
	clear(h.fed)
	h.fed = h.fed[:0]
}

// wait waits until all goroutines have ended. Every subscription has ended before.
func (c *crew) wait() {
	c.mu.Lock()
	c.over = true
	c.come.Broadcast()
	c.mu.Unlock()
	c.wg.Wait()
}
