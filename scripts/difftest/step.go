package main

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"wayside/wire"
	"wayside/wire/pulsarpb"
)

// program is a script of steps, played against both brokers at once, step by step.
type program struct {
	name    string
	setting string // of the broker: "" for the usual one, see settings
	full    bool   // left out of the short form, whose time is dear
	steps   []step
}

// quick tells whether the program belongs to the short form: it does not wait a second or more for something to come.
func (p *program) quick() bool {
	return !p.full && !slices.ContainsFunc(p.steps, func(s step) bool { return s.wait >= time.Second })
}

// inFull leaves programs out of the short form, all but the named ones.
func inFull(all []program, but ...string) []program {
	for i := range all {
		all[i].full = !slices.Contains(but, all[i].name)
	}
	return all
}

// step is one thing that a client, or somebody at the admin interface, does. What both brokers say to it is awaited
// and compared before the next one begins.
type step struct {
	title string
	do    func(*world) error
	wait  time.Duration // how long at least to listen, where something is to come, or not to come, later
}

// later has a step listen for longer.
func (s step) later(d time.Duration) step {
	s.wait = d
	return s
}

// unanswered says that not all of a step will be answered, and has it listened to for a while instead.
func (s step) unanswered() step {
	do := s.do
	s.do = func(w *world) error {
		defer w.forgive()
		return do(w)
	}
	return s.later(ignored)
}

// ignored is how long an answer is waited for that should not come.
const ignored = 700 * time.Millisecond

// together are steps without waiting in between.
func together(steps ...step) step {
	var titles []string
	wait := time.Duration(0)
	for _, s := range steps {
		titles = append(titles, s.title)
		wait = max(wait, s.wait)
	}
	return step{title: strings.Join(titles, " + "), wait: wait, do: func(w *world) error {
		for _, s := range steps {
			if err := s.do(w); err != nil {
				return err
			}
		}
		return nil
	}}
}

// conn is a connection of a program, by its name. It is made by the first step that uses it.
type conn string

// client finds the connection or makes it, with the handshake of a client of today.
func (c conn) client(w *world) (*client, error) {
	if have := w.clients[string(c)]; have != nil {
		return have, nil
	}
	made, err := w.dial(string(c), false)
	if err != nil {
		return nil, err
	}
	return made, made.greet()
}

const handshake = `client_version:"Pulsar-Go-differ" protocol_version:21 auth_method_name:"none"
	feature_flags{supports_auth_refresh:true supports_partial_producer:true}`

// step makes a step that does something with the client.
func (c conn) step(title string, do func(*world, *client) error) step {
	return step{title: string(c) + ": " + title, do: func(w *world) error {
		cl, err := c.client(w)
		if err != nil {
			return err
		}
		return do(w, cl)
	}}
}

// raw opens a connection without a handshake, over which bytes may go that are no frames.
func (c conn) raw() step {
	return step{title: string(c) + ": open", do: func(w *world) error {
		_, err := w.dial(string(c), true)
		return err
	}}
}

// bytes sends bytes as they are, written in hex; spaces do not count.
func (c conn) bytes(text string) step {
	return c.step("bytes "+text, func(_ *world, cl *client) error {
		b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
		if err != nil {
			return err
		}
		return cl.write(b)
	})
}

// say sends a command, told in prototext. A request without an id is given the next one.
func (c conn) say(name, text string) step {
	return c.step(name+" {"+text+"}", func(w *world, cl *client) error { return cl.say(name, w.expand(text)) })
}

// dropTime is how long a broker may take to notice that a connection has ended.
const dropTime = 250 * time.Millisecond

// drop ends the connection without a word. A later step under the same name begins another one.
func (c conn) drop() step {
	s := c.step("drop", func(w *world, cl *client) error {
		cl.close()
		delete(w.clients, string(c))
		return nil
	})
	return s.later(dropTime)
}

// mute no longer answers the broker's PINGs.
func (c conn) mute() step {
	return c.step("mute", func(w *world, cl *client) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		cl.mute = true
		return nil
	})
}

