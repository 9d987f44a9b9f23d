package main

import (
	"slices"
	"time"
)

// transacting are about what is published and acknowledged in transactions.
func transacting() []program {
	return inFull(slices.Concat(coordinated(), publishedInside(), acknowledgedInside()), "txn-commit", "txn-ack-abort")
}

// long is a time to live that no program outlives, in milliseconds.
const long = 60_000

// coordinated are about the coordinator.
func coordinated() []program {
	return []program{
		{name: "txn-connect", steps: []step{
			a.coordinate(), a.coordinate(), a.say("TC_CLIENT_CONNECT_REQUEST", "tc_id:99"), a.begin("txnA", long), a.say("NEW_TXN", "txn_ttl_seconds:1000 tc_id:99"),
			a.begin("txnB", 0), a.abort("txnA"),
		}},
		{name: "txn-unknown", steps: []step{
			a.coordinate(), a.commit("txnNone"), a.abort("txnNone"), a.joins("txnNone", "t"), a.acksIn("txnNone", "t", "s"),
			a.producer(1, "t", "txn_enabled:true"), a.publish(1, "m0"), a.subscribe(1, "t", "s", "Shared", earliest), a.flow(1, 9),
		}},
		{name: "txn-other-coordinator", steps: []step{
			a.coordinate(), a.say("END_TXN", "txnid_most_bits:77 txnid_least_bits:1 txn_action:COMMIT"), a.say("ADD_PARTITION_TO_TXN", `txnid_most_bits:77 txnid_least_bits:1 partitions:"`+full("t")+`"`),
		}},
		{name: "txn-ended", steps: []step{
			a.coordinate(), a.begin("txnA", long), a.begin("txnB", long), a.commit("txnA"), a.commit("txnA"), a.abort("txnA"), a.joins("txnA", "t"), a.acksIn("txnA", "t", "s"),
			a.abort("txnB"), a.abort("txnB"), a.commit("txnB"), a.joins("txnB", "t"),
		}},
		{name: "txn-without-action", steps: []step{a.coordinate(), a.begin("txnA", long), a.say("END_TXN", "{txnA}")}},
		{name: "txn-joins-twice", steps: []step{
			a.coordinate(), a.begin("txnA", long), a.producer(1, "t", "txn_enabled:true"), a.joins("txnA", "t"), a.joins("txnA", "t"), a.say("ADD_PARTITION_TO_TXN", "{txnA}"),
			a.say("ADD_SUBSCRIPTION_TO_TXN", "{txnA}"), a.commit("txnA"),
		}},
	}
}

