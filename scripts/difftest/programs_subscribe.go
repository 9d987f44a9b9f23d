package main

import (
	"fmt"
	"strings"
	"time"
)

// sequence lists labels.
func sequence(prefix string, n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("%s%d", prefix, i))
	}
	return strings.Join(all, " ")
}

// subscribing are about making consumers.
func subscribing() []program {
	return []program{
		{name: "subscribe-latest", steps: []step{
			a.producer(1, "t", ""), a.publish(1, "m0 m1"), b.subscribe(1, "t", "s", "Exclusive", ""), b.flow(1, 9), a.publish(1, "m2"),
		}},
		{name: "subscribe-positions-stay", steps: []step{
			a.producer(1, "t", ""), a.publish(1, "m0 m1 m2"), b.subscribe(1, "t", "s", "Exclusive", earliest), b.flow(1, 9), b.ack(1, "m0"), b.leave(1),
			b.subscribe(2, "t", "s", "Shared", ""), b.flow(2, 9), b.drop(), b.subscribe(3, "t", "s", "Failover", earliest), b.flow(3, 9).later(1300 * time.Millisecond),
		}},
		{name: "subscribe-same-id", steps: []step{
			a.subscribe(1, "t", "s", "Shared", ""), a.subscribe(1, "u", "other", "Exclusive", ""), a.producer(1, "t", ""), a.flow(1, 5), a.publish(1, "m0"),
		}},
		{name: "subscribe-cancelled", steps: []step{
			together(a.subscribe(1, "t", "s", "Exclusive", ""), a.leave(1)).unanswered(), b.subscribe(1, "t", "s", "Exclusive", ""),
		}},
		{name: "subscribe-at-once", steps: []step{
			together(a.subscribe(1, "t", "s", "Shared", ""), a.subscribe(2, "t", "s", "Shared", ""), a.subscribe(3, "u", "s", "Exclusive", "")),
			a.producer(1, "u", ""), a.flow(3, 2), a.publish(1, "m0"),
		}},
		{name: "subscribe-properties", steps: []step{
			a.subscribe(1, "t", "s", "Shared", `metadata{key:"k" value:"v"} consumer_name:"n" subscription_properties{key:"x" value:"y"} replicate_subscription_state:true`),
			figures("t", "subscriptions/s/subscriptionProperties/x", "subscriptions/s/consumers/0/metadata/k", "subscriptions/s/consumers/0/consumerName", "subscriptions/s/type"),
			a.subscribe(2, "t", "s", "Shared", `subscription_properties{key:"x" value:"z"}`), figures("t", "subscriptions/s/subscriptionProperties/x"),
		}},
		{name: "subscribe-rollback", steps: []step{
			a.producer(1, "t", ""), a.publish(1, "m0 m1"), b.subscribe(1, "t", "s", "Exclusive", "start_message_rollback_duration_sec:60"), b.flow(1, 9),
			b.subscribe(2, "t", "r", "Exclusive", reader+" start_message_rollback_duration_sec:60"), b.flow(2, 9),
		}},
		{name: "subscribe-odd-names", steps: []step{
			a.subscribe(1, "t", "a/b", "Exclusive", ""), a.subscribe(2, "t", "__compaction", "Exclusive", ""), a.subscribe(3, "t", "ü %41", "Exclusive", ""),
		}},
		{name: "subscribe-type-changes", steps: []step{
			a.subscribe(1, "t", "s", "Shared", ""), b.subscribe(1, "t", "s", "Key_Shared", ""), a.leave(1), b.subscribe(2, "t", "s", "Key_Shared", ""),
			b.leave(2), b.subscribe(3, "t", "s", "Exclusive", ""),
		}},
		{name: "close-consumer-unknown", steps: []step{a.leave(9)}},
	}
}

