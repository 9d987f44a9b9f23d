package edge

import (
	"cmp"
	"slices"
	"strconv"
)

// ringPoints is how often a candidate stands on the ring, as in the reference: a
// broker that takes over or hands back a topic chooses the same consumer.
const ringPoints = 100

// seat is a consumer that may become the active one of a Failover subscription.
type seat struct {
	priority int    // lower is better
	name     string // the consumer's
	joined   uint64 // order of joining
	ring     *ringPlace
}

// ringPlace remembers how far a consumer stands from its topic on the ring, since every
// joining and leaving asks for that of all. It is the consumer's.
type ringPlace struct {
	known    bool
	distance uint32
}

// chooseActive returns the index of the seat that is to be active, −1 without any
// (protocol 3.6). Only those with the best priority are candidates. Of a partition
// it is the one whose rank by name is the partition's index, modulo their number;
// partition is −1 for other topics, there a hash ring decides. current is the index
// of the active seat or −1: it keeps the role against a namesake.
func chooseActive(topic string, partition int, seats []seat, current int) int {
	var best []int // indexes of the candidates
	for i, s := range seats {
		if len(best) > 0 && s.priority > seats[best[0]].priority {
			continue
		}
		if len(best) > 0 && s.priority < seats[best[0]].priority {
			best = best[:0]
		}
		best = append(best, i)
	}
	switch {
	case len(best) == 0:
		return -1
	case partition < 0:
		return onRing(topic, seats, best, current)
	}
	slices.SortFunc(best, func(i, j int) int {
		return cmp.Or(cmp.Compare(seats[i].name, seats[j].name), cmp.Compare(seats[i].joined, seats[j].joined))
	})
	return best[partition%len(best)]
}

// onRing returns the candidate that owns the first point at the topic's hash or
// behind, going round; of those with the same point the current one or the last to
// have joined.
func onRing(topic string, seats []seat, candidates []int, current int) int {
	target := murmur3([]byte(topic))
	chosen, nearest := -1, uint32(0)
	for _, i := range candidates {
		distance := seats[i].distance(target)
		tie := chosen >= 0 && distance == nearest && chosen != current &&
			(i == current || seats[i].joined > seats[chosen].joined)
		if chosen < 0 || distance < nearest || tie {
			chosen, nearest = i, distance
		}
	}
	return chosen
}

// distance is how far the first point of the seat's lies behind the target, going round.
func (s *seat) distance(target uint32) uint32 {
	if s.ring != nil && s.ring.known {
		return s.ring.distance
	}
	name := []byte(s.name)
	distance := ^uint32(0)
	for n := range int64(ringPoints) {
		point := murmur3(strconv.AppendInt(name, n, 10))
		distance = min(distance, (point-target)&0x7fffffff)
	}
	if s.ring != nil {
		*s.ring = ringPlace{true, distance}
	}
	return distance
}
