package edge

import (
	"context"
	"fmt"
)

// What clients and administrators do with schemas, under the rules of Options.SchemaRules
// and the policy of the topic.

func (b *Broker) schemaRules() SchemaRules {
	if b.opts.SchemaRules == nil {
		return plainRules{}
	}
	return b.opts.SchemaRules
}

// PutSchema returns the version of a schema, which is added to a topic that does not have
// it, if it may follow those there. With upload it is an administrator's, who may do so
// where clients may not. ErrSchema, ErrSchemaForm or ErrLimit if not. It may wait.
func (b *Broker) PutSchema(ctx context.Context, name TopicName, s Schema, upload bool) (int64, error) {
	base, _ := name.Partition()
	for { // until nobody else adds one meanwhile, of which a topic has at most maxSchemaVersions
		version, have, err := b.judge(ctx, base, &s, upload)
		if err != nil || version >= 0 {
			return version, err
		}
		if v, ok, err := b.catalog.addSchema(ctx, base, s, have); ok || err != nil {
			return v, err
		}
	}
}

// MayPutSchema says why PutSchema would refuse an administrator's schema. It may wait.
func (b *Broker) MayPutSchema(ctx context.Context, name TopicName, s *Schema) error {
	_, _, err := b.judge(ctx, name, s, true)
	return err
}

// judge returns the version that a schema has, or −1 if it may become one behind the
// versions that there are.
func (b *Broker) judge(ctx context.Context, name TopicName, s *Schema, upload bool) (version int64, have int, err error) {
	if err := s.bounded(); err != nil {
		return -1, 0, err
	}
	policy, version := b.SchemaPolicy(name), int64(-1)
	err = b.catalog.lookAtSchemas(ctx, name, func(list []Schema) error {
		have = len(list)
		live, first := alive(list)
		if i := b.schemaRules().Find(s, live); i >= 0 {
			version = first + int64(i)
			return nil
		}
		if err := b.schemaRules().Validate(s); err != nil {
			return err
		}
		if !policy.AutoUpdate && !upload {
			return fmt.Errorf("%w: Schema not found and schema auto updating is disabled", ErrSchema)
		}
		return b.schemaRules().Follows(s, live, policy.Strategy)
	})
	return version, have, err
}

// SchemaVersion is the version of a schema that the topic has, −1 for none. It may wait.
func (b *Broker) SchemaVersion(ctx context.Context, name TopicName, s *Schema) (version int64, err error) {
	version = -1
	err = b.catalog.lookAtSchemas(ctx, name, func(list []Schema) error {
		live, first := alive(list)
		if i := b.schemaRules().Find(s, live); i >= 0 {
			version = first + int64(i)
		}
		return nil
	})
	return version, err
}

// ProducerSchema is the version under which somebody publishes with a schema, which is
// added if it may be, or without one, −1. It may wait.
func (b *Broker) ProducerSchema(ctx context.Context, name TopicName, s *Schema) (int64, error) {
	if s != nil {
		return b.PutSchema(ctx, name, *s, false)
	}
	if !b.SchemaPolicy(name).Enforced {
		return -1, nil
	}
	live, _, err := b.catalog.SchemaHistory(ctx, name)
	if err == nil && len(live) > 0 {
		err = fmt.Errorf("%w: Producers cannot connect or send message without a schema to topics with a schema when SchemaValidationEnforced is enabled", ErrSchema)
	}
	return -1, err
}

// consumerSchema compares a consumer's schema with the topic's. A topic that has none and
// is not in use takes it over.
func (t *Topic) consumerSchema(ctx context.Context, s *Schema) error {
	if s == nil {
		return nil
	}
	add, used, strategy := false, t.inUse(), t.broker.SchemaPolicy(t.name).Strategy
	err := t.broker.catalog.lookAtSchemas(ctx, t.name, func(list []Schema) error {
		live, _ := alive(list)
		add = len(live) == 0 && !used
		switch {
		case add || strategy == AlwaysCompatible:
			return nil
		case len(live) == 0:
			return fmt.Errorf("%w: Failed to add schema to an active topic with empty(BYTES) schema: new schema type %s",
				ErrSchema, SchemaTypeName(s.Type))
		}
		if err := s.bounded(); err != nil {
			return err
		}
		return t.broker.schemaRules().Reads(s, live, strategy)
	})
	if err == nil && add {
		_, err = t.broker.PutSchema(ctx, t.name, *s, false)
	}
	return err
}

// inUse reports whether there are producers, entries, or consumers that do not take
// whatever schema there is.
func (t *Topic) inUse() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if entries, _, _ := t.ledger.Spans().Totals(); entries > 0 || len(t.producers)+len(t.queue) > 0 {
		return true
	}
	for _, s := range t.subs {
		if s.picky() {
			return true
		}
	}
	return false
}

// picky reports whether some consumer does not take whatever schema there is.
func (s *Subscription) picky() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.consumers {
		if !c.opts.AnySchema {
			return true
		}
	}
	return false
}
