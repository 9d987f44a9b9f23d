package main

import "time"

// watching are about clients that are told which topics come and go.
func watching() []program {
	watch := func(c conn, id int, more string) step {
		return c.answered("WATCH_TOPIC_LIST", `watcher_id:`+string(rune('0'+id))+` request_id:{r} `+more)
	}
	mine := `namespace:"{ns}" topics_pattern:"{ns}/{p}-.*"`
	closes := func(c conn, id int) step {
		return c.answered("WATCH_TOPIC_LIST_CLOSE", `request_id:{r} watcher_id:`+string(rune('0'+id)))
	}
	const path = "/admin/v2/persistent/{ns}/{p}-"
	create := func(topic string) step { return admin("PUT", path+topic, "") }
	remove := func(topic string) step { return admin("DELETE", path+topic+"?force=true", "") }
	return inFull([]program{
		{name: "watch-empty", steps: []step{watch(b, 1, mine), a.producer(1, "t", ""), b.say("PING", "")}},
		{name: "watch-list", steps: []step{a.producer(1, "t", ""), a.producer(2, "u", ""), create("v"), watch(b, 1, mine), watch(b, 2, `namespace:"{ns}" topics_pattern:"persistent://{ns}/{p}-t"`), watch(b, 3, `namespace:"{ns}" topics_pattern:"{ns}/{p}-[tu]"`)}},
		{name: "watch-changes", steps: []step{
			watch(b, 1, mine), create("t"), a.producer(1, "u", ""), a.subscribe(1, "v", "s", "Shared", ""), remove("t"), a.closeProducer(1), remove("u"), create("t"), remove("v"),
		}},
		{name: "watch-same", steps: []step{create("t"), watch(b, 1, mine), create("t"), a.producer(1, "t", ""), a.closeProducer(1)}},
		{name: "watch-hash", steps: []step{watch(b, 1, mine+` topics_hash:"00000000"`), create("t"), b.drop(), watch(b, 1, mine+` topics_hash:"00000000"`), watch(b, 2, mine+` topics_hash:""`), create("u")}},
		{name: "watch-reconnect", steps: []step{
			watch(b, 1, `namespace:"{ns}" topics_pattern:"{ns}/{p}-none"`), create("t"), b.drop(), create("u"), watch(b, 1, mine), watch(b, 2, `namespace:"{ns}" topics_pattern:"{ns}/{p}-none" topics_hash:"00000000"`),
		}},
		{name: "watch-nothing", steps: []step{create("t"), watch(b, 1, `namespace:"{ns}" topics_pattern:"{ns}/{p}-none"`), create("u"), remove("u"), watch(b, 2, `namespace:"{ns}" topics_pattern:""`)}},
		{name: "watch-no-namespace", steps: []step{watch(b, 1, `namespace:"public/none" topics_pattern:"public/none/.*"`), watch(b, 2, `namespace:"none/none" topics_pattern:".*x"`), b.say("PING", "")}},
		{name: "watch-bad-namespace", steps: []step{watch(b, 1, `namespace:"x" topics_pattern:"x"`), b.say("PING", "")}},
		{name: "watch-bad-pattern", steps: []step{watch(b, 1, `namespace:"{ns}" topics_pattern:"{ns}/{p}[("`), b.say("PING", "")}},
		{name: "watch-long-pattern", steps: []step{watch(b, 1, `namespace:"{ns}" topics_pattern:"`+sequence("", 30)+`"`), b.say("PING", "")}},
		{name: "watch-close", steps: []step{watch(b, 1, mine), create("t"), closes(b, 1), create("u"), closes(b, 1), closes(b, 9), watch(b, 1, mine), create("v")}},
		{name: "watch-same-id", steps: []step{watch(b, 1, `namespace:"{ns}" topics_pattern:"{ns}/{p}-t"`), watch(b, 1, `namespace:"{ns}" topics_pattern:"{ns}/{p}-u"`), create("t"), create("u"), closes(b, 1), create("v")}},
		{name: "watch-two", steps: []step{watch(b, 1, mine), watch(b, 2, mine), watch(c, 1, mine), create("t"), c.drop(), remove("t"), closes(b, 2), create("u")}},
		{name: "watch-partitions", steps: []step{
			admin("PUT", path+"t/partitions", "2"), watch(b, 1, mine), a.producer(1, "t-partition-0", ""), admin("PUT", path+"u/partitions", "1"), admin("POST", path+"u/partitions", "2"),
			admin("PUT", path+"v/partitions", "1"), admin("DELETE", path+"v/partitions?force=true", ""),
		}},
		{name: "watch-non-persistent", steps: []step{watch(b, 1, mine), watch(b, 2, `namespace:"{ns}" topics_pattern:"non-persistent://{ns}/{p}-.*"`), a.producer(1, "non-persistent://{ns}/{p}-t", ""), a.closeProducer(1)}},
		{name: "watch-unload", steps: []step{a.producer(1, "t", ""), watch(b, 1, mine), admin("PUT", path+"t/unload", ""), a.producer(1, "t", "").later(time.Second)}},
		{name: "watch-named-part", steps: []step{watch(b, 1, `namespace:"{ns}" topics_pattern:"{ns}/{p}-t"`), admin("PUT", path+"t/partitions", "1"), watch(b, 2, `namespace:"{ns}" topics_pattern:"{ns}/{p}-t"`), admin("PUT", path+"u-partition-x/partitions", "1"), create("u-partition-x"), create("u-partition-0")}},
	}, "watch-changes")
}
