package main

// acknowledging are about acknowledgements of whole entries.
func acknowledging() []program {
	four := []step{a.producer(1, "t", ""), b.subscribe(1, "t", "s", "Exclusive", earliest), b.flow(1, 100), a.publish(1, "m0 m1 m2 m3")}
	again := []step{b.redeliver(1, ""), b.lastID(1), b.drop(), b.subscribe(1, "t", "s", "Exclusive", ""), b.flow(1, 100), figures("t", "subscriptions/s/msgBacklog")}
	with := func(name string, steps ...step) program {
		return program{name: name, steps: append(append(append([]step{}, four...), steps...), again...)}
	}
	return []program{
		with("ack", b.ack(1, "m1"), b.lastID(1), b.ack(1, "m0 m3"), b.lastID(1)),
		with("ack-cumulative", b.cumulative(1, "m1"), b.cumulative(1, "m0"), b.lastID(1)),
		with("ack-both", b.ack(1, "m2"), b.cumulative(1, "m1"), b.lastID(1), b.ack(1, "m3")),
		with("ack-again", b.ack(1, "m1"), b.ack(1, "m1"), b.cumulative(1, "m1"), b.ack(1, "m0")),
		with("ack-odd", b.answered("ACK", "consumer_id:1 ack_type:Individual request_id:{r}"),
			b.answered("ACK", "consumer_id:1 ack_type:Cumulative request_id:{r}"), b.cumulative(1, "m0 m1"),
			b.ack(1, "m0+50"), b.ack(1, "m0-2"), b.answered("ACK", "consumer_id:1 ack_type:Individual request_id:{r} message_id{ledgerId:99999999 entryId:4}"),
			b.answered("ACK", "consumer_id:1 ack_type:Individual request_id:{r} message_id{"+first+"}")),
		with("ack-beyond", b.cumulative(1, "m3+7"), b.lastID(1)),
		with("ack-before", b.cumulative(1, "m0-1"), b.lastID(1)),
		with("ack-invalid", b.answered("ACK", "consumer_id:1 ack_type:Individual request_id:{r} validation_error:BatchDeSerializeError message_id{$m0}")),
		with("ack-unanswered", b.acked(1, "Individual", "m0 m1 m2", ""), b.say("PING", "")),
		with("ack-then-leave", together(b.acked(1, "Cumulative", "m2", ""), b.leave(1)), b.subscribe(1, "t", "s", "Exclusive", ""), b.flow(1, 9)),
		with("ack-properties", b.answered("ACK", "consumer_id:1 ack_type:Individual request_id:{r} message_id{$m0} properties{key:\"k\" value:1}")),
	}
}

// batchAcks are about acknowledgements of parts of batches.
func batchAcks() []program {
	start := func(kind string) []step {
		return []step{a.producer(1, "t", ""), b.subscribe(1, "t", "s", kind, earliest), b.flow(1, 1000), a.batch(1, "b0", 10, "", ""), a.publish(1, "m0"), a.batch(1, "b1", 70, "", "")}
	}
	again := func(kind string) []step {
		return []step{b.drop(), b.subscribe(1, "t", "s", kind, ""), b.flow(1, 1000), b.stats(1), b.lastID(1), figures("t", "subscriptions/s/msgBacklog")}
	}
	with := func(name, kind string, steps ...step) program {
		return program{name: name, steps: append(append(start(kind), steps...), again(kind)...)}
	}
	return []program{
		with("parts", "Exclusive", b.partly(1, "Individual", "b0", "988"), b.redeliver(1, ""), b.partly(1, "Individual", "b0", "3"), b.partly(1, "Individual", "b0", "1020")),
		with("parts-shared", "Shared", b.partly(1, "Individual", "b0", "988"), b.stats(1), b.redeliver(1, ""), b.stats(1), b.redeliver(1, "b0"), b.ack(1, "b0"), b.stats(1)),
		with("parts-count", "Shared", b.redeliver(1, "b0"), b.redeliver(1, "b0"), b.partly(1, "Individual", "b0", "988"), b.redeliver(1, "b0")),
		with("parts-words", "Shared", b.partly(1, "Individual", "b1", "0 32"), b.stats(1), b.partly(1, "Individual", "b1", "-1"), b.stats(1)),
		with("parts-words-missing", "Shared", b.partly(1, "Individual", "b1", "255"), b.redeliver(1, "b1")),
		with("parts-cumulative", "Exclusive", b.partly(1, "Cumulative", "b0", "1008"), b.lastID(1), b.redeliver(1, ""), b.partly(1, "Cumulative", "b1", "-4 63"), b.lastID(1), b.redeliver(1, "")),
		with("parts-cumulative-back", "Exclusive", b.partly(1, "Cumulative", "b0", "1008"), b.partly(1, "Cumulative", "b0", "1022"), b.redeliver(1, "")),
		with("parts-all", "Shared", b.partly(1, "Individual", "b0", "682"), b.partly(1, "Individual", "b0", "341"), b.redeliver(1, "")),
		with("parts-of-single", "Shared", b.partly(1, "Individual", "m0", "1"), b.redeliver(1, "m0"), b.partly(1, "Individual", "m0", "0"), b.redeliver(1, "")),
		with("parts-empty-set", "Exclusive", b.partly(1, "Individual", "b0", "0"), b.redeliver(1, "")),
		with("parts-permits", "Shared", b.partly(1, "Individual", "b1", "0 32"), b.leave(1), b.subscribe(1, "t", "s", "Shared", ""), b.flow(1, 12), b.flow(1, 1)),
		with("parts-keys", "Key_Shared", b.partly(1, "Individual", "b0", "988"), b.redeliver(1, "")),
		with("parts-failover-reconnect", "Exclusive", b.partly(1, "Individual", "b0", "988"), b.leave(1), b.subscribe(1, "t", "s", "Shared", ""), b.flow(1, 1000), b.leave(1)),
	}
}

