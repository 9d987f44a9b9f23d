package uplink

// backlog reports whether so much waits that a batch is worth its plan.
func (p *planner) backlog() bool {
	full := p.fullCount()
	if full < 2 {
		return false
	}
	rest := p.window.unsent()
	return p.worth(rest[:p.group(rest, full)], full)
}

// worth reports whether messages make a batch. Those with a schema go one at a time
// when they go singly, so two of them do.
func (p *planner) worth(items []item, full int) bool {
	n := len(items)
	return n >= full || n > 1 && (items[0].schema || bytesOf(items) >= p.set.batchBytes)
}

func bytesOf(items []item) int {
	bytes := 0
	for i := range items {
		bytes += items[i].size
	}
	return bytes
}

// fullCount is how many messages make a full batch: as many of those that wait as fit
// the aim on average.
func (p *planner) fullCount() int {
	rest := p.window.unsent()
	if len(rest) == 0 {
		return p.set.count
	}
	average := max(bytesOf(rest)/len(rest), 1)
	return min(max(p.set.batchBytes/average, 1), p.set.count)
}

// near reports whether a producer's full count still suits. Another one costs some round
// trips, an unsuitable one batches that are too small, or too short to follow each other.
func near(have, want int) bool { return have == want || want <= 4*have && have <= 4*want && have > 1 }

// batchUp cuts the messages that have no segment into batches, up to the first that
// would not be worth it: those wait for more to come, or go singly.
func (p *planner) batchUp(by identity) []segment {
	var made []segment
	full := min(p.fullCount(), by.count)
	for rest := p.fresh(); len(rest) > 0; {
		n := p.group(rest, by.count)
		if !p.worth(rest[:n], full) {
			break
		}
		made = append(made, segment{first: rest[0].first, last: rest[n-1].last, batch: true, by: by})
		rest = rest[n:]
	}
	return made
}

// fresh are the unsent items behind the last segment.
func (p *planner) fresh() []item {
	rest := p.window.unsent()
	n := len(p.plan.open)
	if n == 0 {
		return rest
	}
	for len(rest) > 0 && rest[0].first <= p.plan.open[n-1].last {
		rest = rest[1:]
	}
	return rest
}

// group counts the messages that can share a batch, from the first on.
func (p *planner) group(rest []item, count int) int {
	n, bytes := 0, 0
	for n < len(rest) && n < count {
		it := &rest[n]
		bytes += it.size
		if it.alone || it.park != "" || it.group != rest[0].group || n > 0 && bytes > p.set.hardBytes {
			break
		}
		n++
	}
	return n
}
