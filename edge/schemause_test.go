package edge_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"wayside/edge"
	"wayside/edge/schema"
)

const (
	schemaA  = `{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}`
	schemaAB = `{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"b","type":"int","default":0}]}`
	schemaS  = `{"type":"record","name":"R","fields":[{"name":"a","type":"string"}]}`
)

func avro(text string) *edge.Schema { return &edge.Schema{Type: 4, Data: []byte(text)} }

func newSchemaKit(t *testing.T, change func(*edge.Options)) *kit {
	return newKit(t, func(o *edge.Options) {
		o.SchemaRules = schema.Rules{}
		if change != nil {
			change(o)
		}
	})
}

// tryProducer comes and goes with a schema, nil for none, and tells its version.
func (k *kit) tryProducer(topic *edge.Topic, s *edge.Schema) (int64, error) {
	p, err := topic.AddProducer(k.Context(), edge.ProducerOptions{Schema: s}, &end{}, &peer{})
	if err != nil {
		return -1, err
	}
	p.Close(nil)
	return p.SchemaVersion(), nil
}

func (k *kit) tryConsumer(topic *edge.Topic, name string, s *edge.Schema, any bool) error {
	o := subscription(name, edge.Shared)
	o.Schema, o.AnySchema = s, any
	_, err := topic.Subscribe(k.Context(), o, &inbox{}, &peer{})
	return err
}

// Who may bring a schema first, and what consumers have to read (watched on 4.0.7).
func TestWhoSetsATopicsSchema(t *testing.T) {
	k := newSchemaKit(t, nil)
	for _, c := range []struct {
		name   string
		before func(*edge.Topic) error
		err    error
	}{
		{"nobody", func(*edge.Topic) error { return nil }, nil},
		{"a consumer of any schema", func(topic *edge.Topic) error { return k.tryConsumer(topic, "any", nil, true) }, nil},
		{"a consumer without", func(topic *edge.Topic) error { return k.tryConsumer(topic, "none", nil, false) }, edge.ErrSchema},
		{"a producer without", func(topic *edge.Topic) error {
			_, err := topic.AddProducer(k.Context(), edge.ProducerOptions{}, &end{}, &peer{})
			return err
		}, edge.ErrSchema},
		{"a schema that it reads", func(topic *edge.Topic) error { _, err := k.tryProducer(topic, avro(schemaAB)); return err }, nil},
		{"a schema that it cannot read", func(topic *edge.Topic) error { _, err := k.tryProducer(topic, avro(schemaS)); return err }, edge.ErrSchema},
	} {
		topic := k.topic("after " + c.name)
		if err := c.before(topic); err != nil {
			t.Fatal(c.name, err)
		}
		err := k.tryConsumer(topic, "s", avro(schemaA), false)
		if !errors.Is(err, c.err) {
			t.Errorf("after %s: %v", c.name, err)
		}
	}
}

