package pulsar

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"wayside/edge"
	"wayside/wire/pulsarpb"
)

func TestBadNames(t *testing.T) {
	r := serve(t)
	c := r.connect()
	for _, test := range []struct{ topic, code, text string }{
		{"", "InvalidTopicName", "Invalid topic name: *"},
		{"a/b", "InvalidTopicName", "Invalid topic name: *"},
		{public, "InvalidTopicName", "Invalid topic name: *"},
		{"persistent://public/default", "InvalidTopicName", "Invalid topic name: *"},
		{"persistent://public/default/a/b", "InvalidTopicName", "Invalid topic name: *"},
		{"mem://public/default/x", "InvalidTopicName", "Invalid topic name: *"},
		{"persistent://pub lic/default/x", "InvalidTopicName", "Invalid topic name: *"},
		{"persistent://public/nowhere/x", "TopicNotFound", "Namespace not found"},
		{"persistent://nobody/default/x", "TopicNotFound", "Namespace not found"},
	} {
		topic := &test.topic
		failed := `error:` + test.code + ` message:"` + test.text + `"}`
		c.say(&pulsarpb.CommandLookupTopic{Topic: topic, RequestId: num(1)})
		c.hear("LOOKUP_RESPONSE {response:Failed request_id:1 " + failed)
		c.say(&pulsarpb.CommandPartitionedTopicMetadata{Topic: topic, RequestId: num(2)})
		c.hear("PARTITIONED_METADATA_RESPONSE {request_id:2 response:Failed " + failed)
		c.say(&pulsarpb.CommandProducer{Topic: topic, ProducerId: num(1), RequestId: num(3)})
		c.hear("ERROR {request_id:3 " + failed)
		c.say(&pulsarpb.CommandSubscribe{Topic: topic, Subscription: proto.String("s"), SubType: exclusive.Enum(), ConsumerId: num(1), RequestId: num(4)})
		c.hear("ERROR {request_id:4 " + failed)
	}
}

func TestMetadataOfMissingTopics(t *testing.T) {
	r := serve(t)
	c := r.connect()
	ask := func(topic string, create *bool, want string) {
		t.Helper()
		c.say(&pulsarpb.CommandPartitionedTopicMetadata{Topic: &topic, RequestId: num(1), MetadataAutoCreationEnabled: create})
		c.hear("PARTITIONED_METADATA_RESPONSE {" + want + "}")
	}
	const missing = `request_id:1 response:Failed error:TopicNotFound message:""`
	ask(public+"m", nil, "partitions:0 request_id:1 response:Success")
	ask("m", nil, "partitions:0 request_id:1 response:Success")
	ask(public+"m", proto.Bool(false), missing)
	ask("persistent://public/nowhere/m", proto.Bool(false), missing)
	ask("persistent://public/nowhere/m", nil, `request_id:1 response:Failed error:TopicNotFound message:"Namespace not found"`)
	if r.broker.Exists(topicName(t, "m")) {
		t.Error("asking for metadata made the topic")
	}
	if err := r.broker.CreatePartitions(t.Context(), topicName(t, "parts"), 3); err != nil {
		t.Fatal(err)
	}
	ask(public+"parts", proto.Bool(false), "partitions:3 request_id:1 response:Success")
	ask(public+"parts-partition-2", nil, "partitions:0 request_id:1 response:Success")
	ask(public+"parts-partition-3", nil, missing)
	ask("persistent://pulsar/system/transaction_coordinator_assign", nil, "partitions:1 request_id:1 response:Success")
}

func TestWithoutAutoCreation(t *testing.T) {
	r := serve(t, func(_ *Options, o *edge.Options) { o.AutoCreate = false })
	c := r.connect()
	c.say(&pulsarpb.CommandLookupTopic{Topic: proto.String(public + "none"), RequestId: num(1)})
	c.hear("LOOKUP_RESPONSE {*response:Connect *")
	c.say(&pulsarpb.CommandPartitionedTopicMetadata{Topic: proto.String(public + "none"), RequestId: num(2)})
	c.hear(`PARTITIONED_METADATA_RESPONSE {request_id:2 response:Failed error:TopicNotFound message:""}`)
	c.say(producerCmd("none", 1, 3))
	c.hear(`ERROR {request_id:3 error:TopicNotFound message:"Topic not found persistent://public/default/none"}`)
	c.say(subscribeCmd("none", "s", exclusive, 1, 4))
	c.hear(`ERROR {request_id:4 error:TopicNotFound message:"Topic persistent://public/default/none does not exist"}`)
}

