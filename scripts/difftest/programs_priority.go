package main

// levels are about consumers of higher and lower levels, beyond whose turn it is.
func levels() []program {
	sub := func(c conn, id int, kind, level string) step {
		return c.subscribe(id, "t", "s", kind, "priority_level:"+level)
	}
	one := func(labels ...string) step {
		var all []step
		for _, l := range labels {
			all = append(all, a.publish(1, l))
		}
		return together(all...)
	}
	return inFull([]program{
		{name: "level-backlog", steps: []step{
			a.producer(1, "t", ""), admin("PUT", "/admin/v2/persistent/{ns}/{p}-t/subscription/s", ""), a.publish(1, sequence("m", 12)), sub(b, 1, "Shared", "1"), sub(c, 1, "Shared", "0"), b.flow(1, 4), c.flow(1, 5), c.flow(1, 1), b.flow(1, 9),
		}},
		{name: "level-returns", steps: []step{
			a.producer(1, "t", ""), sub(b, 1, "Shared", "1"), sub(c, 1, "Shared", "0"), c.flow(1, 2), b.flow(1, 9), a.publish(1, "m0"), a.publish(1, "m1"), a.publish(1, "m2"), a.publish(1, "m3"), b.redeliver(1, "m2"), c.flow(1, 9), b.redeliver(1, ""), c.redeliver(1, "m0"), b.leave(1),
		}},
		{name: "level-leaves", steps: []step{
			a.producer(1, "t", ""), sub(b, 1, "Shared", "2"), sub(c, 1, "Shared", "0"), sub(c, 2, "Shared", "1"), b.flow(1, 99), c.flow(1, 99), c.flow(2, 99), a.publish(1, "m0"), c.leave(1), a.publish(1, "m1"), c.leave(2), a.publish(1, "m2"),
		}},
		{name: "level-joins", steps: []step{
			a.producer(1, "t", ""), sub(b, 1, "Shared", "5"), b.flow(1, 99), a.publish(1, "m0"), sub(c, 1, "Shared", "3"), a.publish(1, "m1"), c.flow(1, 1), a.publish(1, "m2"), a.publish(1, "m3"), sub(c, 2, "Shared", "0"), c.flow(2, 1), a.publish(1, "m4"), a.publish(1, "m5"),
		}},
		{name: "level-negative", steps: []step{
			a.producer(1, "t", ""), sub(b, 1, "Shared", "0"), sub(c, 1, "Shared", "-1"), b.flow(1, 99), c.flow(1, 99), a.publish(1, "m0"), a.publish(1, "m1"), sub(c, 2, "Shared", "-2147483648"), c.flow(2, 9), a.publish(1, "m2"),
		}},
		{name: "level-keys", steps: []step{
			a.producer(1, "t", ""), b.subscribe(1, "t", "s", "Key_Shared", `consumer_name:"one" priority_level:1`), c.subscribe(1, "t", "s", "Key_Shared", `consumer_name:"two"`), b.flow(1, 99), c.flow(1, 99),
			together(a.keyed(1, "a", "a0"), a.keyed(1, "order-42", "o0"), a.keyed(1, "key-1", "k0")),
		}},
		{name: "level-burst", steps: []step{
			a.producer(1, "t", ""), sub(b, 1, "Shared", "1"), sub(c, 1, "Shared", "0"), b.flow(1, 99), c.flow(1, 3), one("m0", "m1", "m2", "m3", "m4", "m5"), c.flow(1, 2), one("m6", "m7", "m8"),
		}},
		{name: "level-failover-negative", steps: []step{
			a.producer(1, "t", ""), b.subscribe(1, "t", "s", "Failover", `consumer_name:"one"`).later(change), c.subscribe(1, "t", "s", "Failover", `consumer_name:"two" priority_level:-3`).later(change), b.flow(1, 9), c.flow(1, 9), a.publish(1, "m0"),
		}},
	})
}
