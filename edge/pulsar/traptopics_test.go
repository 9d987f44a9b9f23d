package pulsar

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"wayside/edge"
	"wayside/wire/pulsarpb"
)

// Traps of protocol.md, section 4, that have to do with topics, by their numbers there.

// answered asks for something and returns the answer's command.
func (c *client) answered(m proto.Message) *pulsarpb.BaseCommand {
	c.t.Helper()
	c.say(m)
	return c.receive().BaseCommand
}

func TestTrap2And3PartitionsAndResponseAreAlwaysSet(t *testing.T) {
	c := serve(t).connect()
	for _, name := range []string{"plain", "x-partition-7"} {
		m := c.answered(&pulsarpb.CommandPartitionedTopicMetadata{Topic: proto.String(public + name), RequestId: num(1)}).GetPartitionMetadataResponse()
		if m.Partitions == nil || m.Response == nil {
			t.Errorf("%s: %v", name, m)
		}
	}
	m := c.answered(&pulsarpb.CommandPartitionedTopicMetadata{Topic: proto.String("a/b"), RequestId: num(1)}).GetPartitionMetadataResponse()
	if m.Response == nil {
		t.Errorf("a bad name: %v", m)
	}
}

func TestTrap4And5LookupsHaveResponseAndText(t *testing.T) {
	c := serve(t).connect()
	for topic, failed := range map[string]bool{public + "x": false, "a/b": true, "persistent://no/where/x": true} {
		m := c.answered(&pulsarpb.CommandLookupTopic{Topic: &topic, RequestId: num(1)}).GetLookupTopicResponse()
		if m.Response == nil || failed && (m.Error == nil || m.Message == nil) {
			t.Errorf("lookup of %s: %v", topic, m)
		}
		p := c.answered(&pulsarpb.CommandPartitionedTopicMetadata{Topic: &topic, RequestId: num(1)}).GetPartitionMetadataResponse()
		if failed && (p.Error == nil || p.Message == nil) {
			t.Errorf("partitions of %s: %v", topic, p)
		}
	}
}

func TestTrap6And7NoLookupCostsTheConnection(t *testing.T) {
	costly := map[pulsarpb.ServerError]bool{pulsarpb.ServerError_ServiceNotReady: true, pulsarpb.ServerError_TooManyRequests: true}
	for _, f := range faults() {
		if code, _ := explainLookup(f.err); costly[code] {
			t.Errorf("%v is answered by %v", f.err, code)
		}
	}
	r := serve(t)
	c := r.connect()
	if err := r.broker.Close(t.Context()); err != nil { // everything fails now
		t.Fatal(err)
	}
	m := c.answered(&pulsarpb.CommandPartitionedTopicMetadata{Topic: proto.String(public + "x"), RequestId: num(1)}).GetPartitionMetadataResponse()
	if m.Error != nil && costly[m.GetError()] {
		t.Errorf("a broker that stops answers %v", m)
	}
}

func TestTrap8AnswersToLookupsAreURLs(t *testing.T) {
	m := serve(t).connect().answered(&pulsarpb.CommandLookupTopic{Topic: proto.String(public + "x"), RequestId: num(1)}).GetLookupTopicResponse()
	if !strings.HasPrefix(m.GetBrokerServiceUrl(), "pulsar://") || m.BrokerServiceUrlTls != nil {
		t.Errorf("%v", m)
	}
}

func TestTrap12NobodyIsToldOfTopicsUnasked(t *testing.T) {
	r := serve(t)
	c, watching := r.connect(), r.connect()
	cmd := watchCmd(1, 1, "public/default/.*")
	cmd.Namespace = proto.String("public/default")
	watching.say(cmd)
	watching.hear("WATCH_TOPIC_LIST_SUCCESS *")
	c.producing("x")
	watching.hear(`WATCH_TOPIC_UPDATE *`)
	c.say(&pulsarpb.CommandPing{})
	c.hear("PONG {}")
}

func TestTrap61PartitionsAreListedOneByOne(t *testing.T) {
	r := serve(t)
	if err := r.broker.CreatePartitions(t.Context(), topicOfPublic("p"), 2); err != nil {
		t.Fatal(err)
	}
	m := r.connect().answered(&pulsarpb.CommandGetTopicsOfNamespace{RequestId: num(1), Namespace: proto.String("public/default")}).GetGetTopicsOfNamespaceResponse()
	if got := strings.Join(m.GetTopics(), " "); got != public+"p-partition-0 "+public+"p-partition-1" {
		t.Errorf("listed: %s", got)
	}
}