func TestTopicsThatBecomePartitioned(t *testing.T) {
	r := serve(t, func(_ *Options, o *edge.Options) { o.AutoPartitions = 2 })
	c := r.connect()
	for topic, want := range map[string]string{
		"many": "partitions:2", "s-DLQ": "partitions:0", "s-RETRY": "partitions:0", "x-partition-0": "partitions:0",
	} {
		c.say(&pulsarpb.CommandPartitionedTopicMetadata{Topic: proto.String(public + topic), RequestId: num(2)})
		c.hear(`PARTITIONED_METADATA_RESPONSE {` + want + ` request_id:2 response:Success}`)
	}
	c.say(&pulsarpb.CommandPartitionedTopicMetadata{Topic: proto.String(public + "no"), RequestId: num(3), MetadataAutoCreationEnabled: proto.Bool(false)})
	c.hear(`PARTITIONED_METADATA_RESPONSE {request_id:3 response:Failed error:TopicNotFound message:""}`)
	c.say(&pulsarpb.CommandGetTopicsOfNamespace{RequestId: num(4), Namespace: proto.String("public/default")})
	c.hear(`GET_TOPICS_OF_NAMESPACE_RESPONSE {request_id:4 topics:"` + public + `many-partition-0" topics:"` + public + `many-partition-1" *`)
}

func TestOddSubscriptions(t *testing.T) {
	r := serve(t)
	c := r.connect()
	refused := func(m *pulsarpb.CommandSubscribe, want string) {
		t.Helper()
		c.say(m)
		c.hear("ERROR {request_id:1 " + want + "}")
	}
	granted := func(m *pulsarpb.CommandSubscribe) {
		t.Helper()
		c.say(m)
		c.hear("SUCCESS {request_id:1}")
	}
	refused(subscribeCmd("odd", "", exclusive, 1, 1), `error:ProducerBusy message:"Empty subscription name"`)
	for _, reserved := range []string{"pulsar.repl.x", "pulsar.dedup"} {
		refused(subscribeCmd("odd", reserved, exclusive, 1, 1), `error:ProducerBusy message:"Subscription with reserved subscription name attempted"`)
	}
	granted(subscribeCmd("odd", "a/b", exclusive, 1, 1))
	granted(subscribeCmd("odd", "__compaction", exclusive, 2, 1))

	missing := subscribeCmd("missing", "s", exclusive, 3, 1)
	missing.ForceTopicCreation = proto.Bool(false)
	refused(missing, `error:TopicNotFound message:"Topic persistent://public/default/missing does not exist"`)

	compacted := subscribeCmd("odd", "c", shared, 3, 1)
	compacted.ReadCompacted = proto.Bool(true)
	refused(compacted, `error:NotAllowedError message:"readCompacted only allowed on failover or exclusive subscriptions"`)

	granted(subscribeCmd("odd", "k", keyShared_, 4, 1))
	sticky := func(ranges ...*pulsarpb.IntRange) *pulsarpb.CommandSubscribe {
		m := subscribeCmd("odd", "sticky", keyShared_, 5, 1)
		m.KeySharedMeta = &pulsarpb.KeySharedMeta{KeySharedMode: pulsarpb.KeySharedMode_STICKY.Enum(), HashRanges: ranges}
		return m
	}
	refused(sticky(), `error:ConsumerAssignError message:"Ranges for KeyShared policy must not be empty"`)
	refused(sticky(&pulsarpb.IntRange{Start: proto.Int32(10), End: proto.Int32(5)}), `error:ConsumerAssignError message:"*"`)

	granted(subscribeCmd("odd", "durable", shared, 6, 1))
	reader := subscribeCmd("odd", "durable", shared, 7, 1)
	reader.Durable = proto.Bool(false)
	refused(reader, "error:NotAllowedError message:*")

	wordy := subscribeCmd("odd", "wordy", shared, 7, 1)
	wordy.Metadata = []*pulsarpb.KeyValue{{Key: proto.String("k"), Value: proto.String(strings.Repeat("v", 2000))}}
	refused(wordy, `error:MetadataError message:"metadata has a max size of 1024 bytes"`)
	refused(subscribeCmd("odd", strings.Repeat("s", maxName+1), shared, 7, 1), `error:NotAllowedError message:"a name is longer *`)
}