// refusedSubscribes are about consumers that are not made.
func refusedSubscribes() []program {
	long := strings.Repeat("x", 1100)
	return []program{
		{name: "subscribe-busy", steps: []step{
			a.subscribe(1, "t", "s", "Exclusive", ""), b.subscribe(1, "t", "s", "Exclusive", ""), b.subscribe(2, "t", "s", "Shared", ""),
			b.subscribe(3, "t", "s", "Failover", ""), a.subscribe(2, "t", "s", "Exclusive", ""), a.drop(), b.subscribe(4, "t", "s", "Exclusive", ""),
		}},
		{name: "subscribe-empty-name", steps: []step{a.subscribe(1, "t", "", "Exclusive", "")}},
		{name: "subscribe-reserved-name", steps: []step{a.subscribe(1, "t", "pulsar.dedup", "Exclusive", ""), a.subscribe(2, "t", "pulsar.repl.x", "Shared", "")}},
		{name: "subscribe-no-topic", steps: []step{
			a.subscribe(1, "t", "s", "Exclusive", "force_topic_creation:false"), a.producer(1, "t", ""), a.subscribe(2, "t", "s", "Exclusive", "force_topic_creation:false"),
		}},
		{name: "subscribe-metadata-too-large", steps: []step{a.subscribe(1, "t", "s", "Exclusive", fmt.Sprintf("metadata{key:\"k\" value:%q}", long))}},
		{name: "subscribe-durable-clash", steps: []step{
			a.subscribe(1, "t", "s", "Exclusive", ""), b.subscribe(1, "t", "s", "Exclusive", fromStart), a.leave(1), b.subscribe(2, "t", "s", "Exclusive", fromStart),
			b.subscribe(3, "t", "r", "Shared", fromStart), a.subscribe(2, "t", "r", "Shared", ""),
		}},
		{name: "subscribe-compacted-shared", steps: []step{a.subscribe(1, "t", "s", "Shared", "read_compacted:true")}},
		{name: "flow-zero", steps: []step{a.subscribe(1, "t", "s", "Exclusive", ""), a.flow(1, 0)}},
		{name: "flow-unknown", steps: []step{a.flow(9, 10), a.say("REDELIVER_UNACKNOWLEDGED_MESSAGES", "consumer_id:9"), a.say("PING", "")}},
		{name: "ack-unknown-consumer", steps: []step{
			a.say("ACK", "consumer_id:9 ack_type:Individual request_id:5 message_id{ledgerId:1 entryId:1}").unanswered(), a.say("PING", ""),
		}},
	}
}

// sharing are about how Shared deals entries out.
func sharing() []program {
	two := []step{a.producer(1, "t", ""), b.subscribe(1, "t", "s", "Shared", `consumer_name:"one" `+earliest), c.subscribe(1, "t", "s", "Shared", `consumer_name:"two"`)}
	with := func(name string, steps ...step) program {
		return program{name: name, steps: append(append([]step{}, two...), steps...)}
	}
	chunk := func(label, uuid, n string) step {
		return a.send(1, label, "sequence_id:3 is_chunk:true", `uuid:"`+uuid+`" chunk_id:`+n+` num_chunks_from_msg:3 total_chunk_msg_size:4`)
	}
	return []program{
		with("shared-turns", b.flow(1, 100), c.flow(1, 100), a.publish(1, "m0"), a.publish(1, "m1"), a.publish(1, "m2"), a.publish(1, "m3")),
		with("shared-dealt-anew", a.subscribe(1, "t", "s", "Shared", ""), a.flow(1, 200), a.publish(1, sequence("m", 90)), together(b.flow(1, 500), c.flow(1, 500)), a.leave(1)),
		with("shared-dealt-anew-uneven", a.subscribe(1, "t", "s", "Shared", ""), a.flow(1, 200), a.publish(1, sequence("m", 90)), together(b.flow(1, 5), c.flow(1, 500)), a.leave(1), b.flow(1, 5)),
		with("shared-backlog-uneven", a.publish(1, sequence("m", 30)), b.flow(1, 5), c.flow(1, 12), b.flow(1, 3), c.flow(1, 100)),
		with("shared-one-without-permits", b.flow(1, 2), a.publish(1, "m0 m1 m2 m3"), c.flow(1, 1), b.flow(1, 1)),
		with("shared-batches", b.flow(1, 3), a.batch(1, "b0", 5, "", ""), a.batch(1, "b1", 5, "", ""), b.flow(1, 2), b.flow(1, 1), b.stats(1)),
		with("shared-chunks", b.flow(1, 100), c.flow(1, 100), chunk("c0", "u", "0"), chunk("d0", "v", "0"), chunk("c1", "u", "1"), chunk("d1", "v", "1"), chunk("c2", "u", "2"), chunk("d2", "v", "2")),
		with("shared-chunk-without-first", b.flow(1, 100), chunk("c1", "u", "1"), a.publish(1, "m0")),
	}
}

