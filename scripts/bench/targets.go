package main

// A target is a ratio that the project has set itself: how many times better the built broker shall be than a peer.
type target struct {
	cell, peer string
	size       int
	ratio      float64
}

// targets hold on ext4 without a journal: with one, a peer that grows its files with every sync pays for it twice.
func targets() []target {
	return []target{
		{"publish-16", "null", 1024, 0.70},
		{"publish-256", "null", 1024, 0.85},
		{pipelined, "null", 1024, 0.85},
		{batched, "null", 1024, 0.70},
		{"publish-1", "jetstream", 1024, 1.3},
		{"publish-16", "jetstream", 1024, 5},
		{"publish-256", "jetstream", 1024, 5},
		{batched, "jetstream", 1024, 45},
		{"publish-16", "redis", 1024, 1.1},
		{"publish-16", "sqlite", 1024, 6},
		{"drain-singles", "pulsar", 128, 5},
		{"drain-singles", "jetstream", 128, 0.5},
		{"drain-batches", "pulsar", 128, 1},
	}
}

// wanted is the ratio set for a cell against a peer, 0 if there is none.
func wanted(cell, peer string, size int) float64 {
	for _, t := range targets() {
		if t.cell == cell && t.peer == peer && t.size == size {
			return t.ratio
		}
	}
	return 0
}