func TestEmptyProducerNameCountsAsNone(t *testing.T) {
	r := serve(t)
	c := r.connect()
	m := producerCmd("named", 1, 1)
	m.ProducerName, m.InitialSubscriptionName = proto.String(""), proto.String("")
	c.say(m)
	c.hear(`PRODUCER_SUCCESS {request_id:1 producer_name:"standalone-0-0" last_sequence_id:-1 schema_version:"" producer_ready:true}`)
}

func TestInitialSubscriptionIsMade(t *testing.T) {
	r := serve(t)
	c := r.connect()
	m := producerCmd("with-initial", 1, 1)
	m.InitialSubscriptionName = proto.String("first")
	c.say(m)
	c.hear("PRODUCER_SUCCESS *")
	c.publish(1, 0, "before any consumer")
	c.hear("SEND_RECEIPT *")
	late := subscribeCmd("with-initial", "first", shared, 1, 2)
	late.InitialPosition = pulsarpb.CommandSubscribe_Latest.Enum()
	c.say(late, flowCmd(1, 10))
	c.hear("SUCCESS {request_id:2}")
	c.say(flowCmd(1, 10))
	c.hear(`MESSAGE *"before any consumer"`)
}

func TestListsOfTopics(t *testing.T) {
	r := serve(t)
	if err := r.broker.Catalog().CreateNamespace(t.Context(), "public/lists", nil); err != nil {
		t.Fatal(err)
	}
	for _, local := range []string{"a", "ccc"} {
		if err := r.broker.CreateTopic(t.Context(), edge.TopicName{Domain: edge.Persistent, Tenant: "public", Namespace: "lists", Local: local}); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.broker.CreatePartitions(t.Context(), edge.TopicName{Domain: edge.Persistent, Tenant: "public", Namespace: "lists", Local: "b"}, 2); err != nil {
		t.Fatal(err)
	}
	const (
		a, b0, b1, ccc = `topics:"persistent://public/lists/a" `, `topics:"persistent://public/lists/b-partition-0" `, `topics:"persistent://public/lists/b-partition-1" `, `topics:"persistent://public/lists/ccc" `
		all            = a + b0 + b1 + ccc
	)
	c := r.connect()
	for _, test := range []struct {
		m    *pulsarpb.CommandGetTopicsOfNamespace
		want string
	}{
		{&pulsarpb.CommandGetTopicsOfNamespace{}, all + `filtered:false topics_hash:"554d52f9" changed:true`},
		{&pulsarpb.CommandGetTopicsOfNamespace{TopicsHash: proto.String("554d52f9")}, `filtered:false topics_hash:"554d52f9" changed:false`},
		{&pulsarpb.CommandGetTopicsOfNamespace{TopicsHash: proto.String("12345678")}, all + `filtered:false topics_hash:"554d52f9" changed:true`},
		{&pulsarpb.CommandGetTopicsOfNamespace{Mode: pulsarpb.CommandGetTopicsOfNamespace_NON_PERSISTENT.Enum()}, `filtered:false topics_hash:"00000000" changed:true`},
		{&pulsarpb.CommandGetTopicsOfNamespace{Mode: pulsarpb.CommandGetTopicsOfNamespace_ALL.Enum()}, all + `filtered:false topics_hash:"554d52f9" changed:true`},
		{&pulsarpb.CommandGetTopicsOfNamespace{TopicsPattern: proto.String("persistent://public/lists/.*")}, all + `filtered:true topics_hash:"554d52f9" changed:true`},
		{&pulsarpb.CommandGetTopicsOfNamespace{TopicsPattern: proto.String("public/lists/b.*")}, b0 + b1 + `filtered:true topics_hash:"6a29926f" changed:true`},
		{&pulsarpb.CommandGetTopicsOfNamespace{TopicsPattern: proto.String("persistent://public/lists/b")}, b0 + b1 + `filtered:true topics_hash:"6a29926f" changed:true`},
		{&pulsarpb.CommandGetTopicsOfNamespace{TopicsPattern: proto.String("^persistent://public/lists/b$")}, b0 + b1 + `filtered:true topics_hash:"6a29926f" changed:true`},
		{&pulsarpb.CommandGetTopicsOfNamespace{TopicsPattern: proto.String("persistent://public/lists/c")}, `filtered:true topics_hash:"00000000" changed:true`},
		{&pulsarpb.CommandGetTopicsOfNamespace{TopicsPattern: proto.String("persistent://public/lists/(")}, all + `filtered:false topics_hash:"554d52f9" changed:true`},
		{&pulsarpb.CommandGetTopicsOfNamespace{TopicsPattern: proto.String("persistent://public/lists/" + strings.Repeat("a", 40) + ".*")}, all + `filtered:false topics_hash:"554d52f9" changed:true`},
		{&pulsarpb.CommandGetTopicsOfNamespace{Namespace: proto.String("public/nowhere")}, `filtered:false topics_hash:"00000000" changed:true`},
	} {
		test.m.RequestId = num(4)
		if test.m.Namespace == nil {
			test.m.Namespace = proto.String("public/lists")
		}
		c.say(test.m)
		c.hear("GET_TOPICS_OF_NAMESPACE_RESPONSE {request_id:4 " + test.want + "}")
	}
	c.say(&pulsarpb.CommandGetTopicsOfNamespace{RequestId: num(5), Namespace: proto.String("public")})
	c.hear("ERROR {request_id:5 error:MetadataError *")
}

// The value that a real broker gave for the list with a non-persistent topic in it.
func TestTopicsHashWithBothDomains(t *testing.T) {
	names := []string{
		"non-persistent://public/lists/np", "persistent://public/lists/a", "persistent://public/lists/b-partition-0",
		"persistent://public/lists/b-partition-1", "persistent://public/lists/ccc",
	}
	if got := topicsHash(slices.Values(names)); got != "9e755878" {
		t.Errorf("topicsHash = %s", got)
	}
}

func TestAdvertisedAddresses(t *testing.T) {
	for _, test := range []struct{ given, scheme, want string }{
		{"edge-7", "pulsar", "pulsar://edge-7:6650"},
		{"edge-7:7000", "pulsar", "pulsar://edge-7:7000"},
		{"pulsar://10.0.0.1:6650", "pulsar", "pulsar://10.0.0.1:6650"},
		{"pulsar://10.0.0.1:6650/", "pulsar", "pulsar://10.0.0.1:6650"},
		{"[fd00::1]:6650", "pulsar", "pulsar://[fd00::1]:6650"},
		{"fd00::1", "pulsar", "pulsar://[fd00::1]:6650"},
		{"http://edge-7", "pulsar", ""},
		{"pulsar://", "pulsar", ""},
		{"edge 7", "pulsar", ""},
		{"edge/7", "pulsar", ""},
	} {
		got, err := serviceURL(test.scheme, test.given, "6650")
		if (err != nil) != (test.want == "") || got != test.want {
			t.Errorf("serviceURL(%q) = %q, %v; want %q", test.given, got, err, test.want)
		}
	}
}

func TestAdvertisedAddressIsAnswered(t *testing.T) {
	r := serve(t, func(o *Options, _ *edge.Options) { o.Advertised, o.AdvertisedTLS = "edge-7", "edge-7" })
	c := r.connect()
	c.say(&pulsarpb.CommandLookupTopic{Topic: proto.String("x"), RequestId: num(1)})
	c.hear(`LOOKUP_RESPONSE {brokerServiceUrl:"pulsar://edge-7:6650" brokerServiceUrlTls:"pulsar+ssl://edge-7:6651" response:Connect request_id:1 authoritative:true proxy_through_service_url:false}`)
}

func TestLookupWithoutATCPAddress(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig, dial func() *client) {
		c := dial()
		if _, err := c.Connect(); err != nil {
			t.Fatal(err)
		}
		c.say(&pulsarpb.CommandLookupTopic{Topic: proto.String("x"), RequestId: num(1)})
		c.hear(`LOOKUP_RESPONSE {brokerServiceUrl:"pulsar://wayside:6650" *proxy_through_service_url:true}`)
	})
}
