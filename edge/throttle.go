package edge

import (
	"sync/atomic"
	"time"
)

// throttle holds sends back that come faster than a topic's publish rate (protocol 3.11):
// one second's worth goes at once, whatever is beyond goes in the order in which it came,
// as soon as the rate has room again. An entry that is larger than what is left goes too,
// and what it took too much is missing afterwards. The reference stops to read from the
// connection; here its acknowledgements, PINGs and other topics go on.
//
// What is held is bounded by holdRoom. The topic's lock guards all but count.
type throttle struct {
	t        *Topic
	rate     PublishRate
	at       time.Time // when the next two were looked at
	messages float64   // that may go now
	bytes    float64
	line     []held
	count    atomic.Int64 // of line
	limited  int64        // how often it began to hold back
	timer    *time.Timer  // armed while something is held
}

// held is what has to wait: a message, the answer to a refused one, or the producer's end.
type held struct {
	p       *Producer
	m       Message
	done    func(Receipt, error)
	refusal error
	left    func() // of Close, instead of done
}

const (
	// throttleStep is the least pause between two looks at what is held: at high rates
	// many go together.
	throttleStep = 10 * time.Millisecond
	// heldOverhead is what a held send takes in memory beside its bytes.
	heldOverhead = 512
)

// limits reports whether the rate bounds anything.
func (r *PublishRate) limits() bool { return r != nil && (r.Messages > 0 || r.Bytes > 0) }

func newThrottle(t *Topic, r PublishRate, now time.Time) *throttle {
	return &throttle{t: t, rate: r, at: now, messages: float64(r.Messages), bytes: float64(r.Bytes)}
}

// refill adds what the time since the last look allows, up to a second's worth.
func (h *throttle) refill(now time.Time) {
	since := max(now.Sub(h.at).Seconds(), 0)
	h.at = now
	h.messages = min(h.messages+since*float64(h.rate.Messages), float64(h.rate.Messages))
	h.bytes = min(h.bytes+since*float64(h.rate.Bytes), float64(h.rate.Bytes))
}

// wait is how long nothing may go from now on, 0 if something may.
func (h *throttle) wait() time.Duration {
	const nearly = 1 - 1e-6 // a timer that comes on time leaves a rounding error
	var seconds float64
	if h.rate.Messages > 0 {
		seconds = (nearly - h.messages) / float64(h.rate.Messages)
	}
	if h.rate.Bytes > 0 {
		seconds = max(seconds, (nearly-h.bytes)/float64(h.rate.Bytes))
	}
	if seconds <= 0 {
		return 0
	}
	const longest = float64(time.Hour) // more than that is looked at again
	return time.Duration(min(seconds*float64(time.Second), longest)) + 1
}

// holds puts a message in line if it may not go now. The topic is locked, as for all below.
func (h *throttle) holds(p *Producer, m Message, done func(Receipt, error)) bool {
	if h.t.broker.stopping.Load() {
		h.pass(true) // what came before goes before
		return false
	}
	switch {
	case p.closed:
		return false
	case p.leaving: // its client said so, and sends all the same
		m.Grant.Release()
		h.t.ledger.Barrier(func(error) { done(Receipt{}, ErrGone) })
		return true
	}
	if len(h.line) == 0 {
		if h.refill(time.Now()); h.wait() == 0 {
			h.charge(&m)
			return false
		}
		h.limited++
	}
	h.put(held{p: p, m: m, done: done})
	return true
}

func (h *throttle) charge(m *Message) {
	h.messages -= float64(m.Facts.Messages)
	h.bytes -= float64(len(m.Data))
}

// put adds to the line, behind what the producer has there.
func (h *throttle) put(x held) {
	h.line = append(h.line, x)
	h.count.Store(int64(len(h.line)))
	x.p.held++
	h.t.broker.holding.add(x.cost())
	if h.timer == nil {
		h.arm()
	}
}

func (x *held) cost() int64 { return int64(len(x.m.Data)) + heldOverhead }

// arm looks again when something may go.
func (h *throttle) arm() {
	if h.timer != nil {
		h.timer.Stop()
		h.timer = nil
	}
	if len(h.line) > 0 {
		h.timer = time.AfterFunc(max(h.wait(), throttleStep), h.look)
	}
}

func (h *throttle) look() {
	h.t.mu.Lock()
	defer h.t.mu.Unlock()
	h.pass(false)
}

// pass lets go what may go now, or all of it.
func (h *throttle) pass(all bool) {
	h.refill(time.Now())
	n := 0
	for ; len(h.line) > 0 && (all || !h.line[0].counts() || h.wait() == 0); n++ {
		x := h.line[0]
		h.line[0] = held{}
		h.line = h.line[1:]
		h.out(&x)
		if x.counts() {
			h.charge(&x.m)
		}
		x.goOn()
	}
	h.settle(n)
}

// counts reports whether it takes of the rate.
func (x *held) counts() bool { return x.refusal == nil && x.left == nil }

// goOn does what was put off.
func (x *held) goOn() {
	switch {
	case x.left != nil:
		x.p.closeLocked(x.left)
	case x.refusal != nil:
		x.p.topic.ledger.Barrier(func(error) { x.done(Receipt{}, x.refusal) })
	default:
		x.p.publishLocked(x.m, x.done)
	}
}

// drop takes out what a producer has in line that is gone. What it sent is not answered
// and was never stored: its client sends it again, if it wants it.
func (h *throttle) drop(p *Producer) {
	var gone []held
	rest := h.line[:0]
	for _, x := range h.line {
		if x.p != p {
			rest = append(rest, x)
			continue
		}
		h.out(&x)
		x.m.Grant.Release()
		gone = append(gone, x)
	}
	clear(h.line[len(rest):])
	h.line = rest
	h.t.ledger.Barrier(func(error) {
		for _, x := range gone {
			if x.left != nil {
				x.left()
			} else {
				x.done(Receipt{}, ErrGone)
			}
		}
	})
	h.settle(len(gone))
}

// out counts something as gone from the line.
func (h *throttle) out(x *held) {
	x.p.held--
	h.t.broker.holding.add(-x.cost())
}

// settle is called when the line has become shorter by n.
func (h *throttle) settle(n int) {
	h.count.Store(int64(len(h.line)))
	if len(h.line) == 0 {
		h.line = nil
	}
	h.arm()
	if n > 0 {
		h.t.broker.holding.tell()
	}
}

// adoptPublishRate obeys the rate that holds now.
func (t *Topic) adoptPublishRate() {
	t.mu.Lock()
	defer t.mu.Unlock()
	h, rate := t.throttle.Load(), t.policies.Load().PublishRate
	switch {
	case h == nil && rate.limits():
		t.throttle.Store(newThrottle(t, *rate, time.Now()))
	case h == nil || rate.limits() && h.rate == *rate:
	case rate.limits():
		was := h.rate
		h.refill(time.Now())
		h.rate = *rate
		h.messages, h.bytes = converted(h.messages, was.Messages, rate.Messages), converted(h.bytes, was.Bytes, rate.Bytes)
		h.pass(false)
	default:
		h.pass(true)
		t.throttle.Store(nil)
	}
}

// converted is what may go at another rate: never more than its second's worth.
func converted(left float64, was, rate int64) float64 {
	if was <= 0 {
		return float64(rate)
	}
	return min(left, float64(rate))
}

// letHeldGo publishes all that is held back: the broker stops, and owes answers.
func (t *Topic) letHeldGo() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if h := t.throttle.Load(); h != nil {
		h.pass(true)
	}
}
