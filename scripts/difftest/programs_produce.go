package main

import "time"

// producing are about creating and closing producers.
func producing() []program {
	return []program{
		{name: "produce", steps: []step{
			a.producer(1, "t", ""), a.publish(1, "m0 m1 m2 m3 m4"),
			b.subscribe(1, "t", "s", "Exclusive", earliest), b.flow(1, 10), b.ack(1, "m0 m1 m2 m3 m4"),
			a.publish(1, "m5"), a.closeProducer(1), b.leave(1),
		}},
		{name: "producer-names", steps: []step{
			a.producer(1, "t", `producer_name:"p"`), b.producer(1, "t", `producer_name:"p"`),
			a.producer(2, "t", `producer_name:"p"`), b.producer(2, "t", `producer_name:"q"`), b.producer(3, "u", `producer_name:"p"`),
			a.closeProducer(1), b.producer(4, "t", `producer_name:"p"`),
		}},
		{name: "producer-successor", steps: []step{
			a.producer(1, "t", `producer_name:"p" user_provided_producer_name:false`), a.publish(1, "m0"),
			a.producer(1, "t", `producer_name:"p" epoch:1 user_provided_producer_name:false`), a.publish(1, "m1"),
			a.producer(2, "t", `producer_name:"p" epoch:2 user_provided_producer_name:false`),
			b.producer(1, "t", `producer_name:"p" epoch:3 user_provided_producer_name:false`),
		}},
		{name: "producer-same-id", steps: []step{
			a.producer(1, "t", `producer_name:"p"`), a.producer(1, "u", `producer_name:"q"`), a.publish(1, "m0"),
			a.closeProducer(1), a.producer(1, "u", `producer_name:"q"`),
		}},
		{name: "producer-id-zero", steps: []step{
			a.producer(0, "t", ""), a.publish(0, "m0 m1"), a.subscribe(0, "t", "s", "Shared", earliest), a.flow(0, 5),
			a.ack(0, "m0"), a.leave(0), a.closeProducer(0),
		}},
		{name: "producer-empty-name", steps: []step{a.producer(1, "t", `producer_name:""`)}},
		{name: "producer-cancelled", steps: []step{
			together(a.producer(1, "t", `producer_name:"p"`), a.closeProducer(1)).unanswered(), b.producer(1, "t", `producer_name:"p"`),
		}},
		{name: "producer-at-once", steps: []step{
			together(a.producer(1, "t", ""), a.producer(2, "u", ""), a.producer(3, "t", "")), a.publish(2, "m0"),
		}},
		{name: "producer-send-before-answer", steps: []step{together(a.producer(1, "t", ""), a.publish(1, "m0"))}},
		{name: "producer-unknown", steps: []step{a.publish(7, "m0")}},
		{name: "producer-closed", steps: []step{a.producer(1, "t", ""), a.closeProducer(1), a.publish(1, "m0")}},
		{name: "close-producer-unknown", steps: []step{a.closeProducer(7)}},
		{name: "close-producer-behind-sends", steps: []step{
			a.producer(1, "t", ""), together(a.publish(1, "m0 m1 m2 m3 m4 m5 m6 m7 m8 m9"), a.closeProducer(1)),
		}},
		{name: "producer-drop", steps: []step{
			a.producer(1, "t", `producer_name:"p"`), a.publish(1, "m0"), a.drop(), b.producer(1, "t", `producer_name:"p"`), b.publish(1, "m1"),
			b.subscribe(1, "t", "s", "Exclusive", earliest), b.flow(1, 9),
		}},
		{name: "producer-initial-subscription", steps: []step{
			a.producer(1, "t", `initial_subscription_name:"s"`), a.publish(1, "m0 m1"),
			b.subscribe(1, "t", "s", "Shared", ""), b.flow(1, 5),
			a.producer(2, "u", `initial_subscription_name:""`), figures("u", "subscriptions/s/msgBacklog"),
		}},
		{name: "producer-figures", steps: []step{
			a.producer(1, "t", `producer_name:"p" metadata{key:"k" value:"v"}`), a.publish(1, "m0 m1"),
			figures("t", "publishers/0/producerName", "publishers/0/metadata/k", "publishers/0/accessMode", "publishers/0/producerId", "msgInCounter"),
		}},
	}
}

