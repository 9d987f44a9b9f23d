package main

import (
	"wayside/edge"
	"wayside/wire"
)

// opener lets the core look into entries for compaction.
type opener struct {
	unpacker wire.Unpacker
	limit    int // bytes that a batch may have uncompressed; what is larger is kept whole
}

// opened is by how much a batch may be larger uncompressed than a message may be sent.
const opened = 4

func newOpener(messageSize int64) *opener {
	return &opener{limit: opened * int(messageSize)}
}

// Keys implements edge.Opener.
func (o *opener) Keys(data []byte, visit func(edge.MessageKey)) error {
	return o.unpacker.Keys(data, o.limit, func(k wire.Keyed) { visit(edge.MessageKey(k)) })
}

// Thin implements edge.Opener.
func (o *opener) Thin(data []byte, keep func(index int) bool) ([]byte, error) {
	return o.unpacker.Thin(data, o.limit, keep)
}
