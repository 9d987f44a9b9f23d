package edge_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"wayside/edge"
)

// wants fails unless the error is, or wraps, the wanted one.
func wants(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

func TestTheCatalogOutlivesARestart(t *testing.T) {
	k := newKit(t, nil)
	ctx := t.Context()
	tenant := edge.Tenant{AdminRoles: []string{"boss"}, AllowedClusters: []string{"standalone"}}
	avro := edge.Schema{Name: "r", Type: 4, Data: []byte("{}"), Properties: map[string]string{"k": "v"}}
	check := func(step string) {
		t.Helper()
		c := k.broker.Catalog()
		if got, ok := c.Tenant("acme"); !ok || !reflect.DeepEqual(got, tenant) {
			t.Errorf("%s: tenant %+v", step, got)
		}
		if got := c.Tenants(); !slices.Equal(got, []string{"acme", "public"}) {
			t.Errorf("%s: tenants %v", step, got)
		}
		if got := c.Namespaces("acme"); !slices.Equal(got, []string{"acme/a", "acme/b"}) {
			t.Errorf("%s: namespaces %v", step, got)
		}
		if got, ok := c.NamespaceData("acme/a"); !ok || string(got) != `{"x":1}` {
			t.Errorf("%s: policies %s", step, got)
		}
		if n, ok := k.broker.Partitions(k.name("acme/a/parts")); !ok || n != 3 {
			t.Errorf("%s: %d partitions", step, n)
		}
		if got, version, err := c.Schema(ctx, k.name("acme/a/parts-partition-1"), -1); err != nil || version != 0 || string(got.Data) != "{}" {
			t.Errorf("%s: schema %+v, version %d, %v", step, got, version, err)
		}
		if got := k.broker.Names("acme/a"); len(got) != 3 || got[2] != k.name("acme/a/parts-partition-2") {
			t.Errorf("%s: topics %v", step, got)
		}
		if got := k.broker.PartitionedTopics("acme/a"); !slices.Equal(got, []edge.TopicName{k.name("acme/a/parts")}) {
			t.Errorf("%s: partitioned topics %v", step, got)
		}
	}
	c := k.broker.Catalog()
	for _, err := range []error{
		c.PutTenant(ctx, "acme", tenant),
		c.CreateNamespace(ctx, "acme/a", []byte(`{"x":1}`)),
		c.CreateNamespace(ctx, "acme/b", nil),
		k.broker.CreatePartitions(ctx, k.name("acme/a/parts"), 3),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if v, err := k.broker.PutSchema(ctx, k.name("acme/a/parts"), avro, false); v != 0 || err != nil {
		t.Fatal(v, err)
	}
	check("before")
	first := k.topic("acme/a/parts-partition-0")
	p, _ := k.producer(first, edge.ProducerOptions{})
	name := p.Name()
	k.restart(nil)
	check("after")
	if p, _ := k.producer(k.topic("acme/a/parts-partition-0"), edge.ProducerOptions{}); p.Name() == name {
		t.Errorf("the name %s was made up twice", name)
	}
}

func TestWhatTheCatalogRefuses(t *testing.T) {
	k := newKit(t, func(o *edge.Options) { o.AutoCreate = false })
	ctx, c := t.Context(), k.broker.Catalog()
	wants(t, "a tenant's name", c.PutTenant(ctx, "a/b", edge.Tenant{}), edge.ErrName)
	wants(t, "a namespace's name", c.CreateNamespace(ctx, "public", nil), edge.ErrName)
	wants(t, "a namespace without tenant", c.CreateNamespace(ctx, "nobody/a", nil), edge.ErrTenantNotFound)
	wants(t, "a namespace that is there", c.CreateNamespace(ctx, "public/default", nil), edge.ErrExists)
	wants(t, "policies", c.CreateNamespace(ctx, "public/big", make([]byte, 1<<20)), edge.ErrLimit)
	wants(t, "deleting nobody", c.DeleteTenant(ctx, "nobody"), edge.ErrTenantNotFound)
	wants(t, "deleting a full tenant", c.DeleteTenant(ctx, "public"), edge.ErrNotEmpty)
	wants(t, "deleting no namespace", k.broker.DeleteNamespace(ctx, "public/nothing", false), edge.ErrNamespaceNotFound)
	wants(t, "looking up nothing", k.broker.Lookup(k.name("public/nothing/t")), edge.ErrNamespaceNotFound)
	wants(t, "a topic in nothing", k.broker.CreateTopic(ctx, k.name("public/nothing/t")), edge.ErrNamespaceNotFound)
	if err := k.broker.CreateTopic(ctx, k.name("plain")); err != nil {
		t.Fatal(err)
	}
	wants(t, "a topic that is there", k.broker.CreateTopic(ctx, k.name("plain")), edge.ErrExists)
	wants(t, "partitions of a plain topic", k.broker.CreatePartitions(ctx, k.name("plain"), 2), edge.ErrExists)
	wants(t, "no partitions", k.broker.CreatePartitions(ctx, k.name("x"), 0), edge.ErrBadRequest)
	wants(t, "partitions of a partition", k.broker.CreatePartitions(ctx, k.name("x-partition-0"), 2), edge.ErrName)
	wants(t, "more of a plain topic", k.broker.UpdatePartitions(ctx, k.name("plain"), 2), edge.ErrNotAllowed)
	wants(t, "deleting what is not partitioned", k.broker.DeletePartitions(ctx, k.name("plain"), true), edge.ErrTopicNotFound)
	if err := k.broker.CreatePartitions(ctx, k.name("p"), 2); err != nil {
		t.Fatal(err)
	}
	wants(t, "fewer partitions", k.broker.UpdatePartitions(ctx, k.name("p"), 1), edge.ErrBadRequest)
	_, err := k.broker.Open(ctx, k.name("p"), true)
	wants(t, "the base name", err, edge.ErrNotAllowed)
	_, err = k.broker.Open(ctx, k.name("p-partition-2"), true)
	wants(t, "a partition too many", err, edge.ErrTopicNotFound)
	_, err = k.broker.Open(ctx, k.name("missing"), false)
	wants(t, "a missing topic", err, edge.ErrTopicNotFound)
	_, err = k.broker.TopicStats(ctx, k.name("missing"))
	wants(t, "statistics of nothing", err, edge.ErrTopicNotFound)
	for name, want := range map[string]int{"p": 2, "plain": 0, "p-partition-1": 0, "p-partition-2": -1, "missing": -1} {
		n, err := k.broker.Metadata(ctx, k.name(name), true)
		if want < 0 {
			wants(t, "metadata of "+name, err, edge.ErrTopicNotFound)
		} else if n != want || err != nil {
			t.Errorf("metadata of %s: %d, %v", name, n, err)
		}
	}
	_, clients := k.producer(k.topic("p-partition-1"), edge.ProducerOptions{})
	wants(t, "deleting partitions in use", k.broker.DeletePartitions(ctx, k.name("p"), false), edge.ErrTopicInUse)
	wants(t, "deleting a full namespace", k.broker.DeleteNamespace(ctx, "public/default", false), edge.ErrNotEmpty)
	if err := k.broker.DeleteNamespace(ctx, "public/default", true); err != nil {
		t.Fatal(err)
	}
	if len(k.broker.Names("")) != 0 || len(k.broker.PartitionedTopics("public/default")) != 0 || clients.reason() == nil {
		t.Errorf("left are %v, %v; the client was told %v", k.broker.Names(""), k.broker.PartitionedTopics("public/default"), clients.reason())
	}
	if err := c.DeleteTenant(ctx, "public"); err != nil {
		t.Fatal(err)
	}
}

func TestNamespacesComeByThemselvesWhereThatIsWanted(t *testing.T) {
	k := newKit(t, func(o *edge.Options) { o.AutoCreateNamespaces = true })
	k.topic("acme/plant/a")
	if got := k.broker.Catalog().Namespaces("acme"); !slices.Equal(got, []string{"acme/plant"}) {
		t.Fatalf("namespaces %v", got)
	}
}

func TestSchemasOfProducersAndConsumersHaveToFit(t *testing.T) {
	k := newKit(t, nil)
	topic := k.topic("schema")
	first, other := &edge.Schema{Type: 4, Data: []byte("a")}, &edge.Schema{Type: 4, Data: []byte("b")}
	p, _ := k.producer(topic, edge.ProducerOptions{Schema: first})
	if p.SchemaVersion() != 0 {
		t.Errorf("version %d", p.SchemaVersion())
	}
	_, err := topic.AddProducer(t.Context(), edge.ProducerOptions{Schema: other}, &end{}, &peer{})
	wants(t, "another schema", err, edge.ErrSchema)
	o := subscription("s", edge.Shared)
	o.Schema = other
	_, err = topic.Subscribe(t.Context(), o, &inbox{}, &peer{})
	wants(t, "a consumer with another schema", err, edge.ErrSchema)
	o.Schema = first
	k.subscribe(topic, o)
	if p, _ := k.producer(topic, edge.ProducerOptions{}); p.SchemaVersion() != -1 {
		t.Errorf("without a schema the version is %d", p.SchemaVersion())
	}
}

func TestWatchersAreWokenWhenTopicsComeAndGo(t *testing.T) {
	k := newKit(t, nil)
	wake, stop := k.broker.Watch()
	none := func(what string) {
		t.Helper()
		select {
		case <-wake:
			t.Errorf("woken by %s", what)
		default:
		}
	}
	none("nothing")
	k.topic("a")
	k.topic("b")
	recv(t, wake)
	none("what was told already")
	k.topic("a")
	if err := k.broker.Unload(t.Context(), k.name("a")); err != nil {
		t.Fatal(err)
	}
	none("an unload")
	if err := k.broker.Delete(t.Context(), k.name("a"), false); err != nil {
		t.Fatal(err)
	}
	recv(t, wake)
	stop()
	k.topic("c")
	none("anything after the end")
}

func TestNamesAreSortedAsTheyAreWritten(t *testing.T) {
	k := newKit(t, func(o *edge.Options) { o.AutoCreateNamespaces = true })
	var want []string
	for _, name := range []string{"a/b/t", "a-b/c/t", "a/b-c/t", "a/b/t-partition-10", "a/b/t-partition-9"} {
		want = append(want, k.topic(name).Name().String())
	}
	slices.Sort(want)
	if got := fmt.Sprint(k.broker.Names("")); got != fmt.Sprint(want) {
		t.Fatalf("got %v\nwant %v", got, want)
	}
}