// sending are about what is stored and receipted.
func sending() []program {
	return []program{
		{name: "send-batches", steps: []step{
			a.producer(1, "t", ""), a.batch(1, "b0", 5, "", ""), a.publish(1, "m0"), a.batch(1, "b1", 1, "", ""), a.batch(1, "b2", 4, "highest_sequence_id:11", "highest_sequence_id:11"),
			b.subscribe(1, "t", "s", "Exclusive", earliest), b.flow(1, 100), b.lastID(1),
		}},
		{name: "send-batches-few-permits", steps: []step{
			a.producer(1, "t", ""), a.batch(1, "b0", 5, "", ""), a.batch(1, "b1", 5, "", ""), a.publish(1, "m0"),
			b.subscribe(1, "t", "s", "Exclusive", earliest), b.flow(1, 3), b.flow(1, 7), b.flow(1, 5),
		}},
		{name: "send-chunks", steps: []step{
			a.producer(1, "t", ""),
			together(
				a.send(1, "c0", "sequence_id:0 is_chunk:true", `uuid:"u" chunk_id:0 num_chunks_from_msg:3 total_chunk_msg_size:6`),
				a.send(1, "c1", "sequence_id:0 is_chunk:true", `uuid:"u" chunk_id:1 num_chunks_from_msg:3 total_chunk_msg_size:6`),
				a.send(1, "c2", "sequence_id:0 is_chunk:true", `uuid:"u" chunk_id:2 num_chunks_from_msg:3 total_chunk_msg_size:6`)),
			a.publish(1, "m0"),
			b.subscribe(1, "t", "s", "Exclusive", earliest), b.flow(1, 2), b.flow(1, 5), b.lastID(1), b.cumulative(1, "c2"), b.lastID(1),
		}},
		{name: "send-fields", steps: []step{
			a.producer(1, "t", ""),
			a.send(1, "m0", "", `properties{key:"k" value:"v"} partition_key:"key" ordering_key:"o" event_time:5 null_value:true`),
			a.send(1, "m1", "", `compression:ZSTD uncompressed_size:100 schema_version:"00000000"`),
			a.send(1, "m2", "", `encryption_keys{key:"k" value:"v"} encryption_algo:"AES" encryption_param:"123"`),
			a.send(1, "m3", "num_messages:7", ""), a.send(1, "m4", "sequence_id:99", "sequence_id:5"),
			b.subscribe(1, "t", "s", "Exclusive", earliest), b.flow(1, 3), b.flow(1, 3), figures("t", "subscriptions/s/msgBacklog", "msgInCounter"),
		}},
		{name: "send-sequences", steps: []step{
			a.producer(1, "t", ""), a.send(1, "m0", "sequence_id:10", ""), a.send(1, "m1", "sequence_id:5", ""),
			a.send(1, "m2", "sequence_id:5", ""), a.send(1, "m3", "sequence_id:20 highest_sequence_id:7", ""),
			a.send(1, "m4", "sequence_id:18446744073709551615", ""),
			b.subscribe(1, "t", "s", "Exclusive", earliest), b.flow(1, 9),
		}},
		{name: "send-same-bytes", steps: []step{
			a.producer(1, "t", ""), a.send(1, "m0", "sequence_id:1", "publish_time:1"), a.send(1, "m0x", "sequence_id:1", "publish_time:1"),
			b.subscribe(1, "t", "s", "Exclusive", earliest), b.flow(1, 9),
		}},
		{name: "send-marker", steps: []step{
			a.producer(1, "t", ""), a.publish(1, "m0"), a.send(1, "x0", "marker:true", "marker_type:10"), a.publish(1, "m1"),
			b.subscribe(1, "t", "s", "Exclusive", earliest), b.flow(1, 9), b.cumulative(1, "m1"), b.lastID(1), figures("t", "subscriptions/s/msgBacklog"),
		}},
		{name: "send-many", steps: []step{
			a.producer(1, "t", ""), a.subscribe(1, "t", "s", "Exclusive", ""), a.flow(1, 1000), a.publish(1, sequence("m", 300)), a.cumulative(1, "m299"),
		}},
		{name: "send-empty", steps: []step{
			a.producer(1, "t", ""), a.entryBytes(1, "m0", "", "00000007 0a017010001801"), b.subscribe(1, "t", "s", "Exclusive", earliest), b.flow(1, 9),
		}},
	}
}

