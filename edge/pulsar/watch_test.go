package pulsar

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"wayside/edge"
	"wayside/wire/pulsarpb"
)

func watchCmd(request, id uint64, pattern string) *pulsarpb.CommandWatchTopicList {
	return &pulsarpb.CommandWatchTopicList{
		RequestId: num(request), WatcherId: num(id), Namespace: proto.String("public/lists"), TopicsPattern: &pattern,
	}
}

func listed(local string) edge.TopicName {
	return edge.TopicName{Domain: edge.Persistent, Tenant: "public", Namespace: "lists", Local: local}
}

// The hashes are those that a real broker told for the same names.
func TestWatchersAreToldWhatComesAndGoes(t *testing.T) {
	r := serve(t)
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(r.broker.Catalog().CreateNamespace(ctx, "public/lists", nil))
	must(r.broker.CreateTopic(ctx, listed("a")))
	c := r.connect()
	c.say(watchCmd(17, 5, "persistent://public/lists/w.*"))
	c.hear(`WATCH_TOPIC_LIST_SUCCESS {request_id:17 watcher_id:5 topics_hash:"00000000"}`)
	must(r.broker.CreateTopic(ctx, listed("w1")))
	c.hear(`WATCH_TOPIC_UPDATE {watcher_id:5 new_topics:"persistent://public/lists/w1" topics_hash:"0c853b12"}`)
	must(r.broker.CreateTopic(ctx, listed("x1")))
	np := listed("w0")
	np.Domain = edge.NonPersistent
	must(r.broker.CreateTopic(ctx, np))
	must(r.broker.CreateTopic(ctx, listed("w2-partition-0")))
	c.hear(`WATCH_TOPIC_UPDATE {watcher_id:5 new_topics:"persistent://public/lists/w2-partition-0" topics_hash:"1b8fe6d2"}`)
	must(r.broker.Delete(ctx, listed("w1"), false))
	c.hear(`WATCH_TOPIC_UPDATE {watcher_id:5 deleted_topics:"persistent://public/lists/w1" topics_hash:*`)

	c.say(watchCmd(18, 7, ""))
	c.hear(`WATCH_TOPIC_LIST_SUCCESS {request_id:18 watcher_id:7 topics_hash:"00000000"}`)
	again := watchCmd(19, 5, "persistent://public/lists/w.*")
	c.say(again)
	c.hear(`WATCH_TOPIC_LIST_SUCCESS {request_id:19 watcher_id:5 topic:"persistent://public/lists/w2-partition-0" topics_hash:*`)
	none := watchCmd(20, 6, "persistent://public/lists/none.*")
	none.TopicsHash = proto.String("00000000")
	c.say(none)
	c.hear(`WATCH_TOPIC_LIST_SUCCESS {request_id:20 watcher_id:6 topics_hash:"00000000"}`)
	nowhere := watchCmd(22, 8, "persistent://public/nowhere/.*")
	nowhere.Namespace = proto.String("public/nowhere")
	c.say(nowhere)
	c.hear(`WATCH_TOPIC_LIST_SUCCESS {request_id:22 watcher_id:8 topics_hash:"00000000"}`)

	c.say(&pulsarpb.CommandWatchTopicListClose{RequestId: num(23), WatcherId: num(5)})
	c.hear("SUCCESS {request_id:23}")
	must(r.broker.CreateTopic(ctx, listed("w4")))
	c.say(&pulsarpb.CommandPing{}) // whatever came of it would come before
	c.hear("PONG {}")
}

func TestWatchersThatAreRefused(t *testing.T) {
	r := serve(t)
	c := r.connect()
	c.say(watchCmd(1, 1, "persistent://public/lists/"+strings.Repeat("a", 37))) // 50 without scheme
	c.hear("WATCH_TOPIC_LIST_SUCCESS {request_id:1 *")
	c.say(&pulsarpb.CommandWatchTopicListClose{RequestId: num(1), WatcherId: num(1)})
	c.hear("SUCCESS {request_id:1}")
	c.say(watchCmd(1, 1, "persistent://public/lists/"+strings.Repeat("a", 40)))
	c.hear(`ERROR {request_id:1 error:NotAllowedError message:"Unable to create topic list watcher: Pattern longer than maximum: 50"}`)
	c.say(watchCmd(2, 1, "persistent://public/lists/(?!a).*"))
	c.hear(`ERROR {request_id:2 error:NotAllowedError message:"Unable to create topic list watcher: *`)
	odd := watchCmd(3, 1, ".*")
	odd.Namespace = proto.String("public")
	c.say(odd)
	c.hear(`ERROR {request_id:3 error:MetadataError *`)
	for id := range uint64(maxWatchers) {
		c.say(watchCmd(id+10, id, ".*"))
		c.hear("WATCH_TOPIC_LIST_SUCCESS *")
	}
	c.say(watchCmd(4, maxWatchers, ".*"))
	c.hear(`ERROR {request_id:4 error:NotAllowedError *`)
	c.say(watchCmd(5, 0, ".*")) // in an old one's place
	c.hear("WATCH_TOPIC_LIST_SUCCESS *")
	r.server.watching.Add(allWatchers)
	c.say(watchCmd(6, 0, ".*"))
	c.hear(`ERROR {request_id:6 error:NotAllowedError message:"Unable to create topic list watcher: there are 1000"}`)
	r.server.watching.Add(-allWatchers)
}

