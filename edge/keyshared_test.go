package edge

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// protocol 6.5: halving with three joins, then the first one leaves.
func TestSplitByHalving(t *testing.T) {
	var o slotOwners[string]
	check := func(when string, want map[string]SlotRange) {
		t.Helper()
		for c, r := range want {
			if got := o.ranges(c); !slices.Equal(got, []SlotRange{r}) {
				t.Errorf("%s %s owns %v, want %v", when, c, got, r)
			}
			for _, slot := range []int{r.First, (r.First + r.Last) / 2, min(r.Last, 65535)} {
				if got, ok := o.owner(uint16(slot)); got != c || !ok {
					t.Errorf("%s slot %d is %s's, want %s's", when, slot, got, c)
				}
			}
		}
		if len(o.owned) != len(want) {
			t.Errorf("%s %v has other owners", when, o.owned)
		}
	}
	join := func(c string) {
		if err := o.split(c); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := o.owner(7); ok {
		t.Error("nobody owns a slot")
	}
	join("A")
	check("alone", map[string]SlotRange{"A": {0, 65536}})
	join("B")
	check("with B", map[string]SlotRange{"B": {0, 32768}, "A": {32769, 65536}})
	join("C")
	check("with C", map[string]SlotRange{"C": {0, 16384}, "B": {16385, 32768}, "A": {32769, 65536}})
	o.remove("X")
	o.remove("A")
	check("without A", map[string]SlotRange{"C": {0, 16384}, "B": {16385, 65536}})
	o.remove("C")
	check("without C", map[string]SlotRange{"B": {0, 65536}})
	o.remove("B")
	check("at last", nil)
}

// halves is the rule word for word: a map from upper bound to consumer.
type halves map[int]int

func (h halves) uppers() []int {
	var out []int
	for u := range h {
		out = append(out, u)
	}
	slices.Sort(out)
	return out
}

func (h halves) join(c int) {
	if len(h) == 0 {
		h[65536] = c
		return
	}
	lower, at, size := 0, 0, 0
	for _, u := range h.uppers() {
		if u-lower > size {
			at, size = u, u-lower
		}
		lower = u
	}
	h[at-size/2] = c
}

func (h halves) leave(c int) {
	uppers := h.uppers()
	for i, u := range uppers {
		if h[u] != c {
			continue
		}
		delete(h, u)
		if u == 65536 && i > 0 {
			h[65536] = h[uppers[i-1]]
			delete(h, uppers[i-1])
		}
	}
}

func TestSplitAgainstMap(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var o slotOwners[int]
		h := halves{}
		var in []int
		for i := range rapid.IntRange(1, 60).Draw(r, "steps") {
			if len(in) > 0 && rapid.IntRange(0, 2).Draw(r, "leave") == 0 {
				k := rapid.IntRange(0, len(in)-1).Draw(r, "who")
				o.remove(in[k])
				h.leave(in[k])
				in = slices.Delete(in, k, k+1)
			} else {
				if err := o.split(i); err != nil {
					r.Fatal(err)
				}
				h.join(i)
				in = append(in, i)
			}
			slot := rapid.Uint16().Draw(r, "slot")
			for _, u := range h.uppers() {
				if int(slot) > u {
					continue
				}
				if got, ok := o.owner(slot); got != h[u] || !ok {
					r.Fatalf("slot %d is %d's, want %d's: %v", slot, got, h[u], o.owned)
				}
				break
			}
			if len(o.owned) != len(in) {
				r.Fatalf("%d in, %v", len(in), o.owned)
			}
		}
	})
}

func TestSplitEnds(t *testing.T) {
	var o slotOwners[int]
	for slot := range keySlots + 1 {
		o.owned = append(o.owned, ownedSlots[int]{SlotRange{slot, slot}, slot})
	}
	if err := o.split(-1); !errors.Is(err, ErrSticky) {
		t.Errorf("ranges of one slot were split: %v", err)
	}
	o.remove(7)
	if err := o.split(-1); err != nil {
		t.Errorf("a range of two slots: %v", err)
	}
	if got := o.ranges(-1); !slices.Equal(got, []SlotRange{{7, 7}}) {
		t.Errorf("the newcomer owns %v", got)
	}
}

func TestStick(t *testing.T) {
	var o slotOwners[string]
	for _, step := range []struct {
		consumer string
		ranges   []SlotRange
		text     string // of the error
		holder   string
	}{
		{"A", nil, "Ranges for KeyShared policy must not be empty.", ""},
		{"A", []SlotRange{{0, 9}, {10, 5}}, "Fixed hash range start > end for range: [10,5]", ""},
		{"A", []SlotRange{{10, 20}, {100, 100}, {15, 30}}, "", ""}, // its own may overlap
		{"B", []SlotRange{{0, 5}, {30, 40}}, "Range conflict with consumer A", "A"},
		{"B", []SlotRange{{25, 26}}, "Range conflict with consumer A", "A"},
		{"B", []SlotRange{{0, 65535}}, "Range conflict with consumer A", "A"},
		{"B", []SlotRange{{0, 9}, {31, 99}}, "", ""},
		{"C", []SlotRange{{99, 99}}, "Range conflict with consumer B", "B"},
		{"C", []SlotRange{{60000, 70000}}, "", ""},
		{"D", []SlotRange{{-5, -1}, {101, 101}}, "", ""},
	} {
		err := o.stick(step.consumer, step.ranges)
		if step.text == "" {
			if err != nil {
				t.Errorf("%s wants %v: %v", step.consumer, step.ranges, err)
			}
			continue
		}
		if !errors.Is(err, ErrSticky) || err.Error() != step.text {
			t.Errorf("%s wants %v: %v, want %q", step.consumer, step.ranges, err, step.text)
		}
		var conflict *slotConflict[string]
		if errors.As(err, &conflict) != (step.holder != "") || conflict != nil && conflict.holder != step.holder {
			t.Errorf("%s wants %v: conflict %v", step.consumer, step.ranges, conflict)
		}
	}
	owners := func(want string) {
		t.Helper()
		got := ""
		for _, slot := range []uint16{0, 9, 10, 20, 30, 31, 99, 100, 101, 102, 59999, 60000, 65535} {
			c, ok := o.owner(slot)
			if !ok {
				c = "-"
			}
			got += c
		}
		if got != want {
			t.Errorf("owners %s, want %s", got, want)
		}
	}
	owners("BBAAABBAD--CC")
	if got, want := fmt.Sprint(o.ranges("A")), "[{10 30} {100 100}]"; got != want {
		t.Errorf("A owns %s, want %s", got, want)
	}
	o.remove("A")
	owners("BB---BB-D--CC")
	if err := o.stick("E", []SlotRange{{10, 30}}); err != nil {
		t.Errorf("a freed range: %v", err)
	}
	owners("BBEEEBB-D--CC")
}

// However many ranges a consumer names, what is kept fits the slots.
func TestStickIsBounded(t *testing.T) {
	var o slotOwners[int]
	var many []SlotRange
	for i := range 300_000 {
		many = append(many, SlotRange{i % 70_000, i%70_000 + i%2})
	}
	if err := o.stick(1, many); err != nil || len(o.owned) > keySlots {
		t.Errorf("%d ranges kept, %v", len(o.owned), err)
	}
}
