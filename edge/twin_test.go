package edge_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"wayside/edge"
	"wayside/edge/edgetest"
)

var (
	twinFirst = flag.Uint64("twin.seed", 1, "first seed of the random subscriptions")
	twinSeeds = flag.Uint64("twin.seeds", 40, "number of seeds")
)

// Random operations on a real subscription, over a store in memory, are watched by
// its dumb twin, which knows the rules (edgetest.Twin). Each seed is one kind of
// subscription. Time is simulated.
func TestSubscriptionAgainstTwin(t *testing.T) {
	for seed := *twinFirst; seed < *twinFirst+*twinSeeds; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { newTwinRun(t, seed).run(150) })
		})
	}
}

type twinRun struct {
	t          *testing.T
	rnd        *rand.Rand
	opts       edge.Options
	sub        edge.SubscribeOptions
	store      *edgetest.MemStore
	broker     *edge.Broker
	topic      *edge.Topic
	producer   *edge.Producer
	twin       *edgetest.Twin
	clients    []*twinClient
	delays     bool
	slow       slowReads
	sequence   int64
	restarting atomic.Bool
	log        []string
}

var (
	twinTopic = edge.TopicName{Domain: edge.Persistent, Tenant: "public", Namespace: "default", Local: "twin"}
	twinNames = []string{"a", "b", "c", "d"}
	twinKeys  = []uint16{1, 7000, 16384, 16385, 30000, 40000, 65535}
)

func newTwinRun(t *testing.T, seed uint64) *twinRun {
	rnd := rand.New(rand.NewPCG(seed, 0))
	r := &twinRun{
		t: t, rnd: rnd, store: edgetest.NewMemStore(), opts: edge.DefaultOptions(),
		sub: edge.SubscribeOptions{
			Name: "sub", Durable: true, AutoSubscribe: true, Initial: edge.InitialEarliest, Epoch: -1,
			Kind: edge.SubKind(seed % 4), Sticky: rnd.IntN(3) == 0, OutOfOrder: rnd.IntN(4) == 0,
		},
	}
	limit := 0
	if r.sub.Kind == edge.Shared || r.sub.Kind == edge.KeyShared {
		limit = []int{0, 0, 10}[rnd.IntN(3)]
		r.delays = rnd.IntN(2) == 0
	}
	r.opts.UnackedPerConsumer = limit
	r.opts.FailoverDelay = []time.Duration{0, time.Second}[rnd.IntN(2)]
	r.slow.takes.Store(int64(rnd.IntN(3)) * int64(10*time.Millisecond))
	r.twin = edgetest.NewTwin(limit)
	r.start()
	return r
}

func (r *twinRun) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatalf("%v\n%s", err, strings.Join(r.log, "\n"))
	}
}

func (r *twinRun) note(format string, args ...any) {
	r.log = append(r.log, fmt.Sprintf(format, args...))
}

func (r *twinRun) start() {
	var err error
	r.opts.Budget = edge.NewBudget(32 << 20)
	r.broker, err = edge.NewBroker(slowStore{r.store, &r.slow}, r.opts)
	r.must(err)
	r.topic, err = r.broker.Open(r.t.Context(), twinTopic, true)
	r.must(err)
	if err := r.topic.CreateSubscription(r.t.Context(), r.sub.Name, edge.Earliest); !errors.Is(err, edge.ErrExists) {
		r.must(err)
	}
	r.producer, err = r.topic.AddProducer(r.t.Context(), edge.ProducerOptions{Name: "p"}, twinEnd{}, twinPeer{})
	r.must(err)
}

func (r *twinRun) run(steps int) {
	defer func() { // a failed run leaves no goroutine behind
		if r.t.Failed() {
			r.slow.takes.Store(0)
			time.Sleep(time.Second)
			_ = r.broker.Close(context.Background())
			_ = r.store.Close()
		}
	}()
	for range steps {
		r.step()
	}
	r.drain()
	r.stop()
}