// producer creates one on a topic; more is further fields.
func (c conn) producer(id int, topic, more string) step {
	text := fmt.Sprintf("topic:%q producer_id:%d %s", full(topic), id, more)
	return c.step("PRODUCER {"+text+"}", func(w *world, cl *client) error {
		text := w.expand(text)
		m, err := command("PRODUCER", text)
		if err != nil {
			return err
		}
		w.mu.Lock()
		w.names[m.(*pulsarpb.CommandProducer).GetProducerName()] = true
		w.mu.Unlock()
		return cl.say("PRODUCER", text)
	})
}

// subscribe creates a consumer; kind is a type of subscription, more is further fields.
func (c conn) subscribe(id int, topic, name, kind, more string) step {
	return c.say("SUBSCRIBE", fmt.Sprintf("topic:%q subscription:%q consumer_id:%d subType:%s %s",
		full(topic), name, id, kind, more))
}

// full gives a topic's full name: one without a namespace is in that of the program, under its prefix.
func full(topic string) string {
	if strings.Contains(topic, "/") {
		return topic
	}
	return "persistent://{ns}/{p}-" + topic
}

// flow gives permits.
func (c conn) flow(id, permits int) step {
	return c.say("FLOW", fmt.Sprintf("consumer_id:%d messagePermits:%d", id, permits))
}

// publish sends single messages, in one go, whose payloads are their labels.
func (c conn) publish(id int, labels string) step {
	return c.step("publish "+labels, func(_ *world, cl *client) error {
		for _, label := range strings.Fields(labels) {
			if err := cl.publish(id, label, "", "", []byte(label)); err != nil {
				return err
			}
		}
		return nil
	})
}

// keyed sends single messages of a key.
func (c conn) keyed(id int, key, labels string) step {
	return c.step("publish "+key+"="+labels, func(_ *world, cl *client) error {
		for _, label := range strings.Fields(labels) {
			if err := cl.publish(id, label, "", fmt.Sprintf("partition_key:%q", key), []byte(label)); err != nil {
				return err
			}
		}
		return nil
	})
}

// send sends one entry. Fields of the command and of the metadata beat those that a plain message would have.
func (c conn) send(id int, label, send, meta string) step {
	return c.step(fmt.Sprintf("send %s {%s} {%s}", label, send, meta), func(w *world, cl *client) error {
		return cl.publish(id, label, w.expand(send), w.expand(meta), []byte(label))
	})
}

// batch sends a batch of n messages.
func (c conn) batch(id int, label string, n int, send, meta string) step {
	return c.step(fmt.Sprintf("batch %s of %d {%s} {%s}", label, n, send, meta), func(w *world, cl *client) error {
		var payload []byte
		for i := range n {
			var err error
			one := &pulsarpb.SingleMessageMetadata{SequenceId: proto.Uint64(uint64(i))}
			if payload, err = wire.AppendSingle(payload, one, []byte(fmt.Sprintf("%s.%d", label, i))); err != nil {
				return err
			}
		}
		return cl.publish(id, label, fmt.Sprintf("num_messages:%d ", n)+w.expand(send),
			fmt.Sprintf("num_messages_in_batch:%d ", n)+w.expand(meta), payload)
	})
}

// publish makes an entry and sends it, under the producer's next sequence id if none is given.
func (c *client) publish(id int, label, send, meta string, payload []byte) error {
	s, m, err := c.entry(id, send, meta)
	if err != nil {
		return err
	}
	entry, err := wire.Build(m, payload)
	if err != nil {
		return err
	}
	return c.send(label, s, entry)
}

// entry makes the command and the metadata of an entry.
func (c *client) entry(id int, send, meta string) (*pulsarpb.CommandSend, *pulsarpb.MessageMetadata, error) {
	s, m := &pulsarpb.CommandSend{}, &pulsarpb.MessageMetadata{}
	partial := prototext.UnmarshalOptions{AllowPartial: true}
	if err := partial.Unmarshal([]byte(send), s); err != nil {
		return nil, nil, err
	}
	if err := partial.Unmarshal([]byte(meta), m); err != nil {
		return nil, nil, err
	}
	producer := uint64(id)
	s.ProducerId = &producer
	if s.SequenceId == nil {
		s.SequenceId = proto.Uint64(uint64(c.numbers[producer]))
	}
	last := max(int64(s.GetSequenceId()), int64(s.GetHighestSequenceId()), int64(s.GetSequenceId())+int64(s.GetNumMessages())-1)
	c.numbers[producer] = max(c.numbers[producer], last+1)
	if m.ProducerName == nil {
		m.ProducerName = proto.String("differ")
	}
	if m.SequenceId == nil {
		m.SequenceId = proto.Uint64(s.GetSequenceId())
	}
	if m.PublishTime == nil {
		c.world.clock++
		m.PublishTime = proto.Uint64(uint64(c.world.clock))
	}
	return s, m, nil
}

