package uplink

import (
	"cmp"
	"slices"
	"sort"
	"strings"
	"sync/atomic"
	"time"

	"wayside/edge"
)

// State is how a topic's way to the cloud stands.
type State string

// The states.
const (
	Idle       State = "idle"        // nothing to send
	Connecting State = "connecting"  // a producer is being created, or is about to be once the link is known to work
	Connected  State = "connected"   // sending
	BackingOff State = "backing off" // the cloud cannot be reached; Until says when it is tried again
	Refused    State = "refused"     // the cloud answers and does not want this topic as things stand
	Waiting    State = "waiting"     // something here is not ready
)

// counts are a topic's counters since the start of the program.
type counts struct {
	sent, sentBytes, duplicates, parked atomic.Int64
	handed, reconnects, conflicts       atomic.Int64
}

// report is what a forwarder says about itself.
type report struct {
	state  State
	since  time.Time // wall clock
	until  time.Time // when it is tried again, monotonic; zero if not by time
	reason string
	seat   *attachment
	oldest int64 // publish time of the head of the line, ms since 1970, 0 for none
	rate   float64
	last   int64 // sent bytes at the last look
	lastAt time.Time
}

// Status is a snapshot of the uplink.
type Status struct {
	URL     string
	Cluster string
	// State is the worst that any topic has to say, from connected and idle over backing
	// off to refused, with its reason.
	State  State
	Reason string
	Topics []TopicStatus // by route, then by topic
}

// TopicStatus is a snapshot of one topic on one route.
type TopicStatus struct {
	Route, Topic, Target string
	State                State
	Since                time.Time
	Until                time.Time // of the next try, zero unless it waits for a time
	Reason               string    // in plain words, "" when all is well
	Backlog              int64     // messages that are not settled
	BacklogBytes         int64     // estimate, as stored
	OldestAge            time.Duration
	Rate                 float64 // bytes per second that were confirmed lately, before compression
	Sent                 int64   // messages confirmed since the start of the program
	SentBytes            int64   // before compression
	Handed               int64   // bytes handed to the client, repeats included
	Duplicates           int64   // of them the cloud had already
	Parked               int64   // messages set aside because the cloud will never take them
	Reconnects           int64
	// Conflicts is how often a new name had to be taken, since the cloud knew what was
	// never sent, or refused a batch: what was open then may be there twice.
	Conflicts int64
}

// set notes a change of state. The first word of trouble is logged, not its echoes.
func (f *forwarder) set(state State, reason string) {
	f.mu.Lock()
	old := f.report
	if state == Connecting && old.state != Idle {
		f.mu.Unlock()
		return // of trouble more is known, and another producer of a connected topic is no news
	}
	if old.state != state {
		f.report.since = f.up.o.Clock()
	}
	f.report.state, f.report.reason = state, reason
	f.report.until = time.Time{}
	if state.trouble() {
		f.report.until = f.retryAt
	}
	f.mu.Unlock()
	if state == old.state || !state.trouble() && !old.state.trouble() {
		return
	}
	f.up.o.Logger.Info("uplink of a topic: "+string(state), "topic", f.name.String(), "route", f.route.Name,
		"target", f.target.String(), "reason", reason)
}

func (s State) trouble() bool { return s == BackingOff || s == Refused || s == Waiting }

// setGated tells why a topic waits for the link.
func (f *forwarder) setGated() {
	reason, refused, until := f.up.link.gate.trouble()
	if reason == "" { // another topic is the first to try
		f.set(Connecting, "")
		return
	}
	state := BackingOff
	if refused {
		state = Refused
	}
	f.set(state, reason)
	f.mu.Lock()
	f.report.until = until
	f.mu.Unlock()
}

// publish refreshes what others may read.
func (f *forwarder) publish(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := &f.report
	r.oldest = 0
	if w := &f.line.window; !w.empty() {
		r.oldest = w.items[w.head].held.publish
	}
	if passed := now.Sub(r.lastAt); passed >= time.Second {
		sent := f.counts.sentBytes.Load()
		if !r.lastAt.IsZero() {
			r.rate = float64(sent-r.last) / passed.Seconds()
		}
		r.last, r.lastAt = sent, now
	}
}

// Status tells how everything stands. It asks the core about each topic.
func (u *Uplink) Status() Status {
	st := Status{URL: u.o.URL, Cluster: u.o.Cluster, State: Idle}
	for _, f := range u.forwarders() {
		t := f.status()
		st.Topics = append(st.Topics, t)
		if gravity(t.State) > gravity(st.State) {
			st.State, st.Reason = t.State, t.Reason
		}
	}
	sort.Slice(st.Topics, func(i, j int) bool {
		a, b := &st.Topics[i], &st.Topics[j]
		return cmp.Or(strings.Compare(a.Route, b.Route), strings.Compare(a.Topic, b.Topic)) < 0
	})
	return st
}

func gravity(s State) int {
	return slices.Index([]State{Idle, Connected, Connecting, Waiting, BackingOff, Refused}, s)
}

func (f *forwarder) status() TopicStatus {
	f.mu.Lock()
	r := f.report
	f.mu.Unlock()
	var sub edge.SubscriptionStats // before the counters, so that what has left the backlog is counted
	if r.seat != nil {
		sub = r.seat.consumer.Topic().Stats().Subscriptions[f.route.subscription()]
	}
	c := &f.counts
	t := TopicStatus{
		Route: f.route.Name, Topic: f.name.String(), Target: f.target.String(),
		State: r.state, Since: r.since, Until: r.until, Reason: r.reason,
		Backlog: sub.Backlog, BacklogBytes: sub.BacklogBytes,
		Sent: c.sent.Load(), SentBytes: c.sentBytes.Load(), Handed: c.handed.Load(), Duplicates: c.duplicates.Load(),
		Parked: c.parked.Load(), Reconnects: c.reconnects.Load(), Conflicts: c.conflicts.Load(),
	}
	if r.oldest > 0 {
		t.OldestAge = max(0, f.up.o.Clock().Sub(time.UnixMilli(r.oldest)))
	}
	if time.Since(r.lastAt) < 5*time.Second {
		t.Rate = r.rate
	}
	return t
}