// step does one thing at rest; or some between the plan and the outcome of reads; or
// some at once with the deliveries, where the twin has to be less strict.
func (r *twinRun) step() {
	switch r.rnd.IntN(4) {
	case 0:
		for range 1 + r.rnd.IntN(8) {
			r.one(amidReads)
			time.Sleep(time.Duration(r.rnd.IntN(15)) * time.Millisecond)
			synctest.Wait()
		}
	case 1:
		r.twin.Loose(true)
		if r.rnd.IntN(3) == 0 {
			r.store.Hold()
		}
		for range 1 + r.rnd.IntN(8) {
			r.one(atOnce)
		}
		r.store.Release()
	default:
		r.one(atRest)
	}
	r.settle()
	r.twin.Loose(false)
}

// moment says what goes on while something is done.
type moment int

const (
	atRest moment = iota
	amidReads
	atOnce
)

// one does something at random.
func (r *twinRun) one(m moment) {
	switch n := r.rnd.IntN(100); {
	case n < 25:
		r.publish(1 + r.rnd.IntN(6))
	case n < 35:
		r.join()
	case n < 40:
		switch {
		case n < 38 && m != atOnce: // it waits for a commit, which may be held
			r.seek()
		case n >= 38 && m == atRest: // it waits for reads
			r.restart()
		}
	case len(r.clients) > 0:
		r.oneOf(r.clients[r.rnd.IntN(len(r.clients))], n, m)
	}
}

func (r *twinRun) oneOf(c *twinClient, n int, m moment) {
	shares := r.sub.Kind == edge.Shared || r.sub.Kind == edge.KeyShared
	switch {
	case n < 60:
		c.flow(1 + r.rnd.IntN(12))
	case n < 80:
		c.see()
		c.ack()
	case n < 87 && m != atOnce: // what it takes back could not be told
		c.see()
		c.nack()
	case n < 91 && (m != atOnce || shares): // nor the single kinds' order
		c.giveBack()
	case n < 95:
		c.stall(!c.stalled.Load())
	default:
		c.leave()
	}
}

// settle lets everything come to rest, and judges.
func (r *twinRun) settle() {
	r.t.Helper()
	for rounds, before := 0, int64(-1); before != r.slow.reads.Load(); rounds++ {
		if rounds == 100 {
			r.t.Fatalf("dispatch does not come to rest\n%s", strings.Join(r.log, "\n"))
		}
		before = r.slow.reads.Load()
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
	}
	st := r.topic.Stats().Subscriptions[r.sub.Name]
	r.twin.Trimmed(r.topic.Spans().Start())
	r.twin.Settled(st.MarkDelete, st.Backlog, time.Now())
	r.must(r.twin.Err())
}

func (r *twinRun) publish(n int) {
	for range n {
		f := edge.Facts{
			Producer: "p", Sequence: r.sequence, Highest: r.sequence, Messages: 1,
			Slot: twinKeys[r.rnd.IntN(len(twinKeys))], Publish: time.Now().UnixMilli(),
		}
		if r.rnd.IntN(3) == 0 {
			f.Batch, f.Messages = true, int32(1+r.rnd.IntN(9))
		}
		if r.delays && r.rnd.IntN(4) == 0 {
			f.DeliverAt = time.Now().UnixMilli() + r.rnd.Int64N(8000)
		}
		r.sequence++
		g, _ := r.broker.Budget().TryTake(edge.SharePublish, 10)
		r.producer.Publish(edge.Message{Facts: f, Data: make([]byte, 10), Grant: g}, func(got edge.Receipt, err error) {
			if err != nil {
				r.t.Errorf("publish: %v", err)
				return
			}
			r.twin.Published(got.Position, &f)
		})
	}
	r.note("publish %d", n)
}

func (r *twinRun) join() {
	free := map[string]bool{}
	for _, name := range twinNames {
		free[name] = true
	}
	for _, c := range r.clients {
		delete(free, c.name)
	}
	name := twinNames[r.rnd.IntN(len(twinNames))]
	if !free[name] || r.sub.Kind == edge.Exclusive && len(r.clients) > 0 {
		return
	}
	r.joinAs(name)
}

