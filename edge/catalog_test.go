package edge_test

import (
	"testing"

	"wayside/edge"
)

func TestADeletedSchemaBeginsANewVersion(t *testing.T) {
	k := newKit(t, nil)
	c := k.broker.Catalog()
	name, err := edge.ParseTopicName("typed")
	if err != nil {
		t.Fatal(err)
	}
	put := func() int64 {
		v, err := c.PutSchema(t.Context(), name, edge.Schema{Type: 1})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if a, b := put(), put(); a != 0 || b != 0 {
		t.Fatalf("the same schema is version %d and %d", a, b)
	}
	if v, err := c.DeleteSchema(t.Context(), name); err != nil || v != 1 {
		t.Fatalf("the deletion is version %d, %v", v, err)
	}
	if _, _, ok := c.Schema(name, -1); ok {
		t.Fatal("a deleted schema is told")
	}
	if v := put(); v != 2 {
		t.Fatalf("after the deletion it is version %d", v)
	}
}

func TestANamespaceTakesItsPartitionedTopicsAlong(t *testing.T) {
	k := newKit(t, nil)
	c := k.broker.Catalog()
	if err := c.CreateNamespace(t.Context(), "public/gone", nil); err != nil {
		t.Fatal(err)
	}
	base, err := edge.ParseTopicName("public/gone/parts")
	if err != nil {
		t.Fatal(err)
	}
	if err := k.broker.CreatePartitions(t.Context(), base, 3); err != nil {
		t.Fatal(err)
	}
	if err := k.broker.DeleteNamespace(t.Context(), "public/gone", true); err != nil {
		t.Fatal(err)
	}
	if _, ok := k.broker.Partitions(base); ok || len(k.broker.Names("public/gone")) > 0 {
		t.Fatalf("partitioned %t, topics %v", ok, k.broker.Names("public/gone"))
	}
}
