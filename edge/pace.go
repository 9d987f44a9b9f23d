package edge

import (
	"math"
	"sync"
	"time"
)

// pace holds deliveries back to a rate (protocol 3.11): so many in a period at once, then
// as many in the next one. What a batch or a read takes beyond that is missing from the
// next period.
type pace struct {
	mu       sync.Mutex // leaf
	since    time.Time  // begin of the period
	messages int64      // delivered in it
	bytes    int64
}

// limits reports whether the rate bounds anything.
func (r *DispatchRate) limits() bool { return r != nil && (r.Messages > 0 || r.Bytes > 0) }

// left is how many messages may go now; at 0, until when to wait.
func (p *pace) left(r *DispatchRate, now time.Time) (messages int64, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	period := time.Duration(r.Period) * time.Second
	switch n := int64(now.Sub(p.since) / period); {
	case p.messages == 0 && p.bytes == 0:
		p.since = now
	case n > 0:
		p.messages, p.bytes = after(n, p.messages, r.Messages), after(n, p.bytes, r.Bytes)
		p.since = p.since.Add(time.Duration(n) * period)
	}
	messages = math.MaxInt64
	if r.Messages > 0 {
		messages = r.Messages - p.messages
	}
	if messages <= 0 || r.Bytes > 0 && p.bytes >= r.Bytes {
		return 0, p.since.Add(period)
	}
	return messages, time.Time{}
}

// after is what counts of a use when n periods of a limit have passed.
func after(n, used, limit int64) int64 {
	if limit <= 0 || n > used/limit {
		return 0
	}
	return used - n*limit
}

func (p *pace) took(messages, bytes int64) {
	p.mu.Lock()
	p.messages += messages
	p.bytes += bytes
	p.mu.Unlock()
}

// pacedLocked lowers what is to be read to what the rates of the topic and of its
// subscriptions leave. It reports whether anything is left.
func (s *Subscription) pacedLocked(v *view, p *readPlan) bool {
	rules := s.topic.policies.Load()
	if !rules.DispatchRate.limits() && !rules.SubscriptionRate.limits() {
		return true
	}
	for _, x := range []struct {
		rate *DispatchRate
		of   *pace
	}{{rules.DispatchRate, s.topic.pacing()}, {rules.SubscriptionRate, s.pacingLocked()}} {
		if !x.rate.limits() {
			continue
		}
		n, until := x.of.left(x.rate, v.now)
		if n == 0 {
			s.paused = "the dispatch rate is reached"
			p.deaf, p.wakeAt = true, until
			return false
		}
		p.entries = min(p.entries, s.wanted(int(min(n, readEntries))))
	}
	return true
}

// chargeLocked counts a delivery against the rates.
func (s *Subscription) chargeLocked(messages, bytes int) {
	rules := s.topic.policies.Load()
	if rules.DispatchRate.limits() {
		s.topic.pacing().took(int64(messages), int64(bytes))
	}
	if rules.SubscriptionRate.limits() {
		s.pacingLocked().took(int64(messages), int64(bytes))
	}
}

// pacing is made when a rate is first looked at.
func (t *Topic) pacing() *pace {
	if t.pace.Load() == nil {
		t.pace.CompareAndSwap(nil, &pace{})
	}
	return t.pace.Load()
}

func (s *Subscription) pacingLocked() *pace {
	if s.pace == nil {
		s.pace = &pace{}
	}
	return s.pace
}
