package main

import "time"

// limited are about rules that are set for a topic while clients are there.
func limited() []program {
	const path = "/admin/v2/persistent/{ns}/{p}-t/"
	// The real broker learns of a rule over a topic of its own.
	set := func(rule, body string) step { return admin("POST", path+rule, body).later(2 * time.Second) }
	unset := func(rule string) step { return admin("DELETE", path+rule, "").later(2 * time.Second) }
	return inFull([]program{
		{name: "rule-producers", steps: []step{
			a.producer(1, "t", ""), a.producer(2, "t", ""), set("maxProducers", "1"), a.publish(1, "m0"), a.publish(2, "m1"), b.producer(1, "t", ""), a.closeProducer(1), b.producer(1, "t", ""),
			a.closeProducer(2), b.producer(1, "t", ""), b.producer(2, "t", ""), set("maxProducers", "0"), b.producer(2, "t", ""), unset("maxProducers"), b.producer(3, "t", ""),
		}},
		{name: "rule-consumers", steps: []step{
			a.subscribe(1, "t", "s", "Shared", ""), a.subscribe(2, "t", "u", "Shared", ""), set("maxConsumers", "2"), b.subscribe(1, "t", "s", "Shared", ""), a.leave(1), b.subscribe(1, "t", "s", "Shared", ""), b.subscribe(2, "t", "r", "Exclusive", fromStart),
			set("maxConsumers", "1"), a.flow(2, 5), unset("maxConsumers"), b.subscribe(2, "t", "r", "Exclusive", fromStart),
		}},
		{name: "rule-consumers-of-subscription", steps: []step{
			a.subscribe(1, "t", "s", "Shared", ""), set("maxConsumersPerSubscription", "1"), b.subscribe(1, "t", "s", "Shared", ""), b.subscribe(2, "t", "u", "Failover", `consumer_name:"one"`).later(change), a.subscribe(2, "t", "u", "Failover", `consumer_name:"two"`).later(change),
			a.leave(1), b.subscribe(1, "t", "s", "Shared", ""),
		}},
		{name: "rule-subscriptions", steps: []step{
			a.subscribe(1, "t", "s", "Shared", ""), set("maxSubscriptionsPerTopic", "1"), b.subscribe(1, "t", "u", "Shared", ""), b.subscribe(2, "t", "r", "Exclusive", fromStart), b.subscribe(3, "t", "s", "Shared", ""),
			admin("PUT", path+"subscription/v", ""), unset("maxSubscriptionsPerTopic"), b.subscribe(1, "t", "u", "Shared", ""),
		}},
		{name: "rule-unacked", steps: []step{
			a.producer(1, "t", ""), b.subscribe(1, "t", "s", "Shared", earliest), b.flow(1, 100), a.publish(1, "m0 m1"), set("maxUnackedMessagesOnConsumer", "3"), a.publish(1, "m2"), a.publish(1, "m3"), a.publish(1, "m4"), b.stats(1),
			b.ack(1, "m0"), b.stats(1), b.ack(1, "m1 m2"), b.stats(1), set("maxUnackedMessagesOnConsumer", "0"), a.publish(1, "m5 m6 m7 m8"), b.stats(1), unset("maxUnackedMessagesOnConsumer"), a.publish(1, "m9"),
		}},
		{name: "rule-unacked-lowered", steps: []step{
			a.producer(1, "t", ""), b.subscribe(1, "t", "s", "Shared", earliest), b.flow(1, 100), a.publish(1, "m0 m1 m2 m3 m4"), set("maxUnackedMessagesOnConsumer", "2"), a.publish(1, "m5"), a.publish(1, "m6"), b.stats(1),
			b.ack(1, "m0 m1 m2"), b.stats(1), b.ack(1, "m3 m4"), b.stats(1), b.ack(1, "m5"), b.stats(1),
		}},
		{name: "rule-unacked-subscription", steps: []step{
			a.producer(1, "t", ""), b.subscribe(1, "t", "s", "Shared", earliest), c.subscribe(1, "t", "s", "Shared", ""), set("maxUnackedMessagesOnSubscription", "3"), b.flow(1, 100), c.flow(1, 100), a.publish(1, "m0"), a.publish(1, "m1"), a.publish(1, "m2"), a.publish(1, "m3"),
			a.publish(1, "m4"), b.stats(1), b.ack(1, "m0"), b.ack(1, "m2"), c.ack(1, "m1"), b.stats(1), c.drop(),
		}},
		{name: "rule-ttl", steps: []step{
			a.producer(1, "t", ""), b.subscribe(1, "t", "s", "Shared", earliest), a.publish(1, "m0 m1"), set("messageTTL", "3600"), admin("GET", path+"messageTTL", ""), admin("POST", path+"subscription/s/expireMessages/1", "").later(time.Second), b.flow(1, 9), figures("t", "subscriptions/s/msgBacklog"), a.publish(1, "m2"), b.lastID(1), unset("messageTTL"), admin("GET", path+"messageTTL", ""),
		}},
		{name: "rule-expire-held", steps: []step{
			a.producer(1, "t", ""), b.subscribe(1, "t", "s", "Shared", earliest), b.flow(1, 9), a.publish(1, "m0 m1").later(2 * time.Second), admin("POST", path+"subscription/s/expireMessages/1", "").later(time.Second), b.stats(1), b.redeliver(1, ""), b.ack(1, "m0"), b.stats(1),
			a.publish(1, "m2"), b.lastID(1), figures("t", "subscriptions/s/msgBacklog"),
		}},
		{name: "rule-expire-exclusive", steps: []step{
			a.producer(1, "t", ""), b.subscribe(1, "t", "s", "Exclusive", earliest), b.flow(1, 1), a.publish(1, "m0 m1").later(2 * time.Second), admin("POST", path+"subscription/s/expireMessages/1", "").later(time.Second), b.lastID(1), b.flow(1, 5), b.redeliver(1, ""), a.publish(1, "m2"),
		}},
	})
}
