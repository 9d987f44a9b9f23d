package schema

import (
	"reflect"
	"slices"
)

// equalTrees reports whether two definitions mean the same (see Rules.Find).
func equalTrees(a, b *node) bool {
	e := equality{newWork(), map[pair]bool{}}
	return e.equal(a, b)
}

type equality struct {
	*work
	seen map[pair]bool
}

func (e *equality) equal(a, b *node) bool {
	if a.kind != b.kind || a.name != b.name || a.space != b.space || a.size != b.size ||
		len(a.fields) != len(b.fields) || len(a.branches) != len(b.branches) ||
		!slices.Equal(a.symbols, b.symbols) || !equalValues(a.props, b.props) {
		return false
	}
	p := pair{a, b}
	if e.seen[p] {
		return true
	}
	e.seen[p] = true
	if e.steps--; e.steps < 0 {
		return false
	}
	for i := range a.fields {
		f, g := &a.fields[i], &b.fields[i]
		if f.name != g.name || orderOf(f) != orderOf(g) || !equalValues(f.props, g.props) || !e.equal(f.of, g.of) {
			return false
		}
	}
	for i := range a.branches {
		if !e.equal(a.branches[i], b.branches[i]) {
			return false
		}
	}
	return a.item == nil || e.equal(a.item, b.item)
}

func orderOf(f *field) string {
	if f.order == "" {
		return "ascending"
	}
	return f.order
}

// equalValues compares attributes, none being equal to no map.
func equalValues(a, b map[string]any) bool {
	return len(a) == len(b) && (len(a) == 0 || reflect.DeepEqual(a, b))
}
