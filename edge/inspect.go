package edge

// OpenTopics is a snapshot of the topics that are loaded now, in no order. Metrics read
// these, so that a scrape loads none.
func (b *Broker) OpenTopics() []*Topic { return b.openTopics() }

// LastID tells the topic's last entry, as Consumer.LastID does. On an empty topic Last is
// the position before the first entry to come, and MarkDelete is never set.
func (t *Topic) LastID() LastID {
	last, ok := t.lastStored()
	if !ok {
		return LastID{Last: t.ledger.Spans().End()}
	}
	return LastID{Last: last.position, Messages: last.messages, Batch: last.batch}
}
