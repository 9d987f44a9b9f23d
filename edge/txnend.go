package edge

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// End commits or aborts a transaction. done runs when that is durable and everywhere
// done; ErrTxnStatus if the opposite was decided before. Once it is decided it is brought
// to its end, over any restart.
func (c *Coordinator) End(id TxnID, commit bool, done func(error)) {
	if err := c.end(id, commit, done); err != nil {
		done(err)
	}
}

func (c *Coordinator) end(id TxnID, commit bool, done func(error)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	x, err := c.findLocked(id)
	want := TxnAborting
	if commit {
		want = TxnCommitting
	}
	switch {
	case err != nil:
		return err
	case x.state == want:
		x.waiting = append(x.waiting, done)
		return nil
	case x.state != TxnOpen:
		return fmt.Errorf("%w: transaction %v is %v", ErrTxnStatus, id, x.state)
	}
	x.timer.Stop()
	x.state, x.record.State = want, want // from here on nothing more takes part
	x.waiting = append(x.waiting, done)
	if len(x.members) == 0 {
		c.store.PutValue(txnKey(x.id), nil, func(err error) { c.decided(x, err) })
	} else {
		c.putLocked(x, func(err error) { c.decided(x, err) })
	}
	return nil
}

// decided runs on the store's goroutine when the decision is durable, or could not be
// made so: then the transaction is open again.
func (c *Coordinator) decided(x *txn, err error) {
	if err == nil && c.b.spawn(func() { c.finish(x) }) {
		return
	}
	if err == nil {
		err = ErrClosing
	}
	c.mu.Lock()
	waiting := x.waiting
	x.waiting = nil
	if !errors.Is(err, ErrClosing) && !c.closed {
		x.state, x.record.State = TxnOpen, TxnOpen
		c.armLocked(x, time.Duration(x.record.Timeout)*time.Millisecond)
	}
	c.mu.Unlock()
	for _, done := range waiting {
		done(err)
	}
}

// finishers bounds the topics that end their part at once.
const finishers = 8

// finish ends a decided transaction on all its topics, however often that has to be
// tried, and then forgets it.
func (c *Coordinator) finish(x *txn) {
	c.mu.Lock()
	topics := map[TopicName]txnPart{}
	for who := range x.members {
		if name, err := ParseTopicName(who.Topic); err == nil && !x.ended[name] {
			topics[name] = x.part(who.Topic)
		}
	}
	c.mu.Unlock()
	var wg sync.WaitGroup
	turns := make(chan struct{}, finishers)
	for name, part := range topics {
		turns <- struct{}{}
		wg.Go(func() {
			c.finishOn(name, &part)
			<-turns
		})
	}
	wg.Wait()
	err := error(nil)
	if c.b.run.Err() != nil {
		err = ErrClosing
	}
	c.mu.Lock()
	waiting := x.waiting
	x.waiting = nil
	if err == nil {
		c.dropLocked(x)
		c.eraseLocked(x)
	}
	c.mu.Unlock()
	for _, done := range waiting {
		done(err)
	}
}

func (c *Coordinator) dropLocked(x *txn) {
	if c.open[x.id.Least] == x {
		delete(c.open, x.id.Least)
		c.texts -= x.text
	}
}

// forget lets go a transaction whose beginning could not be stored.
func (c *Coordinator) forget(x *txn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	x.timer.Stop()
	c.dropLocked(x)
}

// finishRetry is the pause before a topic's part is tried again.
const finishRetry = time.Second

// finishOn ends a topic's part. It comes back when that is done or the broker stops.
func (c *Coordinator) finishOn(name TopicName, part *txnPart) {
	for said := false; ; {
		err := c.tryFinish(c.b.run, name, part)
		switch {
		case err == nil || c.b.run.Err() != nil:
			return
		case errors.Is(err, ErrUnloaded):
			continue // it waits for the topic to be loaded anew
		case !said:
			said = true
			c.b.opts.Logger.Error("a transaction cannot be ended on a topic, trying again",
				"transaction", part.id.String(), "topic", name.String(), "error", err)
		}
		select {
		case <-time.After(finishRetry):
		case <-c.b.run.Done():
			return
		}
	}
}

func (c *Coordinator) tryFinish(ctx context.Context, name TopicName, part *txnPart) error {
	t, err := c.b.Open(ctx, name, false)
	switch {
	case err == nil:
		return t.endTxn(ctx, part)
	case errors.Is(err, ErrStorage), errors.Is(err, ErrClosing), ctx.Err() != nil:
		return err
	}
	c.finished(part.id, name) // no such topic: it takes no part any more
	return nil
}

// finished notes that a topic has ended its part.
func (c *Coordinator) finished(id TxnID, name TopicName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if x := c.open[id.Least]; x != nil {
		x.ended[name] = true
	}
}

// resume brings to their end, after a start, the transactions that were decided.
func (c *Coordinator) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, x := range c.open {
		if x.state != TxnOpen {
			c.b.wg.Go(func() { c.finish(x) })
		}
	}
}

// stop lets no transaction change any more. What is open or decided goes on with the
// next start.
func (c *Coordinator) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, x := range c.open {
		if x.timer != nil {
			x.timer.Stop()
		}
	}
}