// publishedInside are about messages of transactions, and who sees them when.
func publishedInside() []program {
	open := []step{
		a.coordinate(), a.producer(1, "t", "txn_enabled:true"), b.subscribe(1, "t", "s", "Exclusive", earliest), b.flow(1, 100), a.publish(1, "m0"),
		a.begin("txnA", long), a.joins("txnA", "t"), a.sendIn(1, "x0", "txnA"), a.publish(1, "m1"), a.sendIn(1, "x1", "txnA"), b.lastID(1),
	}
	with := func(name string, steps ...step) program {
		return program{name: "txn-" + name, steps: slices.Concat(open, steps, []step{b.lastID(1), figures("t", "subscriptions/s/msgBacklog", "msgInCounter")})}
	}
	return []program{
		with("commit", a.commit("txnA"), b.cumulative(1, "x1")),
		with("abort", a.abort("txnA"), b.cumulative(1, "m1")),
		with("open"),
		with("drop", a.drop(), c.coordinate(), c.commit("txnA")),
		with("redelivered", b.redeliver(1, ""), a.commit("txnA"), b.redeliver(1, "")),
		with("abort-redelivered", b.ack(1, "m0"), a.abort("txnA"), b.redeliver(1, ""), b.drop(), b.subscribe(1, "t", "s", "Shared", ""), b.flow(1, 100)),
		with("late-subscribers", c.subscribe(1, "t", "r", "Exclusive", fromStart), c.flow(1, 9), c.lastID(1), c.subscribe(2, "t", "u", "Shared", ""), c.flow(2, 9), c.lastID(2), a.commit("txnA"), a.publish(1, "m2")),
		with("late-shared", c.subscribe(1, "t", "u", "Shared", earliest), c.flow(1, 9), c.subscribe(2, "t", "v", "Key_Shared", earliest), c.flow(2, 9), a.abort("txnA"), a.publish(1, "m2")),
		with("seek", b.seek(1, "$m0"), b.subscribe(1, "t", "s", "Exclusive", ""), b.flow(1, 9), a.commit("txnA"), b.seek(1, "$x0"), b.subscribe(1, "t", "s", "Exclusive", ""), b.flow(1, 9)),
		with("two", a.begin("txnB", long), a.joins("txnB", "t"), a.sendIn(1, "y0", "txnB"), a.publish(1, "m2"), a.commit("txnB"), b.lastID(1), a.publish(1, "m3"), a.commit("txnA")),
		with("two-aborted-first", a.begin("txnB", long), a.joins("txnB", "t"), a.sendIn(1, "y0", "txnB"), a.publish(1, "m2"), a.abort("txnA"), b.lastID(1), a.commit("txnB")),
		with("unloaded", a.drop(), b.drop(), admin("PUT", "/admin/v2/persistent/{ns}/{p}-t/unload", ""), b.subscribe(1, "t", "s", "Exclusive", "").later(time.Second), b.flow(1, 9), a.coordinate(), a.commit("txnA")),
		with("aborted-unloaded", a.abort("txnA"), a.drop(), b.drop(), admin("PUT", "/admin/v2/persistent/{ns}/{p}-t/unload", ""), b.subscribe(1, "t", "s", "Exclusive", "").later(time.Second), b.flow(1, 9)),
		{name: "txn-timeout", steps: []step{
			a.coordinate(), a.producer(1, "t", "txn_enabled:true"), b.subscribe(1, "t", "s", "Exclusive", earliest), b.flow(1, 9), a.begin("txnA", 2500), a.joins("txnA", "t"),
			a.sendIn(1, "x0", "txnA"), a.publish(1, "m0"), a.say("PING", "").later(6 * time.Second), b.lastID(1), a.commit("txnA"), a.abort("txnA"), a.joins("txnA", "t"), a.sendIn(1, "x1", "txnA"), a.publish(1, "m1"),
		}},
		{name: "txn-not-joined", steps: []step{
			a.coordinate(), a.producer(1, "t", ""), b.subscribe(1, "t", "s", "Exclusive", earliest), b.flow(1, 9), a.begin("txnA", long), a.sendIn(1, "x0", "txnA"), a.publish(1, "m0"), a.joins("txnA", "t"), a.commit("txnA"),
		}},
		{name: "txn-send-batch", steps: []step{
			a.coordinate(), a.producer(1, "t", "txn_enabled:true"), b.subscribe(1, "t", "s", "Shared", earliest), b.flow(1, 100), a.begin("txnA", long), a.joins("txnA", "t"),
			a.batch(1, "b0", 5, "{txnA}", "{txnA}"), b.lastID(1), a.commit("txnA"), b.lastID(1), b.partly(1, "Individual", "b0", "28"), b.redeliver(1, ""), b.stats(1),
		}},
		{name: "txn-two-topics", steps: []step{
			a.coordinate(), a.producer(1, "t", "txn_enabled:true"), a.producer(2, "u", "txn_enabled:true"), b.subscribe(1, "t", "s", "Exclusive", earliest), b.subscribe(2, "u", "s", "Exclusive", earliest), b.flow(1, 9), b.flow(2, 9),
			a.begin("txnA", long), a.say("ADD_PARTITION_TO_TXN", `{txnA} partitions:"`+full("t")+`" partitions:"`+full("u")+`"`), a.sendIn(1, "x0", "txnA"), a.sendIn(2, "y0", "txnA"), a.publish(1, "m0"), a.commit("txnA"),
		}},
		{name: "txn-compacted-reader", steps: []step{
			a.coordinate(), a.producer(1, "t", "txn_enabled:true"), a.keyed(1, "k", "m0"), a.begin("txnA", long), a.joins("txnA", "t"), a.send(1, "x0", "{txnA}", `{txnA} partition_key:"k"`), a.abort("txnA"),
			compact("t"), b.subscribe(1, "t", "r", "Exclusive", fromStart+" read_compacted:true"), b.lastID(1), b.flow(1, 9),
		}},
	}
}

