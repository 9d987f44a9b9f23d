package edge

import (
	"slices"
	"sync"
)

// compactor compacts topics one after the other, so that the memory for it is taken
// once. Each topic is in line at most once; its goroutine lives as long as there is work.
type compactor struct {
	mu   sync.Mutex // the broker's lock is taken under it
	line []*Topic
	busy bool
}

// add puts a topic in line. It returns false where the broker stops.
func (c *compactor) add(b *Broker, t *Topic) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.busy && !b.spawn(func() { c.work(b) }) {
		return false
	}
	c.busy = true
	c.line = append(c.line, t)
	return true
}

// drop takes a topic out of the line again, and returns false if it is not there.
func (c *compactor) drop(t *Topic) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.Index(c.line, t)
	if i >= 0 {
		c.line = slices.Delete(c.line, i, i+1)
	}
	return i >= 0
}

func (c *compactor) work(b *Broker) {
	for {
		c.mu.Lock()
		if len(c.line) == 0 {
			c.line, c.busy = nil, false
			c.mu.Unlock()
			return
		}
		t := c.line[0]
		c.line = slices.Delete(c.line, 0, 1)
		c.mu.Unlock()
		t.compact(b.run)
	}
}
