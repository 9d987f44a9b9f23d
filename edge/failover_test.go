package edge

import (
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// protocol 6.5: slots before the zero rule, and whole hashes where given.
func TestMurmur3(t *testing.T) {
	for _, c := range []struct {
		key  string
		hash uint32
		slot uint32
	}{
		{"", 0, 0},
		{"a", 0x3c2569b2, 27058},
		{"key-1", 0x98b115a0, 5536},
		{"NONE_KEY", 0x9e15bea3, 48803},
		{"order-42", 0x4b11a18e, 41358},
	} {
		if got := murmur3([]byte(c.key)); got != c.hash&0x7fffffff || got%65536 != c.slot {
			t.Errorf("murmur3(%q) = %x, slot %d", c.key, got, got%65536)
		}
	}
}

// What Pulsar 4.0.7 chose, watched on the wire (raw, Go and Java clients).
func TestChooseActiveAsWatched(t *testing.T) {
	raw, goClient := "persistent://public/default/failover-plain", "persistent://public/default/go-failover"
	for _, c := range []struct {
		topic     string
		partition int
		names     []string // in order of joining; P has priority 1
		want      string
	}{
		{raw, -1, []string{"B"}, "B"},
		{raw, -1, []string{"B", "A"}, "A"},
		{raw, -1, []string{"B", "A", "C"}, "C"},
		{raw, -1, []string{"B", "A", "C", "P"}, "C"},
		{raw, -1, []string{"A", "C", "P"}, "C"},
		{raw, -1, []string{"P"}, "P"},
		{goClient, -1, []string{"one", "two"}, "one"},
		{goClient, -1, []string{"two"}, "two"},
		{"t-partition-1", 1, []string{"B"}, "B"},
		{"t-partition-1", 1, []string{"B", "A"}, "B"},
		{"t-partition-1", 1, []string{"B", "A", "C", "P"}, "B"},
		{"t-partition-1", 1, []string{"A", "C", "P"}, "C"},
		{"t-partition-1", 1, []string{"C", "P"}, "C"},
		{"t-partition-0", 0, []string{"one", "two"}, "one"},
		{"t-partition-1", 1, []string{"one", "two"}, "two"},
		{"t-partition-7", 7, []string{"c", "a", "b"}, "b"},
	} {
		var seats []seat
		for i, name := range c.names {
			s := seat{name: name, joined: uint64(i)}
			if name == "P" {
				s.priority = 1
			}
			seats = append(seats, s)
		}
		if got := chooseActive(c.topic, c.partition, seats, -1); seats[got].name != c.want {
			t.Errorf("%s of %v: %s, want %s", c.topic, c.names, seats[got].name, c.want)
		}
	}
}

func TestChooseActiveAmongNamesakes(t *testing.T) {
	if got := chooseActive("t", -1, nil, -1); got != -1 {
		t.Errorf("of nobody: %d", got)
	}
	twins := []seat{{name: "same", joined: 5}, {name: "same", joined: 3}, {name: "same", joined: 4}}
	for current, want := range map[int]int{-1: 0, 0: 0, 1: 1, 2: 2} {
		if got := chooseActive("t", -1, twins, current); got != want {
			t.Errorf("with %d active: %d, want %d", current, got, want)
		}
	}
	for partition, want := range []int{1, 2, 0, 1} {
		if got := chooseActive("t", partition, twins, -1); got != want {
			t.Errorf("partition %d: %d, want %d", partition, got, want)
		}
	}
}

// Whoever is chosen has the best priority, whatever the order of the seats, and
// nobody's leaving but its own takes the role away on a plain topic.
func TestChooseActiveIsStable(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var seats []seat
		for i := range rapid.IntRange(2, 8).Draw(r, "seats") {
			seats = append(seats, seat{
				priority: rapid.IntRange(0, 2).Draw(r, "priority"),
				name:     rapid.StringMatching(`[a-c]{1,3}`).Draw(r, "name") + string(rune('0'+i)),
				joined:   uint64(i),
				ring:     &ringPlace{},
			})
		}
		partition := rapid.IntRange(-1, 5).Draw(r, "partition")
		chosen := chooseActive("topic", partition, seats, -1)
		for _, s := range seats {
			if s.priority < seats[chosen].priority {
				r.Fatalf("%v chosen of %v", seats[chosen], seats)
			}
		}
		order := rapid.Permutation(seats).Draw(r, "order")
		if again := chooseActive("topic", partition, order, -1); order[again] != seats[chosen] {
			r.Fatalf("%v, in another order %v", seats[chosen], order[again])
		}
		leaver := rapid.IntRange(0, len(order)-1).Draw(r, "leaver")
		if partition >= 0 || order[leaver] == seats[chosen] {
			return
		}
		rest := append(order[:leaver:leaver], order[leaver+1:]...)
		if again := chooseActive("topic", -1, rest, -1); rest[again] != seats[chosen] {
			r.Fatalf("%v, after another left %v", seats[chosen], rest[again])
		}
	})
}

// Joining and leaving ask all seats where they stand; that is worked out once for each.
func TestPlacesOnTheRingAreRemembered(t *testing.T) {
	var seats, fresh []seat
	for i := range 100 {
		s := seat{name: strings.Repeat("n", 2000) + strconv.Itoa(i), joined: uint64(i)}
		fresh = append(fresh, s)
		s.ring = &ringPlace{}
		seats = append(seats, s)
	}
	if got, want := chooseActive("t", -1, seats, -1), chooseActive("t", -1, fresh, -1); got != want {
		t.Errorf("%d is chosen, want %d", got, want)
	}
	if n := testing.AllocsPerRun(10, func() { chooseActive("t", -1, seats, -1) }); n > 20 {
		t.Errorf("choosing again takes %v allocations", n)
	}
	if got, want := chooseActive("t", -1, seats, -1), chooseActive("t", -1, fresh, -1); got != want {
		t.Errorf("%d is chosen the second time, want %d", got, want)
	}
}
