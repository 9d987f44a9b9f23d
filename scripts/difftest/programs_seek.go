package main

import (
	"slices"
	"strings"
	"time"
)

// seeking are about cursors that are set.
func seeking() []program {
	const b1 = 1
	start := func(kind string) []step {
		return []step{a.producer(1, "t", ""), b.subscribe(b1, "t", "s", kind, earliest), b.flow(b1, 100), a.publish(1, "m0 m1"), a.batch(1, "b0", 5, "", ""), a.publish(1, "m2 m3")}
	}
	again := func(kind string) []step {
		return []step{b.subscribe(b1, "t", "s", kind, ""), b.lastID(b1), b.flow(b1, 100), b.stats(b1), figures("t", "subscriptions/s/msgBacklog")}
	}
	with := func(name, kind string, steps ...step) program {
		return program{name: "seek-" + name, steps: slices.Concat(start(kind), steps, again(kind))}
	}
	return []program{
		with("id", "Exclusive", b.seek(1, "$m1")),
		with("id-forward", "Exclusive", b.seek(1, "$m2")),
		with("id-acked", "Exclusive", b.cumulative(1, "m3"), b.ack(1, "m3"), b.seek(1, "$m0")),
		with("earliest", "Exclusive", b.cumulative(1, "m3"), b.seek(1, first)),
		with("latest", "Exclusive", b.seek(1, last)),
		with("beyond", "Exclusive", b.seek(1, "$m3+5")),
		with("far-beyond", "Exclusive", b.seek(1, "ledgerId:999999999 entryId:0")),
		with("next", "Exclusive", b.seek(1, "$m3+1")),
		with("before", "Exclusive", b.seek(1, "$m0-1")),
		with("old-ledger", "Exclusive", b.cumulative(1, "m3"), b.seek(1, "ledgerId:0 entryId:0")),
		with("into-batch", "Exclusive", b.seek(1, "$b0 ack_set:28")),
		with("into-batch-index", "Exclusive", b.seek(1, "$b0 batch_index:3 batch_size:5")),
		with("time", "Exclusive", b.seekTime(1, 3)),
		with("time-start", "Exclusive", b.cumulative(1, "m3"), b.seekTime(1, -1000)),
		with("time-end", "Exclusive", b.seekTime(1, 1000)),
		with("time-last", "Exclusive", b.seekTime(1, 5)),
		with("shared", "Shared", b.redeliver(1, "m0"), b.ack(1, "m1"), b.seek(1, "$m0")),
		with("shared-forward", "Shared", b.seek(1, "$m2")),
		with("keys", "Key_Shared", b.ack(1, "m0 m1"), b.seek(1, "$m1")),
		with("parts", "Exclusive", b.partly(1, "Individual", "b0", "28"), b.seek(1, "$m1")),
		with("parts-shared", "Shared", b.partly(1, "Individual", "b0", "28"), b.seek(1, "$m1")),
		with("parts-shared-itself", "Shared", b.partly(1, "Individual", "b0", "28"), b.seek(1, "$b0")),
		with("parts-shared-earliest", "Shared", b.partly(1, "Individual", "b0", "28"), b.seek(1, first)),
		with("parts-keys", "Key_Shared", b.partly(1, "Individual", "b0", "28"), b.seek(1, "$m1")),
		with("parts-cumulative", "Exclusive", b.partly(1, "Cumulative", "b0", "28"), b.seek(1, "$m1")),
		with("parts-time", "Exclusive", b.partly(1, "Individual", "b0", "28"), b.seekTime(1, 1)),
	}
}

// seekingOdd are about seeks that meet something.
func seekingOdd() []program {
	begin := []step{a.producer(1, "t", ""), b.subscribe(1, "t", "s", "Exclusive", earliest), b.flow(1, 100), a.publish(1, "m0 m1 m2")}
	with := func(name string, steps ...step) program {
		return program{name: "seek-" + name, steps: append(append([]step{}, begin...), steps...)}
	}
	sub := b.subscribe(1, "t", "s", "Exclusive", "")
	return []program{
		with("nowhere", b.say("SEEK", "consumer_id:1"), b.flow(1, 1), a.publish(1, "m3")),
		with("unknown-consumer", b.say("SEEK", "consumer_id:9 message_id{$m0}")),
		with("twice", together(b.seek(1, "$m1"), b.seek(1, "$m0")), sub, b.flow(1, 9)),
		with("then-subscribe", together(b.seek(1, "$m1"), b.subscribe(1, "t", "s", "Exclusive", ""))),
		with("then-flow", b.seek(1, "$m1"), b.flow(1, 9), b.acked(1, "Individual", "m1", ""), sub, b.flow(1, 9)),
		with("after-acks", together(b.acked(1, "Cumulative", "m2", ""), b.seek(1, "$m1")), sub, b.flow(1, 9)),
		with("then-drop", b.seek(1, "$m2"), b.drop(), sub, b.flow(1, 9)),
		with("both", b.say("SEEK", "consumer_id:1 message_id{$m1} message_publish_time:1"), sub, b.flow(1, 9)),
		{name: "seek-shared-all", steps: []step{
			a.producer(1, "t", ""), b.subscribe(1, "t", "s", "Shared", earliest), c.subscribe(1, "t", "s", "Shared", ""), b.flow(1, 9), a.publish(1, "m0 m1"), c.seek(1, "$m0"),
			b.subscribe(1, "t", "s", "Shared", ""), b.flow(1, 9),
		}},
		{name: "seek-empty", steps: []step{
			a.subscribe(1, "t", "s", "Exclusive", ""), a.seek(1, first), a.subscribe(1, "t", "s", "Exclusive", ""), a.lastID(1), a.say("SEEK", "consumer_id:1 message_publish_time:5"),
			a.subscribe(1, "t", "s", "Exclusive", ""), a.lastID(1),
		}},
	}
}

