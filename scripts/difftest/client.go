package main

import (
	"fmt"
	"net"
	"time"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"wayside/wire"
	"wayside/wire/pulsarpb"
	"wayside/wire/wiretest"
)

const (
	// frameLimit is the largest frame that a client takes: that of the default message size, and some.
	frameLimit = wire.DefaultMaxMessageSize + 64<<10
	// writeTime bounds the writing of one frame.
	writeTime = 5 * time.Second
)

// client is one connection of a world, through a recording proxy of its own.
type client struct {
	world *world
	name  string
	proxy *wiretest.Proxy
	conn  net.Conn
	ended chan struct{} // closed when nothing more can come
	ready chan struct{} // closed when the handshake is through

	// What follows is used by the world's own goroutine only.
	requests uint64
	numbers  map[uint64]int64 // next sequence id by producer

	// What follows is guarded by world.mu.
	owners map[uint64]string  // stream of a request's answer
	owed   map[uint64]bool    // requests without an answer
	sent   map[uint64][]*sent // SENDs without an answer, by producer
	begun  map[uint64]string  // names of transactions that are asked for, by request
	mute   bool               // does not answer PING
	asked  int                // PINGs of the program without an answer
	probed int                // PINGs of the harness without an answer
	framed bool               // speaks in frames only
	gone   bool               // ended by the program itself
}

// sent is a SEND that waits for its answer.
type sent struct {
	label             string
	sequence, highest int64
}

// dial connects a client. A raw one may say what is no frame; only what it hears is recorded then.
func (w *world) dial(name string, raw bool) (*client, error) {
	c := &client{
		world: w, name: name, ended: make(chan struct{}), ready: make(chan struct{}), numbers: map[uint64]int64{},
		owners: map[uint64]string{}, owed: map[uint64]bool{}, sent: map[uint64][]*sent{}, begun: map[uint64]string{}, framed: !raw,
	}
	var err error
	c.proxy, err = wiretest.StartProxy(wiretest.ProxyOptions{Target: w.side.addr, Raw: raw, Watch: c.watch})
	if err != nil {
		return nil, err
	}
	if c.conn, err = net.DialTimeout("tcp", c.proxy.Addr(), writeTime); err != nil {
		return nil, err
	}
	w.clients[name] = c
	go c.listen()
	return c, nil
}

// close ends the connection and waits for what belongs to it.
func (c *client) close() {
	c.world.mu.Lock()
	c.gone = true
	c.world.mu.Unlock()
	c.conn.Close()
	<-c.ended
	c.proxy.Close()
}

// watch records the conversation.
func (c *client) watch(d wiretest.Direction, frame []byte) {
	arrow := ">"
	if d == wiretest.Down {
		arrow = "<"
	}
	c.world.note(c.name + arrow + " " + wire.Dump(frame))
}

// listen takes what the broker says until the connection ends.
func (c *client) listen() {
	defer close(c.ended)
	r := wire.NewReader(c.conn, frameLimit)
	for {
		h, err := r.Next()
		if err != nil {
			c.world.closed(c)
			return
		}
		frame := h.AppendTo(nil)
		at := len(frame)
		frame = append(frame, make([]byte, h.Body())...)
		if r.ReadBody(frame[at:]) != nil {
			c.world.closed(c)
			return
		}
		c.heard(frame)
	}
}

func (c *client) heard(frame []byte) {
	f, err := wire.SplitFrame(frame)
	if err != nil {
		c.world.arrived(&event{client: c, stream: "connection", text: "broken frame: " + wire.Dump(frame)})
		return
	}
	cmd, err := wire.Decode(f.CommandBytes)
	if err != nil {
		c.world.arrived(&event{client: c, stream: "connection", text: "broken command: " + wire.Dump(frame)})
		return
	}
	if cmd.GetType() == pulsarpb.BaseCommand_PING {
		c.world.mu.Lock()
		mute := c.mute
		c.world.mu.Unlock()
		if !mute {
			c.write([]byte(wire.PongFrame)) // a failure shows as the end of the connection
		}
		return
	}
	if cmd.GetType() == pulsarpb.BaseCommand_PONG && c.answersProbe() {
		return
	}
	c.world.arrived(&event{client: c, cmd: cmd, entry: f.Entry})
	if cmd.GetType() == pulsarpb.BaseCommand_CONNECTED {
		select {
		case <-c.ready:
		default:
			close(c.ready)
		}
	}
}

// answersProbe tells whether a PONG is one for the harness. Answers come in the order of the questions, and the
// program asks first.
func (c *client) answersProbe() bool {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	if c.asked > 0 {
		c.asked--
		return false
	}
	c.probed = max(c.probed-1, 0)
	return true
}

