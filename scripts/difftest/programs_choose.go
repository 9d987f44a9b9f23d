package main

import "time"

// change is how long a Failover subscription may take to tell of its choice.
const change = 1400 * time.Millisecond

// failovers are about the choice of the active consumer.
func failovers() []program {
	sub := func(c conn, name, more string) step {
		return c.subscribe(1, "t", "s", "Failover", `consumer_name:"`+name+`" `+more)
	}
	part := func(c conn, topic, name, more string) step {
		return c.subscribe(1, topic, "s", "Failover", `consumer_name:"`+name+`" `+more)
	}
	return []program{
		{name: "failover-alone", steps: []step{
			a.producer(1, "t", ""), a.publish(1, "m0"), sub(b, "one", earliest).later(change), b.flow(1, 9), b.ack(1, "m0"), a.publish(1, "m1"), b.redeliver(1, ""),
		}},
		{name: "failover-priority", steps: []step{
			a.producer(1, "t", ""), sub(b, "one", "priority_level:1").later(change), b.flow(1, 9), a.publish(1, "m0"),
			sub(c, "two", "priority_level:0").later(change), c.flow(1, 9).later(change), a.publish(1, "m1"), c.leave(1).later(change), a.publish(1, "m2"),
		}},
		{name: "failover-standby", steps: []step{
			a.producer(1, "t", ""), sub(b, "one", "").later(change), sub(c, "two", "priority_level:1").later(change), c.flow(1, 9), b.flow(1, 9), a.publish(1, "m0 m1"),
			b.ack(1, "m0"), c.leave(1).later(change), sub(c, "two", "priority_level:1").later(change), c.flow(1, 9), b.drop().later(change), c.ack(1, "m1"),
		}},
		{name: "failover-standby-acks", steps: []step{
			a.producer(1, "t", ""), sub(b, "one", "").later(change), sub(c, "two", "priority_level:1").later(change), b.flow(1, 9), c.flow(1, 9), a.publish(1, "m0 m1"),
			c.ack(1, "m0"), c.redeliver(1, ""), b.redeliver(1, ""), c.stats(1), b.stats(1),
		}},
		{name: "failover-seek-standby", steps: []step{
			a.producer(1, "t", ""), sub(b, "one", "").later(change), sub(c, "two", "priority_level:1").later(change), b.flow(1, 9), a.publish(1, "m0 m1"), b.cumulative(1, "m1"),
			c.seek(1, "$m0").later(change), sub(b, "one", "").later(change), b.flow(1, 9).later(change),
		}},
		{name: "failover-even", steps: []step{
			admin("PUT", "/admin/v2/persistent/{ns}/{p}-t/partitions", "2"), a.producer(1, "t-partition-0", ""),
			part(b, "t-partition-0", "b", "").later(change), part(c, "t-partition-0", "a", "").later(change), b.flow(1, 9), c.flow(1, 9).later(change), a.publish(1, "m0"),
			c.drop().later(change),
		}},
		{name: "failover-odd", steps: []step{
			admin("PUT", "/admin/v2/persistent/{ns}/{p}-t/partitions", "2"), a.producer(1, "t-partition-1", ""),
			part(b, "t-partition-1", "b", "").later(change), part(c, "t-partition-1", "a", "").later(change), b.flow(1, 9), c.flow(1, 9).later(change), a.publish(1, "m0"),
			part(a, "t-partition-1", "c", "").later(change), b.drop().later(change), a.flow(1, 9), a.publish(1, "m1"),
		}},
		{name: "failover-odd-priority", steps: []step{
			admin("PUT", "/admin/v2/persistent/{ns}/{p}-t/partitions", "2"),
			part(b, "t-partition-1", "b", "priority_level:1").later(change), part(c, "t-partition-1", "a", "").later(change), part(a, "t-partition-1", "c", "").later(change),
		}},
	}
}