func TestSchemaPolicies(t *testing.T) {
	k := newSchemaKit(t, nil)
	yes, no, never, older := true, false, edge.AlwaysIncompatible.String(), "Forward"
	set := func(of string, change func(*edge.Policies)) {
		t.Helper()
		if err := k.broker.ChangePolicies(k.Context(), of, func(p *edge.Policies) error { change(p); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	topic := k.topic("t")
	if v, err := k.tryProducer(topic, avro(schemaA)); v != 0 || err != nil {
		t.Fatal(v, err)
	}
	set("public/default", func(p *edge.Policies) { p.SchemaEnforced, p.SchemaAutoUpdate = &yes, &no })
	_, err := k.tryProducer(topic, nil)
	wants(t, "none where one has to be", err, edge.ErrSchema)
	if _, err := k.tryProducer(k.topic("bare"), nil); err != nil {
		t.Errorf("none where there is none: %v", err)
	}
	_, err = k.tryProducer(topic, avro(schemaAB))
	wants(t, "a new one without automatic updates", err, edge.ErrSchema)
	if v, err := k.broker.PutSchema(k.Context(), topic.Name(), *avro(schemaAB), true); v != 1 || err != nil {
		t.Errorf("an administrator's: %d, %v", v, err)
	}
	if v, err := k.tryProducer(topic, avro(schemaAB)); v != 1 || err != nil {
		t.Errorf("one that is there: %d, %v", v, err)
	}
	set("public/default", func(p *edge.Policies) { *p = edge.Policies{SchemaStrategy: &never} })
	if got := k.broker.SchemaPolicy(topic.Name()); got != (edge.SchemaPolicy{Strategy: edge.AlwaysIncompatible, AutoUpdate: true}) {
		t.Errorf("of the namespace: %+v", got)
	}
	set("public/default", func(p *edge.Policies) { *p = edge.Policies{SchemaAutoUpdateStrategy: &older} })
	if got := k.broker.SchemaPolicy(topic.Name()).Strategy; got != edge.Forward {
		t.Errorf("of the namespace by its older name: %v", got)
	}
	set(topic.Name().String(), func(p *edge.Policies) { p.SchemaStrategy = &never })
	if got := k.broker.SchemaPolicy(topic.Name()).Strategy; got != edge.AlwaysIncompatible {
		t.Errorf("of the topic: %v", got)
	}
}

func TestSchemasAreBounded(t *testing.T) {
	k := newSchemaKit(t, func(o *edge.Options) { o.SchemaStrategy = edge.AlwaysCompatible })
	put := func(s edge.Schema) (int64, error) { return k.broker.PutSchema(k.Context(), k.name("t"), s, false) }
	_, err := put(edge.Schema{Type: 0, Data: make([]byte, 1<<20)})
	wants(t, "a large one", err, edge.ErrSchemaForm)
	_, err = put(edge.Schema{Type: 0, Properties: map[string]string{"k": string(make([]byte, 1<<20))}})
	wants(t, "a large property", err, edge.ErrSchemaForm)
	for i := range 100 {
		if v, err := put(edge.Schema{Type: 0, Data: []byte{byte(i)}}); v != int64(i) || err != nil {
			t.Fatal(i, v, err)
		}
	}
	_, err = put(edge.Schema{Type: 0, Data: []byte("one more")})
	wants(t, "a version too many", err, edge.ErrLimit)
	for i := range 3 {
		if _, err = k.broker.PutSchema(k.Context(), k.name("u"), edge.Schema{Type: 0, Data: append(make([]byte, 120<<10), byte(i))}, false); err != nil {
			break
		}
	}
	if err == nil {
		_, err = k.broker.PutSchema(k.Context(), k.name("u"), edge.Schema{Type: 0, Data: make([]byte, 120<<10)}, false)
	}
	wants(t, "too much of one topic", err, edge.ErrLimit)
}

// Many producers bring two schemas at once: each gets the version of its own.
func TestSchemasBroughtAtOnce(t *testing.T) {
	k := newSchemaKit(t, nil)
	var all sync.WaitGroup
	versions := make([]int64, 40)
	for i := range versions {
		all.Go(func() {
			s := avro([]string{schemaA, schemaAB}[i%2])
			var err error
			if versions[i], err = k.broker.PutSchema(context.Background(), k.name("t"), *s, false); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for i, v := range versions {
		if v != versions[i%2] || v < 0 || v > 1 {
			t.Fatalf("versions %v", versions)
		}
	}
}

func TestWhatWasBeforeADeletion(t *testing.T) {
	k := newSchemaKit(t, nil)
	topic, c := k.topic("t"), k.broker.Catalog()
	if _, err := k.tryProducer(topic, avro(schemaA)); err != nil {
		t.Fatal(err)
	}
	if v, err := c.DeleteSchema(k.Context(), topic.Name()); v != 1 || err != nil {
		t.Fatal(v, err)
	}
	if s, at, err := c.LiveSchema(k.Context(), topic.Name(), -1); err != nil || at != 1 || !s.Deleted {
		t.Errorf("the latest is %+v, %d, %v", s, at, err)
	}
	_, _, err := c.LiveSchema(k.Context(), topic.Name(), 0)
	wants(t, "the one before", err, edge.ErrSchemaNotFound)
	if s, _, err := c.Schema(k.Context(), topic.Name(), 0); err != nil || string(s.Data) != schemaA {
		t.Errorf("the one before, for those who may: %v", err)
	}
	if v, err := k.tryProducer(topic, avro(schemaS)); v != 2 || err != nil {
		t.Errorf("the next: %d, %v", v, err)
	}
}
