package main

import "slices"

// nonPersistent are about topics that are kept nowhere.
func nonPersistent() []program {
	const topic, path = "non-persistent://{ns}/{p}-t", "/admin/v2/non-persistent/{ns}/{p}-t"
	sub := func(c conn, id int, kind, more string) step { return c.subscribe(id, topic, "s", kind, more) }
	with := func(name string, steps ...step) program {
		return program{name: "np-" + name, steps: slices.Concat([]step{a.producer(1, topic, "")}, steps)}
	}
	keys := func(n string) step {
		return together(a.keyed(1, "a", "a"+n), a.keyed(1, "order-42", "o"+n), a.keyed(1, "key-1", "k"+n))
	}
	return inFull([]program{
		with("exclusive", sub(b, 1, "Exclusive", earliest), b.flow(1, 9), a.publish(1, "m0 m1"), b.ack(1, "m0"), a.batch(1, "b0", 5, "", ""), sub(c, 1, "Exclusive", ""), b.stats(1), b.leave(1), a.publish(1, "m2")),
		with("shared", sub(b, 1, "Shared", ""), sub(c, 1, "Shared", ""), b.flow(1, 9), c.flow(1, 9), a.publish(1, "m0"), a.publish(1, "m1"), a.publish(1, "m2"), a.publish(1, "m3"), b.stats(1), c.stats(1), c.drop(), seated(topic, 1), a.publish(1, "m4")),
		with("failover", sub(b, 1, "Failover", `consumer_name:"one"`).later(change), sub(c, 1, "Failover", `consumer_name:"two" priority_level:1`).later(change), b.flow(1, 9), c.flow(1, 9), a.publish(1, "m0"), b.leave(1).later(change), a.publish(1, "m1")),
		with("keys", sub(b, 1, "Key_Shared", `consumer_name:"one"`), sub(c, 1, "Key_Shared", `consumer_name:"two"`), b.flow(1, 99), c.flow(1, 99), keys("0"), keys("1"), a.publish(1, "none"), c.leave(1), keys("2")),
		with("nobody", a.publish(1, "m0 m1"), sub(b, 1, "Exclusive", earliest), b.flow(1, 9), b.leave(1), a.publish(1, "m2"), sub(b, 1, "Exclusive", earliest), b.flow(1, 9), a.publish(1, "m3")),
		with("no-permits", sub(b, 1, "Exclusive", ""), a.publish(1, "m0"), b.flow(1, 1), a.publish(1, "m1"), a.publish(1, "m2"), b.flow(1, 1), a.publish(1, "m3"), b.stats(1)),
		with("no-permits-shared", sub(b, 1, "Shared", ""), sub(c, 1, "Shared", ""), b.flow(1, 1), a.publish(1, "m0"), a.publish(1, "m1"), c.flow(1, 1), a.publish(1, "m2"), b.flow(1, 2), a.batch(1, "b0", 5, "", ""), a.publish(1, "m3"), b.stats(1)),
		with("lookup", a.say("LOOKUP", `topic:"`+topic+`"`), a.say("PARTITIONED_METADATA", `topic:"`+topic+`"`), a.say("PARTITIONED_METADATA", `topic:"`+topic+`" metadata_auto_creation_enabled:false`), a.say("GET_SCHEMA", `topic:"`+topic+`"`)),
		with("list", sub(b, 1, "Shared", ""), a.say("GET_TOPICS_OF_NAMESPACE", `namespace:"{ns}" topics_pattern:"{ns}/{p}.*"`), a.say("GET_TOPICS_OF_NAMESPACE", `namespace:"{ns}" mode:NON_PERSISTENT topics_pattern:"{ns}/{p}.*"`), a.say("GET_TOPICS_OF_NAMESPACE", `namespace:"{ns}" mode:ALL topics_pattern:"{ns}/{p}.*"`)),
		{name: "np-partitions", steps: []step{
			admin("PUT", path+"/partitions", "2"), a.say("PARTITIONED_METADATA", `topic:"`+topic+`"`), a.producer(1, topic+"-partition-1", ""), b.subscribe(1, topic+"-partition-1", "s", "Shared", ""), b.flow(1, 9), a.publish(1, "m0"), b.lastID(1),
			a.producer(2, topic+"-partition-5", ""), admin("GET", path+"/partitions", ""),
		}},
		with("seek", sub(b, 1, "Exclusive", ""), b.flow(1, 9), a.publish(1, "m0"), b.seek(1, first), a.publish(1, "m1"), b.say("SEEK", "consumer_id:1 message_publish_time:5"), a.publish(1, "m2"), b.say("SEEK", "consumer_id:1"), b.seek(9, first)),
		with("last-id", sub(b, 1, "Exclusive", ""), b.lastID(1), a.publish(1, "m0"), b.lastID(1), b.lastID(9)),
		with("redeliver", sub(b, 1, "Shared", ""), b.flow(1, 9), a.publish(1, "m0 m1"), b.redeliver(1, "m0"), b.redeliver(1, ""), b.ack(1, "m0 m1"), b.say("ACK", "consumer_id:1 ack_type:Cumulative request_id:50 message_id{$m1}"), b.stats(1)),
		with("reader", b.subscribe(1, topic, "r", "Exclusive", fromStart), b.flow(1, 9), a.publish(1, "m0"), b.leave(1), a.publish(1, "m1"), c.subscribe(1, topic, "r", "Exclusive", reader), c.flow(1, 9), a.publish(1, "m2")),
		with("two-subscriptions", sub(b, 1, "Exclusive", ""), b.subscribe(2, topic, "u", "Shared", ""), b.flow(1, 9), a.publish(1, "m0"), b.flow(2, 9), a.publish(1, "m1")),
		with("unsubscribe", sub(b, 1, "Exclusive", ""), b.flow(1, 9), b.unsubscribe(1, ""), a.publish(1, "m0"), sub(b, 1, "Exclusive", ""), b.flow(1, 9), sub(c, 1, "Shared", ""), c.unsubscribe(1, ""), a.publish(1, "m1")),
		with("figures", sub(b, 1, "Shared", `consumer_name:"one"`), b.flow(1, 1), a.publish(1, "m0"), a.publish(1, "m1"), a.batch(1, "b0", 3, "", ""),
			figures(topic, "msgInCounter", "publishers", "subscriptions/s/type", "subscriptions/s/msgBacklog", "subscriptions/s/consumers/0/consumerName", "subscriptions/s/consumers/0/availablePermits", "subscriptions/s/consumers/0/unackedMessages", "subscriptions/s/isDurable")),
		with("producers", a.producer(2, topic, `producer_name:"p"`), b.producer(1, topic, `producer_name:"p"`), a.closeProducer(2), b.producer(1, topic, `producer_name:"p"`), b.publish(1, "m0"), a.closeProducer(1), a.publish(1, "lost").unanswered()),
		with("access", a.producer(2, topic, "producer_access_mode:Exclusive"), a.closeProducer(1), a.producer(3, topic, "producer_access_mode:Exclusive"), a.producer(4, topic, ""), a.publish(3, "m0")),
		with("sequences", sub(b, 1, "Exclusive", ""), b.flow(1, 99), a.send(1, "m0", "sequence_id:7", ""), a.send(1, "m1", "sequence_id:7", ""), a.send(1, "m2", "sequence_id:20 highest_sequence_id:25 num_messages:6", "")),
		with("txn", a.coordinate(), a.begin("txnA", long), a.joins("txnA", topic), a.sendIn(1, "x0", "txnA")),
		with("delayed", sub(b, 1, "Shared", ""), b.flow(1, 9), a.afterwards(1, "d0", soon), a.publish(1, "m0")),
		with("compacted", sub(b, 1, "Exclusive", "read_compacted:true"), b.flow(1, 9), a.keyed(1, "x", "m0")),
		with("delete", sub(b, 1, "Shared", ""), admin("DELETE", path, ""), admin("DELETE", path+"?force=true", ""), a.publish(1, "lost").unanswered(), admin("DELETE", path, "")),
		with("operated", sub(b, 1, "Shared", ""), admin("POST", path+"/terminate", ""), admin("POST", path+"/subscription/s/skip_all", ""), admin("PUT", path+"/unload", ""), a.publish(1, "lost").unanswered()),
		with("chunks", sub(b, 1, "Shared", ""), sub(c, 1, "Shared", ""), b.flow(1, 9), c.flow(1, 9), a.send(1, "c0", "is_chunk:true", `uuid:"u" chunk_id:0 num_chunks_from_msg:2 total_chunk_msg_size:4`), a.send(1, "c1", "is_chunk:true", `uuid:"u" chunk_id:1 num_chunks_from_msg:2 total_chunk_msg_size:4`)),
	}, "np-exclusive")
}