// acknowledgedInside are about acknowledgements in transactions.
func acknowledgedInside() []program {
	open := func(kind string) []step {
		return []step{
			a.coordinate(), a.producer(1, "t", ""), b.subscribe(1, "t", "s", kind, earliest), b.flow(1, 100), a.publish(1, "m0 m1 m2"), a.batch(1, "b0", 5, "", ""),
			a.begin("txnA", long), a.acksIn("txnA", "t", "s"),
		}
	}
	with := func(name, kind string, steps ...step) program {
		return program{name: "txn-ack-" + name, steps: slices.Concat(open(kind), steps, []step{
			b.redeliver(1, ""), b.lastID(1), b.drop(), b.subscribe(1, "t", "s", kind, ""), b.flow(1, 100), figures("t", "subscriptions/s/msgBacklog"),
		})}
	}
	part := func(name, label, left string) step {
		return b.answered("ACK", "consumer_id:1 ack_type:Individual request_id:{r} {"+name+"} message_id{$"+label+" ack_set:["+left+"] batch_size:5}")
	}
	return []program{
		with("commit", "Shared", b.ackIn(1, "txnA", "m0 m1"), b.stats(1), b.redeliver(1, ""), a.commit("txnA"), b.stats(1)),
		with("abort", "Shared", b.ackIn(1, "txnA", "m0 m1"), b.redeliver(1, ""), a.abort("txnA"), b.stats(1)),
		with("abort-exclusive", "Exclusive", b.ackIn(1, "txnA", "m0 m1"), b.redeliver(1, ""), a.abort("txnA")),
		with("open", "Shared", b.ackIn(1, "txnA", "m0 m1")),
		with("conflict", "Shared", b.ackIn(1, "txnA", "m0"), a.begin("txnB", long), a.acksIn("txnB", "t", "s"), b.ackIn(1, "txnB", "m0"), b.ackIn(1, "txnB", "m1 m0"), b.ack(1, "m0"), b.ackIn(1, "txnA", "m0"), a.abort("txnA"), b.ackIn(1, "txnB", "m0"), a.commit("txnB")),
		with("of-acked", "Shared", b.ack(1, "m0"), b.ackIn(1, "txnA", "m0"), b.ackIn(1, "txnA", "m2+9"), a.commit("txnA")),
		with("cumulative", "Exclusive", b.acked(1, "Cumulative", "m1", "request_id:{r} {txnA}"), b.lastID(1), b.acked(1, "Cumulative", "m0", "request_id:{r} {txnA}"), b.acked(1, "Cumulative", "m2", "request_id:{r} {txnA}"), a.commit("txnA")),
		with("cumulative-abort", "Exclusive", b.acked(1, "Cumulative", "m1", "request_id:{r} {txnA}"), a.abort("txnA")),
		with("cumulative-conflict", "Exclusive", a.begin("txnB", long), a.acksIn("txnB", "t", "s"), b.acked(1, "Cumulative", "m1", "request_id:{r} {txnA}"), b.acked(1, "Cumulative", "m2", "request_id:{r} {txnB}"), b.ackIn(1, "txnB", "m2"), b.cumulative(1, "m0"), a.commit("txnA"), a.commit("txnB")),
		with("parts", "Shared", part("txnA", "b0", "28"), b.redeliver(1, ""), a.commit("txnA")),
		with("parts-abort", "Shared", part("txnA", "b0", "28"), part("txnA", "b0", "7"), b.redeliver(1, ""), a.abort("txnA")),
		with("parts-conflict", "Shared", a.begin("txnB", long), a.acksIn("txnB", "t", "s"), part("txnA", "b0", "28"), part("txnB", "b0", "30"), part("txnB", "b0", "19"), a.commit("txnB"), a.commit("txnA")),
		with("not-joined", "Shared", a.begin("txnB", long), b.ackIn(1, "txnB", "m0"), a.commit("txnB")),
		with("unknown", "Shared", b.ackIn(1, "txnNone", "m0"), b.redeliver(1, "")),
		with("drop", "Shared", b.ackIn(1, "txnA", "m0 m1"), b.drop(), b.subscribe(1, "t", "s", "Shared", ""), b.flow(1, 100), a.abort("txnA")),
		with("drop-commit", "Shared", b.ackIn(1, "txnA", "m0 m1"), b.drop(), b.subscribe(1, "t", "s", "Shared", ""), b.flow(1, 100), a.commit("txnA")),
	}
}
