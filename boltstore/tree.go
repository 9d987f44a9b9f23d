package boltstore

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sort"
)

// treeFile reads a bbolt file by plain reads: volumes, which nobody writes, and files
// that were set aside. Unlike a map it costs no address space, an unreadable sector is
// an error and no signal, and a damaged page costs what lies below it and no more:
// depth and number of pages of every walk are bounded.
type treeFile struct {
	f    io.ReaderAt
	high uint64
	root treeBucket
	// left is the number of pages that all walks together may still read, nil for
	// no such bound; then each has its own.
	left *uint64
}

// treeBucket is a bucket by its root page, or inline by the bytes of its page.
type treeBucket struct {
	page   uint64
	inline []byte
}

// openTree takes the newest state whose root can be read.
func openTree(f io.ReaderAt) (*treeFile, error) {
	metas, err := readMetas(f)
	if err != nil {
		return nil, err
	}
	for _, m := range metas {
		t := &treeFile{f: f, high: m.high, root: treeBucket{page: m.root}}
		if _, err = t.load(t.root); err == nil {
			return t, nil
		}
	}
	return nil, err
}

func (t *treeFile) load(b treeBucket) (page, error) {
	if b.page == 0 {
		return inlinePage(b.inline)
	}
	return readPage(t.f, b.page, t.high, make([]byte, pageSize))
}

// treeCursor walks the elements of a bucket in order. Pages that cannot be read are
// passed over and remembered as damage.
type treeCursor struct {
	t      *treeFile
	stack  []treeLevel
	budget *uint64 // pages that the walk may still read
	damage error
}

type treeLevel struct {
	page
	i int
}

// seek starts a walk at the last element whose key is not behind key, or at the first.
func (t *treeFile) seek(b treeBucket, key []byte) *treeCursor {
	c := &treeCursor{t: t, budget: t.left}
	if c.budget == nil {
		own := t.high
		c.budget = &own
	}
	if c.push(b, key) {
		c.settle()
	}
	return c
}

// push goes down to the leaf below a bucket or a child that key belongs to.
func (c *treeCursor) push(b treeBucket, key []byte) bool {
	for {
		if len(c.stack) >= maxDepth || *c.budget == 0 {
			c.damage = fmt.Errorf("tree is too large: %w", errDamaged)
			return len(c.stack) > 0
		}
		*c.budget--
		p, err := c.t.load(b)
		if err != nil {
			c.damage = errors.Join(c.damage, err)
			return len(c.stack) > 0
		}
		i := sort.Search(p.count, func(i int) bool { return bytes.Compare(p.key(i), key) > 0 })
		c.stack = append(c.stack, treeLevel{p, max(0, i-1)})
		if p.flags == flagLeaf || p.count == 0 {
			return true
		}
		_, _, _, _, child := p.element(max(0, i-1))
		b = treeBucket{page: child}
	}
}

// settle moves on from the end of a leaf, or from a branch whose child could not be
// read, to the next element there is.
func (c *treeCursor) settle() {
	for len(c.stack) > 0 {
		top := &c.stack[len(c.stack)-1]
		if top.flags == flagLeaf && top.i < top.count {
			return
		}
		if top.flags == flagBranch {
			top.i++
		}
		if top.flags == flagLeaf || top.i >= top.count {
			c.stack = c.stack[:len(c.stack)-1]
			continue
		}
		_, _, _, _, child := top.element(top.i)
		if *c.budget == 0 {
			c.stack = nil
			return
		}
		c.push(treeBucket{page: child}, nil)
	}
}

func (c *treeCursor) next() {
	if c.valid() {
		c.stack[len(c.stack)-1].i++
		c.settle()
	}
}

// valid reports whether the cursor stands at an element.
func (c *treeCursor) valid() bool { return len(c.stack) > 0 }

func (c *treeCursor) key() []byte {
	top := &c.stack[len(c.stack)-1]
	return top.page.key(top.i)
}

func (p *page) key(i int) []byte {
	from, to, _, _, _ := p.element(i)
	return p.b[from:to]
}

// isBucket reports whether the element is a nested bucket.
func (c *treeCursor) isBucket() bool {
	top := &c.stack[len(c.stack)-1]
	_, _, _, flags, _ := top.element(top.i)
	return flags&flagBucket != 0
}

// valueSize is the length of the element's value.
func (c *treeCursor) valueSize() int {
	top := &c.stack[len(c.stack)-1]
	_, from, to, _, _ := top.element(top.i)
	return int(to - from)
}

// read copies a part of the element's value.
func (c *treeCursor) read(offset, n int) ([]byte, error) {
	top := &c.stack[len(c.stack)-1]
	_, from, to, _, _ := top.element(top.i)
	if offset < 0 || n < 0 || uint64(offset)+uint64(n) > to-from {
		return nil, top.damaged("has a value that is too short")
	}
	from += uint64(offset)
	if from+uint64(n) <= uint64(len(top.b)) {
		return bytes.Clone(top.b[from : from+uint64(n)]), nil
	}
	b := make([]byte, n)
	if _, err := c.t.f.ReadAt(b, int64(top.id)*pageSize+int64(from)); err != nil {
		return nil, fmt.Errorf("page %d: %w", top.id, err)
	}
	return b, nil
}

// value copies the element's value, if it is no longer than most bytes.
func (c *treeCursor) value(most int) ([]byte, error) {
	n := c.valueSize()
	if n > most {
		return nil, fmt.Errorf("value of %d bytes: %w", n, errDamaged)
	}
	return c.read(0, n)
}

// bucket is the nested bucket of the element.
func (c *treeCursor) bucket() (treeBucket, error) {
	n := c.valueSize()
	if !c.isBucket() || n < bucketHeader || n > bucketHeader+pageSize {
		return treeBucket{}, fmt.Errorf("bucket: %w", errDamaged)
	}
	v, err := c.read(0, n)
	if err != nil {
		return treeBucket{}, err
	}
	if root := native.Uint64(v); root != 0 {
		return treeBucket{page: root}, nil
	}
	return treeBucket{inline: v[bucketHeader:]}, nil
}

// find goes to the bucket under a path of keys. Its error is errDamaged also when
// there is none.
func (t *treeFile) find(path ...[]byte) (treeBucket, error) {
	b := t.root
	for _, key := range path {
		c := t.seek(b, key)
		if !c.valid() || !bytes.Equal(c.key(), key) {
			return treeBucket{}, errors.Join(c.damage, fmt.Errorf("no bucket %q: %w", key, errDamaged))
		}
		var err error
		if b, err = c.bucket(); err != nil {
			return treeBucket{}, err
		}
	}
	return b, nil
}
