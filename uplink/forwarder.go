package uplink

import (
	"sync"
	"sync/atomic"
	"time"

	"wayside/edge"
)

// forwarder brings one topic to the cloud along one route. It has a goroutine only
// while there is something to do; all fields without a remark are that goroutine's.
type forwarder struct {
	up      *Uplink
	route   *route
	name    edge.TopicName
	target  edge.TopicName
	parkOn  edge.TopicName
	inbox   inbox
	holding atomic.Int64 // bytes delivered and not settled
	full    atomic.Bool  // Room has said none: the core waits for a wake
	open    atomic.Bool  // there is a producer: the window may fill
	starved atomic.Bool  // a planned batch waits for messages, whatever the window says
	counts  counts

	topic     *edge.Topic
	seat      *attachment // nil while not subscribed
	attaching bool
	attachAt  time.Time // not before
	gone      bool      // the topic exists no more

	line    planner
	packed  []edge.Delivery // not opened yet
	opened  []item          // room to open entries in
	begun   bool            // the first entry since attaching is in the line
	upTo    *edge.Position  // settled and not handed to the core yet
	flow    int             // permits to give back
	schemas schemas
	parker  parker
	thirsty time.Time // when to look for memory again

	session  *session
	earlier  *session // the one before, perhaps still closing
	opening  bool
	back     pauses
	ration   ration    // of producers that ended
	retryAt  time.Time // no producer before
	gateWake <-chan struct{}
	gateAt   time.Time
	pace     time.Time // no send before: rate limit
	flushAt  time.Time // when the open batch is flushed, zero for not
	saveAt   time.Time // when saving the plan is tried again, zero for not
	parkSaid time.Time // when a parked message was last logged
	watchdog watchdog
	suspect  uint64    // index at the head when the cloud last refused something
	strikes  int       // how often in a row
	used     time.Time // last send or receipt
	looked   time.Time // when it was last decided what is due
	fresh    int       // bytes that receipts came for since the last look

	stop <-chan struct{} // nil once seen
	cut  <-chan struct{} // nil once seen

	mu     sync.Mutex
	report report // guarded by mu
}

// attachment is a forwarder's seat on its reserved subscription, from joining to
// leaving. The core calls it with the subscription locked.
type attachment struct {
	f        *forwarder
	consumer *edge.Consumer // set before the forwarder learns of it
}

var _ edge.Receiver = (*attachment)(nil)

// Room is what the window and the uplink's share of memory have free. An empty window
// always takes one entry, so that no topic starves, and so does one that waits for the
// rest of a batch that was planned under wider bounds. Without a producer more would
// only take memory.
func (a *attachment) Room() int {
	f := a.f
	if room := f.room(); room > 0 {
		return room
	}
	f.full.Store(true)
	return f.room() // looked at again: what was settled before the mark is not told of
}

func (f *forwarder) room() int {
	held := f.holding.Load()
	if held == 0 || f.starved.Load() {
		return 1
	}
	if !f.open.Load() {
		return 0
	}
	used, limit := f.up.broker.Budget().Usage(edge.ShareUplink)
	return int(min(int64(f.up.o.WindowBytes)-held, limit-used))
}

// Deliver takes an entry over and moves its memory to the uplink's share, if that has
// room; else it stays where it was counted.
func (a *attachment) Deliver(d edge.Delivery) {
	f := a.f
	if g, ok := f.up.broker.Budget().TryTake(edge.ShareUplink, cost(&d.Entry)); ok {
		d.Grant.Release()
		d.Grant = g
	}
	f.holding.Add(int64(len(d.Entry.Data)))
	f.up.start(f, f.inbox.deliver(d))
}

// Flush has nothing to do: what is delivered is on its way.
func (a *attachment) Flush() {}

// What an entry takes of memory while it is on its way: its bytes here, in the client's
// batch and in the client's frame; and for each message what describes it here and
// there.
const (
	copiesOfEntry = 3
	costOfMessage = 1500
)

func cost(e *edge.Entry) int64 {
	return copiesOfEntry*int64(len(e.Data)) + costOfMessage*int64(e.Facts.Messages)
}

// ActiveChanged is not told to exclusive consumers.
func (a *attachment) ActiveChanged(bool) {}

// EndReached needs nothing: a terminated topic just brings no more.
func (a *attachment) EndReached() {}

