package pulsar

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"wayside/edge"
	"wayside/wire/pulsarpb"
	"wayside/wire/wiretest"
)

// Many clients do everything at once, on few topics, and leave in every way, while the
// topics are unloaded under them. Afterwards nothing is left: no defect in the log, no
// client in the core, no memory held.
func TestHammer(t *testing.T) {
	r := serve(t, probeWithin(5*time.Millisecond), func(o *Options, b *edge.Options) {
		o.Replies, o.Requests, o.DeliveryBytes = 20, 4, 4<<10
		o.StallTimeout = 5 * time.Millisecond
		b.Budget = edge.NewBudget(4 << 20)
	})
	const clients, rounds = 6, 6
	var wg sync.WaitGroup
	for seed := range uint64(clients) {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(seed, 1))
			for range rounds {
				if err := r.visit(random); err != nil {
					t.Errorf("client %d: %v", seed, err)
				}
			}
		})
	}
	stop := make(chan struct{})
	var unloads sync.WaitGroup
	unloads.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(3 * time.Millisecond):
				r.broker.Unload(t.Context(), topicName(t, "hammer0")) //nolint:errcheck // it may not be there yet
			}
		}
	})
	wg.Wait()
	close(stop)
	unloads.Wait()
	eventually(t, "all clients are gone", func() bool {
		st := r.broker.Stats()
		return r.server.Sessions() == 0 && st.Producers == 0 && st.Consumers == 0
	})
	eventually(t, "all memory is free", func() bool {
		used, _ := r.broker.Budget().Usage(edge.SharePublish)
		return used == 0 && r.reads() == 0
	})
	if lines := r.log.with("defect"); len(lines) > 0 {
		t.Error(lines[0])
	}
	if lines := r.log.with("does not exist"); len(lines) > 0 { // an id was closed on a client that had done nothing wrong
		t.Error(lines[0])
	}
}

// visitor is one connection that does random things and reads what comes.
type visitor struct {
	*wiretest.Peer
	random *rand.Rand
	alive  bool // it answers PINGs

	mu       sync.Mutex
	changed  *sync.Cond
	answered map[uint64]bool // requests of producers: whether they succeeded
	over     bool
}

func (r *rig) visit(random *rand.Rand) error {
	p, err := wiretest.Dial(r.addr, patientFor)
	if err != nil {
		return err
	}
	if _, err := p.Connect(); err != nil {
		return err
	}
	v := &visitor{Peer: p, random: random, alive: random.IntN(4) > 0, answered: map[uint64]bool{}}
	v.changed = sync.NewCond(&v.mu)
	var reading sync.WaitGroup
	reading.Go(v.read)
	for range 40 {
		if v.act(r.t) != nil {
			break
		}
	}
	if random.IntN(2) == 0 {
		err = v.Close()
	} else {
		err = v.Reset()
	}
	reading.Wait()
	return err
}

func (v *visitor) read() {
	for {
		m, err := v.Next()
		v.mu.Lock()
		switch {
		case err != nil:
			v.over = true
		case m.GetProducerSuccess() != nil:
			v.answered[m.GetProducerSuccess().GetRequestId()] = true
		case m.GetError() != nil:
			v.answered[m.GetError().GetRequestId()] = false
		}
		v.changed.Broadcast()
		v.mu.Unlock()
		if err != nil {
			return
		}
		if m.GetType() == pulsarpb.BaseCommand_PING && v.alive {
			v.Send(&pulsarpb.CommandPong{}) //nolint:errcheck // it may be over
		}
	}
}

// success waits for the answer to a PRODUCER.
func (v *visitor) success(request uint64) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	for {
		if ok, answered := v.answered[request]; answered || v.over {
			return ok
		}
		v.changed.Wait()
	}
}

// act does one thing, on ids from 0 to 3. SENDs go to ids of their own, which this
// client never closes.
func (v *visitor) act(t *testing.T) error {
	one, request := uint64(v.random.IntN(4)), v.random.Uint64()
	topic := "hammer" + string(rune('0'+v.random.IntN(2)))
	kinds := []pulsarpb.CommandSubscribe_SubType{exclusive, shared, failover, keyShared_}
	kind := kinds[v.random.IntN(len(kinds))]
	ledger, entry := int64(1+v.random.IntN(2)), int64(v.random.IntN(30))
	switch v.random.IntN(12) {
	case 0:
		m := producerCmd(topic, one, request)
		mode := pulsarpb.ProducerAccessMode(v.random.IntN(4))
		m.ProducerAccessMode, m.ProducerName = &mode, proto.String("p"+topic)
		return v.Send(m)
	case 1:
		return v.Send(closeProducerCmd(one, request))
	case 2, 3:
		return v.Send(subscribeCmd(topic, kind.String(), kind, one, request))
	case 4:
		return v.Send(closeConsumerCmd(one, request))
	case 5:
		return v.Send(seekTo(one, request, ledger, entry))
	case 6:
		return v.Send(&pulsarpb.CommandUnsubscribe{ConsumerId: &one, RequestId: &request, Force: proto.Bool(v.random.IntN(2) == 0)})
	case 7:
		return v.Send(&pulsarpb.CommandRedeliverUnacknowledgedMessages{ConsumerId: &one})
	case 8:
		return v.Send(ackCmd(one, request, id(ledger, entry)))
	case 9:
		return v.burst(t, topic, 100+v.random.Uint64N(1<<40), request)
	}
	return v.Send(flowCmd(one, 1+uint32(v.random.IntN(20))))
}

// burst makes a producer and sends.
func (v *visitor) burst(t *testing.T, topic string, producer, request uint64) error {
	if err := v.Send(producerCmd(topic, producer, request)); err != nil || !v.success(request) {
		return err // refused where an exclusive producer is
	}
	for i := range uint64(10) {
		send := &pulsarpb.CommandSend{ProducerId: &producer, SequenceId: &i}
		if err := v.SendEntry(send, entryOf(t, i, 0, make([]byte, 500))); err != nil {
			return err
		}
	}
	return nil
}
