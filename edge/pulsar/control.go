package pulsar

import "wayside/edge"

// inlineBytes is what a connection has of its own for answers and pushed frames: a few
// receipts. More are gathered in a buffer that is lent.
const inlineBytes = 256

// control gathers frames without payload until they are written. One half can be
// written while the other fills.
type control struct {
	pool   *buffers
	buf    []byte
	lent   bool // buf is the pool's
	half   int  // which of own is filling
	own    [2][inlineBytes]byte
	frames int        // answers among them, each of which holds a slot
	grant  edge.Grant // memory of the large ones among them
}

// grow makes room for n bytes behind buf.
func (c *control) grow(n int) {
	if c.buf == nil {
		c.buf = c.own[c.half][:0]
	}
	if cap(c.buf)-len(c.buf) >= n {
		return
	}
	var larger []byte
	lent := false
	if len(c.buf)+n <= bufferSize && !c.lent {
		larger = c.pool.get()
		lent = larger != nil
	}
	if larger == nil {
		larger = make([]byte, 0, max(2*len(c.buf), len(c.buf)+n))
	}
	larger = append(larger, c.buf...)
	if c.lent {
		c.pool.put(c.buf)
	}
	c.buf, c.lent = larger, lent
}

// add appends a frame.
func (c *control) add(frame []byte) {
	c.grow(len(frame))
	c.buf = append(c.buf, frame...)
}

// gathered is what take returned.
type gathered struct {
	buf    []byte
	lent   bool
	frames int
	grant  edge.Grant // whoever ends them releases it
}

// take empties c. What it returns goes back by release before the next take.
func (c *control) take() gathered {
	g := gathered{c.buf, c.lent, c.frames, c.grant}
	c.buf, c.lent, c.frames, c.grant = nil, false, 0, edge.Grant{}
	c.half = 1 - c.half
	return g
}

// release gives the bytes of g back, which nobody uses any more.
func (c *control) release(g gathered) {
	if g.lent {
		c.pool.put(g.buf)
	}
}
