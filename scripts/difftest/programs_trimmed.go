package main

import (
	"slices"
	"time"
)

// trimmed are about readers that ask whether more is to come, on topics of which the beginning or all is gone.
func trimmed() []program {
	const path = "/admin/v2/persistent/{ns}/{p}-t/"
	// The real broker drops a ledger when the topic is loaded the next time, Wayside when it looks.
	unload := []step{a.drop(), b.drop(), admin("PUT", path+"unload", "").later(time.Second), a.producer(1, "t", "").later(2 * time.Second)}
	fill := []step{a.producer(1, "t", ""), b.subscribe(1, "t", "s", "Exclusive", earliest), b.flow(1, 100), a.publish(1, "m0 m1"), a.batch(1, "b0", 5, "", "")}
	with := func(name string, steps ...step) program {
		return program{name: "trim-" + name, setting: "trimmed", steps: slices.Concat(fill, []step{b.cumulative(1, "b0").later(2 * time.Second)}, unload, steps)}
	}
	return inFull([]program{
		with("reader", c.subscribe(1, "t", "r", "Exclusive", fromStart), c.lastID(1), c.flow(1, 9), c.lastID(1), a.publish(1, "m2"), c.lastID(1), c.cumulative(1, "m2"), c.lastID(1)),
		with("reader-latest", c.subscribe(1, "t", "r", "Exclusive", "durable:false start_message_id{"+last+"}"), c.lastID(1), c.flow(1, 9), a.publish(1, "m2"), c.lastID(1)),
		with("reader-gone", c.subscribe(1, "t", "r", "Exclusive", "durable:false start_message_id{$m1}"), c.lastID(1), c.flow(1, 9), a.publish(1, "m2"), c.lastID(1)),
		with("reader-before-more", a.publish(1, "m2 m3"), c.subscribe(1, "t", "r", "Exclusive", "durable:false start_message_id{$m1}"), c.lastID(1), c.flow(1, 9), c.lastID(1), c.subscribe(2, "t", "q", "Exclusive", fromStart), c.lastID(2), c.flow(2, 9)),
		with("new-subscription", c.subscribe(1, "t", "u", "Exclusive", earliest), c.lastID(1), c.flow(1, 9), c.subscribe(2, "t", "v", "Shared", ""), c.lastID(2), c.flow(2, 9), a.batch(1, "b1", 3, "", ""), c.lastID(1), c.lastID(2)),
		with("seek", c.subscribe(1, "t", "r", "Exclusive", fromStart), c.seek(1, "$m0"), c.subscribe(1, "t", "r", "Exclusive", fromStart), c.lastID(1), c.flow(1, 9), a.publish(1, "m2"), c.lastID(1), c.seekTime(1, 1), c.subscribe(1, "t", "r", "Exclusive", fromStart), c.lastID(1), c.flow(1, 9)),
		with("acks-of-gone", b.subscribe(1, "t", "s", "Exclusive", ""), b.ack(1, "m0"), b.cumulative(1, "m1"), b.partly(1, "Individual", "b0", "28"), a.publish(1, "m2"), b.flow(1, 9), b.lastID(1)),
		with("figures", figures("t", "subscriptions/s/msgBacklog", "msgInCounter"), a.publish(1, "m2"), figures("t", "subscriptions/s/msgBacklog")),
	})
}