// entryBytes sends a SEND whose entry is given in hex.
func (c conn) entryBytes(id int, label, send, text string) step {
	return c.step("send "+label+" {"+send+"} "+text, func(_ *world, cl *client) error {
		s, _, err := cl.entry(id, send, "")
		if err != nil {
			return err
		}
		b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
		if err != nil {
			return err
		}
		return cl.send(label, s, b)
	})
}

// ack acknowledges entries one by one and wants an answer.
func (c conn) ack(id int, labels string) step {
	return c.acked(id, "Individual", labels, "request_id:{r}")
}

// cumulative acknowledges everything up to an entry and wants an answer.
func (c conn) cumulative(id int, label string) step {
	return c.acked(id, "Cumulative", label, "request_id:{r}")
}

// acked acknowledges. {r} stands for the client's next request id.
func (c conn) acked(id int, kind, labels, more string) step {
	var text strings.Builder
	fmt.Fprintf(&text, "consumer_id:%d ack_type:%s %s", id, kind, more)
	for _, label := range strings.Fields(labels) {
		fmt.Fprintf(&text, " message_id{$%s}", label)
	}
	return c.answered("ACK", text.String())
}

// answered sends a command in which {r} is the next request id.
func (c conn) answered(name, text string) step {
	return c.step(name+" {"+text+"}", func(w *world, cl *client) error {
		return cl.say(name, strings.ReplaceAll(w.expand(text), "{r}", fmt.Sprint(cl.requests+1)))
	})
}

// partly acknowledges a part of a batch: left are the words of what is still to be acknowledged.
func (c conn) partly(id int, kind, label, left string) step {
	return c.answered("ACK", fmt.Sprintf("consumer_id:%d ack_type:%s request_id:{r} message_id{$%s ack_set:[%s]}",
		id, kind, label, strings.ReplaceAll(left, " ", ",")))
}

// redeliver gives entries back, all of the consumer's without labels.
func (c conn) redeliver(id int, labels string) step {
	var text strings.Builder
	fmt.Fprintf(&text, "consumer_id:%d", id)
	for _, label := range strings.Fields(labels) {
		fmt.Fprintf(&text, " message_ids{$%s}", label)
	}
	return c.say("REDELIVER_UNACKNOWLEDGED_MESSAGES", text.String())
}

// seek seeks to an entry, told as "$label", or to any position told by its fields.
func (c conn) seek(id int, position string) step {
	return c.say("SEEK", fmt.Sprintf("consumer_id:%d message_id{%s}", id, position))
}

// seekTime seeks to the publish time of an entry, give or take milliseconds.
func (c conn) seekTime(id int, entries int) step {
	return c.step(fmt.Sprintf("SEEK to the time of entry %d", entries), func(w *world, cl *client) error {
		return cl.say("SEEK", fmt.Sprintf("consumer_id:%d message_publish_time:%d", id, w.start+int64(entries)))
	})
}

// lastID asks for the last message id.
func (c conn) lastID(id int) step {
	return c.say("GET_LAST_MESSAGE_ID", fmt.Sprintf("consumer_id:%d", id))
}

// stats asks for a consumer's statistics.
func (c conn) stats(id int) step { return c.say("CONSUMER_STATS", fmt.Sprintf("consumer_id:%d", id)) }

// leave closes a consumer.
func (c conn) leave(id int) step { return c.say("CLOSE_CONSUMER", fmt.Sprintf("consumer_id:%d", id)) }

// unsubscribe deletes the subscription; more may say force.
func (c conn) unsubscribe(id int, more string) step {
	return c.say("UNSUBSCRIBE", fmt.Sprintf("consumer_id:%d %s", id, more))
}

// closeProducer closes a producer.
func (c conn) closeProducer(id int) step {
	return c.say("CLOSE_PRODUCER", fmt.Sprintf("producer_id:%d", id))
}
