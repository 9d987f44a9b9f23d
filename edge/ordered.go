package edge

import "slices"

// blockLen bounds a block of an ordered list: a change moves at most so many
// elements, 6 KiB of runs, and 200,000 elements make a table of some 800 blocks.
const blockLen = 256

// ordered is a sorted list in blocks. Finding costs two binary searches, a change
// moves one block's elements, appending at the end moves none. Where an element
// belongs is the user's matter. The zero value is empty and holds no memory.
type ordered[T any] struct {
	blocks [][]T // none is empty
	n      int
}

// place names an element of an ordered list, or its end; any change makes it stale.
type place struct{ block, i int }

// search returns the place of the first element for which match holds. Once match
// holds, it must hold for all elements behind.
func (o *ordered[T]) search(match func(*T) bool) place {
	lo, hi := 0, len(o.blocks) // the first block whose last element matches
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if b := o.blocks[mid]; match(&b[len(b)-1]) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	if lo == len(o.blocks) {
		return place{lo, 0}
	}
	block := o.blocks[lo]
	i, j := 0, len(block)-1
	for i < j {
		mid := int(uint(i+j) >> 1)
		if match(&block[mid]) {
			j = mid
		} else {
			i = mid + 1
		}
	}
	return place{lo, i}
}

// at returns the element at a place, which stays in the list, or nil at the end.
func (o *ordered[T]) at(p place) *T {
	if p.block >= len(o.blocks) {
		return nil
	}
	return &o.blocks[p.block][p.i]
}

// next is the place behind p, which must not be the end.
func (o *ordered[T]) next(p place) place {
	if p.i+1 < len(o.blocks[p.block]) {
		return place{p.block, p.i + 1}
	}
	return place{p.block + 1, 0}
}

// before returns the element in front of p and its place, or nil if p is the first.
func (o *ordered[T]) before(p place) (*T, place) {
	if p.i > 0 {
		p.i--
	} else {
		if p.block == 0 {
			return nil, p
		}
		p.block--
		p.i = len(o.blocks[p.block]) - 1
	}
	return o.at(p), p
}

// insert puts v in front of p.
func (o *ordered[T]) insert(p place, v T) {
	o.n++
	if p.block == len(o.blocks) {
		if p.block == 0 || len(o.blocks[p.block-1]) >= blockLen {
			o.blocks = append(o.blocks, []T{v})
			return
		}
		p.block--
		p.i = len(o.blocks[p.block])
	}
	if len(o.blocks[p.block]) >= blockLen {
		p = o.split(p)
	}
	o.blocks[p.block] = slices.Insert(o.blocks[p.block], p.i, v)
}

// split halves the block of p and returns where p is now.
func (o *ordered[T]) split(p place) place {
	block := o.blocks[p.block]
	half := len(block) / 2
	upper := append(make([]T, 0, blockLen), block[half:]...)
	clear(block[half:])
	o.blocks[p.block] = block[:half]
	o.blocks = slices.Insert(o.blocks, p.block+1, upper)
	if p.i > half {
		return place{p.block + 1, p.i - half}
	}
	return p
}

// remove takes out the element at p.
func (o *ordered[T]) remove(p place) {
	o.n--
	o.blocks[p.block] = slices.Delete(o.blocks[p.block], p.i, p.i+1)
	o.tidy(p.block)
}

// removeBefore takes out all elements in front of p.
func (o *ordered[T]) removeBefore(p place) {
	for _, b := range o.blocks[:p.block] {
		o.n -= len(b)
	}
	o.blocks = slices.Delete(o.blocks, 0, p.block)
	if p.i > 0 {
		o.n -= p.i
		o.blocks[0] = slices.Delete(o.blocks[0], 0, p.i)
	}
	o.tidy(0)
}

// tidy gives back the memory of a block that has shrunk.
func (o *ordered[T]) tidy(b int) {
	if o.n == 0 {
		o.blocks = nil
		return
	}
	block := o.blocks[b]
	switch {
	case len(block) == 0:
		o.blocks = slices.Delete(o.blocks, b, b+1)
	case len(block) > blockLen/8:
	case b+1 < len(o.blocks) && len(o.blocks[b+1]) <= blockLen/2:
		o.blocks[b] = append(block, o.blocks[b+1]...)
		o.blocks = slices.Delete(o.blocks, b+1, b+2)
	case cap(block) > 8 && len(block)*4 <= cap(block):
		o.blocks[b] = append(make([]T, 0, 2*len(block)), block...)
	}
}

// all copies the elements in order.
func (o *ordered[T]) all() []T {
	if o.n == 0 {
		return nil
	}
	out := make([]T, 0, o.n)
	for _, b := range o.blocks {
		out = append(out, b...)
	}
	return out
}
