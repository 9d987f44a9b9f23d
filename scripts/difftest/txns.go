package main

import (
	"fmt"
	"regexp"
)

// begin asks for a transaction, which the program calls by a name from then on: {x} stands for the bits of x in
// texts, since each broker counts for itself.
func (c conn) begin(name string, ttl int) step {
	return c.step(fmt.Sprintf("NEW_TXN %s {txn_ttl_seconds:%d}", name, ttl), func(w *world, cl *client) error {
		w.mu.Lock()
		cl.begun[cl.requests+1] = name
		w.mu.Unlock()
		return cl.say("NEW_TXN", fmt.Sprintf("txn_ttl_seconds:%d", ttl))
	})
}

// coordinate has the broker take the coordinator's part, as clients do before they begin.
func (c conn) coordinate() step { return c.say("TC_CLIENT_CONNECT_REQUEST", "tc_id:0") }

// joins adds a topic to a transaction.
func (c conn) joins(name, topic string) step {
	return c.say("ADD_PARTITION_TO_TXN", fmt.Sprintf("{%s} partitions:%q", name, full(topic)))
}

// acksIn adds a subscription of a topic to a transaction.
func (c conn) acksIn(name, topic, subscription string) step {
	return c.say("ADD_SUBSCRIPTION_TO_TXN", fmt.Sprintf("{%s} subscription{topic:%q subscription:%q}", name, full(topic), subscription))
}

// sendIn publishes one message in a transaction.
func (c conn) sendIn(id int, label, name string) step {
	return c.send(id, label, "{"+name+"}", "{"+name+"}")
}

// ackIn acknowledges one by one in a transaction.
func (c conn) ackIn(id int, name, labels string) step {
	return c.acked(id, "Individual", labels, "request_id:{r} {"+name+"}")
}

// commit and abort end a transaction.
func (c conn) commit(name string) step { return c.say("END_TXN", "{"+name+"} txn_action:COMMIT") }
func (c conn) abort(name string) step  { return c.say("END_TXN", "{"+name+"} txn_action:ABORT") }

// begunLocked learns the number that a transaction was given.
func (w *world) begunLocked(e *event) {
	r := e.cmd.GetNewTxnResponse()
	if name := e.client.begun[r.GetRequestId()]; name != "" && r.Error == nil {
		w.txns[name] = id{int64(r.GetTxnidMostBits()), int64(r.GetTxnidLeastBits())}
	}
}

// expandTxns puts bits in the place of names of transactions. A name that no transaction bears has bits of none.
func (w *world) expandTxns(text string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return regexp.MustCompile(`\{(txn\w*)\}`).ReplaceAllStringFunc(text, func(s string) string {
		at, ok := w.txns[s[1:len(s)-1]]
		if !ok {
			at = id{0, noTxn}
		}
		return fmt.Sprintf("txnid_most_bits:%d txnid_least_bits:%d", at.ledger, at.entry)
	})
}

// noTxn is the number of a transaction that there never will be.
const noTxn = 1 << 40

// txn is the program's name for a transaction that a broker tells of.
func (w *world) txn(at id) string {
	for name, have := range w.txns {
		if have == at {
			return name
		}
	}
	if at.entry == noTxn {
		return "no transaction's"
	}
	return "another's"
}

// most are the bits of the coordinator that go with those of the transaction.
func (r *renderer) most() uint64 {
	type told interface{ GetTxnidMostBits() uint64 }
	if m, ok := subCommand(r.event.cmd).Interface().(told); ok {
		return m.GetTxnidMostBits()
	}
	return 0
}
