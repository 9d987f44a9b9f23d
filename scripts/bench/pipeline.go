package main

import "sync"

// A pipeline turns receipts that one waits for into calls of done, in the order of sending, and keeps the window.
type pipeline struct {
	slots    chan struct{} // one taken per message without a receipt
	receipts chan receipt
	waiter   sync.WaitGroup
}

type receipt struct {
	wait func() error
	done func(error)
}

func newPipeline() *pipeline {
	p := &pipeline{slots: make(chan struct{}, window), receipts: make(chan receipt, window)}
	p.waiter.Go(func() {
		for r := range p.receipts {
			r.done(r.wait())
			<-p.slots
		}
	})
	return p
}

// enter takes a place in the window. It is followed by one call of add.
func (p *pipeline) enter() { p.slots <- struct{}{} }

func (p *pipeline) add(wait func() error, done func(error)) { p.receipts <- receipt{wait, done} }

// flush fills the window with nothing, which takes until all receipts have come.
func (p *pipeline) flush() {
	for range window {
		p.slots <- struct{}{}
	}
	for range window {
		<-p.slots
	}
}

func (p *pipeline) close() {
	close(p.receipts)
	p.waiter.Wait()
}
