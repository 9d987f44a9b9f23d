package wire

import (
	"bytes"
	"io"
	"testing"
)

// bursts gives its parts one read after the other, as much as fits, and records
// which reader buffers were lent out during each read.
type bursts struct {
	t     *testing.T
	parts [][]byte
	pool  *Buffers
	reads []int // lengths given
	lent  []bool
}

func (b *bursts) Read(p []byte) (int, error) {
	b.pool.mu.Lock()
	b.lent = append(b.lent, b.pool.unmade == 0 && len(b.pool.free) == 0)
	b.pool.mu.Unlock()
	if len(b.parts) == 0 {
		return 0, io.EOF
	}
	n := copy(p, b.parts[0])
	b.reads = append(b.reads, n)
	if b.parts[0] = b.parts[0][n:]; len(b.parts[0]) == 0 {
		b.parts = b.parts[1:]
	}
	return n, nil
}

func readAll(t *testing.T, src *bursts) (frames int) {
	t.Helper()
	r := NewReader(src, 1<<20)
	r.SetBuffers(src.pool)
	for {
		h, err := r.Next()
		if err == io.EOF {
			if r.pooled() {
				t.Error("a drained reader keeps a borrowed buffer")
			}
			return frames
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := r.ReadBody(make([]byte, h.Body())); err != nil {
			t.Fatal(err)
		}
		frames++
	}
}

// TestBuffersBurst: pipelined small frames cost few reads, and the buffer is back
// when the reader waits for more.
func TestBuffersBurst(t *testing.T) {
	burst := bytes.Repeat([]byte(PingFrame), 2000) // 26,000 bytes
	src := &bursts{t: t, parts: [][]byte{burst, burst}, pool: NewBuffers(1, 32<<10)}
	if frames := readAll(t, src); frames != 4000 {
		t.Errorf("%d frames", frames)
	}
	if len(src.reads) > 4 {
		t.Errorf("%d reads for two bursts: %v", len(src.reads), src.reads)
	}
	if src.lent[len(src.lent)-1] {
		t.Error("the last read waited with a borrowed buffer")
	}
}

// TestBuffersQuiet: frames that come one by one never borrow.
func TestBuffersQuiet(t *testing.T) {
	src := &bursts{t: t, pool: NewBuffers(1, 32<<10)}
	for range 100 {
		src.parts = append(src.parts, []byte(PingFrame))
	}
	if frames := readAll(t, src); frames != 100 {
		t.Errorf("%d frames", frames)
	}
	if src.pool.unmade != 1 {
		t.Error("a buffer was made for single small frames")
	}
}

// TestBuffersExhausted: without a buffer to be had all works, with more reads; and
// a large body is read straight into its place.
func TestBuffersExhausted(t *testing.T) {
	large := make([]byte, 100<<10)
	putPrefix(large, 2, len(large)-prefixLength-2)
	burst := append(bytes.Repeat([]byte(PingFrame), 100), large...)
	src := &bursts{t: t, parts: [][]byte{burst}, pool: NewBuffers(0, 32<<10)}
	if frames := readAll(t, src); frames != 101 {
		t.Errorf("%d frames", frames)
	}
	if len(src.reads) > 5 {
		t.Errorf("%d reads: %v", len(src.reads), src.reads)
	}
}

// TestBuffersLargeBody: a body above the buffer's size is not copied through it.
func TestBuffersLargeBody(t *testing.T) {
	large := make([]byte, 1<<20)
	putPrefix(large, 2, len(large)-prefixLength-2)
	src := &bursts{t: t, parts: [][]byte{large, []byte(PingFrame)}, pool: NewBuffers(1, 32<<10)}
	if frames := readAll(t, src); frames != 2 {
		t.Errorf("%d frames", frames)
	}
	if len(src.reads) != 3 {
		t.Errorf("reads of %v", src.reads)
	}
	for i, lent := range src.lent {
		if lent {
			t.Errorf("read %d of %d waited with a borrowed buffer", i, len(src.lent))
		}
	}
}

// TestBuffersRest: when a burst ends inside a frame, the few bytes that are there
// wait in the reader's own buffer.
func TestBuffersRest(t *testing.T) {
	burst := bytes.Repeat([]byte(PingFrame), 1000)
	for cut := 1; cut < len(PingFrame); cut++ {
		src := &bursts{t: t, parts: [][]byte{burst[:len(burst)-cut], burst[len(burst)-cut:]}, pool: NewBuffers(1, 32<<10)}
		if frames := readAll(t, src); frames != 1000 {
			t.Errorf("cut %d: %d frames", cut, frames)
		}
		if len(src.reads) != 3 || src.lent[2] {
			t.Errorf("cut %d: reads of %v, lent in %v", cut, src.reads, src.lent)
		}
	}
}

// TestBuffersMiddling: bodies larger than a reader's own buffer and smaller than
// the pool's come through the latter while more is waiting.
func TestBuffersMiddling(t *testing.T) {
	frame := make([]byte, 1<<10)
	putPrefix(frame, 2, len(frame)-prefixLength-2)
	src := &bursts{t: t, parts: [][]byte{bytes.Repeat(frame, 60)}, pool: NewBuffers(1, 32<<10)}
	if frames := readAll(t, src); frames != 60 {
		t.Errorf("%d frames", frames)
	}
	if len(src.reads) > 6 {
		t.Errorf("%d reads for 60 KiB: %v", len(src.reads), src.reads)
	}
}

// TestBuffersDrained: who is busy with the last frame of a burst holds no buffer.
func TestBuffersDrained(t *testing.T) {
	src := &bursts{t: t, parts: [][]byte{bytes.Repeat([]byte(PingFrame), 1000)}, pool: NewBuffers(1, 32<<10)}
	r := NewReader(src, 1<<20)
	r.SetBuffers(src.pool)
	for i := range 1000 {
		h, err := r.Next()
		if err == nil {
			err = r.ReadBody(make([]byte, h.Body()))
		}
		if err != nil {
			t.Fatal(err)
		}
		if i == 500 && !r.pooled() {
			t.Error("nothing borrowed in the middle")
		}
	}
	if r.pooled() || len(src.pool.free) != 1 {
		t.Error("the buffer is not back")
	}
}

func TestBuffersBounded(t *testing.T) {
	pool := NewBuffers(2, 4<<10)
	a, b := pool.get(), pool.get()
	if len(a) != 4<<10 || len(b) != 4<<10 || pool.get() != nil {
		t.Error("not two buffers")
	}
	pool.put(a)
	if again := pool.get(); again == nil || &again[0] != &a[0] || pool.get() != nil {
		t.Error("what was put back is not lent again")
	}
}

func TestBuffersRelease(t *testing.T) {
	pool := NewBuffers(1, 4<<10)
	burst := bytes.Repeat([]byte(PingFrame), 1000)
	src := &bursts{t: t, parts: [][]byte{burst}, pool: pool}
	r := NewReader(src, 1<<20)
	r.SetBuffers(pool)
	for range 100 {
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
	}
	if !r.pooled() {
		t.Fatal("nothing borrowed in the middle of a burst")
	}
	r.Release()
	if len(pool.free) != 1 {
		t.Error("Release did not give the buffer back")
	}
}
