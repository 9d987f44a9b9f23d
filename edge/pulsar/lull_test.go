package pulsar

import (
	"testing"
	"time"
)

// talk is a client as a reader's lulls see it.
type talk struct {
	l     lulls
	now   time.Time
	sent  int           // messages
	reads int           // that brought them
	held  time.Duration // in lulls
}

func newTalk() *talk { return &talk{now: time.Unix(1000, 0)} }

func (c *talk) clock() time.Time { return c.now }

// read reads n frames that have come by now, after a wait for the first of them.
func (c *talk) read(n int, wait time.Duration, send bool) {
	c.now = c.now.Add(wait)
	c.reads++
	for range n {
		c.l.took(send)
	}
	c.sent += n
}

// lull waits if it is due, and reports whether it was.
func (c *talk) lull() bool {
	due := c.l.due(c.clock)
	if due {
		c.now = c.now.Add(lull)
		c.held += lull
	}
	return due
}

// paced plays a client that sends by itself, a message every gap, for a time.
func (c *talk) paced(gap, long time.Duration) {
	for end := c.now.Add(long); c.now.Before(end); {
		if c.lull() {
			c.read(int(lull/gap), 0, true)
		} else {
			c.read(1, gap, true)
		}
	}
}

// asked plays one that has a window of messages on the way and sends the next ones when
// those are answered, a round trip later.
func (c *talk) asked(window int, trip, long time.Duration) {
	for end := c.now.Add(long); c.now.Before(end); {
		c.lull()
		c.read(window, trip, true)
	}
}

func TestMessagesGatherThatComeByThemselves(t *testing.T) {
	for _, gap := range []time.Duration{400 * time.Microsecond, 100 * time.Microsecond, 30 * time.Microsecond} {
		c := newTalk()
		c.paced(gap, 10*time.Second)
		if most := 10*1000 + 10*2*lullAwake + lullAwake; c.reads > most {
			t.Errorf("a message every %v: %d reads for %d messages, want %d at most", gap, c.reads, c.sent, most)
		}
	}
}

func TestSlowMessagesWaitForNothing(t *testing.T) {
	c := newTalk()
	c.paced(time.Millisecond, 10*time.Second)
	if c.held > 0 {
		t.Errorf("held up for %v", c.held)
	}
}

func TestWhoSendsOnAnswersIsNotHeldUp(t *testing.T) {
	const long = 100 * time.Second
	for _, window := range []int{1, 5, 10, 200} {
		c := newTalk()
		c.asked(window, 300*time.Microsecond, long)
		if c.held > long/1000 {
			t.Errorf("window of %d: held up for %v of %v", window, c.held, long)
		}
	}
}

// A client that turns from sending by itself to sending on answers is let go within a
// stretch, and one that turns back gathers again when its ban is over.
func TestLullsFollowTheClient(t *testing.T) {
	c := newTalk()
	c.paced(100*time.Microsecond, 3*time.Second)
	c.held = 0
	c.asked(10, 300*time.Microsecond, 10*time.Second)
	if c.held > lullStretch+100*lull {
		t.Errorf("held up for %v after it has turned", c.held)
	}
	c.paced(100*time.Microsecond, 20*time.Second)
	c.reads, c.sent = 0, 0
	c.paced(100*time.Microsecond, 10*time.Second)
	if c.sent < 5*c.reads {
		t.Errorf("%d reads for %d messages", c.reads, c.sent)
	}
}

func TestOtherRequestsAreNotHeldUp(t *testing.T) {
	c := newTalk()
	for range 100_000 {
		c.lull()
		c.read(2, 200*time.Microsecond, true)
		c.read(1, 0, false)
	}
	if c.held > 0 {
		t.Errorf("held up for %v", c.held)
	}
}