// sharedReturns are about entries that come back to a Shared subscription.
func sharedReturns() []program {
	two := []step{
		a.producer(1, "t", ""), b.subscribe(1, "t", "s", "Shared", `consumer_name:"one" `+earliest), b.flow(1, 100), a.publish(1, "m0 m1 m2 m3"),
		c.subscribe(1, "t", "s", "Shared", `consumer_name:"two"`),
	}
	with := func(name string, steps ...step) program {
		return program{name: name, steps: append(append([]step{}, two...), steps...)}
	}
	return []program{
		with("shared-leave", c.flow(1, 100), b.ack(1, "m1"), b.leave(1)),
		with("shared-drop", c.flow(1, 100), b.ack(1, "m1"), b.drop()),
		with("shared-leave-waits", b.leave(1), c.flow(1, 1), c.flow(1, 2), c.flow(1, 9)),
		with("shared-last-leaves", b.redeliver(1, "m0 m1"), b.redeliver(1, "m0"), c.leave(1), b.leave(1), c.subscribe(2, "t", "s", "Shared", ""), c.flow(2, 9)),
		with("shared-counts-move", b.redeliver(1, "m0 m1"), b.redeliver(1, "m0"), c.flow(1, 100), b.leave(1)),
		with("shared-redeliver-foreign", c.flow(1, 100), c.redeliver(1, "m0"), b.ack(1, "m1"), b.redeliver(1, "m1 m2"), b.redeliver(1, "")),
		with("shared-redeliver-all", b.leave(1), c.flow(1, 9), c.ack(1, "m2"), c.redeliver(1, ""), c.redeliver(1, ""), c.redeliver(1, "m0"), c.redeliver(1, "m0")),
		with("shared-ack-foreign", c.ack(1, "m0"), b.stats(1), b.redeliver(1, ""), b.stats(1)),
		with("shared-replay-first", b.redeliver(1, "m3 m0"), b.flow(1, 2), a.publish(1, "m4"), b.redeliver(1, "m1 m2 m0")),
		with("shared-replay-before-new", b.leave(1), a.publish(1, "m4 m5"), c.flow(1, 3), c.redeliver(1, "m1"), c.flow(1, 1), c.flow(1, 9)),
		with("shared-cumulative", b.cumulative(1, "m2"), b.leave(1), c.flow(1, 9)),
	}
}

// priorities are about levels of consumers.
func priorities() []program {
	return []program{
		{name: "shared-priority", steps: []step{
			a.producer(1, "t", ""), b.subscribe(1, "t", "s", "Shared", `priority_level:1 consumer_name:"low"`), c.subscribe(1, "t", "s", "Shared", `priority_level:0 consumer_name:"high"`),
			b.flow(1, 100), c.flow(1, 3), a.publish(1, "m0"), a.publish(1, "m1"), a.publish(1, "m2"), a.publish(1, "m3"), a.publish(1, "m4"), c.flow(1, 1), a.publish(1, "m5"), a.publish(1, "m6"),
		}},
		{name: "shared-priority-turns", steps: []step{
			a.producer(1, "t", ""), b.subscribe(1, "t", "s", "Shared", `priority_level:2`), c.subscribe(1, "t", "s", "Shared", `priority_level:1`), c.subscribe(2, "t", "s", "Shared", `priority_level:1`),
			b.flow(1, 100), c.flow(1, 100), c.flow(2, 100), a.publish(1, "m0"), a.publish(1, "m1"), a.publish(1, "m2"), c.leave(1), c.leave(2), a.publish(1, "m3"),
		}},
	}
}

// limits are about unacknowledged messages: 50,000 of a consumer, in 51 batches of a thousand.
func limits() []program {
	var fill []step
	for i := range 52 {
		fill = append(fill, a.batch(1, fmt.Sprintf("b%d", i), 1000, "", ""))
	}
	return []program{
		{name: "unacked-limit", steps: []step{
			a.producer(1, "t", ""), b.subscribe(1, "t", "s", "Shared", ""), b.flow(1, 100000), together(fill...), b.flow(1, 10), b.stats(1),
			b.ack(1, sequence("b", 24)), b.ack(1, "b24"), b.stats(1), b.redeliver(1, "b30"), b.stats(1),
		}},
		{name: "unacked-limit-nack", steps: []step{
			a.producer(1, "t", ""), b.subscribe(1, "t", "s", "Shared", ""), b.flow(1, 100000), together(fill...), b.redeliver(1, "b3"), b.stats(1),
		}},
		{name: "unacked-limit-other", steps: []step{
			a.producer(1, "t", ""), b.subscribe(1, "t", "s", "Shared", ""), b.flow(1, 100000), together(fill...), c.subscribe(1, "t", "s", "Shared", ""), c.flow(1, 100000), b.drop(),
		}},
		{name: "unacked-no-limit", steps: []step{
			a.producer(1, "t", ""), b.subscribe(1, "t", "s", "Exclusive", ""), b.flow(1, 100000), together(fill...), b.stats(1),
		}},
	}
}