// probe asks for a sign that all that was said so far has been read. It is no part of the conversation.
func (c *client) probe() {
	select {
	case <-c.ready:
	default:
		return
	}
	c.world.mu.Lock()
	ask := c.framed && !c.gone && !c.mute
	if ask {
		c.probed++
	}
	c.world.mu.Unlock()
	if ask {
		c.conn.SetWriteDeadline(time.Now().Add(writeTime))
		c.conn.Write([]byte(wire.PingFrame)) // the end of the connection shows elsewhere
	}
}

// greet makes the handshake of a client of today.
func (c *client) greet() error {
	if err := c.say("CONNECT", handshake); err != nil {
		return err
	}
	select {
	case <-c.ready:
		return nil
	case <-c.ended:
		return fmt.Errorf("%s: the broker ended the handshake", c.name)
	case <-time.After(writeTime):
		return fmt.Errorf("%s: no CONNECTED", c.name)
	}
}

func (c *client) write(b []byte) error {
	c.conn.SetWriteDeadline(time.Now().Add(writeTime))
	if _, err := c.conn.Write(b); err != nil {
		select {
		case <-c.ended: // the broker has ended it, which is in the conversation
			return nil
		case <-time.After(writeTime):
			return err
		}
	}
	return nil
}

// command makes one of the protocol's commands out of its type's name and prototext.
func command(name, text string) (proto.Message, error) {
	typ, ok := pulsarpb.BaseCommand_Type_value[name]
	if !ok {
		return nil, fmt.Errorf("no command is called %s", name)
	}
	var base pulsarpb.BaseCommand
	field := base.ProtoReflect().Descriptor().Fields().ByNumber(protoreflect.FieldNumber(typ))
	m := base.ProtoReflect().NewField(field).Message().Interface()
	if err := (prototext.UnmarshalOptions{AllowPartial: true}).Unmarshal([]byte(text), m); err != nil {
		return nil, fmt.Errorf("%s {%s}: %w", name, text, err)
	}
	return m, nil
}

// number gives a request the client's next id, unless it has one, and notes who is answered.
func (c *client) number(m proto.Message) {
	r := m.ProtoReflect()
	field := r.Descriptor().Fields().ByName("request_id")
	if field == nil {
		return
	}
	_, isAck := m.(*pulsarpb.CommandAck)
	if !r.Has(field) {
		if isAck {
			return
		}
		c.requests++
		r.Set(field, protoreflect.ValueOfUint64(c.requests))
	}
	id := r.Get(field).Uint()
	c.requests = max(c.requests, id)
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	c.owed[id] = true
	c.owners[id] = owner(m, id)
}

// owner is the stream that the answer to a request belongs to: that of the consumer or producer whose state it
// changes, because the order of the two is a promise. Other answers may come when they like.
func owner(m proto.Message, id uint64) string {
	switch m := m.(type) {
	case *pulsarpb.CommandSubscribe:
		return consumerStream(m.GetConsumerId())
	case *pulsarpb.CommandSeek:
		return consumerStream(m.GetConsumerId())
	case *pulsarpb.CommandUnsubscribe:
		return consumerStream(m.GetConsumerId())
	case *pulsarpb.CommandCloseConsumer:
		return consumerStream(m.GetConsumerId())
	case *pulsarpb.CommandProducer:
		return producerStream(m.GetProducerId())
	case *pulsarpb.CommandCloseProducer:
		return producerStream(m.GetProducerId())
	case *pulsarpb.CommandWatchTopicList:
		return watcherStream(m.GetWatcherId())
	case *pulsarpb.CommandWatchTopicListClose:
		return watcherStream(m.GetWatcherId())
	}
	return fmt.Sprintf("request %d", id)
}

func consumerStream(id uint64) string { return fmt.Sprintf("consumer %d", id) }
func producerStream(id uint64) string { return fmt.Sprintf("producer %d", id) }
func watcherStream(id uint64) string  { return fmt.Sprintf("watcher %d", id) }

// say sends a command.
func (c *client) say(name, text string) error {
	m, err := command(name, text)
	if err != nil {
		return err
	}
	c.number(m)
	if _, ok := m.(*pulsarpb.CommandPing); ok {
		c.world.mu.Lock()
		c.asked++
		c.world.mu.Unlock()
	}
	frame, err := wire.AppendCommand(nil, wire.Wrap(m))
	if err != nil {
		return err
	}
	return c.write(frame)
}

// send sends a SEND with its entry, which the world knows by label from now on.
func (c *client) send(label string, s *pulsarpb.CommandSend, entry []byte) error {
	frame, err := wire.AppendPayloadCommand(nil, wire.Wrap(s), entry)
	if err != nil {
		return err
	}
	c.world.mu.Lock()
	c.world.entries[string(entry)] = append(c.world.entries[string(entry)], label)
	c.sent[s.GetProducerId()] = append(c.sent[s.GetProducerId()], &sent{
		label: label, sequence: int64(s.GetSequenceId()), highest: int64(s.GetHighestSequenceId()),
	})
	c.world.mu.Unlock()
	return c.write(frame)
}
