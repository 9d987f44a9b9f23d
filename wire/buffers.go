package wire

import "sync"

// Buffers lends read buffers to the readers that have much to read at the moment.
// It never holds more than count × size bytes, and makes them only when they are
// first wanted. It may be shared by any number of readers.
type Buffers struct {
	size int

	mu     sync.Mutex
	free   [][]byte
	unmade int
}

// NewBuffers returns a pool of up to count buffers of size bytes each, at least
// 1 KiB: below that they gain nothing over a reader's own.
func NewBuffers(count, size int) *Buffers {
	return &Buffers{size: max(size, 2*idleBuffer), unmade: count}
}

// get returns nil when all are lent out.
func (b *Buffers) get() []byte {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(b.free); n > 0 {
		buf := b.free[n-1]
		b.free = b.free[:n-1]
		return buf
	}
	if b.unmade <= 0 {
		return nil
	}
	b.unmade--
	return make([]byte, b.size)
}

func (b *Buffers) put(buf []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free = append(b.free, buf)
}
