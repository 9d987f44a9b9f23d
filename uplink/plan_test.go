package uplink

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

func samplePlan() plan {
	a, b := identity{"edge:a.0", "persistent://public/default/t", 100}, identity{"edge:a.1", "persistent://c/d/t", 7}
	return plan{
		edge: "edge", target: "persistent://c/d/t", epoch: 1, next: 40,
		open: []segment{
			{first: 40, last: 139, batch: true, by: a},
			{first: 140, last: 150, batch: true, by: a},
			{first: 151, last: 2000, by: b},
		},
	}
}

// readBack is what a plan is after it was read back: all of it may have left.
func readBack(p plan) plan {
	for i := range p.open {
		s := &p.open[i]
		s.durable, s.left, s.inherited = s.last+1, s.last+1, true
	}
	return p
}

func TestPlanSurvives(t *testing.T) {
	for _, p := range []plan{samplePlan(), {edge: "e", target: "t", next: 7}, {}} {
		got, err := decodePlan(p.encode())
		if want := readBack(p); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%v:\n%+v\n%+v", err, got, want)
		}
	}
	if p, err := decodePlan(nil); err != nil || !reflect.DeepEqual(p, plan{}) {
		t.Errorf("%+v, %v", p, err)
	}
}

// No bit may turn without being noticed.
func TestDamagedPlansAreNoticed(t *testing.T) {
	p := samplePlan()
	good := p.encode()
	for i := range len(good) * 8 {
		bad := append([]byte(nil), good...)
		bad[i/8] ^= 1 << (i % 8)
		if _, err := decodePlan(bad); !errors.Is(err, errPlan) {
			t.Fatalf("bit %d: %v", i, err)
		}
	}
	for n := 1; n < len(good); n++ {
		if _, err := decodePlan(good[:n]); !errors.Is(err, errPlan) {
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
}

func TestPlanSettles(t *testing.T) {
	p := samplePlan()
	p.settle(140)
	if len(p.open) != 2 || p.open[0].first != 140 {
		t.Errorf("%+v", p.open)
	}
	p.settle(1000)
	if len(p.open) != 1 || p.open[0].first != 1000 || p.next != 1000 {
		t.Errorf("%+v", p)
	}
	p.settle(10)
	if p.next != 1000 {
		t.Errorf("went back to %d", p.next)
	}
}

func TestPlanIsCut(t *testing.T) {
	p := samplePlan()
	p.cut(500)
	if s := p.open[2]; s.first != 151 || s.last != 499 {
		t.Errorf("%+v", s)
	}
	p.cut(151)
	if len(p.open) != 2 {
		t.Errorf("%+v", p.open)
	}
	p.cut(100) // a batch is not cut
	if len(p.open) != 2 || p.open[0].last != 139 {
		t.Errorf("%+v", p.open)
	}
}

func TestProducerNames(t *testing.T) {
	base := []any{"edge-1", "persistent://public/default/t", "b1", "r", uint64(0)}
	name := func(a []any) string {
		return producerName(a[0].(string), a[1].(string), a[2].(string), a[3].(string), a[4].(uint64))
	}
	seen := map[string]int{name(base): -1}
	for i, other := range []any{"edge-2", "persistent://public/default/u", "b2", "s", uint64(1)} {
		changed := append([]any(nil), base...)
		changed[i] = other
		if n, ok := seen[name(changed)]; ok {
			t.Errorf("part %d and part %d make the same name", i, n)
		}
		seen[name(changed)] = i
	}
	long := producerName(strings.Repeat("e", 256), strings.Repeat("t", 2000), "b", "r", 3)
	if len(long) > maxProducerName || long == producerName(strings.Repeat("e", 256), strings.Repeat("t", 2000), "b", "r", 4) {
		t.Errorf("%d bytes: %s", len(long), long)
	}
}

func FuzzPlan(f *testing.F) {
	p := samplePlan()
	f.Add(p.encode())
	f.Add([]byte{})
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		// The checksum would keep the fuzzer out: it is made right.
		if p, err := decodePlan(seal(b)); err == nil {
			again, err := decodePlan(p.encode())
			if err != nil || !reflect.DeepEqual(p, again) {
				t.Fatalf("%v:\n%+v\n%+v", err, p, again)
			}
			checkOrder(t, p)
		}
		if _, err := decodePlan(b); err != nil && !errors.Is(err, errPlan) {
			t.Fatal(err)
		}
	})
}

// checkOrder wants segments in order and apart.
func checkOrder(t *testing.T, p plan) {
	for i, s := range p.open {
		if s.last < s.first || i > 0 && s.first <= p.open[i-1].last {
			t.Fatalf("segments %+v", p.open)
		}
	}
}