// redelivering are about what comes again on a subscription with one reader, and about epochs.
func redelivering() []program {
	four := []step{a.producer(1, "t", ""), b.subscribe(1, "t", "s", "Exclusive", earliest+" consumer_epoch:0"), b.flow(1, 100), a.publish(1, "m0 m1 m2 m3")}
	with := func(name string, steps ...step) program {
		return program{name: name, steps: append(append([]step{}, four...), steps...)}
	}
	again := func(more string) step { return b.say("REDELIVER_UNACKNOWLEDGED_MESSAGES", "consumer_id:1 "+more) }
	return []program{
		with("redeliver-epoch", again("consumer_epoch:1"), b.ack(1, "m1"), again("consumer_epoch:3"), again("consumer_epoch:2"), again(""), a.publish(1, "m4")),
		with("redeliver-list-ignored", b.redeliver(1, "m2"), b.ack(1, "m0 m2"), b.redeliver(1, "m0")),
		with("redeliver-permits", b.leave(1), b.subscribe(1, "t", "s", "Exclusive", ""), b.flow(1, 2), b.redeliver(1, ""), b.flow(1, 2), b.redeliver(1, ""), b.flow(1, 9)),
		with("redeliver-nothing", b.cumulative(1, "m3"), b.redeliver(1, ""), a.publish(1, "m4")),
		{name: "epoch-shared", steps: []step{
			a.producer(1, "t", ""), b.subscribe(1, "t", "s", "Shared", earliest+" consumer_epoch:4"), b.flow(1, 100), a.publish(1, "m0 m1"),
			again("consumer_epoch:5"), again("consumer_epoch:6 message_ids{$m0}"),
		}},
		{name: "epoch-later", steps: []step{
			a.producer(1, "t", ""), b.subscribe(1, "t", "s", "Exclusive", earliest), b.flow(1, 100), a.publish(1, "m0 m1"),
			again("consumer_epoch:5"), again("consumer_epoch:6"), a.publish(1, "m2"),
		}},
	}
}

// permits are about how much is sent.
func permits() []program {
	return []program{
		{name: "permits-none", steps: []step{a.producer(1, "t", ""), b.subscribe(1, "t", "s", "Exclusive", earliest), a.publish(1, "m0"), b.stats(1)}},
		{name: "permits-one-by-one", steps: []step{
			a.producer(1, "t", ""), b.subscribe(1, "t", "s", "Exclusive", earliest), a.publish(1, "m0 m1 m2"), b.flow(1, 1), b.flow(1, 1), b.stats(1), b.flow(1, 1), b.flow(1, 1), a.publish(1, "m3 m4"), b.stats(1),
		}},
		{name: "permits-batches", steps: []step{
			a.producer(1, "t", ""), b.subscribe(1, "t", "s", "Exclusive", earliest), b.flow(1, 1), a.batch(1, "b0", 10, "", ""), a.batch(1, "b1", 10, "", ""), b.stats(1), b.flow(1, 9), b.stats(1), b.flow(1, 1), b.stats(1),
		}},
		{name: "permits-shared-one-by-one", steps: []step{
			a.producer(1, "t", ""), b.subscribe(1, "t", "s", "Shared", earliest), a.publish(1, "m0 m1 m2"), b.flow(1, 1), b.redeliver(1, "m0"), b.flow(1, 1), b.stats(1),
		}},
		{name: "permits-large", steps: []step{
			a.producer(1, "t", ""), b.subscribe(1, "t", "s", "Exclusive", earliest), b.flow(1, 2147483647), b.flow(1, 2147483647), a.publish(1, "m0"), b.stats(1),
		}},
		{name: "permits-after-reconnect", steps: []step{
			a.producer(1, "t", ""), b.subscribe(1, "t", "s", "Exclusive", earliest), b.flow(1, 100), a.publish(1, "m0 m1"), b.drop(), b.subscribe(1, "t", "s", "Exclusive", earliest), a.publish(1, "m2"), b.stats(1), b.flow(1, 1),
		}},
	}
}
