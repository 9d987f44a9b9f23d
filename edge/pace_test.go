package edge

import (
	"testing"
	"time"
)

func TestPace(t *testing.T) {
	start := time.Now()
	at := func(d time.Duration) time.Time { return start.Add(d) }
	five := &DispatchRate{Messages: 5, Period: 1}
	kilo := &DispatchRate{Messages: -1, Bytes: 1000, Period: 2}
	for _, x := range []struct {
		name            string
		rate            *DispatchRate
		messages, bytes int64 // taken at once
		later           time.Duration
		left            int64
		wait            time.Duration // from the start
	}{
		{"nothing taken", five, 0, 0, 0, 5, 0},
		{"some taken", five, 3, 900, 0, 2, 0},
		{"all taken", five, 5, 0, 999 * time.Millisecond, 0, time.Second},
		{"the next period", five, 5, 0, time.Second, 5, 0},
		{"a batch of thirteen", five, 13, 0, 1500 * time.Millisecond, 0, 2 * time.Second},
		{"what is left of it", five, 13, 0, 2 * time.Second, 2, 0},
		{"long after", five, 13, 0, time.Hour, 5, 0},
		{"bytes", kilo, 100, 1000, time.Second, 0, 2 * time.Second},
		{"bytes of the next period", kilo, 100, 1500, 2 * time.Second, 1<<63 - 1, 0},
	} {
		p := &pace{}
		p.left(x.rate, start)
		p.took(x.messages, x.bytes)
		left, until := p.left(x.rate, at(x.later))
		if left != x.left || left == 0 && !until.Equal(at(x.wait)) {
			t.Errorf("%s: %d left, to wait %v, want %d and %v", x.name, left, until.Sub(start), x.left, x.wait)
		}
	}
}
