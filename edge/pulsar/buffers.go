package pulsar

import "sync"

// bufferSize is what the writer of one connection fills before it writes.
const bufferSize = 64 << 10

// buffers lends write buffers to the connections that are writing at the moment, and
// never has more than its count of them. One who finds none left makes do with a
// small one of its own.
type buffers struct {
	mu     sync.Mutex
	free   [][]byte
	unmade int
}

func newBuffers(count int) *buffers { return &buffers{unmade: count} }

// get returns an empty buffer of bufferSize, or nil when all are lent out.
func (b *buffers) get() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(b.free); n > 0 {
		buf := b.free[n-1]
		b.free = b.free[:n-1]
		return buf[:0]
	}
	if b.unmade <= 0 {
		return nil
	}
	b.unmade--
	return make([]byte, 0, bufferSize)
}

// put takes a buffer back that get returned. Nobody uses it any more.
func (b *buffers) put(buf []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free = append(b.free, buf)
}
