package pulsar

// PRODUCER (protocol version 0 on; access modes since 17, initial subscription since 19).
//
// Answered by PRODUCER_SUCCESS, in which schema_version is always set (protocol 4,
// number 1), or by ERROR. A producer that waits for exclusive access is answered at
// once with producer_ready=false and again under the same request id when its turn
// comes. The same id again: while it is being made ServiceNotReady, afterwards the same
// answer again, whatever else the request says. CLOSE_PRODUCER before the answer
// cancels, and then only that is answered.
//
// Deviations: a producer that is fenced gets CLOSE_PRODUCER, where the reference says
// nothing and closes the connection at its next SEND. An empty name counts as none. The
// base name of a partitioned topic is refused.

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"wayside/edge"
	"wayside/wire/pulsarpb"
)

// producer is a table entry, and the end of a core's producer.
type producer struct {
	place
	s       *session
	request uint64         // of its PRODUCER
	core    *edge.Producer // set before it is ready
	waits   atomic.Bool    // for exclusive access; sending is a breach until then

	// guarded by the outbox's lock
	turn   bool   // it has become the exclusive one, which its client does not know
	epoch  *int64 // topic epoch of an exclusive one
	reason error  // why the broker closed it, until its client is told
}

// producerKey tells the core which producer is the successor of which.
type producerKey struct {
	s  *session
	id uint64
}

func (s *session) handleProducer(c *pulsarpb.BaseCommand) error {
	m := c.GetProducer()
	if p, ok := s.producers.find(m.GetProducerId()); ok {
		switch p.state.Load() {
		case creating, closing:
			s.refuseRequest(m.GetRequestId(), pulsarpb.ServerError_ServiceNotReady, "Producer is already present on the connection")
			return nil
		case ready:
			s.out.settle(func() proto.Message { return p.success(m.GetRequestId(), !p.waits.Load()) })
			return nil
		}
	}
	name, o, err := s.producerOptions(m)
	size := textBytes(o.Metadata, o.Name)
	if err == nil {
		err = s.producers.admit("producers", size)
	}
	if err != nil {
		s.failRequest(m.GetRequestId(), err)
		return nil
	}
	p := &producer{s: s, request: m.GetRequestId()}
	ctx, cancel := context.WithCancel(s.ctx)
	prior := s.producers.prior(m.GetProducerId())
	p.open(m.GetProducerId(), cancel)
	p.texts = size
	s.producers.put(p)
	return s.requestFor(ctx, func(ctx context.Context) {
		defer p.settled()
		defer cancel()
		if prior != nil {
			<-prior // it ends soon: its context has ended
		}
		p.make(ctx, name, o)
	})
}

// producerOptions checks a request in itself.
func (s *session) producerOptions(m *pulsarpb.CommandProducer) (edge.TopicName, edge.ProducerOptions, error) {
	name, err := edge.ParseTopicName(m.GetTopic())
	if err != nil {
		return name, edge.ProducerOptions{}, err
	}
	o := edge.ProducerOptions{
		ID: m.GetProducerId(), Name: m.GetProducerName(), UserProvided: m.GetUserProvidedProducerName(),
		Epoch:               int64(m.GetEpoch()),
		Access:              edge.AccessMode(m.GetProducerAccessMode()),
		InitialSubscription: m.GetInitialSubscriptionName(),
		Encrypted:           m.GetEncrypted(),
		PeerKey:             producerKey{s, m.GetProducerId()},
	}
	if m.TopicEpoch != nil && o.Access != edge.AccessShared { // the Go client sends it with shared ones too
		o.TopicEpoch, o.HasTopicEpoch = int64(m.GetTopicEpoch()), true
	}
	if len(o.Name) > maxName || len(o.InitialSubscription) > maxName {
		return name, o, fmt.Errorf("%w: a name is longer than %d bytes", edge.ErrNotAllowed, maxName)
	}
	if o.Metadata, err = properties(m.GetMetadata(), maxProducerMetadata); err != nil {
		return name, o, err
	}
	o.Schema, err = producerSchema(m.GetSchema(), name)
	return name, o, err
}

