package uplink

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"wayside/edge"
	"wayside/edge/edgetest"
	"wayside/wire"
	"wayside/wire/pulsarpb"
)

// rig is a broker on a store in memory, with an uplink to a stub.
type rig struct {
	t         *testing.T
	cloud     *stub
	store     *edgetest.MemStore
	broker    *edge.Broker
	up        *Uplink
	producers map[string]*edge.Producer
	next      map[string]int64
}

// testOptions have every time scaled down.
func testOptions(url string, routes ...Route) Options {
	o := DefaultOptions()
	o.URL, o.EdgeID, o.Routes = url, "edge-1", routes
	o.ReceiptTimeout, o.OperationTimeout = 500*time.Millisecond, time.Second
	o.BackoffMin, o.BackoffMax, o.RefusedMax = 5*time.Millisecond, 50*time.Millisecond, 50*time.Millisecond
	o.ReconnectsPerMinute = 0
	o.IdleClose = time.Hour
	return o
}

func newRig(t *testing.T, change func(*Options)) *rig {
	r := &rig{t: t, cloud: startStub(t), store: edgetest.NewMemStore()}
	o := testOptions(r.cloud.url(), Route{From: "in-*", To: "out-{1}", Provenance: ProvenanceNone})
	if change != nil {
		change(&o)
	}
	r.start(o)
	t.Cleanup(r.stop)
	return r
}

func (r *rig) start(o Options) {
	if o.Logger == nil || testing.Verbose() {
		o.Logger = slog.New(slog.NewTextHandler(writer{r.t}, nil))
	}
	up, err := New(o)
	if err != nil {
		r.t.Fatal(err)
	}
	bo := edge.DefaultOptions()
	bo.AutoCreateNamespaces, bo.OnCreate, bo.Logger = true, up.Reserved, o.Logger
	if r.broker, err = edge.NewBroker(r.store, bo); err != nil {
		r.t.Fatal(err)
	}
	r.up = up
	r.producers = map[string]*edge.Producer{}
	r.next = map[string]int64{}
	up.Start(r.broker)
}

// writer sends log lines to the test.
type writer struct{ t *testing.T }

func (w writer) Write(b []byte) (int, error) {
	w.t.Logf("%s", b)
	return len(b), nil
}

func (r *rig) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	r.t.Cleanup(cancel)
	return ctx
}

// stop ends uplink and broker, cleanly.
func (r *rig) stop() {
	if r.up == nil {
		return
	}
	if err := r.up.Close(r.context()); err != nil {
		r.t.Error(err)
	}
	if err := r.broker.Close(r.context()); err != nil {
		r.t.Error(err)
	}
	if err := r.store.Close(); err != nil {
		r.t.Error(err)
	}
	r.up = nil
}

// restart begins a new life on the same store.
func (r *rig) restart(o Options) {
	if r.up != nil {
		r.stop()
		r.store = r.store.Reopen()
	}
	r.start(o)
}

func (r *rig) topic(name string) *edge.Topic {
	n, err := edge.ParseTopicName(name)
	if err != nil {
		r.t.Fatal(err)
	}
	t, err := r.broker.Open(r.context(), n, true)
	if err != nil {
		r.t.Fatal(err)
	}
	return t
}

// put stores an entry and waits for it.
func (r *rig) put(topic string, meta *pulsarpb.MessageMetadata, facts edge.Facts, payload []byte) {
	r.t.Helper()
	p := r.producers[topic]
	if p == nil {
		var err error
		if p, err = r.topic(topic).AddProducer(r.context(), edge.ProducerOptions{Name: "sensor"}, nobody{}, self{}); err != nil {
			r.t.Fatal(err)
		}
		r.producers[topic] = p
	}
	sequence := r.next[topic]
	r.next[topic]++
	meta.ProducerName, meta.SequenceId = proto.String("sensor"), proto.Uint64(uint64(sequence))
	if meta.PublishTime == nil {
		meta.PublishTime = proto.Uint64(uint64(time.Now().UnixMilli()))
	}
	data, err := wire.Build(meta, payload)
	if err != nil {
		r.t.Fatal(err)
	}
	facts.Producer, facts.Sequence, facts.Highest = "sensor", sequence, sequence
	facts.Publish = int64(meta.GetPublishTime())
	if facts.Messages == 0 {
		facts.Messages = 1
	}
	grant, err := r.broker.Budget().Take(r.context(), edge.SharePublish, int64(len(data)))
	if err != nil {
		r.t.Fatal(err)
	}
	done := make(chan error, 1)
	p.Publish(edge.Message{Facts: facts, Data: data, Grant: grant}, func(_ edge.Receipt, err error) { done <- err })
	if err := <-done; err != nil {
		r.t.Fatal(err)
	}
}

// publish stores plain messages "from" … "to−1".
func (r *rig) publish(topic string, from, to int) {
	r.t.Helper()
	for i := from; i < to; i++ {
		r.put(topic, &pulsarpb.MessageMetadata{PartitionKey: proto.String(fmt.Sprint("k", i%3))}, edge.Facts{}, []byte(fmt.Sprint(i)))
	}
}

// batch stores one entry of several messages.
func (r *rig) batch(topic string, from, to int) {
	r.t.Helper()
	var payload []byte
	for i := from; i < to; i++ {
		var err error
		if payload, err = wire.AppendSingle(payload, &pulsarpb.SingleMessageMetadata{}, []byte(fmt.Sprint(i))); err != nil {
			r.t.Fatal(err)
		}
	}
	n := int32(to - from)
	r.put(topic, &pulsarpb.MessageMetadata{NumMessagesInBatch: &n}, edge.Facts{Messages: n, Batch: true}, payload)
}

// count is "from … to−1" as texts gives it.
func count(from, to int) string {
	s := ""
	for i := from; i < to; i++ {
		s += fmt.Sprint(i, " ")
	}
	return s[:max(len(s)-1, 0)]
}

// expect waits until the cloud topic holds the numbers up to n, and wants exactly them.
func (r *rig) expect(topic string, n int) []stubFrame {
	r.t.Helper()
	frames := r.cloud.frames(r.t, topic, n)
	if got := texts(frames); got != count(0, n) {
		r.t.Fatalf("the cloud has %q", got)
	}
	return frames
}

// status waits until the status of a topic is as wanted.
func (r *rig) status(topic string, is func(TopicStatus) bool) TopicStatus {
	r.t.Helper()
	var last TopicStatus
	r.cloud.until(r.t, "a status of "+topic, func() bool {
		for _, s := range r.up.Status().Topics {
			if s.Topic == "persistent://public/default/"+topic {
				last = s
				return is(s)
			}
		}
		return false
	})
	return last
}

func inState(want State) func(TopicStatus) bool {
	return func(s TopicStatus) bool { return s.State == want }
}

// settled waits until nothing of a topic waits any more.
func (r *rig) settled(topic string) TopicStatus {
	r.t.Helper()
	return r.status(topic, func(s TopicStatus) bool { return s.Backlog == 0 })
}
