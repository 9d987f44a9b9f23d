package pulsar

// dash is the short way out: who has handed over deliveries writes them, as far as the
// socket takes them at once. Waking the writer of each of many clients would cost more
// than the writing. What is left is the writer's; so are errors, which it will meet too.
func (w *writer) dash() {
	if w.worthwhile() && w.pen.TryLock() {
		defer w.pen.Unlock()
		if w.carry == nil && !w.gone && !w.dashLocked() {
			return
		}
	}
	w.out.poke()
}

// worthwhile reports whether what waits is so little that it will hold up nobody.
func (w *writer) worthwhile() bool {
	return w.direct.raw != nil && w.out.limit-w.out.free.Load() <= little
}

// dashLocked writes one batch and reports whether the writer has to go on. The caller
// holds the pen.
func (w *writer) dashLocked() (left bool) {
	defer w.guard()
	left = true // after a panic too
	b, done := w.gather()
	if b == nil {
		return done
	}
	w.carry = b
	if len(b.vec) != 1 {
		return left
	}
	w.arm()
	n, err := w.direct.write(b.vec[0])
	b.written += n
	b.vec[0] = b.vec[0][n:]
	if err != nil || b.written < b.size {
		return left
	}
	left = b.full()
	w.carry = nil
	for _, c := range w.settle(b, true) {
		c.core.Wake()
	}
	return left
}
