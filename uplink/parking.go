package uplink

import (
	"context"
	"fmt"
	"strconv"

	"google.golang.org/protobuf/proto"

	"wayside/edge"
	"wayside/wire"
	"wayside/wire/pulsarpb"
)

// parker puts messages that the cloud will never take on a local topic, each with its
// reason. It publishes under a name of the source's own with the message's index as
// sequence and deduplication on, so that a crash between parking and the cursor's save
// does not park twice. Only one message of a topic is on its way at a time.
type parker struct {
	f        *forwarder
	busy     bool           // a message is on its way; until then producer is the goroutine's
	producer *edge.Producer // nil without
}

// park makes an item durable on the parking topic, in the background.
func (p *parker) park(it *item) {
	f, seat, name := p.f, p.f.seat, p.name()
	p.busy = true
	data, err := p.entry(it, name)
	f.up.wg.Go(func() {
		if err == nil {
			err = p.publish(f.up.run, name, data)
		}
		if err != nil {
			p.close()
			err = fmt.Errorf("on %s: %w", f.parkOn, err)
		}
		f.post(event{what: itemParked, consumer: seat, err: err})
	})
}

// publish hands the entry to the parking topic and waits until it is durable.
func (p *parker) publish(ctx context.Context, name string, data []byte) error {
	if err := p.open(ctx, name); err != nil {
		return err
	}
	m, err := wire.ParseMessage(data)
	if err != nil {
		return err
	}
	grant, err := p.f.up.broker.Budget().Take(ctx, edge.SharePublish, int64(len(data)))
	if err != nil {
		return err
	}
	facts := edge.Facts{
		Producer: name, Sequence: m.SequenceID, Highest: m.SequenceID,
		Messages: m.NumMessages, Batch: m.Batch, Encrypted: m.EncryptionKeys > 0, Slot: m.Slot(),
		Key: m.PartitionKey, KeyBinary: m.PartitionKeyB64, Tombstone: m.NullValue,
		Publish: m.PublishTime, Event: m.EventTime,
		Receive: p.f.up.o.Clock().UnixMilli(), Boot: p.f.up.broker.Options().Boot,
	}
	answer := make(chan error, 1)
	p.producer.Publish(edge.Message{Facts: facts, Data: data, Grant: grant}, func(_ edge.Receipt, err error) { answer <- err })
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *parker) open(ctx context.Context, name string) error {
	if p.producer != nil {
		return nil
	}
	t, err := p.f.up.broker.Open(ctx, p.f.parkOn, true)
	if err != nil {
		return err
	}
	p.producer, err = t.AddProducer(ctx, edge.ProducerOptions{Name: name, UserProvided: true, Deduplicate: true, Own: true}, nobody{}, self{})
	return err
}

// name identifies the source and the birth of its ledger: sequences are indexes in it.
func (p *parker) name() string {
	return producerName(p.f.up.o.EdgeID, p.f.name.String(), p.f.topic.BirthID(), p.f.route.Name+".parked", 0)
}

// leave gives the producer up, now or when what is on its way has ended.
func (p *parker) leave() {
	if !p.busy {
		p.close()
	}
}

func (p *parker) close() {
	if p.producer != nil {
		p.producer.Close(func() {})
		p.producer = nil
	}
}

// entry is what is parked: a message by itself; an entry whole, with its own header if
// a client can still read it, or as the payload of a new one if nobody can.
func (p *parker) entry(it *item, name string) ([]byte, error) {
	e := it.held.entry
	meta := &pulsarpb.MessageMetadata{}
	payload := it.msg.payload
	switch {
	case !it.whole:
		p.describe(meta, it)
	case e.Facts.Encrypted || e.Facts.Chunk.IsChunk():
		m, err := wire.ParseMessage(e.Data)
		if err != nil {
			return nil, err
		}
		if err := proto.Unmarshal(m.Metadata, meta); err != nil {
			return nil, err
		}
		payload = m.Payload
		meta.HighestSequenceId = nil
	default:
		payload = e.Data
	}
	meta.ProducerName = proto.String(name)
	meta.SequenceId = proto.Uint64(it.first)
	meta.PublishTime = proto.Uint64(uint64(p.f.up.o.Clock().UnixMilli()))
	meta.Properties = append(meta.Properties, p.reason(it)...)
	return wire.Build(meta, payload)
}

// describe carries a single message's own header over.
func (p *parker) describe(meta *pulsarpb.MessageMetadata, it *item) {
	m := &it.msg
	for _, q := range m.properties {
		meta.Properties = append(meta.Properties, pair(string(q.Key), string(q.Value)))
	}
	if len(m.key) > 0 {
		meta.PartitionKey = proto.String(string(m.key))
	}
	meta.OrderingKey = m.ordering
	meta.EventTime = proto.Uint64(uint64(m.event))
}

// reason tells where the message is from and why it is here.
func (p *parker) reason(it *item) []*pulsarpb.KeyValue {
	return []*pulsarpb.KeyValue{
		pair("wayside.parked.reason", it.park),
		pair("wayside.parked.topic", p.f.name.String()),
		pair("wayside.parked.target", p.f.line.plan.target),
		pair("wayside.parked.entry", it.held.position.String()),
		pair("wayside.parked.index", strconv.FormatUint(it.first, 10)),
		pair("wayside.parked.messages", strconv.FormatUint(it.last-it.first+1, 10)),
	}
}

func pair(key, value string) *pulsarpb.KeyValue {
	return &pulsarpb.KeyValue{Key: proto.String(key), Value: proto.String(value)}
}

// self is the uplink as the core's peer: it is always alive.
type self struct{}

// Alive is true: the uplink lives as long as the broker.
func (self) Alive(context.Context) bool { return true }

// Address is no network address.
func (self) Address() string { return "uplink" }

// Principal is none.
func (self) Principal() string { return "" }

// Version tells what the peer is.
func (self) Version() string { return "wayside uplink" }

// nobody takes no word of a producer's end: the next publish finds out.
type nobody struct{}

// Ready is not told to shared producers.
func (nobody) Ready(int64) {}

// Closed is found out by the next publish.
func (nobody) Closed(error) {}
