package boltstore

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"wayside/edge"
)

// version is what something small is to become: a cursor, a topic's properties, a
// value. Its number says what it holds; later ones have higher numbers, over all lives
// of the child.
type version struct {
	n    uint64
	at   edge.Position // of a cursor
	gone bool
}

// versions are those of one thing that may be found after a crash: the last that was
// confirmed, and all that were asked for since.
type versions struct{ asked []version }

func (v *versions) ask(x version) { v.asked = append(v.asked, x) }

// confirm says that n, or a later one, is durable.
func (v *versions) confirm(n uint64) {
	i := slices.IndexFunc(v.asked, func(x version) bool { return x.n == n })
	v.asked = v.asked[max(i, 0):]
}

// found takes what was found as the one that counts from now on.
func (v *versions) found(n uint64, gone bool) (version, error) {
	for _, x := range v.asked {
		if x.gone == gone && (gone || x.n == n) {
			v.asked = []version{x}
			return x, nil
		}
	}
	return version{}, fmt.Errorf("version %d (gone: %t) is none of those since the last confirmed: %v", n, gone, v.asked)
}

func (v *versions) clone() *versions { return &versions{slices.Clone(v.asked)} }

func cloneVersions(all map[string]*versions) map[string]*versions {
	all = maps.Clone(all)
	for k, v := range all {
		all[k] = v.clone()
	}
	return all
}

// crashCursors are the cursors that the child works on, the first made with the topic.
var crashCursors = []string{"c", "d"}

// crashState is a version of a cursor. Few are so large that they lie in pages.
func crashState(of string, x version) edge.CursorState {
	s := edge.CursorState{MarkDelete: x.at}
	if x.n == 0 {
		return s // as it was made
	}
	s.Properties = map[string]string{"of": of, "v": strconv.FormatUint(x.n, 10)}
	r := rand.New(rand.NewPCG(x.n, 1))
	runs := r.IntN(6)
	if r.IntN(40) == 0 {
		runs = 1500
	}
	at := x.at.Entry
	for range runs {
		at += 2 + r.Int64N(9)
		s.Holes = append(s.Holes, edge.Run{Ledger: x.at.Ledger, First: at, Last: at + r.Int64N(3)})
		at = s.Holes[len(s.Holes)-1].Last
	}
	for range r.IntN(4) {
		at += 2
		p := edge.Position{Ledger: x.at.Ledger, Entry: at}
		s.Rests = append(s.Rests, edge.BatchRest{Position: p, Words: []uint64{r.Uint64() | 1}})
		s.Counts = append(s.Counts, edge.RedeliveryCount{Position: p, Count: 1 + r.Uint32N(5)})
	}
	return s
}

// sameState compares states.
func sameState(a, b edge.CursorState) bool {
	return a.MarkDelete == b.MarkDelete && maps.Equal(a.Properties, b.Properties) &&
		slices.Equal(a.Holes, b.Holes) && slices.Equal(a.Counts, b.Counts) &&
		slices.EqualFunc(a.Rests, b.Rests, func(x, y edge.BatchRest) bool {
			return x.Position == y.Position && slices.Equal(x.Words, y.Words)
		})
}

// crashVersion reads the number of a cursor's version.
func crashVersion(s *edge.CursorState) uint64 {
	n, _ := strconv.ParseUint(s.Properties["v"], 10, 64)
	return n
}

// crashValue is a version of a value, or of a topic's properties. Some lie in a bucket of
// their own.
func crashValue(of string, n uint64) []byte {
	return fmt.Appendf(nil, "%s %d %*s", of, n, int(n%5)*smallValue/2, "")
}

// crashValueVersion reads the number of a value's version, 0 if it is none of of's.
func crashValueVersion(of string, value []byte) uint64 {
	rest, ok := strings.CutPrefix(string(value), of+" ")
	digits, _, _ := strings.Cut(rest, " ")
	n, err := strconv.ParseUint(digits, 10, 64)
	if !ok || err != nil || string(crashValue(of, n)) != string(value) {
		return 0
	}
	return n
}
