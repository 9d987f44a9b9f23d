package admin

// addPublishers adds the producers of one more partition to a sum, the first to the first
// and so on: every partition may have given a producer another name, so that names tell
// nothing, and the sum has none (watched on 4.0.7).
func addPublishers(sum, more []publisherStats) []publisherStats {
	for i, p := range more {
		if i == len(sum) {
			sum = append(sum, publisherStats{})
		}
		s := &sum[i]
		s.RateIn += p.RateIn
		s.ThroughputIn += p.ThroughputIn
		s.AverageSize = rate(perMessage(float64(s.ThroughputIn), float64(s.RateIn)))
	}
	return sum
}

// addConsumers adds the consumers of one more partition to a sum, those of one name in the
// order in which they stand: a client names its consumers of all partitions alike. What
// belongs to one connection or moment is left out (watched on 4.0.7).
func addConsumers(sum, more []consumerStats) []consumerStats {
	places := make(map[string][]int, len(sum))
	for i, c := range sum {
		places[c.Name] = append(places[c.Name], i)
	}
	for _, c := range more {
		i := len(sum)
		if p := places[c.Name]; len(p) > 0 {
			i, places[c.Name] = p[0], p[1:]
		} else {
			sum = append(sum, consumerStats{Name: c.Name, LastAckedTime: isoMillis(0), LastConsumedTime: isoMillis(0)})
		}
		sum[i].add(&c)
	}
	return sum
}

func (c *consumerStats) add(o *consumerStats) {
	c.RateOut += o.RateOut
	c.ThroughputOut += o.ThroughputOut
	c.BytesOut += o.BytesOut
	c.MessagesOut += o.MessagesOut
	c.RateRedeliver += o.RateRedeliver
	c.Permits += o.Permits
	c.Unacked += o.Unacked
	c.Blocked = c.Blocked || o.Blocked
}
