package wire

import (
	"encoding/binary"
	"fmt"
	"io"
)

const (
	// idleBuffer is what a reader holds while nothing comes. It takes a handful
	// of FLOWs and ACKs, or the head of a SEND, with one system call.
	idleBuffer = 512
	// emptyReads is how many reads without bytes and error are borne in a row.
	emptyReads = 100
)

// Reader takes frames from a connection. Sizes are checked before anything is
// allocated or waited for on their account; the bytes go into buffers of the
// caller, who can ask for room first. A Reader is used by one goroutine.
//
//	for {
//		h, err := r.Next()
//		…
//		buf := take(h.Body())
//		err = r.ReadBody(buf)
//		…
//	}
type Reader struct {
	src   io.Reader
	limit int
	pool  *Buffers

	buf  []byte // idle or one of the pool's
	r, w int    // unread bytes of buf
	left int    // bytes of the current frame not yet handed out
	full bool   // the last read filled buf: more is waiting
	used bool   // a first frame was accepted
	err  error  // came together with bytes, to be told at the next read
	idle [idleBuffer]byte
}

// NewReader returns a reader of frames of up to limit bytes, size field included.
func NewReader(src io.Reader, limit int) *Reader {
	r := &Reader{src: src, limit: limit}
	r.buf = r.idle[:]
	return r
}

// SetLimit changes the limit from the next frame on: small before a login, then
// [MaxFrame].
func (r *Reader) SetLimit(limit int) { r.limit = limit }

// SetBuffers lets the reader borrow a larger buffer while more is waiting than
// its own holds. It is given back as soon as it is drained.
func (r *Reader) SetBuffers(pool *Buffers) { r.pool = pool }

// Release gives a borrowed buffer back and drops what was not read. The reader
// must not be used afterwards.
func (r *Reader) Release() {
	r.giveBack()
	r.r, r.w = 0, 0
}

// Next skips what is left of the frame before and waits for the sizes and the
// type of the next one.
//
// io.EOF means that the peer ended between two frames, io.ErrUnexpectedEOF within
// one. Sizes out of bounds give ErrTooLarge or ErrMalformed, another protocol on a
// new connection a *ForeignError. An error of the connection, a deadline
// exceeded for one, comes back as it is; after that Next may be called again.
func (r *Reader) Next() (Header, error) {
	if err := r.Skip(); err != nil {
		return Header{}, err
	}
	if err := r.buffer(sizeField); err != nil {
		return Header{}, err
	}
	total := binary.BigEndian.Uint32(r.buf[r.r:])
	if err := checkTotal(total, r.limit); err != nil {
		return Header{}, r.foreign(err)
	}
	if err := r.buffer(prefixLength); err != nil {
		return Header{}, err
	}
	command := binary.BigEndian.Uint32(r.buf[r.r+sizeField:])
	if err := checkSizes(total, command, r.limit); err != nil {
		return Header{}, err
	}
	peek := min(typePeek, int(command))
	if err := r.buffer(prefixLength + peek); err != nil {
		return Header{}, err
	}
	r.r += prefixLength
	h := Header{Total: int(total), Command: int(command), Type: peekType(r.buf[r.r : r.r+peek])}
	r.left, r.used = h.Body(), true
	return h, nil
}

// ReadBody fills buf with the next bytes of the current frame, which must have
// that many left. Command and entry may be fetched one after the other. After an
// error the position in the stream is unknown.
func (r *Reader) ReadBody(buf []byte) error {
	if len(buf) > r.left {
		return fmt.Errorf("wire: %d bytes wanted of a frame that has %d left", len(buf), r.left)
	}
	r.left -= len(buf)
	for len(buf) > 0 {
		n, err := r.read(buf)
		if err != nil {
			return inside(err)
		}
		buf = buf[n:]
	}
	return nil
}

// Left returns how many bytes of the current frame were not handed out yet.
func (r *Reader) Left() int { return r.left }

// Skip drops what is left of the current frame.
func (r *Reader) Skip() error {
	for r.left > 0 {
		if r.r == r.w {
			if err := r.fill(); err != nil {
				return inside(err)
			}
		}
		n := min(r.left, r.w-r.r)
		r.consume(n)
		r.left -= n
	}
	return nil
}

// read hands out buffered bytes, or reads: past the buffer what would fill it.
func (r *Reader) read(p []byte) (int, error) {
	if r.r == r.w {
		if r.full && !r.pooled() {
			r.borrow(nil)
		}
		if len(p) >= len(r.buf) {
			r.giveBack()
			r.full = false
			return r.readSource(p)
		}
		if err := r.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.buf[r.r:r.w])
	r.consume(n)
	return n, nil
}

// buffer waits until n bytes, at most prefixLength+typePeek, are buffered.
func (r *Reader) buffer(n int) error {
	for r.w-r.r < n {
		if err := r.fill(); err != nil {
			if r.w > r.r {
				return inside(err)
			}
			return err
		}
	}
	return nil
}

// fill reads once, behind the few bytes that are still unread. It is the only
// place that may wait with a pooled buffer in hand, and only if the read before
// filled its buffer, so that a quiet or slow peer never holds one.
func (r *Reader) fill() error {
	if err := r.err; err != nil {
		r.err = nil
		return err
	}
	rest := r.buf[r.r:r.w]
	switch {
	case r.pooled() && !r.full:
		copy(r.idle[:], rest)
		r.giveBack()
	case !r.pooled() && r.full && r.borrow(rest):
	default:
		copy(r.buf, rest)
	}
	r.r, r.w = 0, len(rest)
	n, err := r.readSource(r.buf[r.w:])
	if err != nil {
		return err
	}
	r.w += n
	r.full = r.w == len(r.buf)
	return nil
}

// readSource returns bytes or an error, never neither.
func (r *Reader) readSource(p []byte) (int, error) {
	if err := r.err; err != nil {
		r.err = nil
		return 0, err
	}
	for range emptyReads {
		n, err := r.src.Read(p)
		if n > 0 {
			r.err = err
			return n, nil
		}
		if err != nil {
			return 0, err
		}
	}
	return 0, io.ErrNoProgress
}

func (r *Reader) consume(n int) {
	r.r += n
	if r.r == r.w && r.pooled() {
		r.giveBack()
	}
}

func (r *Reader) pooled() bool { return &r.buf[0] != &r.idle[0] }

// borrow moves rest into a pooled buffer, if there is one to be had.
func (r *Reader) borrow(rest []byte) bool {
	large := r.pool.get()
	if large == nil {
		return false
	}
	copy(large, rest)
	r.buf = large
	return true
}

// giveBack returns to the idle buffer, keeping r and w.
func (r *Reader) giveBack() {
	if r.pooled() {
		r.pool.put(r.buf)
		r.buf = r.idle[:]
		if r.r == r.w {
			r.r, r.w = 0, 0
		}
	}
}

// inside turns an end of the stream into one that came too early.
func inside(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