// readers are about subscriptions that do not outlive their consumers.
func readers() []program {
	begin := []step{a.producer(1, "t", ""), a.publish(1, "m0 m1"), a.batch(1, "b0", 5, "", ""), a.publish(1, "m2")}
	with := func(name string, steps ...step) program {
		return program{name: "reader-" + name, steps: append(append([]step{}, begin...), steps...)}
	}
	read := func(more string) []step {
		return []step{b.subscribe(1, "t", "r", "Exclusive", reader+" "+more), b.lastID(1), b.flow(1, 100), a.publish(1, "m3")}
	}
	at := func(position string) []step { return read("start_message_id{" + position + "}") }
	return []program{
		with("earliest", at(first)...),
		with("latest", at(last)...),
		with("without-start", read("")...),
		with("id", at("$m1")...),
		with("id-batch", at("$b0 batch_index:3 ack_set:24")...),
		with("id-last", at("$m2")...),
		with("ledger-start", at("$m0-1")...),
		with("next", at("$m2+1")...),
		with("next-earliest", read("start_message_id{$m2+1} initialPosition:Earliest")...),
		with("beyond", at("$m2+7")...),
		with("beyond-earliest", read("start_message_id{$m2+7} initialPosition:Earliest")...),
		with("latest-earliest", read("start_message_id{"+last+"} initialPosition:Earliest")...),
		with("old-ledger", at("ledgerId:0 entryId:5")...),
		with("acks", b.subscribe(1, "t", "r", "Exclusive", fromStart), b.flow(1, 3), b.cumulative(1, "m1"), b.lastID(1), b.leave(1), b.subscribe(1, "t", "r", "Exclusive", fromStart), b.flow(1, 1)),
		with("seek", b.subscribe(1, "t", "r", "Exclusive", fromStart), b.flow(1, 3), b.seek(1, "$b0"), b.subscribe(1, "t", "r", "Exclusive", fromStart), b.lastID(1), b.flow(1, 9)),
		with("seek-time", b.subscribe(1, "t", "r", "Exclusive", reader), b.flow(1, 3), b.seekTime(1, 2), b.subscribe(1, "t", "r", "Exclusive", reader), b.lastID(1), b.flow(1, 9)),
		with("shared", b.subscribe(1, "t", "r", "Shared", fromStart), c.subscribe(1, "t", "r", "Shared", fromStart), b.flow(1, 2), c.flow(1, 100), b.drop(), c.ack(1, "m0")),
		with("busy", b.subscribe(1, "t", "r", "Exclusive", fromStart), c.subscribe(1, "t", "r", "Exclusive", fromStart)),
		with("gone", b.subscribe(1, "t", "r", "Exclusive", fromStart), figures("t", "subscriptions/r/isDurable"), b.leave(1), figures("t", "subscriptions/r/isDurable")),
		with("unsubscribe", b.subscribe(1, "t", "r", "Exclusive", fromStart), b.unsubscribe(1, ""), b.flow(1, 1), b.say("PING", "")),
		with("compacted", b.subscribe(1, "t", "r", "Exclusive", fromStart+" read_compacted:true"), b.flow(1, 100), b.lastID(1)),
	}
}

