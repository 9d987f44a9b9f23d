package uplink

import (
	"math/rand/v2"
	"time"
)

// pauses space tries out: each pause is drawn evenly between nothing and a bound
// that doubles from try to try (full jitter), so that a fleet does not come back in
// step.
type pauses struct {
	min   time.Duration // bound of the first pause
	tries int
}

// next returns the pause before the next try; most bounds it.
func (b *pauses) next(most time.Duration) time.Duration {
	bound := most
	if b.tries < 30 { // beyond, the shift says nothing
		bound = min(most, b.min<<b.tries)
	}
	b.tries++
	return rand.N(max(bound, 1))
}

// reset makes the next pause short again: there was progress.
func (b *pauses) reset() { b.tries = 0 }

// ration counts events in a sliding minute.
type ration struct {
	limit int // 0 for none
	span  time.Duration
	times []time.Time // of the last limit events, oldest first
}

// spend notes an event.
func (r *ration) spend(now time.Time) {
	if r.limit == 0 {
		return
	}
	if len(r.times) == r.limit {
		r.times = append(r.times[:0], r.times[1:]...)
	}
	r.times = append(r.times, now)
}

// pause is how long to wait until another event is within the limit.
func (r *ration) pause(now time.Time) time.Duration {
	if r.limit == 0 || len(r.times) < r.limit {
		return 0
	}
	return max(0, r.times[0].Add(r.span).Sub(now))
}

// later is the second of two moments.
func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