// A watcher that cannot keep up is told all there is.
func TestAWatcherThatMissedSomeIsToldAll(t *testing.T) {
	r := serve(t)
	ctx := t.Context()
	if err := r.broker.Catalog().CreateNamespace(ctx, "public/lists", nil); err != nil {
		t.Fatal(err)
	}
	c := r.connect()
	const many = 1_000
	for i := range many {
		if err := r.broker.CreateTopic(ctx, listed(fmt.Sprint("t", i))); err != nil {
			t.Fatal(err)
		}
	}
	c.say(watchCmd(1, 1, "public/lists/t.*"))
	c.hear("WATCH_TOPIC_LIST_SUCCESS *")
	if err := r.server.listing.take(ctx); err != nil { // it waits for its turn while they go
		t.Fatal(err)
	}
	for i := range many {
		if err := r.broker.Delete(ctx, listed(fmt.Sprint("t", i)), false); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.broker.CreateTopic(ctx, listed("t9999")); err != nil {
		t.Fatal(err)
	}
	r.server.listing.give()
	c.hear(`WATCH_TOPIC_UPDATE {watcher_id:1 new_topics:"persistent://public/lists/t9999" topics_hash:*`)
}

func TestNonPersistentTopics(t *testing.T) {
	r := serve(t)
	c := r.connect()
	name := "non-persistent://public/default/np"
	c.say(&pulsarpb.CommandProducer{Topic: &name, ProducerId: num(1), RequestId: num(1)})
	c.hear(`PRODUCER_SUCCESS {request_id:1 *`)
	sub := subscribeCmd("x", "s", pulsarpb.CommandSubscribe_Shared, 1, 2)
	sub.Topic = &name
	c.say(sub)
	c.hear("SUCCESS {request_id:2}")
	c.sendEntry(&pulsarpb.CommandSend{ProducerId: num(1), SequenceId: num(0)}, entryOf(t, 0, 0, []byte("dropped")))
	c.hear("SEND_RECEIPT {producer_id:1 sequence_id:0 message_id {ledgerId:0 entryId:0}*")
	c.say(flowCmd(1, 10))
	c.say(&pulsarpb.CommandPing{})
	c.hear("PONG {}")
	c.sendEntry(&pulsarpb.CommandSend{ProducerId: num(1), SequenceId: num(1)}, entryOf(t, 1, 0, []byte("given")))
	c.hearInAnyOrder("SEND_RECEIPT {producer_id:1 sequence_id:1 message_id {ledgerId:0 entryId:0}*", `MESSAGE {consumer_id:1 message_id {ledgerId:0 entryId:0 *"given"`)
	c.say(&pulsarpb.CommandGetTopicsOfNamespace{RequestId: num(3), Namespace: proto.String("public/default"), Mode: pulsarpb.CommandGetTopicsOfNamespace_NON_PERSISTENT.Enum()})
	c.hear(`GET_TOPICS_OF_NAMESPACE_RESPONSE {request_id:3 topics:"` + name + `" *`)
	ack := ackCmd(1, 5, &pulsarpb.MessageIdData{LedgerId: num(0), EntryId: num(0)})
	c.say(ack)
	c.hear("ACK_RESPONSE {consumer_id:1 request_id:5}")
	c.say(&pulsarpb.CommandSeek{ConsumerId: num(1), RequestId: num(6), MessagePublishTime: num(1)})
	c.hear("SUCCESS {request_id:6}")
	c.say(&pulsarpb.CommandGetLastMessageId{ConsumerId: num(1), RequestId: num(7)})
	c.hear("GET_LAST_MESSAGE_ID_RESPONSE {last_message_id {ledgerId:18446744073709551615 entryId:18446744073709551615 *request_id:7*")
}
