package pulsar

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"wayside/edge"
	"wayside/edge/edgetest"
	"wayside/edge/schema"
	"wayside/wire"
	"wayside/wire/pulsarpb"
	"wayside/wire/wiretest"
)

// patient is how long a test waits for what has to come.
const patientFor = 10 * time.Second

// rig is a server on a broker in memory, reached over loopback.
type rig struct {
	t      *testing.T
	store  *edgetest.MemStore
	broker *edge.Broker
	server *Server
	addr   string
	log    *logged
}

// logged keeps what was logged.
type logged struct {
	mu    sync.Mutex
	lines []string
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, string(p))
	return len(p), nil
}

func (l *logged) with(part string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if strings.Contains(line, part) {
			found = append(found, line)
		}
	}
	return found
}

type tweak func(*Options, *edge.Options)

func newRig(t *testing.T, tweaks ...tweak) *rig {
	t.Helper()
	leaks := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, leaks) })
	r := &rig{t: t, store: edgetest.NewMemStore(), log: &logged{}}
	bo, so := edge.DefaultOptions(), DefaultOptions()
	bo.SchemaRules = schema.Rules{}
	bo.FailoverDelay = time.Millisecond
	bo.Budget = edge.NewBudget(32 << 20)
	so.Logger = slog.New(slog.NewTextHandler(r.log, nil))
	so.MaxMessageSize = 1 << 20
	for _, tweak := range tweaks {
		tweak(&so, &bo)
	}
	var err error
	if r.broker, err = edge.NewBroker(r.store, bo); err != nil {
		t.Fatal(err)
	}
	if r.server, err = New(r.broker, so); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.stop)
	return r
}

// listen serves on loopback.
func (r *rig) listen() *rig {
	r.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	r.addr = l.Addr().String()
	served := make(chan error, 1)
	go func() { served <- r.server.Serve(l) }()
	r.t.Cleanup(func() {
		if err := <-served; !errors.Is(err, ErrServerClosed) {
			r.t.Errorf("Serve: %v", err)
		}
	})
	r.t.Cleanup(r.stop)
	return r
}

// stop closes server, broker and store, once.
func (r *rig) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), patientFor)
	defer cancel()
	r.store.Release()
	if err := r.server.Close(ctx); err != nil {
		r.t.Errorf("close server: %v", err)
	}
	if err := r.broker.Close(ctx); err != nil {
		r.t.Errorf("close broker: %v", err)
	}
	r.store.Close() //nolint:errcheck // closed twice by tests that stop early
}

func serve(t *testing.T, tweaks ...tweak) *rig { return newRig(t, tweaks...).listen() }

// client is a scripted client.
type client struct {
	*wiretest.Peer
	t *testing.T
}

// story is how the conversation went lately.
func (c *client) story() string {
	lines := strings.Split(c.Transcript(), "\n")
	lines = lines[max(0, len(lines)-16):]
	for i, line := range lines {
		lines[i] = line[:min(len(line), 240)]
	}
	return strings.Join(lines, "\n")
}

// dial opens a connection without a handshake.
func (r *rig) dial() *client {
	r.t.Helper()
	p, err := wiretest.Dial(r.addr, patientFor)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { p.Close() }) //nolint:errcheck // closed by the other side, often
	return &client{p, r.t}
}

// connect opens one with a handshake.
func (r *rig) connect() *client {
	r.t.Helper()
	c := r.dial()
	if _, err := c.Connect(); err != nil {
		r.t.Fatal(err)
	}
	return c
}

// say sends commands.
func (c *client) say(subs ...proto.Message) {
	c.t.Helper()
	for _, sub := range subs {
		if err := c.Send(sub); err != nil {
			c.t.Fatalf("send %s: %v\n%s", wire.Wrap(sub).GetType(), err, c.story())
		}
	}
}

// hear wants frames, PINGs answered on the way. A * stands for anything.
func (c *client) hear(want ...string) *client {
	c.t.Helper()
	for _, w := range want {
		if got := c.frame(); !like(w, got) {
			c.t.Fatalf("want %s\ngot  %s\n%s", w, got, c.story())
		}
	}
	return c
}

// hearInAnyOrder wants these frames, in whatever order.
func (c *client) hearInAnyOrder(want ...string) {
	c.t.Helper()
	for range want {
		got, found := c.frame(), false
		for i, w := range want {
			if w != "" && like(w, got) {
				want[i], found = "", true
				break
			}
		}
		if !found {
			c.t.Fatalf("unexpected %s, wanted %q\n%s", got, want, c.story())
		}
	}
}

func (c *client) frame() string {
	c.t.Helper()
	return wire.Dump(c.receive().Frame)
}

