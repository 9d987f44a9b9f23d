package uplink

// identity is who sends and where to: what must not change when a send goes again.
type identity struct {
	producer string // name at the cloud, which keeps one highest id for each
	target   string // full name of the cloud topic
	count    int    // messages of a full batch, the client's own limit for this producer
}

// segment is a range of topic-wide message indexes that leaves, or may have left, the
// device in one way.
type segment struct {
	first, last uint64
	batch       bool // one batch of exactly these; else singles, last being the mark
	by          identity

	// What follows is not stored.
	durable   uint64 // indexes below are synced with the plan and may leave
	saving    uint64 // indexes below are in the save under way
	left      uint64 // of singles: indexes below may have left and must go singly
	inherited bool   // from an earlier life of the program: it may have left then
}

func (s *segment) has(index uint64) bool { return s.first <= index && index <= s.last }

// plan is the durable part of a forwarder, kept in the cursor: which identity new
// sends have, and the ordered list of segments that are open.
type plan struct {
	edge   string // edge id of the newest epoch
	target string // cloud topic of the newest epoch
	epoch  uint64 // raised whenever ids could be taken for others under the old name
	next   uint64 // every index below is settled: in the cloud, or parked
	open   []segment
}

// find returns the segment that holds an index, or nil.
func (p *plan) find(index uint64) *segment {
	for i := range p.open {
		if p.open[i].has(index) {
			return &p.open[i]
		}
	}
	return nil
}

// settle drops what lies below next.
func (p *plan) settle(next uint64) {
	p.next = max(p.next, next)
	n := 0
	for n < len(p.open) && p.open[n].last < p.next {
		n++
	}
	p.open = append(p.open[:0], p.open[n:]...)
	if len(p.open) > 0 && !p.open[0].batch {
		p.open[0].first = max(p.open[0].first, p.next)
	}
}

// cut takes an index and all above it out of a segment of singles.
func (p *plan) cut(index uint64) {
	kept := p.open[:0]
	for _, s := range p.open {
		if s.has(index) && !s.batch {
			if s.first == index {
				continue
			}
			s.last = index - 1
		}
		kept = append(kept, s)
	}
	p.open = kept
}
