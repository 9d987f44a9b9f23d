package edge_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"wayside/edge"
)

var (
	stressFirst  = flag.Uint64("stress.seed", 1, "first seed of the stress runs")
	stressSeeds  = flag.Uint64("stress.seeds", 2, "number of seeds")
	stressRounds = flag.Int("stress.rounds", 150, "what each client does in a stress run")
)

// Many clients do everything at once on few topics, over a store that stands still and
// fails now and then. Whatever happens:
//
//  1. What was receipted is stored where the receipt says.
//  2. Positions of a topic's name only go up, whether it is unloaded or deleted.
//  3. A consumer is given something only while it has permits, and nothing once it is closed.
//  4. When the weather is fine again, each backlog drains.
//  5. At the end no memory is taken, and no goroutine runs.
func TestManyClientsInBadWeather(t *testing.T) {
	for seed := *stressFirst; seed < *stressFirst+*stressSeeds; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { newStress(t, seed).run() })
	}
}

type stress struct {
	*kit
	rnd   *rand.Rand
	names []edge.TopicName
	subs  []edge.SubscribeOptions

	mu       sync.Mutex
	last     map[edge.TopicName]edge.Position
	receipts map[edge.TopicName]map[edge.Position]string
}

func newStress(t *testing.T, seed uint64) *stress {
	s := &stress{
		rnd:      rand.New(rand.NewPCG(seed, 0)),
		last:     map[edge.TopicName]edge.Position{},
		receipts: map[edge.TopicName]map[edge.Position]string{},
	}
	s.kit = newKit(t, func(o *edge.Options) {
		o.Deduplication = seed%2 == 0
		o.UnackedPerConsumer, o.UnackedPerSubscription = 40, 100
		o.KeepAcked = 1 << 10
		o.Budget = edge.NewBudget(1 << 20)
		o.FailoverDelay = time.Millisecond
	})
	for _, name := range []string{"kept", "mortal"} {
		s.names = append(s.names, s.name(name))
	}
	for kind := edge.Exclusive; kind <= edge.KeyShared; kind++ {
		s.subs = append(s.subs, subscription(kind.String(), kind))
	}
	reader := edge.SubscribeOptions{Name: "reader", Kind: edge.Exclusive, Start: &edge.Earliest, Epoch: -1}
	follower := subscription("follower", edge.Exclusive)
	follower.Follow = edge.Shared.String()
	s.subs = append(s.subs, reader, follower)
	return s
}

func (s *stress) run() {
	ctx, cancel := context.WithTimeout(s.Context(), 6*patience)
	defer cancel()
	fine := make(chan struct{})
	var weather, clients sync.WaitGroup
	weather.Go(func() { s.weather(fine) })
	for range 3 {
		clients.Go(s.client(ctx, (*stressClient).produce))
	}
	for range 8 {
		clients.Go(s.client(ctx, (*stressClient).consume))
	}
	clients.Go(s.client(ctx, (*stressClient).administrate))
	clients.Wait()
	close(fine)
	weather.Wait()
	if ctx.Err() != nil {
		s.Fatal("something hangs")
	}
	for _, name := range s.names {
		s.drain(name)
		s.compare(name)
	}
}

// weather lets the store stand still and fail for moments, until all is to be fine.
func (s *stress) weather(fine <-chan struct{}) {
	for i := 0; ; i++ {
		switch i % 6 {
		case 1, 3:
			s.store.Hold()
		case 5:
			s.store.Fail(errors.New("no space"))
		default:
			s.store.Fail(nil)
			s.store.Release()
		}
		select {
		case <-time.After(3 * time.Millisecond):
		case <-fine:
			s.store.Fail(nil)
			s.store.Release()
			return
		}
	}
}

// client gives somebody with a random source of its own something to do.
func (s *stress) client(ctx context.Context, do func(*stressClient)) func() {
	c := &stressClient{stress: s, ctx: ctx, rnd: rand.New(rand.NewPCG(s.rnd.Uint64(), 0))}
	return func() {
		for range *stressRounds {
			if ctx.Err() != nil {
				return
			}
			do(c)
		}
		c.leave()
	}
}

// drain acknowledges every backlog of a topic, all of which has to come.
func (s *stress) drain(name edge.TopicName) {
	topic, err := s.broker.Open(s.Context(), name, true)
	if err != nil {
		s.Fatal(err)
	}
	kinds := map[string]edge.SubKind{}
	for _, o := range s.subs {
		kinds[o.Name] = o.Kind
	}
	for _, sub := range topic.Subscriptions() {
		in := &stressInbox{s: s}
		c, err := topic.Subscribe(s.Context(), subscription(sub, kinds[sub]), in, &peer{})
		if err != nil {
			s.Fatal(err)
		}
		in.flow(c, 1<<20)
		eventually(s.T, fmt.Sprintf("%s of %s drains", sub, name), func() bool {
			if at := in.take(100); len(at) > 0 {
				c.Ack(parts(at...), false, nil)
			}
			return topic.Stats().Subscriptions[sub].Backlog == 0
		})
		if st := topic.Stats().Subscriptions[sub]; st.Unacked != 0 || st.Replay != 0 {
			s.Errorf("%s of %s: %d unacknowledged, %d to be replayed", sub, name, st.Unacked, st.Replay)
		}
		c.Close()
		in.drop()
	}
}

// compare looks up all that was receipted and is not trimmed.
func (s *stress) compare(name edge.TopicName) {
	topic, err := s.broker.Open(s.Context(), name, true)
	if err != nil {
		s.Fatal(err)
	}
	spans, seen := topic.Spans(), 0
	s.mu.Lock()
	receipts := s.receipts[name]
	s.mu.Unlock()
	for at, body := range receipts {
		if !spans.Start().Less(at) {
			continue
		}
		seen++
		e, err := topic.Entry(s.Context(), at)
		if err != nil || string(e.Data) != body {
			s.Fatalf("%v of %s holds %q, %v; its receipt was for %q", at, name, e.Data, err, body)
		}
	}
	s.Logf("%s: %d receipts, %d entries looked up", name, len(receipts), seen)
}

// receipted notes a receipt, of which each has to be newer than the last.
func (s *stress) receipted(name edge.TopicName, at edge.Position, body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.last[name].Less(at) {
		s.Errorf("%v of %s came behind %v", at, name, s.last[name])
	}
	s.last[name] = at
	if s.receipts[name] == nil {
		s.receipts[name] = map[edge.Position]string{}
	}
	s.receipts[name][at] = body
}
