package edge_test

import (
	"slices"
	"time"

	"wayside/edge"
)

// begin opens a transaction that takes part on topics, and on subscriptions "TOPIC SUB".
func (k *kit) begin(ttl time.Duration, topics []string, subs ...edge.TxnSubscription) edge.TxnID {
	k.Helper()
	type begun struct {
		id  edge.TxnID
		err error
	}
	ch := make(chan begun, 1)
	co := k.broker.Coordinator()
	co.Begin(ttl, func(id edge.TxnID, err error) { ch <- begun{id, err} })
	b := recv(k.T, ch)
	if b.err != nil {
		k.Fatal(b.err)
	}
	done := make(chan error, 2)
	co.AddTopics(b.id, topics, func(err error) { done <- err })
	co.AddSubscriptions(b.id, subs, func(err error) { done <- err })
	for range 2 {
		if err := recv(k.T, done); err != nil {
			k.Fatal(err)
		}
	}
	return b.id
}

func (k *kit) end(id edge.TxnID, commit bool) error {
	k.Helper()
	done := make(chan error, 1)
	k.broker.Coordinator().End(id, commit, func(err error) { done <- err })
	return recv(k.T, done)
}

func (k *kit) mustEnd(id edge.TxnID, commit bool) {
	k.Helper()
	if err := k.end(id, commit); err != nil {
		k.Fatal(err)
	}
}

// publishIn stores messages in a transaction.
func (k *kit) publishIn(p *edge.Producer, id edge.TxnID, bodies ...string) (at []edge.Position) {
	k.Helper()
	for _, b := range bodies {
		a := recv(k.T, sendIn(p, id, b))
		if a.err != nil {
			k.Fatal(a.err)
		}
		at = append(at, a.Position)
	}
	return at
}

func sendIn(p *edge.Producer, id edge.TxnID, body string) <-chan answer {
	m := message(body)
	m.Facts.Producer, m.Facts.InTxn, m.Facts.Txn = p.Name(), true, id
	return send(p, m)
}

func ackIn(c *edge.Consumer, id edge.TxnID, cumulative bool, at ...edge.Position) <-chan error {
	done := make(chan error, 1)
	parts := make([]edge.AckPart, len(at))
	for i, p := range at {
		parts[i].Position = p
	}
	c.AckIn(id, parts, cumulative, func(err error) { done <- err })
	return done
}

func (k *kit) mustAckIn(c *edge.Consumer, id edge.TxnID, at ...edge.Position) {
	k.Helper()
	if err := recv(k.T, ackIn(c, id, false, at...)); err != nil {
		k.Fatal(err)
	}
}

// quiet makes sure that nothing more comes: what is published behind it would come after.
func (k *kit) onlyThen(t *edge.Topic, p *edge.Producer, in *inbox, want ...string) {
	k.Helper()
	k.publish(p, "then")
	if got := in.await(k.T, len(want)+1); !slices.Equal(got, append(slices.Clone(want), "then")) {
		k.Fatalf("came %q, want %q", got, want)
	}
}