// What a real broker told for these names.
func TestTrap62TheHashOfAListIsTheReferences(t *testing.T) {
	r := serve(t)
	for _, name := range []string{"a", "b-partition-0", "b-partition-1", "ccc"} {
		if _, err := r.broker.Open(t.Context(), listed(name), true); err == nil {
			t.Fatal("a namespace came into being")
		}
	}
	if err := r.broker.Catalog().CreateNamespace(t.Context(), "public/lists", nil); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ccc", "b-partition-1", "a", "b-partition-0"} {
		if _, err := r.broker.Open(t.Context(), listed(name), true); err != nil {
			t.Fatal(err)
		}
	}
	m := r.connect().answered(&pulsarpb.CommandGetTopicsOfNamespace{RequestId: num(1), Namespace: proto.String("public/lists")}).GetGetTopicsOfNamespaceResponse()
	if m.GetTopicsHash() != "554d52f9" {
		t.Errorf("hash %s of %v", m.GetTopicsHash(), m.GetTopics())
	}
}

func TestTrap67And68NeitherQuestionsNorLookupsCreateTopics(t *testing.T) {
	r := serve(t, func(_ *Options, o *edge.Options) { o.AutoPartitions = 2 })
	c := r.connect()
	topic := proto.String(public + "phantom")
	c.answered(&pulsarpb.CommandPartitionedTopicMetadata{Topic: topic, RequestId: num(1), MetadataAutoCreationEnabled: proto.Bool(false)})
	c.answered(&pulsarpb.CommandLookupTopic{Topic: topic, RequestId: num(2)})
	if names := r.broker.Names(""); len(names) > 0 || len(r.broker.PartitionedTopics("public/default")) > 0 {
		t.Errorf("there are %v", names)
	}
}

func TestTrap75ShortAndFullNamesAreTheSame(t *testing.T) {
	r := serve(t)
	c := r.connect()
	full, short := producerCmd("one", 1, 1), producerCmd("one", 2, 2)
	full.ProducerName, short.ProducerName = proto.String("a"), proto.String("b")
	short.Topic = proto.String("one")
	c.say(full, short)
	c.hearInAnyOrder("PRODUCER_SUCCESS {request_id:1 *", "PRODUCER_SUCCESS {request_id:2 *")
	if names := r.broker.Names(""); len(names) != 1 {
		t.Errorf("there are %v", names)
	}
}

func TestTrap78AnchoredPatternsWithSchemeMatch(t *testing.T) {
	for pattern, want := range map[string]bool{
		"^persistent://public/default/p$": true, "persistent://public/default/p": true, "public/default/p": true,
		"^public/default/.*$": true, "^persistent://public/default/q$": false,
	} {
		re, ok := compilePattern(pattern)
		if names := listTopics([]edge.TopicName{topicOfPublic("p-partition-1")}, pulsarpb.CommandGetTopicsOfNamespace_ALL, re); !ok || (len(names) == 1) != want {
			t.Errorf("%s matches: %v", pattern, names)
		}
	}
}

// A client that comes back while its topic is being deleted waits, or is told what it
// tries again upon.
func TestTrap81NothingFinalIsToldDuringADeletion(t *testing.T) {
	r := serve(t)
	c := r.connect().consuming("going", "s", shared, 1)
	r.store.Hold() // the deletion waits for its commit
	deleted := make(chan error, 1)
	go func() { deleted <- r.broker.Delete(t.Context(), topicOfPublic("going"), true) }()
	c.hear("CLOSE_CONSUMER *")
	c.say(subscribeCmd("going", "s", shared, 1, 8), producerCmd("going", 1, 9))
	c.sync()
	r.store.Release()
	c.hearInAnyOrder("SUCCESS {request_id:8}", "PRODUCER_SUCCESS {request_id:9 *")
	if err := <-deleted; err != nil {
		t.Fatal(err)
	}
}

func topicOfPublic(local string) edge.TopicName {
	return edge.TopicName{Domain: edge.Persistent, Tenant: "public", Namespace: "default", Local: local}
}
