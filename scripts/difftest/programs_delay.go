package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// expandTimes puts the milliseconds since 1970 of so many from now in the place of {in N}.
func (w *world) expandTimes(text string) string {
	return regexp.MustCompile(`\{in (-?\d+)\}`).ReplaceAllStringFunc(text, func(s string) string {
		n, _ := strconv.ParseInt(s[len("{in "):len(s)-1], 10, 64)
		return fmt.Sprint(time.Now().UnixMilli() + n)
	})
}

// afterwards sends one message that is to be delivered so many milliseconds later.
func (c conn) afterwards(id int, label string, ms int) step {
	return c.send(id, label, "", fmt.Sprintf("deliver_at_time:{in %d}", ms))
}

const (
	// soon is when a message becomes due in programs about delays, in ms: the real broker may be a second early, and
	// the steps before must be through by then.
	soon = 4000
	// due is how long to listen for it. The real broker looks each second.
	due = 6500 * time.Millisecond
)

// delayed are about messages that are to come later.
func delayed() []program {
	to := func(kind string) []step {
		return []step{a.producer(1, "t", ""), b.subscribe(1, "t", "s", kind, earliest), b.flow(1, 100)}
	}
	with := func(name, kind string, steps ...step) program {
		return program{name: "delay-" + name, steps: slices.Concat(to(kind), steps)}
	}
	three := together(a.afterwards(1, "d0", soon), a.publish(1, "m0"), a.afterwards(1, "d1", soon))
	wait := a.say("PING", "").later(due)
	return inFull([]program{
		with("shared", "Shared", three, b.stats(1), b.lastID(1), figures("t", "subscriptions/s/msgBacklog", "subscriptions/s/msgDelayed"), wait, b.stats(1), figures("t", "subscriptions/s/msgBacklog", "subscriptions/s/msgDelayed")),
		with("keys", "Key_Shared", three, b.stats(1), wait),
		with("exclusive", "Exclusive", three),
		with("failover", "Failover", b.say("PING", "").later(change), three, figures("t", "subscriptions/s/msgDelayed")),
		with("past", "Shared", a.afterwards(1, "d0", -5000), a.publish(1, "m0"), a.send(1, "d1", "", "deliver_at_time:0"), a.send(1, "d2", "", "deliver_at_time:-1"), a.send(1, "d3", "", "deliver_at_time:1")),
		with("order", "Shared", together(a.afterwards(1, "d0", soon+4000), a.afterwards(1, "d1", soon), a.publish(1, "m0")), wait, wait),
		with("ack-before", "Shared", three, b.ack(1, "d0"), b.ack(1, "m0"), b.lastID(1), wait),
		with("ack-after", "Shared", three, wait, b.ack(1, "d0"), b.redeliver(1, ""), b.ack(1, "d1 m0"), b.redeliver(1, ""), figures("t", "subscriptions/s/msgBacklog")),
		with("redeliver-before", "Shared", three, b.redeliver(1, "m0"), b.redeliver(1, ""), wait),
		with("redeliver-foreign", "Shared", three, b.redeliver(1, "d0 d1"), wait, b.redeliver(1, "d1")),
		with("drop", "Shared", three, b.drop(), b.subscribe(1, "t", "s", "Shared", ""), b.flow(1, 100), wait),
		with("leave-before-due", "Shared", three, c.subscribe(1, "t", "s", "Shared", ""), c.flow(1, 100), b.leave(1), wait),
		with("absent-when-due", "Shared", three, b.drop(), wait, b.subscribe(1, "t", "s", "Shared", ""), b.flow(1, 100)),
		with("permits", "Shared", b.leave(1), b.subscribe(1, "t", "s", "Shared", ""), together(a.afterwards(1, "d0", soon), a.publish(1, "m0 m1")), b.flow(1, 1), b.stats(1), wait, b.flow(1, 1), b.flow(1, 1)),
		with("batch", "Shared", together(a.batch(1, "b0", 3, "", "deliver_at_time:{in 4000}"), a.publish(1, "m0")), figures("t", "subscriptions/s/msgDelayed"), wait, b.partly(1, "Individual", "b0", "6"), b.redeliver(1, "")),
		with("seek", "Shared", three, b.ack(1, "m0"), b.seek(1, "$d0"), b.subscribe(1, "t", "s", "Shared", ""), b.flow(1, 100), wait),
		with("unloaded", "Shared", three, a.drop(), b.drop(), admin("PUT", "/admin/v2/persistent/{ns}/{p}-t/unload", ""), b.subscribe(1, "t", "s", "Shared", "").later(500*time.Millisecond), b.flow(1, 100), wait),
		with("becomes-exclusive", "Shared", three, b.leave(1), b.subscribe(1, "t", "s", "Exclusive", ""), b.flow(1, 100)),
		with("far", "Shared", a.send(1, "d0", "", "deliver_at_time:9223372036854775807"), a.publish(1, "m0"), figures("t", "subscriptions/s/msgDelayed")),
	}, "delay-past")
}
