package uplink

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"wayside/wire"
	"wayside/wire/pulsarpb"
	"wayside/wire/wiretest"
)

// stub plays a cloud with deduplication by script, in this process.
type stub struct {
	l       net.Listener
	scheme  string
	running sync.WaitGroup

	mu         sync.Mutex
	changed    chan struct{} // closed and replaced with every frame that is taken
	peers      map[*wiretest.Peer]struct{}
	topics     map[string]*stubTopic
	names      map[string]*wiretest.Peer // owner of topic and producer name
	accepts    int
	creations  int
	shown      []string // method and data of each login
	deny       string   // why logins are refused, "" lets all in
	partitions uint32
	schemas    []*pulsarpb.Schema
	largest    int32                                                    // message size told to clients, 0 for the default
	refuse     func(topic string) (code pulsarpb.ServerError, bad bool) // of producers
	judge      func(s *stubSend) stubAnswer                             // nil answers all
}

type stubTopic struct {
	highest map[string]int64
	frames  []stubFrame
}

// stubFrame is an entry that was stored.
type stubFrame struct {
	producer string
	meta     *pulsarpb.MessageMetadata
	messages []stubMessage
}

type stubMessage struct {
	key, payload string
	properties   map[string]string
	sequence     int64
}

// stubSend is a SEND to judge.
type stubSend struct {
	topic, producer string
	sequence        int64
	count           int // that came so far, this one included
}

type stubAnswer int

const (
	answerReceipt   stubAnswer = iota
	answerNothing              // stored, without a receipt
	answerLoss                 // neither
	answerDuplicate            // not stored and called a duplicate
	answerRefusal              // SEND_ERROR NotAllowed
	answerClose                // the connection ends
)

func startStub(t *testing.T) *stub {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return startStubOn(t, l, "pulsar")
}

func startStubOn(t *testing.T, l net.Listener, scheme string) *stub {
	s := &stub{
		l: l, scheme: scheme, changed: make(chan struct{}), peers: map[*wiretest.Peer]struct{}{},
		topics: map[string]*stubTopic{}, names: map[string]*wiretest.Peer{},
	}
	s.running.Go(s.accept)
	t.Cleanup(s.stop)
	return s
}

func (s *stub) url() string { return s.scheme + "://" + s.l.Addr().String() }

func (s *stub) accept() {
	for {
		conn, err := s.l.Accept()
		if err != nil {
			return
		}
		p := wiretest.NewPeer(conn, time.Hour)
		s.mu.Lock()
		s.accepts++
		s.peers[p] = struct{}{}
		s.mu.Unlock()
		s.running.Go(func() { s.serve(p) })
	}
}

func (s *stub) stop() {
	s.l.Close()
	s.cut()
	s.running.Wait()
}

// cut ends all connections.
func (s *stub) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.peers {
		p.Close()
	}
}

// conn is one connection of the uplink.
type stubConn struct {
	*stub
	p     *wiretest.Peer
	owned map[uint64][2]string // topic and name by producer id
	sends int
}

func (s *stub) serve(p *wiretest.Peer) {
	c := &stubConn{stub: s, p: p, owned: map[uint64][2]string{}}
	defer c.leave()
	for {
		got, err := p.Next()
		if err != nil || c.handle(got) != nil {
			return
		}
	}
}

func (c *stubConn) leave() {
	c.p.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.peers, c.p)
	for _, o := range c.owned {
		delete(c.names, o[0]+o[1])
	}
	c.noteLocked()
}

func (c *stubConn) handle(got *wiretest.Received) error {
	c.mu.Lock()
	largest, partitions := c.largest, c.partitions
	c.mu.Unlock()
	switch got.GetType() {
	case pulsarpb.BaseCommand_CONNECT:
		c.mu.Lock()
		c.shown = append(c.shown, got.GetConnect().GetAuthMethodName()+" "+string(got.GetConnect().GetAuthData()))
		deny := c.deny
		c.mu.Unlock()
		if deny != "" {
			return c.p.Send(&pulsarpb.CommandError{RequestId: proto.Uint64(0), Error: pulsarpb.ServerError_AuthenticationError.Enum(), Message: &deny})
		}
		if largest == 0 {
			largest = wire.DefaultMaxMessageSize
		}
		return c.p.Send(&pulsarpb.CommandConnected{ServerVersion: proto.String("stub"), ProtocolVersion: proto.Int32(20), MaxMessageSize: &largest})
	case pulsarpb.BaseCommand_PING:
		return c.p.Send(&pulsarpb.CommandPong{})
	case pulsarpb.BaseCommand_PARTITIONED_METADATA:
		return c.p.Send(&pulsarpb.CommandPartitionedTopicMetadataResponse{
			Partitions: &partitions, RequestId: got.GetPartitionMetadata().RequestId,
			Response: pulsarpb.CommandPartitionedTopicMetadataResponse_Success.Enum(),
		})
	case pulsarpb.BaseCommand_LOOKUP:
		return c.p.Send(&pulsarpb.CommandLookupTopicResponse{
			BrokerServiceUrl: proto.String(c.url()), BrokerServiceUrlTls: proto.String(c.url()), Authoritative: proto.Bool(true),
			Response: pulsarpb.CommandLookupTopicResponse_Connect.Enum(), RequestId: got.GetLookupTopic().RequestId,
		})
	case pulsarpb.BaseCommand_PRODUCER:
		return c.producer(got.GetProducer())
	case pulsarpb.BaseCommand_CLOSE_PRODUCER:
		c.mu.Lock()
		o := c.owned[got.GetCloseProducer().GetProducerId()]
		delete(c.names, o[0]+o[1])
		delete(c.owned, got.GetCloseProducer().GetProducerId())
		c.noteLocked()
		c.mu.Unlock()
		return c.p.Send(&pulsarpb.CommandSuccess{RequestId: got.GetCloseProducer().RequestId})
	case pulsarpb.BaseCommand_GET_OR_CREATE_SCHEMA:
		return c.schema(got.GetGetOrCreateSchema())
	case pulsarpb.BaseCommand_SEND:
		return c.send(got)
	}
	return nil
}