func (r *twinRun) joinAs(name string) {
	c := &twinClient{r: r, name: name}
	o := r.sub
	o.Consumer = name
	o.Priority = r.rnd.IntN(2)
	for i, n := range twinNames {
		if n == name && o.Kind == edge.KeyShared && o.Sticky {
			o.Ranges = []edge.SlotRange{{First: i * 16384, Last: i*16384 + 16383}}
		}
	}
	r.note("join %s", name)
	r.twin.Joined(&o)
	var err error
	c.c, err = r.topic.Subscribe(r.t.Context(), o, c, twinPeer{})
	r.must(err)
	r.clients = append(r.clients, c)
}

func (r *twinRun) seek() {
	if len(r.clients) == 0 {
		return
	}
	to := edge.SeekTarget{Position: edge.Earliest}
	c := r.clients[r.rnd.IntN(len(r.clients))]
	seen := c.known()
	switch r.rnd.IntN(4) {
	case 0:
		to.Position = edge.Latest
	case 1, 2:
		if len(seen) == 0 {
			break
		}
		d := seen[r.rnd.IntN(len(seen))]
		to.Position = d.Entry.Position
		if r.rnd.IntN(2) == 0 {
			to.Rest = r.someOf(&d)
		}
	}
	r.note("seek %s to %v %x", c.name, to.Position, to.Rest)
	r.twin.Sought(to.Position, to.Rest, func() { r.must(c.c.Seek(r.t.Context(), to)) })
	r.dropClosed()
}

// someOf is a rest of a batch with a bit or more.
func (r *twinRun) someOf(d *edge.Delivery) []uint64 {
	all := ^uint64(0) >> (64 - d.Entry.Facts.Messages)
	if rest := r.rnd.Uint64() & all; rest != 0 {
		return []uint64{rest}
	}
	return []uint64{all}
}

// restart ends the broker and starts another on the same store; in between the
// topic's ledger may be closed.
func (r *twinRun) restart() {
	r.note("restart")
	r.stop()
	r.store = r.store.Reopen()
	if r.rnd.IntN(2) == 0 {
		l, err := r.store.OpenLedger(twinTopic, nil)
		r.must(err)
		for _, change := range []func(func(error)){l.Roll, l.Close} {
			done := make(chan error, 1)
			change(func(err error) { done <- err })
			r.must(<-done)
		}
	}
	r.start()
}

// stop ends the broker. All memory has to come back.
func (r *twinRun) stop() {
	r.restarting.Store(true)
	r.must(r.broker.Close(r.t.Context()))
	r.restarting.Store(false)
	r.dropClosed()
	r.must(r.store.Close())
	for _, share := range []edge.Share{edge.SharePublish, edge.ShareRead, edge.ShareSubscription} {
		if used, _ := r.broker.Budget().Usage(share); used != 0 {
			r.t.Errorf("%d bytes of share %d did not come back", used, share)
		}
	}
}

// dropClosed forgets the clients whose consumers were closed.
func (r *twinRun) dropClosed() {
	var open []*twinClient
	for _, c := range r.clients {
		if c.closed.Load() {
			c.see()
			continue
		}
		open = append(open, c)
	}
	r.clients = open
}

// drain acknowledges everything, which therefore has to come.
func (r *twinRun) drain() {
	for len(r.clients) > 0 {
		r.clients[0].leave()
	}
	for range 200 {
		if r.topic.Stats().Subscriptions[r.sub.Name].Backlog == 0 {
			return
		}
		for _, name := range twinNames {
			here := slices.ContainsFunc(r.clients, func(c *twinClient) bool { return c.name == name })
			if !here && (len(r.clients) == 0 || r.sub.Kind != edge.Exclusive) {
				r.joinAs(name)
			}
		}
		for _, c := range r.clients {
			c.flow(50)
		}
		r.settle()
		for _, c := range r.clients {
			c.see()
			for _, d := range c.known() {
				c.ackParts([]edge.AckPart{{Position: d.Entry.Position}}, false)
			}
		}
		r.settle()
	}
	r.t.Fatalf("something never comes\n%s", strings.Join(r.log, "\n"))
}
