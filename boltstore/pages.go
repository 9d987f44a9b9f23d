package boltstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
)

// bbolt's file format as far as a check by plain reads needs it (v1.5.0,
// internal/common): a page starts with id(8) flags(2) count(2) overflow(4); a branch
// has elements of position(4) keySize(4) page(8), a leaf of flags(4) position(4)
// keySize(4) valueSize(4), positions being counted from the element; a bucket's value
// starts with root(8) sequence(8) and goes on with a leaf page when root is 0.
const (
	pageHeader   = 16
	pageElement  = 16
	bucketHeader = 16

	flagBranch = 1
	flagLeaf   = 2
	flagMeta   = 4
	flagBucket = 1

	metaMagic   = 0xED0CDAED
	metaVersion = 2
	metaSize    = 64

	// noFreeList is the page of the free list in every state that was committed here: it
	// is not written. The empty state that bbolt begins a file with has one.
	noFreeList = 1<<64 - 1
)

// native is the byte order of the machine, in which bbolt writes.
var native = binary.NativeEndian

// metaPage is one of the two pages at a file's start that name a state of it.
type metaPage struct {
	slot    int64
	version uint32
	page    uint32
	root    uint64
	free    uint64 // page of a written free list
	high    uint64 // pages from there on were never used
	txid    uint64
	raw     [pageHeader + metaSize]byte
}

// errForeign says that a file is sound but written by another version of bbolt.
var errForeign = errors.New("written by another version of bbolt")

// readMeta reads and verifies a meta page.
func readMeta(f io.ReaderAt, slot int64) (metaPage, error) {
	m := metaPage{slot: slot}
	if _, err := f.ReadAt(m.raw[:], slot*pageSize); err != nil {
		return m, fmt.Errorf("meta page %d: %w", slot, err)
	}
	b := m.raw[pageHeader:]
	h := fnv.New64a()
	h.Write(b[:metaSize-8])
	if native.Uint32(b) != metaMagic || native.Uint64(b[56:]) != h.Sum64() {
		return m, fmt.Errorf("meta page %d: %w", slot, errDamaged)
	}
	m.version, m.page = native.Uint32(b[4:]), native.Uint32(b[8:])
	m.root, m.free, m.high, m.txid = native.Uint64(b[16:]), native.Uint64(b[32:]), native.Uint64(b[40:]), native.Uint64(b[48:])
	if m.version != metaVersion || m.page != pageSize {
		return m, fmt.Errorf("meta page %d: %w", slot, errForeign)
	}
	return m, nil
}

// page is the part of a page that holds its elements' keys.
type page struct {
	id    uint64
	flags uint16
	count int
	size  int // with overflow
	b     []byte
}

// maxPage bounds what is read of one page: a value of the largest entry with room.
const maxPage = maxEntry + 1<<20

// readPage reads a page so far that all its keys are there, into buf if that is large
// enough, and verifies that every element lies inside it.
func readPage(f io.ReaderAt, id, high uint64, buf []byte) (page, error) {
	p := page{id: id, b: buf[:pageSize]}
	if id < 2 || id >= high {
		return p, p.damaged("out of the file")
	}
	if _, err := f.ReadAt(p.b, int64(id)*pageSize); err != nil {
		return p, fmt.Errorf("page %d: %w", id, err)
	}
	p.flags, p.count = native.Uint16(p.b[8:]), int(native.Uint16(p.b[10:]))
	overflow := uint64(native.Uint32(p.b[12:]))
	switch {
	case native.Uint64(p.b) != id:
		return p, p.damaged("calls itself something else")
	case p.flags != flagBranch && p.flags != flagLeaf:
		return p, p.damaged("is no branch and no leaf")
	case overflow >= high-id || (overflow+1)*pageSize > maxPage:
		return p, p.damaged("reaches beyond the file")
	}
	p.size = int(overflow+1) * pageSize
	if err := p.extend(f, pageHeader+p.count*pageElement); err != nil {
		return p, err
	}
	end, err := p.keysEnd()
	if err != nil {
		return p, err
	}
	return p, p.extend(f, end)
}

// inlinePage is the page of a bucket that lies in its parent's value.
func inlinePage(b []byte) (page, error) {
	p := page{size: len(b), b: b}
	if len(b) < pageHeader {
		return p, p.damaged("is too short for a bucket")
	}
	p.flags, p.count = native.Uint16(b[8:]), int(native.Uint16(b[10:]))
	if p.flags != flagLeaf || pageHeader+p.count*pageElement > len(b) {
		return p, p.damaged("is no leaf")
	}
	_, err := p.keysEnd()
	return p, err
}

func (p *page) damaged(what string) error {
	return fmt.Errorf("page %d %s: %w", p.id, what, errDamaged)
}

// extend reads on up to an offset in the page.
func (p *page) extend(f io.ReaderAt, end int) error {
	if end > p.size {
		return p.damaged("has more elements than room")
	}
	if end <= len(p.b) {
		return nil
	}
	b := make([]byte, end)
	if _, err := f.ReadAt(b, int64(p.id)*pageSize); err != nil {
		return fmt.Errorf("page %d: %w", p.id, err)
	}
	p.b = b
	return nil
}

// element returns where key and value of an element start and end in the page, and
// its flags and child page.
func (p *page) element(i int) (key, value, end uint64, flags uint32, child uint64) {
	at := uint64(pageHeader + i*pageElement)
	e := p.b[at:]
	if p.flags == flagBranch {
		key = at + uint64(native.Uint32(e))
		value = key + uint64(native.Uint32(e[4:]))
		return key, value, value, 0, native.Uint64(e[8:])
	}
	key = at + uint64(native.Uint32(e[4:]))
	value = key + uint64(native.Uint32(e[8:]))
	return key, value, value + uint64(native.Uint32(e[12:])), native.Uint32(e), 0
}

// keysEnd verifies the places of all elements and returns where the last key, or the
// value of a nested bucket, ends.
func (p *page) keysEnd() (int, error) {
	last := uint64(0)
	for i := range p.count {
		key, value, end, flags, _ := p.element(i)
		if end > uint64(p.size) || value == key || key < uint64(pageHeader+p.count*pageElement) {
			return 0, p.damaged("has an element outside")
		}
		last = max(last, value)
		if flags&flagBucket != 0 {
			last = max(last, min(end, value+bucketHeader+pageSize))
		}
	}
	return int(last), nil
}