func (c *stubConn) producer(q *pulsarpb.CommandProducer) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.noteLocked()
	c.creations++
	name := q.GetProducerName()
	var code pulsarpb.ServerError
	bad := false
	if c.refuse != nil {
		code, bad = c.refuse(q.GetTopic())
	}
	if owner := c.names[q.GetTopic()+name]; !bad && owner != nil {
		code, bad = pulsarpb.ServerError_ProducerBusy, true
	}
	if bad {
		if code == pulsarpb.ServerError_UnknownError {
			return fmt.Errorf("hang up")
		}
		return c.p.Send(&pulsarpb.CommandError{RequestId: q.RequestId, Error: &code, Message: proto.String("by script")})
	}
	c.names[q.GetTopic()+name] = c.p
	c.owned[q.GetProducerId()] = [2]string{q.GetTopic(), name}
	return c.p.Send(&pulsarpb.CommandProducerSuccess{RequestId: q.RequestId, ProducerName: &name, ProducerReady: proto.Bool(true)})
}

func (c *stubConn) schema(q *pulsarpb.CommandGetOrCreateSchema) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.schemas = append(c.schemas, q.GetSchema())
	return c.p.Send(&pulsarpb.CommandGetOrCreateSchemaResponse{RequestId: q.RequestId, SchemaVersion: []byte{0, 0, 0, 0, 0, 0, 0, byte(len(c.schemas))}})
}

func (c *stubConn) send(got *wiretest.Received) error {
	var q wire.Send
	f, err := wire.SplitFrame(got.Frame)
	if err != nil {
		return err
	}
	if err := wire.ParseSend(f.CommandBytes, &q); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.noteLocked()
	o, ok := c.owned[q.ProducerID]
	if !ok {
		return nil
	}
	c.sends++
	answer := answerReceipt
	if c.judge != nil {
		answer = c.judge(&stubSend{o[0], o[1], q.SequenceID, c.sends})
	}
	ledger := int64(-1)
	switch answer {
	case answerReceipt, answerNothing:
		if stored, err := c.storeLocked(o[0], o[1], got.Entry, q.SequenceID); err != nil {
			return err
		} else if stored {
			ledger = 1
		}
	case answerRefusal:
		return c.p.Send(&pulsarpb.CommandSendError{ProducerId: &q.ProducerID, SequenceId: proto.Uint64(uint64(q.SequenceID)),
			Error: pulsarpb.ServerError_NotAllowedError.Enum(), Message: proto.String("by script")})
	case answerClose:
		return fmt.Errorf("hang up")
	}
	if answer == answerNothing || answer == answerLoss {
		return nil
	}
	return c.p.SendFrame(wire.AppendSendReceipt(nil, q.ProducerID, q.SequenceID, 0, ledger, ledger))
}

// storeLocked keeps an entry unless its first id is known: the rule of deduplication
// for clients that state no highest one.
func (c *stubConn) storeLocked(topic, producer string, entry []byte, sequence int64) (bool, error) {
	t := c.topics[topic]
	if t == nil {
		t = &stubTopic{highest: map[string]int64{}}
		c.topics[topic] = t
	}
	if high, ok := t.highest[producer]; ok && sequence <= high {
		return false, nil
	}
	t.highest[producer] = sequence
	m, err := wire.ParseMessage(entry)
	if err != nil {
		return false, err
	}
	frame := stubFrame{producer: producer, meta: &pulsarpb.MessageMetadata{}}
	if err := proto.Unmarshal(m.Metadata, frame.meta); err != nil {
		return false, err
	}
	err = wire.Unpack(entry, 10<<20, func(s wire.Single) error {
		properties := map[string]string{}
		for _, p := range s.Properties {
			properties[string(p.Key)] = string(p.Value)
		}
		frame.messages = append(frame.messages, stubMessage{string(s.Key), string(s.Payload), properties, s.SequenceID})
		return nil
	})
	t.frames = append(t.frames, frame)
	return true, err
}

func (s *stub) noteLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// frames waits until a topic holds so many messages, and returns its entries.
func (s *stub) frames(t *testing.T, topic string, messages int) []stubFrame {
	t.Helper()
	var found []stubFrame
	s.until(t, fmt.Sprintf("%d messages on %s", messages, topic), func() bool {
		n := 0
		found = nil
		if held := s.topics["persistent://public/default/"+topic]; held != nil {
			found = held.frames
		}
		for _, f := range found {
			n += len(f.messages)
		}
		return n >= messages
	})
	return found
}

// texts are the payloads of entries, in order.
func texts(frames []stubFrame) string {
	var all []string
	for _, f := range frames {
		for _, m := range f.messages {
			all = append(all, m.payload)
		}
	}
	return strings.Join(all, " ")
}

// until waits for a condition, which is looked at with the stub locked, after each frame.
func (s *stub) until(t *testing.T, what string, is func() bool) {
	t.Helper()
	deadline := time.After(60 * time.Second)
	for {
		s.mu.Lock()
		ok, changed := is(), s.changed
		s.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-time.After(50 * time.Millisecond): // the condition may look at other things
		case <-deadline:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// set changes the script.
func (s *stub) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}
