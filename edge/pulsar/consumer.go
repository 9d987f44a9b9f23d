package pulsar

// ACTIVE_CONSUMER_CHANGE (protocol version 12 on), REACHED_END_OF_TOPIC (9 on), and
// CLOSE_CONSUMER as the broker sends it.
//
// They are pushed behind the SUCCESS of their SUBSCRIBE; of several changes the last
// counts. REACHED_END_OF_TOPIC goes to Java clients only: the Go and C++ clients drop
// their connection over it (protocol 4, number 11).

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"

	"wayside/edge"
	"wayside/wire/pulsarpb"
)

// consumer is a table entry, and the receiver of a core's consumer.
type consumer struct {
	place
	s         *session
	core      *edge.Consumer // set before it is ready
	partition int32          // of its topic, -1 for none
	topic     edge.TopicName
	name      string        // of its subscription
	line      chan struct{} // of the reader: closed when its last request has ended; nil without one

	// guarded by the outbox's lock
	dead    bool // nothing is delivered any more
	starved bool // was told that there is no room
	active  change
	ended   bool // the end of the topic is to be told
	closed  bool // that it was closed is to be told
}

// change is an active state that its client does not know.
type change int8

const (
	unchanged change = iota
	becameActive
	becameInactive
)

// Room says how much may be delivered.
func (c *consumer) Room() int { return c.s.out.room(c) }

// Deliver queues an entry, which is not written before Flush.
func (c *consumer) Deliver(d edge.Delivery) { c.s.out.deliver(c, d) }

// Flush sees to it that what was delivered is written.
func (c *consumer) Flush() { c.s.pen.dash() }

// ActiveChanged tells the client of a Failover subscription.
func (c *consumer) ActiveChanged(active bool) {
	c.change(func() {
		c.active = becameInactive
		if active {
			c.active = becameActive
		}
	})
}

// EndReached tells the client that nothing will ever come any more.
func (c *consumer) EndReached() {
	c.change(func() { c.ended = true })
}

// Closed tells the client that the broker has closed the consumer.
func (c *consumer) Closed(error) {
	c.change(func() {
		c.closed, c.dead = true, true
		if c.told {
			c.endLocked()
		}
	})
}

func (c *consumer) change(set func()) {
	o := c.s.out
	o.mu.Lock()
	set()
	c.tellLocked(o, c)
	o.mu.Unlock()
	o.poke()
}

// pending reports whether there is something to tell. The outbox is locked.
func (c *consumer) pending() bool { return c.closed || c.ended || c.active != unchanged }

// endLocked marks the consumer as gone by the broker's will. One that its client is
// closing needs no word of it.
func (c *consumer) endLocked() {
	c.goneAt = time.Now()
	if !c.move(ready, gone) {
		c.closed = false
	}
}

// completeLocked makes the consumer known to be ready, unless it was cancelled.
func (c *consumer) completeLocked(request uint64) proto.Message {
	if !c.move(creating, ready) {
		return nil
	}
	c.told = true
	c.made()
	if c.closed {
		c.endLocked()
	}
	c.tellLocked(c.s.out, c)
	return &pulsarpb.CommandSuccess{RequestId: &request}
}

// frames says what the client has to be told. The outbox is locked.
func (c *consumer) frames() (dst []byte) {
	c.listed = false
	if c.active != unchanged && !c.closed {
		dst = append(dst, encode(&pulsarpb.CommandActiveConsumerChange{
			ConsumerId: &c.id, IsActive: proto.Bool(c.active == becameActive),
		})...)
	}
	if c.ended && c.s.java {
		dst = append(dst, encode(&pulsarpb.CommandReachedEndOfTopic{ConsumerId: &c.id})...)
	}
	if c.closed {
		dst = append(dst, encode(&pulsarpb.CommandCloseConsumer{ConsumerId: &c.id, RequestId: proto.Uint64(noRequest)})...)
	}
	c.active, c.ended, c.closed = unchanged, false, false
	return dst
}

// stop lets nothing more of what is queued go out.
func (c *consumer) stop() {
	o := c.s.out
	o.mu.Lock()
	c.dead, c.closed, c.ended, c.active = true, false, false, unchanged
	c.hushLocked()
	o.mu.Unlock()
}

// leave takes the consumer out of the core, for its client or as its connection ends.
// It returns false if it had left.
func (c *consumer) leave() bool {
	if c.forget(creating) {
		c.cancel()
		return true
	}
	if !c.forget(ready) {
		return false
	}
	c.core.Close()
	c.stop()
	return true
}

// queue works on a request of the consumer, on a goroutine, behind its earlier ones.
func (c *consumer) queue(work func(ctx context.Context)) error {
	before, done := c.line, make(chan struct{})
	c.line = done
	return c.s.request(func(ctx context.Context) {
		defer close(done)
		if before != nil {
			<-before // its context ends with this one's
		}
		work(ctx)
	})
}

// consumer returns a consumer that is ready, for the commands that ignore all others.
func (s *session) consumer(id uint64) (*consumer, bool) {
	c, ok := s.consumers.find(id)
	if !ok || c.state.Load() == creating {
		return nil, false
	}
	c.touch(s.out, c)
	return c, c.state.Load() == ready
}
