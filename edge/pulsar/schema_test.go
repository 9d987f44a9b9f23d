package pulsar

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"wayside/wire/pulsarpb"
)

func schemaOf(kind pulsarpb.Schema_Type, data string) *pulsarpb.Schema {
	return &pulsarpb.Schema{Name: proto.String("given"), Type: &kind, SchemaData: []byte(data)}
}

func TestSchemas(t *testing.T) {
	r := serve(t)
	c := r.connect()
	topic := proto.String(public + "schemas")
	get := func(version []byte, want string) {
		t.Helper()
		c.say(&pulsarpb.CommandGetSchema{RequestId: num(1), Topic: topic, SchemaVersion: version})
		c.hear("GET_SCHEMA_RESPONSE {request_id:1 " + want + "}")
	}
	put := func(s *pulsarpb.Schema, want string) {
		t.Helper()
		c.say(&pulsarpb.CommandGetOrCreateSchema{RequestId: num(2), Topic: topic, Schema: s})
		c.hear("GET_OR_CREATE_SCHEMA_RESPONSE {request_id:2 " + want + "}")
	}
	get(nil, `error_code:TopicNotFound error_message:"Topic not found or no-schema persistent://public/default/schemas"`)
	put(schemaOf(pulsarpb.Schema_String, ""), `error_code:TopicNotFound error_message:"Topic not found persistent://public/default/schemas"`)

	m := producerCmd("schemas", 1, 1)
	m.Schema = schemaOf(pulsarpb.Schema_Json, `{"type":"record","name":"R","fields":[]}`)
	c.say(m)
	c.hear(`PRODUCER_SUCCESS {request_id:1 producer_name:"standalone-0-0" last_sequence_id:-1 schema_version:"\x00\x00\x00\x00\x00\x00\x00\x00" producer_ready:true}`)
	const zero = `schema {name:"public/default/schemas" schema_data:"{\"type\":\"record\",\"name\":\"R\",\"fields\":[]}" type:Json} schema_version:"\x00\x00\x00\x00\x00\x00\x00\x00"`
	get(nil, zero)
	get([]byte{0, 0, 0, 0, 0, 0, 0, 0}, zero)
	get([]byte{}, `error_code:IncompatibleSchema error_message:"Empty schema version"`)
	get([]byte{0, 0, 0, 0, 0, 0, 0, 7}, `error_code:TopicNotFound error_message:"Topic not found or no-schema *"`)
	get([]byte{1}, `error_code:TopicNotFound error_message:"*"`)
	put(schemaOf(pulsarpb.Schema_Json, `{"type":"record","name":"R","fields":[]}`), `schema_version:"\x00\x00\x00\x00\x00\x00\x00\x00"`)
	put(schemaOf(pulsarpb.Schema_None, ""), `schema_version:""`)
	put(schemaOf(pulsarpb.Schema_String, ""), `error_code:IncompatibleSchema error_message:"*"`)
	put(schemaOf(pulsarpb.Schema_AutoConsume, ""), `error_code:IncompatibleSchema error_message:"Schema AUTO_CONSUME is a client-side schema type"`)

	m = producerCmd("schemas", 2, 3)
	m.Schema = schemaOf(pulsarpb.Schema_Int32, "")
	c.say(m)
	c.hear("ERROR {request_id:3 error:IncompatibleSchema message:*")
	m.Schema = schemaOf(pulsarpb.Schema_AutoConsume, "")
	c.say(m)
	c.hear(`ERROR {request_id:3 error:IncompatibleSchema message:"Schema AUTO_CONSUME is a client-side schema type"}`)

	s := subscribeCmd("schemas", "s", shared, 1, 4)
	s.Schema = schemaOf(pulsarpb.Schema_AutoConsume, "")
	c.say(s)
	c.hear("SUCCESS {request_id:4}")

	if _, err := r.broker.Catalog().DeleteSchema(t.Context(), topicName(t, "schemas")); err != nil {
		t.Fatal(err)
	}
	get(nil, `schema {name:"public/default/schemas" schema_data:"" type:None} schema_version:"\x00\x00\x00\x00\x00\x00\x00\x01"`)
}
