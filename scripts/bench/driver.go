package main

// A topic is what messages are published to, and who is to get them. Its servers keep all that is published for each
// of its subscriptions.
type topic struct {
	name          string
	subscriptions []string
	shared        bool // consumers of one subscription divide its messages among them
}

// A driver speaks to one kind of server. A message counts as published when its receipt has come.
type driver interface {
	prepare(t topic) error
	// drop removes the topic and what it holds, as far as the protocol can.
	drop(t topic) error
	// open makes a publisher with a connection of its own; batch is the number of messages per batch, 0 for none.
	open(t topic, batch int) (publisher, error)
	// consume opens a consumer with a connection of its own. Each message is given to got, one at a time, and
	// acknowledged when got has returned. The server is let send ahead of that many messages, where the protocol lets a
	// consumer say so.
	consume(t topic, subscription string, ahead int, got func(payload []byte)) (consumer, error)
}

type publisher interface {
	// publish sends one message and waits for its receipt. It is not called while sends are without one.
	publish(payload []byte) error
	// send sends without waiting; done is called with the receipt or the refusal. It blocks while window messages are
	// without a receipt.
	send(payload []byte, done func(error))
	// flush waits until done has been called for all.
	flush() error
	close()
}

type consumer interface {
	// close waits until got is not called any more, and returns what the consumer failed with meanwhile.
	close() error
}

// window is the number of messages that a pipelined publisher has in flight.
const window = 1000