func (c *client) receive() *wiretest.Received {
	c.t.Helper()
	for {
		got, err := c.Next()
		if err != nil {
			c.t.Fatalf("wait for a frame: %v\n%s", err, c.story())
		}
		switch got.GetType() {
		case pulsarpb.BaseCommand_PING:
			if !c.Mute {
				c.say(&pulsarpb.CommandPong{})
			}
		default:
			return got
		}
	}
}

// closed wants the end of the connection, and nothing before it.
func (c *client) closed() {
	c.t.Helper()
	if err := c.ExpectClose(); err != nil {
		c.t.Fatalf("%v\n%s", err, c.story())
	}
}

// sync wants that nothing but an answer to this PING is on its way.
func (c *client) sync() {
	c.t.Helper()
	c.say(&pulsarpb.CommandPing{})
	for {
		got, err := c.Next()
		if err != nil {
			c.t.Fatalf("wait for PONG: %v\n%s", err, c.story())
		}
		switch got.GetType() {
		case pulsarpb.BaseCommand_PONG:
			return
		case pulsarpb.BaseCommand_PING:
			c.say(&pulsarpb.CommandPong{})
		default:
			c.t.Fatalf("want PONG alone, got %s\n%s", wire.Dump(got.Frame), c.story())
		}
	}
}

func like(want, got string) bool {
	return regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(want), `\*`, `.*`) + "$").MatchString(got)
}

// Commands, as short as they can be said.

const public = "persistent://public/default/"

// publish sends a message of its own.
func (c *client) publish(producer, sequence uint64, text string) {
	c.t.Helper()
	c.sendEntry(&pulsarpb.CommandSend{ProducerId: &producer, SequenceId: &sequence}, entryOf(c.t, sequence, 0, []byte(text)))
}

// publishBatch sends a batch of n messages.
func (c *client) publishBatch(producer, sequence uint64, n int) {
	c.t.Helper()
	var payload []byte
	for i := range n {
		var err error
		payload, err = wire.AppendSingle(payload, &pulsarpb.SingleMessageMetadata{}, fmt.Appendf(nil, "b%d", i))
		if err != nil {
			c.t.Fatal(err)
		}
	}
	c.sendEntry(&pulsarpb.CommandSend{
		ProducerId: &producer, SequenceId: &sequence, NumMessages: proto.Int32(int32(n)), HighestSequenceId: num(sequence + uint64(n) - 1),
	}, entryOf(c.t, sequence, n, payload))
}

func (c *client) sendEntry(m *pulsarpb.CommandSend, entry []byte) {
	c.t.Helper()
	if err := c.SendEntry(m, entry); err != nil {
		c.t.Fatalf("send: %v\n%s", err, c.story())
	}
}

// entryOf builds an entry, a batch if n is not 0.
func entryOf(t testing.TB, sequence uint64, n int, payload []byte) []byte {
	t.Helper()
	m := &pulsarpb.MessageMetadata{ProducerName: proto.String("p"), SequenceId: &sequence, PublishTime: num(uint64(time.Now().UnixMilli()))}
	if n > 0 {
		m.NumMessagesInBatch = proto.Int32(int32(n))
	}
	data, err := wire.Build(m, payload)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// producing makes producer 1 of a topic.
func (c *client) producing(topic string) *client {
	c.t.Helper()
	c.say(producerCmd(topic, 1, 1))
	return c.hear("PRODUCER_SUCCESS {request_id:1 *")
}

// consuming makes consumer id of a subscription.
func (c *client) consuming(topic, sub string, kind pulsarpb.CommandSubscribe_SubType, id uint64) *client {
	c.t.Helper()
	c.say(subscribeCmd(topic, sub, kind, id, 1000+id))
	return c.hear(fmt.Sprintf("SUCCESS {request_id:%d}", 1000+id))
}

func limits(producers, consumers int) tweak {
	return func(o *Options, _ *edge.Options) { o.Producers, o.Consumers = producers, consumers }
}

func topicName(t testing.TB, local string) edge.TopicName {
	t.Helper()
	name, err := edge.ParseTopicName(public + local)
	if err != nil {
		t.Fatal(err)
	}
	return name
}

func (r *rig) unload(topic string) {
	r.t.Helper()
	if err := r.broker.Unload(r.t.Context(), topicName(r.t, topic)); err != nil {
		r.t.Fatal(err)
	}
}

// only is the one session that there is.
func (r *rig) only() *session {
	r.t.Helper()
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	if len(r.server.sessions) != 1 {
		r.t.Fatalf("%d sessions", len(r.server.sessions))
	}
	for s := range r.server.sessions {
		return s
	}
	return nil
}

// eventually waits for something that is told by no frame.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	limit := time.After(patientFor)
	for !is() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

func seekTo(consumer, request uint64, ledger, entry int64) *pulsarpb.CommandSeek {
	return &pulsarpb.CommandSeek{ConsumerId: &consumer, RequestId: &request, MessageId: id(ledger, entry)}
}
