package main

// A driver publishes to one kind of server. A message counts when its receipt has come.
type driver interface {
	// prepare makes a topic that keeps what is published to it.
	prepare(topic string) error
	// drop removes the topic and what it holds.
	drop(topic string) error
	// open makes a publisher with a connection of its own; batch is the number of messages per batch, 0 for none.
	open(topic string, batch int) (publisher, error)
}

type publisher interface {
	// publish sends one message and waits for its receipt.
	publish(payload []byte) error
	// send sends without waiting; done is called with the receipt or the refusal. It blocks while window messages are
	// without a receipt.
	send(payload []byte, done func(error))
	// flush waits until done has been called for all.
	flush() error
	close()
}

// window is the number of messages that a pipelined publisher has in flight.
const window = 1000
