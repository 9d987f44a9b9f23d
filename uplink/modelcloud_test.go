package uplink

// modelCloud keeps what Pulsar's deduplication keeps: a frame counts by its first id
// only, and that id becomes the highest, since the Go client states no other.
type modelCloud struct {
	highest map[string]int64
	log     []uint64
}

type modelFrame struct {
	producer string
	indexes  []uint64
	batch    bool
	dup      bool
}

func (c *modelCloud) apply(f *modelFrame) {
	high, known := c.highest[f.producer]
	if known && int64(f.indexes[0]) <= high {
		f.dup = true
		return
	}
	c.highest[f.producer] = int64(f.indexes[0])
	c.log = append(c.log, f.indexes...)
}

// modelClient batches as the official client does.
type modelClient struct {
	by      identity
	builder []uint64
	asked   bool          // for a flush, which the client takes up when it likes
	wire    []modelFrame  // written, not yet at the cloud
	answers []modelAnswer // receipts on their way, one for each message
}

type modelAnswer struct {
	index uint64
	dup   bool
}

func (c *modelClient) single(i uint64) {
	c.wire = append(c.wire, modelFrame{producer: c.by.producer, indexes: []uint64{i}})
}

func (c *modelClient) join(i uint64) {
	if len(c.builder) >= c.by.count {
		c.flush()
	}
	c.builder = append(c.builder, i)
}

func (c *modelClient) flush() {
	if len(c.builder) > 0 {
		c.wire = append(c.wire, modelFrame{producer: c.by.producer, indexes: c.builder, batch: true})
		c.builder = nil
	}
}