// lastIDs are about the end of a topic.
func lastIDs() []program {
	return []program{
		{name: "last-id", steps: []step{
			a.producer(1, "t", ""), b.subscribe(1, "t", "s", "Exclusive", ""), b.lastID(1), a.publish(1, "m0"), b.lastID(1), a.batch(1, "b0", 5, "", ""), b.lastID(1), a.batch(1, "b1", 1, "", ""), b.lastID(1),
			b.flow(1, 9), b.ack(1, "m0"), b.lastID(1), b.cumulative(1, "b0"), b.lastID(1), b.cumulative(1, "b1"), b.lastID(1),
		}},
		{name: "last-id-unknown-consumer", steps: []step{a.lastID(9)}},
		{name: "last-id-reader-empty", steps: []step{a.subscribe(1, "t", "r", "Exclusive", fromStart), a.lastID(1), a.leave(1), a.subscribe(1, "t", "r", "Exclusive", reader), a.lastID(1)}},
		{name: "last-id-late-subscription", steps: []step{a.producer(1, "t", ""), a.publish(1, "m0 m1"), b.subscribe(1, "t", "s", "Exclusive", ""), b.lastID(1), b.subscribe(2, "t", "u", "Exclusive", earliest), b.lastID(2)}},
		{name: "last-id-unloaded", steps: []step{
			a.producer(1, "t", ""), a.publish(1, "m0 m1"), b.subscribe(1, "t", "s", "Exclusive", earliest), b.flow(1, 9), b.cumulative(1, "m1"), b.drop(), a.drop(),
			admin("PUT", "/admin/v2/persistent/{ns}/{p}-t/unload", ""), b.subscribe(1, "t", "s", "Exclusive", "").later(time.Second), b.lastID(1), b.seek(1, first), b.subscribe(1, "t", "s", "Exclusive", ""),
			b.lastID(1), b.flow(1, 9),
		}},
		{name: "last-id-trimmed", setting: "trimmed", steps: []step{
			a.producer(1, "t", ""), b.subscribe(1, "t", "s", "Exclusive", earliest), a.publish(1, "m0 m1"), b.flow(1, 9), b.cumulative(1, "m1").later(3 * time.Second), b.drop(), a.drop(),
			admin("PUT", "/admin/v2/persistent/{ns}/{p}-t/unload", "").later(time.Second), b.subscribe(1, "t", "s", "Exclusive", "").later(time.Second), b.lastID(1),
			b.seek(1, first), b.subscribe(1, "t", "s", "Exclusive", ""), b.lastID(1), b.flow(1, 9), c.subscribe(1, "t", "r", "Exclusive", fromStart), c.lastID(1), c.flow(1, 9),
			a.producer(1, "t", ""), a.publish(1, "m2"), b.lastID(1),
		}},
		{name: "last-id-shared", steps: []step{a.producer(1, "t", ""), a.publish(1, "m0 m1 m2"), b.subscribe(1, "t", "s", "Shared", earliest), b.flow(1, 9), b.ack(1, "m1 m2"), b.lastID(1), b.ack(1, "m0"), b.lastID(1)}},
	}
}

// unsubscribing are about the end of a subscription.
func unsubscribing() []program {
	two := func(kind string) []step {
		return []step{a.producer(1, "t", ""), b.subscribe(1, "t", "s", kind, earliest+` consumer_name:"one" priority_level:1`), c.subscribe(1, "t", "s", kind, `consumer_name:"two"`).later(change)}
	}
	return []program{
		{name: "unsubscribe", steps: []step{
			a.producer(1, "t", ""), b.subscribe(1, "t", "s", "Exclusive", earliest), b.flow(1, 9), a.publish(1, "m0"), b.unsubscribe(1, ""), figures("t", "subscriptions/s/type"), b.leave(1), b.flow(1, 5),
			b.subscribe(1, "t", "s", "Exclusive", ""), b.flow(1, 9), b.leave(1), b.unsubscribe(1, ""),
		}},
		{name: "unsubscribe-shared", steps: append(two("Shared"), b.unsubscribe(1, ""), c.leave(1), b.unsubscribe(1, ""))},
		{name: "unsubscribe-failover", steps: append(two("Failover"), b.unsubscribe(1, ""), c.unsubscribe(1, ""), c.leave(1).later(change), b.unsubscribe(1, ""))},
		{name: "unsubscribe-force", steps: append(two("Shared"), b.unsubscribe(1, "force:true"), figures("t", "subscriptions/s/type"), c.subscribe(1, "t", "s", "Shared", ""), b.subscribe(1, "t", "s", "Shared", ""))},
		{name: "unsubscribe-force-alone", steps: []step{b.subscribe(1, "t", "s", "Exclusive", ""), b.unsubscribe(1, "force:true"), b.unsubscribe(1, "force:true")}},
		{name: "unsubscribe-unknown", steps: []step{a.unsubscribe(9, ""), a.unsubscribe(9, "force:true")}},
		{name: "unsubscribe-reserved", steps: []step{a.subscribe(1, "t", "s", "Key_Shared", ""), a.unsubscribe(1, ""), a.subscribe(1, "t", "s", "Exclusive", ""), a.lastID(1)}},
	}
}

// consumerStats are about CONSUMER_STATS.
func consumerStats() []program {
	of := func(kind string) program {
		return program{name: "stats-of-" + strings.ToLower(strings.ReplaceAll(kind, "_", "-")), steps: []step{
			a.producer(1, "t", ""), b.subscribe(1, "t", "s", kind, earliest+` consumer_name:"one"`).later(change), b.stats(1), b.flow(1, 10), a.publish(1, "m0 m1"), a.batch(1, "b0", 4, "", ""), b.stats(1),
			b.ack(1, "m0"), b.stats(1), b.redeliver(1, ""), b.stats(1),
		}}
	}
	return []program{
		of("Exclusive"), of("Shared"), of("Failover"), of("Key_Shared"),
		{name: "stats-unnamed", steps: []step{a.subscribe(1, "t", "s", "Shared", ""), a.stats(1)}},
		{name: "stats-unknown-consumer", steps: []step{a.stats(9), a.say("PING", "")}},
	}
}