// refusedSends are about what is not stored.
func refusedSends() []program {
	look := []step{b.subscribe(1, "t", "s", "Exclusive", earliest), b.flow(1, 9)}
	with := func(name string, steps ...step) program {
		return program{name: name, steps: append(append([]step{a.producer(1, "t", "")}, steps...), look...)}
	}
	return []program{
		with("send-bad-checksum", a.publish(1, "m0"), a.entryBytes(1, "m1", "", "0e01 00000000 00000007 0a017010001801 68"), a.publish(1, "m2")),
		with("send-without-checksum", a.entryBytes(1, "m0", "", "00000007 0a017010001801 68656c6c6f"), a.publish(1, "m1")),
		with("send-bad-metadata", a.entryBytes(1, "m0", "", "00000003 ffffff 68656c6c6f"), a.publish(1, "m1")),
		with("send-short-metadata", a.entryBytes(1, "m0", "", "000000ff 0a017010001801 68656c6c6f"), a.publish(1, "m1")),
		with("send-nothing", a.entryBytes(1, "m0", "", ""), a.publish(1, "m1")),
		with("send-message-id", a.send(1, "m0", "message_id{ledgerId:1 entryId:1}", ""), a.publish(1, "m1")),
		with("send-count-of-none", a.send(1, "m0", "num_messages:0", ""), a.send(1, "m1", "num_messages:-3", ""), a.publish(1, "m2")),
	}
}

// accessModes are about producers that do not share.
func accessModes() []program {
	const exclusive, wait, fencing = "producer_access_mode:Exclusive", "producer_access_mode:WaitForExclusive", "producer_access_mode:ExclusiveWithFencing"
	return []program{
		{name: "access-exclusive", steps: []step{
			a.producer(1, "t", exclusive+` producer_name:"p"`), b.producer(1, "t", ""), b.producer(2, "t", exclusive), b.producer(3, "t", `producer_name:"p"`),
			a.publish(1, "m0"), a.closeProducer(1), b.producer(4, "t", exclusive), b.closeProducer(4), b.producer(5, "t", ""),
		}},
		{name: "access-exclusive-over-shared", steps: []step{
			a.producer(1, "t", ""), b.producer(1, "t", exclusive), a.closeProducer(1), b.producer(2, "t", exclusive), b.publish(2, "m0"),
		}},
		{name: "access-wait", steps: []step{
			a.producer(1, "t", exclusive), b.producer(1, "t", wait), c.producer(1, "t", wait), c.producer(2, "t", ""),
			a.closeProducer(1), b.publish(1, "m0"), b.drop(), c.publish(1, "m1"), c.closeProducer(1),
		}},
		{name: "access-wait-behind-shared", steps: []step{
			a.producer(1, "t", ""), b.producer(1, "t", wait), a.producer(2, "t", ""), a.closeProducer(1), b.publish(1, "m0"),
		}},
		{name: "access-wait-given-up", steps: []step{
			a.producer(1, "t", exclusive), b.producer(1, "t", wait), c.producer(1, "t", wait), b.closeProducer(1), a.drop(), c.publish(1, "m0"),
		}},
		{name: "access-fencing", steps: []step{
			a.producer(1, "t", exclusive), a.publish(1, "m0"), b.producer(1, "t", fencing), b.publish(1, "m1"), c.producer(1, "t", exclusive),
		}},
		{name: "access-fencing-shared", steps: []step{
			a.producer(1, "t", ""), a.producer(2, "t", ""), b.producer(1, "t", fencing), b.publish(1, "m0"),
		}},
		{name: "access-fencing-waiters", steps: []step{
			a.producer(1, "t", exclusive), b.producer(1, "t", wait), c.producer(1, "t", fencing), c.publish(1, "m0"),
		}},
	}
}

