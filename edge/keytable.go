package edge

import "hash/maphash"

// keysAtOnce bounds the keys that a round of compaction looks at: the table takes
// tableBytes then, whatever the number of keys and their length.
const (
	keysAtOnce = 28_000
	tableSlots = 1 << 15
	tableBytes = tableSlots * 24
)

// keyTable holds the newest message of each key, of so many as it has room for. Keys are
// told apart by 128 bits of hash with seeds of this run: two that meet are nothing to
// wait for, and nobody can make them.
type keyTable struct {
	seeds [2]maphash.Seed
	slots []keySlot
	n     int
}

type keySlot struct {
	hash   [2]uint64
	newest uint64 // 0 in a free slot
}

func newKeyTable() *keyTable {
	return &keyTable{
		seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
		slots: make([]keySlot, tableSlots),
	}
}

// holds reports whether so many more keys surely find room.
func (t *keyTable) holds(more int) bool { return t.n+more <= keysAtOnce }

func (t *keyTable) clear() {
	clear(t.slots)
	t.n = 0
}

// slot is the one of a key, or the free one where it belongs.
func (t *keyTable) slot(key []byte) (*keySlot, [2]uint64) {
	hash := [2]uint64{maphash.Bytes(t.seeds[0], key), maphash.Bytes(t.seeds[1], key)}
	for i := hash[0] % tableSlots; ; i = (i + 1) % tableSlots {
		if s := &t.slots[i]; s.newest == 0 || s.hash == hash {
			return s, hash
		}
	}
}

// put notes the newest message of a key, which is not 0. There must be room.
func (t *keyTable) put(key []byte, newest uint64) {
	s, hash := t.slot(key)
	if s.newest == 0 {
		t.n++
	}
	*s = keySlot{hash, newest}
}

// get is the newest message of a key, 0 if there is none.
func (t *keyTable) get(key []byte) uint64 {
	s, _ := t.slot(key)
	return s.newest
}