// make asks the core for the producer and answers the request.
func (p *producer) make(ctx context.Context, name edge.TopicName, o edge.ProducerOptions) {
	s := p.s
	broker := s.srv.broker
	var core *edge.Producer
	err := s.contend(ctx, func() error {
		topic, err := broker.Open(ctx, name, broker.AutoCreates(name))
		if err != nil {
			return err
		}
		core, err = topic.AddProducer(ctx, o, p, s)
		return err
	})
	if err != nil {
		if p.forget(creating) {
			s.failRequest(p.request, err)
		} else {
			s.slots.give(1)
		}
		return
	}
	p.core = core
	epoch, exclusive := core.TopicEpoch()
	p.waits.Store(!core.Ready())
	if !s.out.settle(func() proto.Message {
		if exclusive {
			p.epoch = &epoch
		}
		return p.completeLocked()
	}) {
		core.Close(nil)
	}
}

// completeLocked makes the producer known to be ready, unless it was cancelled.
func (p *producer) completeLocked() proto.Message {
	if !p.move(creating, ready) {
		return nil
	}
	p.told = true
	p.made()
	if p.turn {
		p.turn = false
		p.waits.Store(false)
	}
	if p.reason != nil {
		p.endLocked()
	}
	return p.success(p.request, !p.waits.Load())
}

// success is the answer to PRODUCER. The outbox is locked.
func (p *producer) success(request uint64, ready bool) *pulsarpb.CommandProducerSuccess {
	m := &pulsarpb.CommandProducerSuccess{
		RequestId:      &request,
		ProducerName:   proto.String(p.core.Name()),
		LastSequenceId: proto.Int64(p.core.LastSequence()),
		SchemaVersion:  versionBytes(p.core.SchemaVersion()),
		ProducerReady:  &ready,
	}
	if p.epoch != nil && ready {
		m.TopicEpoch = proto.Uint64(uint64(*p.epoch))
	}
	return m
}

// versionBytes is a schema version on the wire: 8 bytes, or none but present.
func versionBytes(version int64) []byte {
	if version < 0 {
		return []byte{}
	}
	return binary.BigEndian.AppendUint64(nil, uint64(version))
}

// Ready tells the client that it is its turn.
func (p *producer) Ready(epoch int64) {
	o := p.s.out
	o.mu.Lock()
	p.turn, p.epoch = true, &epoch
	p.tellLocked(p.s.out, p)
	o.mu.Unlock()
	o.poke()
}

// Closed tells the client that the broker has closed the producer.
func (p *producer) Closed(reason error) {
	o := p.s.out
	o.mu.Lock()
	p.reason = reason
	if p.told {
		p.endLocked()
	}
	o.mu.Unlock()
	o.poke()
}

// endLocked marks the producer as gone by the broker's will. One that its client is
// closing needs no word of it.
func (p *producer) endLocked() {
	p.goneAt = time.Now()
	if p.move(ready, gone) {
		p.tellLocked(p.s.out, p)
	}
}

// pending reports whether there is something to tell. The outbox is locked.
func (p *producer) pending() bool { return p.turn || p.reason != nil }

// frames says what the client has to be told. The outbox is locked.
func (p *producer) frames() (dst []byte) {
	p.listed = false
	if p.turn {
		p.turn = false
		p.waits.Store(false)
		dst = append(dst, encode(p.success(p.request, true))...)
	}
	switch {
	case p.reason == nil:
	case p.waits.Load(): // its client knows of no producer yet
		code, text, _ := explain(p.reason)
		dst = append(dst, encode(&pulsarpb.CommandError{RequestId: &p.request, Error: &code, Message: &text})...)
	default:
		dst = append(dst, encode(&pulsarpb.CommandCloseProducer{ProducerId: &p.id, RequestId: proto.Uint64(noRequest)})...)
	}
	p.reason = nil
	return dst
}

// leave takes the producer out of the core as its connection ends.
func (p *producer) leave() {
	if p.forget(creating) {
		p.cancel()
		return
	}
	if p.forget(ready) || p.forget(closing) { // whose end may wait behind what a rate holds back
		p.core.Close(nil)
	}
}
