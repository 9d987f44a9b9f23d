package boltstore

import (
	"bytes"
	"fmt"
	"io"
)

// maxDepth bounds buckets in buckets and the height of their trees together.
const maxDepth = 64

// checker walks all pages of one state of a file by plain reads, as bbolt does at
// opening with pointers into its map, where a bad page ends the process.
type checker struct {
	f       io.ReaderAt
	high    uint64
	visited []uint64 // a bit per page
	buffers [][]byte // one page per depth: keys of parents bound those of children
}

// checkState verifies the headers of all branch and leaf pages that a meta page leads
// to: that they are what they say, lie in the file, are met once, and that their keys
// are in order. Values are not looked at; they have checksums of their own.
func checkState(f io.ReaderAt, size int64, m metaPage) error {
	if m.high > uint64(size/pageSize) {
		return fmt.Errorf("file of %d bytes ends before page %d: %w", size, m.high, errDamaged)
	}
	if m.free != noFreeList {
		return fmt.Errorf("state of before the file was made: %w", errDamaged)
	}
	c := checker{f: f, high: m.high, visited: make([]uint64, m.high/64+1)}
	return c.page(m.root, nil, nil, 0)
}

// checkContents verifies that a state holds the buckets without which nothing can be
// served, and that its format is the one known here. Otherwise the error is ErrFormat.
func checkContents(f io.ReaderAt, m metaPage) error {
	t := &treeFile{f: f, high: m.high, root: treeBucket{page: m.root}}
	for _, name := range [][]byte{bucketRecords, bucketValues, bucketLarge, bucketDead} {
		if _, err := t.find(name); err != nil {
			return err
		}
	}
	format, err := t.format()
	if err != nil {
		return err
	}
	return knownFormat(format)
}

func knownFormat(format int64) error {
	if format < formatFirst || format > formatNumber {
		return fmt.Errorf("%w: number %d, this program knows %d to %d", ErrFormat, format, formatFirst, formatNumber)
	}
	return nil
}

// format reads the number of the file's format.
func (t *treeFile) format() (int64, error) {
	b, err := t.find(bucketMeta)
	if err != nil {
		return 0, err
	}
	c := t.seek(b, metaFormat)
	if !c.valid() || !bytes.Equal(c.key(), metaFormat) {
		return 0, fmt.Errorf("no format number: %w", errDamaged)
	}
	v, err := c.value(pageSize)
	if err != nil {
		return 0, err
	}
	return decodeNumber(v)
}

// visit notes a page and what it runs over.
func (c *checker) visit(p *page) error {
	for id := p.id; id < p.id+uint64(p.size/pageSize); id++ {
		if c.visited[id/64]&(1<<(id%64)) != 0 {
			return p.damaged("is used twice")
		}
		c.visited[id/64] |= 1 << (id % 64)
	}
	return nil
}

// page checks a page whose keys have to lie in [low, high), and all below it.
func (c *checker) page(id uint64, low, high []byte, depth int) error {
	if depth >= maxDepth {
		return fmt.Errorf("page %d lies too deep: %w", id, errDamaged)
	}
	if depth == len(c.buffers) {
		c.buffers = append(c.buffers, make([]byte, pageSize))
	}
	p, err := readPage(c.f, id, c.high, c.buffers[depth])
	if err != nil {
		return err
	}
	if err := c.visit(&p); err != nil {
		return err
	}
	if err := p.order(low, high); err != nil {
		return err
	}
	for i := range p.count {
		if p.flags == flagBranch {
			err = c.branch(&p, i, high, depth)
		} else {
			err = c.leaf(&p, i, depth)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// order verifies that keys rise and lie between those of the parent.
func (p *page) order(low, high []byte) error {
	if p.flags == flagBranch && p.count == 0 {
		return p.damaged("is an empty branch")
	}
	before := low
	for i := range p.count {
		from, to, _, _, _ := p.element(i)
		key := p.b[from:to]
		n := bytes.Compare(before, key)
		if n > 0 || n == 0 && i > 0 || high != nil && bytes.Compare(key, high) >= 0 {
			return p.damaged("has keys out of order")
		}
		before = key
	}
	return nil
}

func (c *checker) branch(p *page, i int, high []byte, depth int) error {
	from, to, _, _, child := p.element(i)
	if i+1 < p.count {
		next, end, _, _, _ := p.element(i + 1)
		high = p.b[next:end]
	}
	return c.page(child, p.b[from:to], high, depth+1)
}

// leaf goes into a nested bucket.
func (c *checker) leaf(p *page, i, depth int) error {
	_, value, end, flags, _ := p.element(i)
	if flags&flagBucket == 0 {
		return nil
	}
	if end-value < bucketHeader {
		return p.damaged("has a bucket without a header")
	}
	if root := native.Uint64(p.b[value:]); root != 0 {
		return c.page(root, nil, nil, depth+1)
	}
	if end > uint64(len(p.b)) {
		return p.damaged("has an inline bucket without a page")
	}
	in, err := inlinePage(p.b[value+bucketHeader : end])
	if err != nil {
		return fmt.Errorf("page %d: %w", p.id, err)
	}
	return in.order(nil, nil)
}