// epochs are about the epoch of a topic's exclusive producer.
func epochs() []program {
	const exclusive, wait = "producer_access_mode:Exclusive ", "producer_access_mode:WaitForExclusive "
	return []program{
		{name: "epoch-moved", steps: []step{
			a.producer(1, "t", exclusive), a.closeProducer(1), a.producer(2, "t", exclusive), a.closeProducer(2),
			a.producer(3, "t", exclusive+"topic_epoch:0"), a.producer(4, "t", exclusive+"topic_epoch:1"), a.closeProducer(4),
			a.producer(5, "t", exclusive+"topic_epoch:7"), a.closeProducer(5), a.producer(6, "t", exclusive),
		}},
		{name: "epoch-of-shared", steps: []step{
			a.producer(1, "t", exclusive), a.closeProducer(1), a.producer(2, "t", "topic_epoch:0"), a.publish(2, "m0"),
		}},
		{name: "epoch-of-waiter", steps: []step{
			a.producer(1, "t", exclusive), b.producer(1, "t", wait+"topic_epoch:0"), a.closeProducer(1), b.publish(1, "m0"),
		}},
	}
}

// deduplicated are about messages that are sent again.
func deduplicated() []program {
	const p = `producer_name:"p"`
	chunk := func(label, n string) step {
		return a.send(1, label, "sequence_id:3 is_chunk:true", p+` uuid:"u" chunk_id:`+n+` num_chunks_from_msg:2 total_chunk_msg_size:4`)
	}
	look := []step{b.subscribe(1, "t", "s", "Exclusive", earliest), b.flow(1, 99)}
	with := func(name string, steps ...step) program {
		return program{name: name, setting: "dedup", steps: append(append([]step{a.producer(1, "t", p)}, steps...), look...)}
	}
	return []program{
		with("dedup", a.send(1, "m0", "sequence_id:0", p), a.send(1, "m1", "sequence_id:1", p), a.send(1, "m1x", "sequence_id:1", p),
			a.send(1, "m0x", "sequence_id:0", p), a.send(1, "m5", "sequence_id:5", p), a.send(1, "m3", "sequence_id:3", p)),
		with("dedup-batches", a.batch(1, "b0", 3, "sequence_id:14 highest_sequence_id:16", p+"sequence_id:14 highest_sequence_id:16"),
			a.batch(1, "b1", 3, "sequence_id:16 highest_sequence_id:18", p+"sequence_id:16 highest_sequence_id:18"),
			a.batch(1, "b2", 3, "sequence_id:17 highest_sequence_id:19", p+"sequence_id:17 highest_sequence_id:19"),
			a.batch(1, "b3", 3, "sequence_id:19", p)),
		with("dedup-batches-first-id", a.batch(1, "b0", 3, "sequence_id:0", p), a.batch(1, "b1", 3, "sequence_id:1", p), a.batch(1, "b2", 3, "sequence_id:1", p)),
		with("dedup-chunks", a.send(1, "m0", "sequence_id:0", p), chunk("c0", "0"), chunk("c1", "1"), chunk("c0x", "0"), chunk("c1x", "1"), a.send(1, "m4", "sequence_id:4", p)),
		with("dedup-reconnect", a.send(1, "m7", "sequence_id:7", p), a.closeProducer(1), c.producer(1, "t", p), c.send(1, "m7x", "sequence_id:7", p),
			c.send(1, "m8", "sequence_id:8", p), c.drop(), c.producer(1, "t", p)),
		with("dedup-names", c.producer(1, "t", `producer_name:"q"`), a.send(1, "m5", "sequence_id:5", p), c.send(1, "m4", "sequence_id:4", `producer_name:"q"`)),
		with("dedup-pipelined", together(a.send(1, "m0", "sequence_id:0", p), a.send(1, "m0x", "sequence_id:0", p), a.send(1, "m1", "sequence_id:1", p)).later(300*time.Millisecond)),
	}
}