// keyShared are about keys that are split by themselves.
func keyShared() []program {
	sub := func(c conn, name, more string) step {
		return c.subscribe(1, "t", "s", "Key_Shared", `consumer_name:"`+name+`" `+more)
	}
	// "a" has slot 27058, "order-42" 41358, "key-1" 5536.
	keys := func(n string) step {
		return together(a.keyed(1, "a", "a"+n), a.keyed(1, "order-42", "o"+n), a.keyed(1, "key-1", "k"+n))
	}
	return []program{
		{name: "keys-split", steps: []step{
			a.producer(1, "t", ""), sub(b, "one", ""), sub(c, "two", ""), b.flow(1, 99), c.flow(1, 99), keys("0"), keys("1"), a.publish(1, "none"),
			a.send(1, "x0", "", `ordering_key:"order-42" partition_key:"key-1"`), a.send(1, "x1", "", `partition_key:"a2V5LTE=" partition_key_b64_encoded:true`),
			a.send(1, "x2", "sequence_id:77", `producer_name:"q"`), a.batch(1, "b0", 3, "", `partition_key:"order-42"`),
		}},
		{name: "keys-join-waits", steps: []step{
			a.producer(1, "t", ""), sub(b, "one", earliest), b.flow(1, 99), keys("0"), sub(c, "two", ""), c.flow(1, 99), keys("1"),
			b.ack(1, "a0"), b.ack(1, "k0"), b.ack(1, "o0"), keys("2"),
		}},
		{name: "keys-leave", steps: []step{
			a.producer(1, "t", ""), sub(b, "one", ""), sub(c, "two", ""), b.flow(1, 99), c.flow(1, 99), keys("0"), keys("1"), c.ack(1, "k0"), c.leave(1), keys("2"),
		}},
		{name: "keys-join-leave", steps: []step{
			a.producer(1, "t", ""), sub(b, "one", ""), b.flow(1, 99), keys("0"), sub(c, "two", ""), c.flow(1, 99), keys("1"), b.drop(), keys("2"),
		}},
		{name: "keys-blocked-owner", steps: []step{
			a.producer(1, "t", ""), sub(b, "one", ""), sub(c, "two", ""), c.flow(1, 99), keys("0"), keys("1"), b.flow(1, 1), b.flow(1, 99),
		}},
		{name: "keys-redelivered", steps: []step{
			a.producer(1, "t", ""), sub(b, "one", ""), sub(c, "two", ""), b.flow(1, 99), c.flow(1, 99), keys("0"), keys("1"), c.redeliver(1, "k0"), c.redeliver(1, ""), c.ack(1, "a0 k0"), c.redeliver(1, ""),
		}},
		{name: "keys-out-of-order", steps: []step{
			a.producer(1, "t", ""), sub(b, "one", "keySharedMeta{keySharedMode:AUTO_SPLIT allowOutOfOrderDelivery:true}"), b.flow(1, 99), keys("0"),
			sub(c, "two", "keySharedMeta{keySharedMode:AUTO_SPLIT allowOutOfOrderDelivery:true}"), c.flow(1, 99), keys("1"), sub(a, "three", ""),
		}},
		{name: "keys-three", steps: []step{
			a.producer(1, "t", ""), sub(b, "one", ""), sub(c, "two", ""), sub(a, "three", ""), a.flow(1, 99), b.flow(1, 99), c.flow(1, 99), keys("0"), b.drop(), keys("1"), c.drop(), keys("2"),
		}},
		{name: "keys-cumulative", steps: []step{
			a.producer(1, "t", ""), sub(b, "one", ""), b.flow(1, 99), keys("0"), b.cumulative(1, "k0"), b.redeliver(1, ""),
		}},
	}
}

// sticky are about ranges of keys that consumers ask for.
func sticky() []program {
	sub := func(c conn, id int, more string) step {
		return c.subscribe(id, "t", "s", "Key_Shared", "keySharedMeta{keySharedMode:STICKY "+more+"}")
	}
	keys := func(n string) step {
		return together(a.keyed(1, "a", "a"+n), a.keyed(1, "order-42", "o"+n), a.keyed(1, "key-1", "k"+n))
	}
	return []program{
		{name: "sticky", steps: []step{
			a.producer(1, "t", ""), sub(b, 1, "hashRanges{start:0 end:27058}"), sub(c, 1, "hashRanges{start:41358 end:41358}"), b.flow(1, 99), c.flow(1, 99),
			keys("0"), c.leave(1), keys("1"), sub(c, 2, "hashRanges{start:27059 end:65535}"), c.flow(2, 99),
		}},
		{name: "sticky-nobody", steps: []step{
			a.producer(1, "t", ""), sub(b, 1, "hashRanges{start:0 end:9}"), b.flow(1, 99), keys("0"), sub(c, 1, "hashRanges{start:10 end:30000} hashRanges{start:40000 end:65535}"), c.flow(1, 99),
		}},
		{name: "sticky-refused", steps: []step{
			sub(a, 1, ""), sub(a, 2, "hashRanges{start:10 end:5}"), sub(a, 3, "hashRanges{start:0 end:100}"), sub(b, 1, "hashRanges{start:100 end:200}"),
			sub(b, 2, "hashRanges{start:101 end:70000}"), sub(b, 3, "hashRanges{start:-5 end:-1}"),
		}},
		{name: "sticky-modes", steps: []step{
			a.subscribe(1, "t", "s", "Key_Shared", ""), sub(b, 1, "hashRanges{start:0 end:100}"), a.leave(1), sub(b, 2, "hashRanges{start:0 end:100}"), a.subscribe(2, "t", "s", "Key_Shared", ""),
		}},
	}
}
