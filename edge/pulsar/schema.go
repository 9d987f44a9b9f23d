package pulsar

// GET_SCHEMA (protocol version 13 on), GET_OR_CREATE_SCHEMA (15 on), and the schemas in
// PRODUCER and SUBSCRIBE.
//
// Versions are 8 bytes, the highest first. GET_SCHEMA without one means the latest; one
// of no bytes is IncompatibleSchema; none found is TopicNotFound with a text. The schema
// is named after its topic, whatever its client called it. A deleted schema is one of
// type None, without data, under a version of its own, and what was before it is not found
// any more. GET_OR_CREATE_SCHEMA of type None stores nothing and succeeds with an empty
// version, unless topics have to have schemas: the Java client sends it before a message
// to a retry or dead letter topic. In PRODUCER and SUBSCRIBE type None is a schema like
// others: the Go client sends it for bytes, and reads it back (watched on 4.0.7).
//
// Deviations: none.

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"wayside/edge"
	"wayside/wire/pulsarpb"
)

func (s *session) handleGetSchema(c *pulsarpb.BaseCommand) error {
	m := c.GetGetSchema()
	return s.request(func(ctx context.Context) { s.getSchema(ctx, m) })
}

func (s *session) getSchema(ctx context.Context, m *pulsarpb.CommandGetSchema) {
	var memory edge.Grant
	found, version, err := s.findSchema(ctx, m)
	if err == nil { // as a command, and as a frame
		memory, err = s.srv.broker.Budget().Take(ctx, edge.ShareRead, int64(2*schemaBytes(found)))
	}
	if err != nil {
		code, text := s.tell(err)
		s.out.reply(&pulsarpb.CommandGetSchemaResponse{RequestId: m.RequestId, ErrorCode: &code, ErrorMessage: &text})
		return
	}
	s.out.replyLarge(&pulsarpb.CommandGetSchemaResponse{
		RequestId: m.RequestId, SchemaVersion: versionBytes(version),
		Schema: &pulsarpb.Schema{ // of a deleted one, nothing but the name is set
			Name:       &found.Name,
			SchemaData: append([]byte{}, found.Data...),
			Type:       pulsarpb.Schema_Type(found.Type).Enum(),
			Properties: keyValues(found.Properties),
		},
	}, memory)
}

// findSchema returns the schema that is asked for, named after its topic.
func (s *session) findSchema(ctx context.Context, m *pulsarpb.CommandGetSchema) (found edge.Schema, version int64, err error) {
	name, err := edge.ParseTopicName(m.GetTopic())
	if err != nil {
		return found, 0, err
	}
	asked := int64(-1)
	if m.SchemaVersion != nil {
		if len(m.SchemaVersion) == 0 {
			return found, 0, fmt.Errorf("%w: Empty schema version", edge.ErrSchema)
		}
		if asked = versionOf(m.SchemaVersion); asked < 0 {
			return found, 0, fmt.Errorf("%w: Topic not found or no-schema %s", edge.ErrSchemaNotFound, name)
		}
	}
	base, _ := name.Partition()
	found, version, err = s.srv.broker.Catalog().LiveSchema(ctx, base, asked)
	switch {
	case errors.Is(err, edge.ErrSchemaNotFound):
		return found, 0, fmt.Errorf("%w: Topic not found or no-schema %s", edge.ErrSchemaNotFound, name)
	case err != nil:
		return found, 0, err
	}
	found.Name = base.NamespaceName() + "/" + base.Local
	return found, version, nil
}

// schemaBytes is about what a schema takes in a frame.
func schemaBytes(s edge.Schema) int {
	const beside = 64 // heads of the fields
	n := len(s.Name) + len(s.Data) + beside
	for k, v := range s.Properties {
		n += len(k) + len(v) + beside
	}
	return n
}

// versionOf reads a version, -1 for what is none.
func versionOf(b []byte) int64 {
	if len(b) != 8 {
		return -1
	}
	return int64(binary.BigEndian.Uint64(b))
}

func keyValues(m map[string]string) []*pulsarpb.KeyValue {
	list := make([]*pulsarpb.KeyValue, 0, len(m))
	for _, k := range sortedKeys(m) {
		list = append(list, &pulsarpb.KeyValue{Key: proto.String(k), Value: proto.String(m[k])})
	}
	return list
}

func (s *session) handlePutSchema(c *pulsarpb.BaseCommand) error {
	m := c.GetGetOrCreateSchema()
	name, err := edge.ParseTopicName(m.GetTopic())
	if err != nil {
		s.answerPutSchema(m.GetRequestId(), -1, err)
		return nil
	}
	return s.request(func(ctx context.Context) {
		version, err := s.putSchema(ctx, name, m.GetSchema())
		s.answerPutSchema(m.GetRequestId(), version, err)
	})
}

func (s *session) putSchema(ctx context.Context, name edge.TopicName, m *pulsarpb.Schema) (int64, error) {
	base, _ := name.Partition()
	_, partitioned := s.srv.broker.Partitions(base)
	if !partitioned && !s.srv.broker.Exists(name) {
		return -1, fmt.Errorf("%w: Topic not found %s", edge.ErrTopicNotFound, name)
	}
	schema, err := producerSchema(m, name)
	if err != nil {
		return -1, err
	}
	if m.GetType() == pulsarpb.Schema_None {
		schema = nil
	}
	return s.srv.broker.ProducerSchema(ctx, base, schema)
}

func (s *session) answerPutSchema(request uint64, version int64, err error) {
	answer := &pulsarpb.CommandGetOrCreateSchemaResponse{RequestId: &request}
	if err != nil {
		code, text := s.tell(err)
		answer.ErrorCode, answer.ErrorMessage = &code, &text
	} else {
		answer.SchemaVersion = versionBytes(version)
	}
	s.out.reply(answer)
}

// producerSchema is the schema that a producer brings, nil for none.
func producerSchema(m *pulsarpb.Schema, name edge.TopicName) (*edge.Schema, error) {
	if m.GetType() == pulsarpb.Schema_AutoConsume {
		return nil, fmt.Errorf("%w: Schema AUTO_CONSUME is a client-side schema type", edge.ErrSchema)
	}
	return consumerSchema(m, name), nil
}

// consumerSchema is the schema that a consumer brings, nil for none and for one that
// takes whatever comes.
func consumerSchema(m *pulsarpb.Schema, name edge.TopicName) *edge.Schema {
	if m == nil || m.GetType() == pulsarpb.Schema_AutoConsume {
		return nil
	}
	base, _ := name.Partition()
	s := &edge.Schema{Name: base.NamespaceName() + "/" + base.Local, Type: int32(m.GetType()), Data: m.GetSchemaData()}
	if len(m.GetProperties()) > 0 {
		s.Properties = map[string]string{}
		for _, p := range m.GetProperties() {
			s.Properties[p.GetKey()] = p.GetValue()
		}
	}
	return s
}
