package pulsar

// SUBSCRIBE (protocol version 0 on; consumer_epoch since 20).
//
// Answered by SUCCESS, before any MESSAGE, or by ERROR. The same id again: while it is
// being made ServiceNotReady, afterwards SUCCESS, whatever else the request says.
// CLOSE_CONSUMER before the answer cancels, and then only that is answered. A request
// that meets a running seek of its subscription waits for its end.
//
// Deviations: the base name of a partitioned topic is refused.
// replicate_subscription_state is ignored.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"wayside/edge"
	"wayside/wire/pulsarpb"
)

func (s *session) handleSubscribe(d *pulsarpb.BaseCommand) error {
	m := d.GetSubscribe()
	if c, ok := s.consumers.find(m.GetConsumerId()); ok {
		switch c.state.Load() {
		case creating:
			s.refuseRequest(m.GetRequestId(), pulsarpb.ServerError_ServiceNotReady, "Consumer is already present on the connection")
			return nil
		case ready:
			s.succeed(m.GetRequestId())
			return nil
		}
	}
	name, o, err := subscribeOptions(m)
	size := textBytes(o.Metadata, o.Name, o.Consumer) + int64(len(o.Ranges))*rangeBytes
	if err == nil {
		err = s.consumers.admit("consumers", size)
	}
	if err != nil {
		s.failRequest(m.GetRequestId(), err)
		return nil
	}
	_, partition := name.Partition()
	c := &consumer{s: s, partition: int32(partition), topic: name, name: o.Name}
	ctx, cancel := context.WithCancel(s.ctx)
	before := append(s.resetsOf(c), s.consumers.prior(m.GetConsumerId()))
	c.open(m.GetConsumerId(), cancel)
	c.texts = size
	s.consumers.put(c)
	create := m.GetForceTopicCreation() && s.srv.broker.AutoCreates(name)
	return s.requestFor(ctx, func(ctx context.Context) {
		defer c.settled()
		defer cancel()
		await(ctx, before)
		c.make(ctx, m.GetRequestId(), o, create)
	})
}

// await waits until all the channels that there are are closed.
func await(ctx context.Context, all []<-chan struct{}) {
	for _, done := range all {
		if done != nil {
			select {
			case <-done:
			case <-ctx.Done():
			}
		}
	}
}

// make asks the core for the consumer and answers the request.
func (c *consumer) make(ctx context.Context, request uint64, o edge.SubscribeOptions, create bool) {
	s := c.s
	var core *edge.Consumer
	err := s.contend(ctx, func() error {
		topic, err := s.srv.broker.Open(ctx, c.topic, create)
		if err != nil {
			return err
		}
		o.AutoSubscribe = topic.AutoSubscribes()
		core, err = topic.Subscribe(ctx, o, c, s)
		return err
	})
	if errors.Is(err, edge.ErrTopicNotFound) {
		err = fmt.Errorf("%w: Topic %s does not exist", edge.ErrTopicNotFound, c.topic)
	}
	if err != nil {
		if c.forget(creating) {
			s.failRequest(request, err)
		} else {
			s.slots.give(1)
		}
		return
	}
	c.core = core
	if !s.out.settle(func() proto.Message { return c.completeLocked(request) }) {
		core.Close()
	}
}

// subscribeOptions checks a request in itself.
func subscribeOptions(m *pulsarpb.CommandSubscribe) (edge.TopicName, edge.SubscribeOptions, error) {
	o := edge.SubscribeOptions{
		ID: m.GetConsumerId(), Name: m.GetSubscription(), Kind: edge.SubKind(m.GetSubType()),
		Durable: m.GetDurable(), Consumer: m.GetConsumerName(), Priority: int(m.GetPriorityLevel()),
		Initial:       edge.Initial(m.GetInitialPosition()),
		Rollback:      rollback(m.GetStartMessageRollbackDurationSec()),
		ReadCompacted: m.GetReadCompacted(), Epoch: -1,
	}
	name, err := edge.ParseTopicName(m.GetTopic())
	if err != nil {
		return name, o, err
	}
	if err := checkNames(&o); err != nil {
		return name, o, err
	}
	if m.ConsumerEpoch != nil {
		o.Epoch = int64(m.GetConsumerEpoch())
	}
	if !o.Durable && m.StartMessageId != nil {
		at := position(m.GetStartMessageId())
		o.Start = &at
	}
	keyShared(&o, m.GetKeySharedMeta())
	if o.Metadata, err = properties(m.GetMetadata(), maxMetadata); err != nil {
		return name, o, err
	}
	if o.Properties, err = properties(m.GetSubscriptionProperties(), maxProducerMetadata); err != nil {
		return name, o, err
	}
	o.Schema = consumerSchema(m.GetSchema(), name)
	o.AnySchema = m.GetSchema().GetType() == pulsarpb.Schema_AutoConsume
	return name, o, nil
}

// rangeBytes is what a range of slots takes in memory.
const rangeBytes = 40

// checkNames refuses names with the reference's odd code for them.
func checkNames(o *edge.SubscribeOptions) error {
	switch {
	case o.Name == "":
		return fmt.Errorf("%w: Empty subscription name", edge.ErrProducerBusy)
	case o.Name == "pulsar.dedup" || strings.HasPrefix(o.Name, "pulsar.repl"):
		return fmt.Errorf("%w: Subscription with reserved subscription name attempted", edge.ErrProducerBusy)
	case len(o.Name) > maxName || len(o.Consumer) > maxName:
		return fmt.Errorf("%w: a name is longer than %d bytes", edge.ErrNotAllowed, maxName)
	}
	return nil
}

// rollback is a time in seconds, cut where it would overflow.
func rollback(seconds uint64) time.Duration {
	const most = 100 * 365 * 24 * 3600
	return time.Duration(min(seconds, most)) * time.Second
}

// keyShared sets how a Key_Shared consumer wants its keys.
func keyShared(o *edge.SubscribeOptions, m *pulsarpb.KeySharedMeta) {
	if m == nil || o.Kind != edge.KeyShared {
		return
	}
	o.Sticky = m.GetKeySharedMode() == pulsarpb.KeySharedMode_STICKY
	o.OutOfOrder = m.GetAllowOutOfOrderDelivery()
	if !o.Sticky {
		return
	}
	for _, r := range m.GetHashRanges() {
		o.Ranges = append(o.Ranges, edge.SlotRange{First: int(r.GetStart()), Last: int(r.GetEnd())})
	}
}
