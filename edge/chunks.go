package edge

// chunkOwners keeps the chunks of a message with one consumer (protocol 3.7), and
// remembers the chunks whose owner could not take them when they were read, so that
// they hold nobody up. The zero value is empty; the subscription's lock guards it.
type chunkOwners struct {
	owners map[string]*Consumer // by the message's id
	parked map[*Consumer]*Runs  // read, and waiting for their owner
}

// maxChunkOwners bounds the chunked messages that are under way (protocol 3.7).
const maxChunkOwners = 1_000

// own makes a consumer the owner. At the bound some message loses its own: one whose
// last chunk never came, most likely.
func (o *chunkOwners) own(id string, c *Consumer) {
	if o.owners == nil {
		o.owners = map[string]*Consumer{}
	}
	for other := range o.owners {
		if len(o.owners) < maxChunkOwners {
			break
		}
		delete(o.owners, other)
	}
	o.owners[id] = c
}

// park keeps an entry for its owner.
func (o *chunkOwners) park(c *Consumer, p Position) {
	if o.parked == nil {
		o.parked = map[*Consumer]*Runs{}
	}
	r := o.parked[c]
	if r == nil {
		r = &Runs{}
		o.parked[c] = r
	}
	r.Add(p)
}

// unpark takes out what waits for an owner.
func (o *chunkOwners) unpark(c *Consumer, visit func(Position)) {
	r := o.parked[c]
	if r == nil {
		return
	}
	delete(o.parked, c)
	for p := range positions(r) {
		visit(p)
	}
}

// leave forgets a consumer as owner.
func (o *chunkOwners) leave(c *Consumer) {
	for id, owner := range o.owners {
		if owner == c {
			delete(o.owners, id)
		}
	}
}

// drop forgets entries that wait for their owner.
func (o *chunkOwners) drop(gone Range) {
	for c, r := range o.parked {
		if r.RemoveRange(gone); r.Len() == 0 {
			delete(o.parked, c)
		}
	}
}

// waiting is the number of entries that wait for their owner.
func (o *chunkOwners) waiting() int {
	n := int64(0)
	for _, r := range o.parked {
		n += r.Len()
	}
	return int(n)
}
