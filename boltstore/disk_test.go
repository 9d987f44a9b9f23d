package boltstore

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
)

// disk is what a recorded child has written: to files, some of it synced, and to
// their directory.
type disk struct {
	lies    int                  // so many of a file's last synced writes may be lost too
	honest  string               // but not of this one
	names   map[string]*diskFile // durable
	pending []event              // on names, since the directory was synced
	now     map[string]*diskFile // as the child sees it
}

type diskFile struct {
	synced  []byte
	recent  []event // synced too, but a card that lies may have lost them
	pending []event // writes and truncations since
}

func newDisk() *disk {
	return &disk{names: map[string]*diskFile{}, now: map[string]*diskFile{}}
}

func (d *disk) apply(ev event) {
	switch ev.kind {
	case eventWrite, eventTruncate:
		if f := d.now[ev.name]; f != nil {
			f.pending = append(f.pending, ev)
		}
	case eventSync:
		if f := d.now[ev.name]; f != nil {
			f.recent = append(f.recent, f.pending...)
			n := len(f.recent)
			if ev.name != d.honest {
				n = max(0, n-d.lies)
			}
			for _, p := range f.recent[:n] {
				f.synced = p.on(f.synced)
			}
			f.recent = slices.Clone(f.recent[n:])
			f.pending = nil
		}
	case eventSyncDir:
		d.names, d.pending = maps.Clone(d.now), nil
	default:
		d.pending = append(d.pending, ev)
		onNames(d.now, &d.pending[len(d.pending)-1])
	}
}

// onNames changes names as an event does. A file that an event makes is the same one
// whenever the event is applied.
func onNames(names map[string]*diskFile, ev *event) {
	switch ev.kind {
	case eventCreate:
		if names[ev.name] == nil {
			if ev.file == nil {
				ev.file = &diskFile{}
			}
			names[ev.name] = ev.file
		}
	case eventRename:
		if f := names[ev.name]; f != nil {
			names[ev.to] = f
			delete(names, ev.name)
		}
	case eventUnlink:
		delete(names, ev.name)
	}
}

// cut writes what a power cut may leave into a directory.
func (d *disk) cut(r *rand.Rand, dir string) error {
	names := maps.Clone(d.names)
	for i := range r.IntN(len(d.pending) + 1) { // a journal keeps their order
		onNames(names, &d.pending[i])
	}
	sector := []int64{512, 4096}[r.IntN(2)]
	for _, name := range slices.Sorted(maps.Keys(names)) {
		f := names[name]
		b := f.kept(r)
		for _, i := range r.Perm(len(f.pending)) {
			b = f.pending[i].torn(r, b, sector)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// kept is what is left of what was synced.
func (f *diskFile) kept(r *rand.Rand) []byte {
	b := bytes.Clone(f.synced)
	rate, from := r.IntN(8), len(f.recent) // of writes that are lost, or all from one on
	if len(f.recent) > 0 && r.IntN(4) == 0 {
		from = r.IntN(len(f.recent))
	}
	for i, ev := range f.recent {
		switch lost := i >= from || r.IntN(8) < rate && r.IntN(4) == 0; {
		case !lost || ev.kind == eventTruncate:
			b = ev.on(b)
		case r.IntN(2) == 0:
			b = ev.torn(r, b, pageSize)
		}
	}
	return b
}

// on applies an event to a file's bytes.
func (ev event) on(b []byte) []byte {
	if ev.kind == eventTruncate {
		if int(ev.offset) <= len(b) {
			return b[:ev.offset]
		}
		return append(b, make([]byte, int(ev.offset)-len(b))...)
	}
	if end := int(ev.offset) + len(ev.data); end > len(b) {
		b = append(b, make([]byte, end-len(b))...)
	}
	copy(b[ev.offset:], ev.data)
	return b
}

// torn applies some sectors of an event, or nothing, or all.
func (ev event) torn(r *rand.Rand, b []byte, sector int64) []byte {
	switch r.IntN(3) {
	case 0:
		return b
	case 1:
		return ev.on(b)
	}
	for at, end := ev.offset, ev.offset+int64(len(ev.data)); at < end; {
		next := min((at/sector+1)*sector, end)
		if r.IntN(2) == 0 {
			part := ev
			part.offset, part.data = at, ev.data[at-ev.offset:next-ev.offset]
			b = part.on(b)
		}
		at = next
	}
	return b
}
