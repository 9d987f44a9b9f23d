package main

import (
	"slices"
	"time"
)

// compacted are about topics that are compacted, and who reads them so.
func compacted() []program {
	const now = " read_compacted:true"
	fill := []step{a.producer(1, "t", ""), a.keyed(1, "x", "m0"), a.keyed(1, "y", "m1"), a.keyed(1, "x", "m2"), a.keyed(1, "z", "m3"), a.valueless(1, "y", "m4"), a.keyed(1, "w", "m5")}
	with := func(name string, steps ...step) program {
		return program{name: "compact-" + name, steps: slices.Concat(fill, steps)}
	}
	read := func(more string) step { return b.subscribe(1, "t", "r", "Exclusive", fromStart+more) }
	return inFull([]program{
		with("not-yet", read(now), b.lastID(1), b.flow(1, 100), a.keyed(1, "x", "m6")),
		with("once", compact("t"), read(now), b.lastID(1), b.flow(1, 100), a.keyed(1, "x", "m6"), b.leave(1), read(""), b.lastID(1), b.flow(1, 100)),
		with("again", compact("t"), a.keyed(1, "x", "m6"), a.keyed(1, "q", "m7"), read(now), b.lastID(1), b.flow(1, 100), b.leave(1), compact("t"), read(now), b.lastID(1), b.flow(1, 100), b.leave(1), a.valueless(1, "q", "m8"), compact("t"), read(now), b.lastID(1), b.flow(1, 100)),
		with("while-read", b.subscribe(1, "t", "r", "Exclusive", fromStart+now), b.flow(1, 2), compact("t"), b.flow(1, 1), b.flow(1, 9), a.keyed(1, "x", "m6")),
		with("last-gone", a.valueless(1, "w", "m6"), compact("t"), read(now), b.lastID(1), b.flow(1, 100), a.keyed(1, "w", "m7"), b.lastID(1)),
		with("all-gone", a.valueless(1, "x", "m6"), a.valueless(1, "z", "m7"), a.valueless(1, "w", "m8"), compact("t"), read(now), b.lastID(1), b.flow(1, 100), b.leave(1), read(""), b.lastID(1), b.flow(1, 100), a.keyed(1, "x", "m9"), b.lastID(1)),
		with("empty-value", a.hollow(1, "x", "m6", "uncompressed_size:0"), a.hollow(1, "q", "m7", "uncompressed_size:0"), compact("t"), read(now), b.lastID(1), b.flow(1, 100)),
		with("null-unsaid", a.hollow(1, "x", "m6", "null_value:true"), a.hollow(1, "z", "m7", ""), compact("t"), read(now), b.lastID(1), b.flow(1, 100)),
		with("null-with-value", a.send(1, "m6", "", `partition_key:"x" null_value:true`), compact("t"), read(now), b.lastID(1), b.flow(1, 100)),
		with("no-keys", a.publish(1, "m6 m7"), compact("t"), read(now), b.lastID(1), b.flow(1, 100)),
		with("batches", a.keyedBatch(1, "b0", "x y x -z _"), a.keyed(1, "y", "m6"), a.keyedBatch(1, "b1", "q r -q"), a.keyedBatch(1, "b2", "r"), a.keyedBatch(1, "b3", "-r -r"), compact("t"), read(now), b.lastID(1), b.flow(1, 100), b.leave(1), read(""), b.lastID(1), b.flow(1, 100)),
		with("batch-last", a.keyedBatch(1, "b0", "x y -x"), compact("t"), read(now), b.lastID(1), b.flow(1, 100), a.publish(1, "m6"), b.lastID(1)),
		with("batch-last-gone", a.keyedBatch(1, "b0", "-x -x"), compact("t"), read(now), b.lastID(1), b.flow(1, 100)),
		with("durable", b.subscribe(1, "t", "s", "Exclusive", earliest+now), b.flow(1, 3), b.ack(1, "m0 m1"), compact("t"), b.drop(), b.subscribe(1, "t", "s", "Exclusive", now), b.lastID(1), b.flow(1, 100), b.cumulative(1, "m5"), b.lastID(1), figures("t", "subscriptions/s/msgBacklog")),
		with("failover", compact("t"), b.subscribe(1, "t", "s", "Failover", earliest+now).later(change), b.flow(1, 100), b.redeliver(1, "").later(change)),
		with("start-gone", compact("t"), b.subscribe(1, "t", "r", "Exclusive", "durable:false start_message_id{$m1}"+now), b.flow(1, 9), b.leave(1), b.subscribe(1, "t", "r", "Exclusive", "durable:false start_message_id{$m5}"+now), b.flow(1, 9)),
		with("start-latest", compact("t"), b.subscribe(1, "t", "r", "Exclusive", "durable:false start_message_id{"+last+"}"+now), b.lastID(1), b.flow(1, 9), a.keyed(1, "x", "m6")),
		with("seek", compact("t"), read(now), b.lastID(1), b.flow(1, 100), b.seek(1, "$m0"), read(now), b.lastID(1), b.flow(1, 100), b.seek(1, "$m3"), b.subscribe(1, "t", "r", "Exclusive", fromStart+now), b.flow(1, 100), b.seekTime(1, 4), b.subscribe(1, "t", "r", "Exclusive", fromStart+now), b.flow(1, 100)),
		with("permits", compact("t"), b.subscribe(1, "t", "r", "Exclusive", fromStart+now), b.flow(1, 1), b.flow(1, 1), b.redeliver(1, ""), b.flow(1, 2), b.flow(1, 9)),
		with("unloaded", compact("t"), a.drop(), admin("PUT", "/admin/v2/persistent/{ns}/{p}-t/unload", ""), a.producer(1, "t", "").later(time.Second), read(now), b.lastID(1), b.flow(1, 100), a.keyed(1, "x", "m6"), b.lastID(1)),
		{name: "compact-empty", steps: []step{a.producer(1, "t", ""), compact("t"), b.subscribe(1, "t", "r", "Exclusive", fromStart+now), b.lastID(1), b.flow(1, 9), a.keyed(1, "x", "m0")}},
		{name: "compact-missing", steps: []step{compact("t"), admin("GET", "/admin/v2/persistent/{ns}/{p}-t/compaction", "")}},
		{name: "compact-refused", steps: []step{a.producer(1, "t", ""), a.subscribe(1, "t", "s", "Shared", now), a.subscribe(2, "t", "s", "Key_Shared", now), a.subscribe(3, "t", "s", "Exclusive", now)}},
	}, "compact-once")
}
