package boltstore

import (
	"wayside/edge"
)

// merger puts chunks that follow each other together.
type merger struct {
	out     []filedChunk
	arena   []byte // values; what does not fit gets memory of its own
	entries []edge.Entry
	bytes   int
	names   interned
}

func (m *merger) add(c *chunk) error {
	walk := c.at(c.first)
	for walk.more() {
		f, ok := walk.read()
		if !ok {
			continue
		}
		e, err := c.open(f, &m.names)
		if err != nil {
			continue
		}
		if n := len(m.entries); n > 0 && (m.entries[n-1].Position.Next() != e.Position || m.entries[n-1].LastIndex()+1 != e.Index || m.bytes >= mergedBytes) {
			m.flush()
		}
		m.entries = append(m.entries, e)
		m.bytes += len(e.Data) + frameOverhead
	}
	return nil
}

// copy takes a chunk as it is. What in it is rotten stays so: readers see it.
func (m *merger) copy(c *chunk) error {
	m.flush()
	value := m.room(c.value.size())
	err := c.value.(*looseValue).readAll(value)
	if err == nil {
		m.out = append(m.out, filedChunk{c.ledger, storedChunk{c.first, c.last(), value}})
	}
	return err
}

// room is memory for a value: of the arena, unless that is used up.
func (m *merger) room(n int) []byte {
	start := len(m.arena)
	if start+n > cap(m.arena) {
		return make([]byte, n)
	}
	m.arena = m.arena[:start+n]
	return m.arena[start : start+n : start+n]
}

func (m *merger) flush() {
	if len(m.entries) == 0 {
		return
	}
	first := &m.entries[0]
	start := len(m.arena)
	value := appendChunk(m.arena, first.Position, first.Index, len(m.entries), func(i int) (*edge.Facts, []byte) {
		return &m.entries[i].Facts, m.entries[i].Data
	})
	if cap(value) == cap(m.arena) {
		m.arena = value
	}
	value = value[start:len(value):len(value)]
	last := m.entries[len(m.entries)-1].Position.Entry
	m.out = append(m.out, filedChunk{first.Position.Ledger, storedChunk{first.Position.Entry, last, value}})
	m.entries, m.bytes = m.entries[:0], 0
}

func (m *merger) end() []filedChunk {
	m.flush()
	return m.out
}
