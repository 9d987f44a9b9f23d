package uplink

import (
	"fmt"
	"testing"
	"time"

	"wayside/edge"
	"wayside/wire/pulsarpb"
)

// begin opens a transaction that publishes on a topic.
func (r *rig) begin(topic string) edge.TxnID {
	r.t.Helper()
	var id edge.TxnID
	co, done := r.broker.Coordinator(), make(chan error, 1)
	co.Begin(time.Minute, func(x edge.TxnID, err error) { id = x; done <- err })
	if err := <-done; err != nil {
		r.t.Fatal(err)
	}
	co.AddTopics(id, []string{topic}, func(err error) { done <- err })
	if err := <-done; err != nil {
		r.t.Fatal(err)
	}
	return id
}

func (r *rig) end(id edge.TxnID, commit bool) {
	r.t.Helper()
	done := make(chan error, 1)
	r.broker.Coordinator().End(id, commit, func(err error) { done <- err })
	if err := <-done; err != nil {
		r.t.Fatal(err)
	}
}

// Only what is committed goes to the cloud, in the topic's order, and nothing past an open
// transaction; what was aborted, and markers, count as settled. Sequences go on rising,
// over a restart too.
func TestOnlyCommittedMessagesGo(t *testing.T) {
	r := newRig(t, func(o *Options) { o.BatchMessages, o.BatchBytes = 4, 100<<10 })
	n := 0
	put := func(id *edge.TxnID) {
		facts := edge.Facts{}
		if id != nil {
			facts.InTxn, facts.Txn = true, *id
		}
		r.put("in-a", &pulsarpb.MessageMetadata{}, facts, []byte(fmt.Sprint(n)))
		n++
	}
	lost := func(id *edge.TxnID) {
		r.put("in-a", &pulsarpb.MessageMetadata{}, edge.Facts{InTxn: true, Txn: *id}, []byte("lost"))
	}
	put(nil)
	for round := range 6 {
		good, bad := r.begin("in-a"), r.begin("in-a")
		put(&good)
		lost(&bad)
		put(nil)
		lost(&bad)
		put(&good)
		if round == 3 { // what is open goes on in the next life
			o := testOptions(r.cloud.url(), Route{From: "in-*", To: "out-{1}", Provenance: ProvenanceNone})
			o.BatchMessages, o.BatchBytes = 4, 100<<10
			r.restart(o)
		}
		if got := texts(r.cloud.frames(t, "out-a", n-3)); got != count(0, n-3) {
			t.Fatalf("round %d: the cloud has %q while transactions are open", round, got)
		}
		if round%2 == 0 {
			r.end(bad, false)
			r.end(good, true)
		} else {
			r.end(good, true)
			r.end(bad, false)
		}
		r.expect("out-a", n)
	}
	if s := r.settled("in-a"); s.Parked != 0 {
		t.Errorf("%+v", s)
	}
}