// Closed says that the core has taken the seat away.
func (a *attachment) Closed(reason error) {
	a.f.post(event{what: consumerGone, consumer: a, err: reason})
}

func newForwarder(u *Uplink, r *route, name, target, parkOn edge.TopicName) *forwarder {
	f := &forwarder{up: u, route: r, name: name, target: target, parkOn: parkOn}
	f.inbox.wake = make(chan struct{}, 1)
	f.stop, f.cut = u.run.Done(), u.cut
	f.back.min = u.o.BackoffMin
	f.ration = ration{limit: u.o.ReconnectsPerMinute, span: u.o.ReconnectSpan}
	f.watchdog.timeout = u.o.ReceiptTimeout
	f.parker.f = f
	base, _ := name.Partition()
	f.schemas = schemas{run: u.run, catalog: u.broker.Catalog(), base: base}
	f.set(Idle, "")
	return f
}

// post leaves an event for the forwarder's goroutine and sees that it runs.
func (f *forwarder) post(e event) { f.up.start(f, f.inbox.post(e)) }

// attach subscribes again in the background: opening a topic waits for the disk.
func (f *forwarder) attach(now time.Time) {
	if f.attaching || f.seat != nil || f.gone || now.Before(f.attachAt) {
		return
	}
	f.attaching = true
	f.up.wg.Go(f.subscribe)
}

// subscribe takes the reserved subscription and tells the forwarder.
func (f *forwarder) subscribe() {
	a := &attachment{f: f}
	err := a.join()
	f.post(event{what: attached, consumer: a, err: err})
}

// join takes the reserved subscription, which is made at the earliest message if the
// topic is older than the route.
func (a *attachment) join() error {
	f := a.f
	t, err := f.up.broker.Open(f.up.run, f.name, false)
	if err != nil {
		return err
	}
	a.consumer, err = t.Subscribe(f.up.run, edge.SubscribeOptions{
		Name: f.route.subscription(), Kind: edge.Exclusive, Durable: true, Consumer: "uplink",
		Initial: edge.InitialEarliest, AutoSubscribe: true, Epoch: -1, Follow: f.route.By, Own: true,
	}, a, self{})
	return err
}

// seated takes the plan over from the cursor and asks for messages.
func (f *forwarder) seated(a *attachment) {
	f.attaching = false
	f.take(a)
	f.topic, f.begun = a.consumer.Topic(), false
	stored, err := decodePlan(a.consumer.Plan())
	if err != nil {
		// Which ids went under which name is not known: a name that was never used.
		f.up.o.Logger.Error("the uplink's plan of a topic cannot be read; what was open goes again under a new name",
			"topic", f.name.String(), "route", f.route.Name, "error", err)
		stored = plan{epoch: uint64(f.up.o.Clock().Unix())}
	}
	if f.up.o.fault {
		stored.open = nil
	}
	birth := f.topic.BirthID()
	f.line = planner{set: f.up.o.sizes(), name: func(epoch uint64) string {
		return producerName(f.up.o.EdgeID, f.name.String(), birth, f.route.Name, epoch)
	}}
	f.line.load(stored, f.up.o.EdgeID, f.target.String())
	a.consumer.Flow(max(f.up.o.WindowMessages, f.line.widest()))
}

// unseated lets go of everything that came from a seat that is lost. What was in
// flight is sent again when it comes again.
func (f *forwarder) unseated() {
	for i := range f.packed {
		f.drop(f.hold(&f.packed[i]))
	}
	f.packed = nil
	w := &f.line.window
	for !w.empty() {
		it := w.pop()
		if it.held.left--; it.held.left == 0 {
			f.drop(it.held)
		}
	}
	f.take(nil)
	f.upTo, f.flow = nil, 0
	f.saveAt, f.flushAt, f.thirsty = time.Time{}, time.Time{}, time.Time{}
}

// take sets the seat, also for those who ask for status.
func (f *forwarder) take(a *attachment) {
	f.seat = a
	f.mu.Lock()
	f.report.seat = a
	f.mu.Unlock()
}

func (f *forwarder) drop(h *held) {
	h.release()
	f.holding.Add(-h.bytes)
}

// leave is the last word of a goroutine that ends. When the topic is gone the uplink
// forgets the forwarder, and looks whether the topic has come back meanwhile.
func (f *forwarder) leave(gone bool) {
	if gone {
		f.up.forget(f)
	}
}
