package boltstore

import (
	"errors"
	"fmt"
	"sync"

	"wayside/edge"
)

// openVolumes is how many volumes are open at once.
const openVolumes = 16

// shelf is the files of a store by number.
type shelf struct {
	mu    sync.Mutex // guards what follows; never held while a file is opened or closed
	files map[uint64]*file
	main  *file
}

func newShelf() *shelf { return &shelf{files: map[uint64]*file{}} }

func (h *shelf) put(f *file, main bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.files[f.number] = f
	if main {
		h.main = f
	}
}

func (h *shelf) mainFile() *file {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.main
}

// get returns a file, or nil.
func (h *shelf) get(number uint64) *file {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.files[number]
}

// take returns a file for reading and closes the idlest of the others when too many
// are open.
func (h *shelf) take(number uint64) (*file, error) {
	f := h.get(number)
	if f == nil {
		return nil, fmt.Errorf("file %d: %w", number, edge.ErrGone)
	}
	h.closeIdlest(f)
	return f, nil
}

func (h *shelf) closeIdlest(but *file) {
	for range openVolumes {
		idle := h.idlest(but)
		if idle == nil || !idle.closeIdle() {
			return
		}
	}
}

// idlest is the file whose last read lies farthest back, if more are open than may be.
func (h *shelf) idlest(but *file) (idle *file) {
	h.mu.Lock()
	defer h.mu.Unlock()
	open := 0
	for _, f := range h.files {
		if f == h.main || f == but || !f.open.Load() {
			continue
		}
		open++
		if idle == nil || f.used.Load() < idle.used.Load() {
			idle = f
		}
	}
	if open < openVolumes {
		return nil
	}
	return idle
}

// remove forgets a file; whoever reads it goes on until its handle is closed.
func (h *shelf) remove(number uint64) *file {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.files[number]
	delete(h.files, number)
	return f
}

// bytes is what all files take on disk.
func (h *shelf) bytes() (n int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.files {
		n += f.size.Load()
	}
	return n
}

func (h *shelf) closeAll() error {
	h.mu.Lock()
	files := make([]*file, 0, len(h.files))
	for _, f := range h.files {
		files = append(files, f)
	}
	h.mu.Unlock()
	var errs []error
	for _, f := range files {
		errs = append(errs, f.close())
	}
	return errors.Join(errs...)
}
