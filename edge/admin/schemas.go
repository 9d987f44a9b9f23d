package admin

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"

	"wayside/edge"
)

// schemaRoutes: read, upload and delete a topic's schema (protocol 5.2 and 3.15,
// captures curl-schemas). The topic need not exist; partitions have the schema of their
// base name. Versions count from 0; a deletion is a version too, and later uploads count
// on. An identical schema gets the version that it has; one that may not follow is 409.
func (s *Server) schemaRoutes() {
	const topic = " /admin/v2/schemas/{tenant}/{namespace}/{topic}"
	s.handle("GET"+topic+"/schema", s.getSchema)
	s.handle("GET"+topic+"/schema/{version}", s.getSchema)
	s.handle("GET"+topic+"/schemas", s.listSchemas)
	s.handle("POST"+topic+"/schema", s.postSchema)
	s.handle("DELETE"+topic+"/schema", s.deleteSchema)
	s.handle("POST"+topic+"/version", s.schemaVersion)
	s.handle("POST"+topic+"/compatibility", s.schemaCompatibility)
}

// schemaTypes are the names of Schema.Type by its number (protocol 6.4). BYTES, which
// clients upload, has NONE's number and reads back as NONE.
var schemaTypes = []string{
	"NONE", "STRING", "JSON", "PROTOBUF", "AVRO", "BOOLEAN", "INT8", "INT16", "INT32", "INT64",
	"FLOAT", "DOUBLE", "DATE", "TIME", "TIMESTAMP", "KEY_VALUE", "INSTANT", "LOCAL_DATE",
	"LOCAL_TIME", "LOCAL_DATE_TIME", "PROTOBUF_NATIVE", "AUTO_CONSUME",
}

const keyValue = "KEY_VALUE"

func typeName(n int32) string {
	if n < 0 || int(n) >= len(schemaTypes) {
		return "NONE"
	}
	return schemaTypes[n]
}

// typeNumber knows what can be uploaded: AUTO_CONSUME is a client's own affair.
func typeNumber(name string) (int32, bool) {
	if name == "BYTES" {
		return 0, true
	}
	for n, known := range schemaTypes[:len(schemaTypes)-1] {
		if known == name {
			return int32(n), true
		}
	}
	return 0, false
}

// schemaData is a schema version as it is read.
type schemaData struct {
	Version    int64             `json:"version"`
	Type       string            `json:"type"`
	Timestamp  int64             `json:"timestamp"` // ms since 1970
	Data       string            `json:"data"`
	Properties map[string]string `json:"properties"`
}

func dataOf(schema edge.Schema, version int64) schemaData {
	d := schemaData{
		Version:    version,
		Type:       typeName(schema.Type),
		Timestamp:  schema.Created,
		Data:       string(schema.Data),
		Properties: schema.Properties,
	}
	if d.Type == keyValue {
		d.Data = joinedText(schema.Data)
	}
	if d.Properties == nil {
		d.Properties = map[string]string{}
	}
	return d
}

// schemaTopic is the topic whose schema a path means.
func schemaTopic(r *http.Request) (edge.TopicName, error) {
	name, err := topicOf(r, edge.Persistent)
	base, _ := name.Partition()
	return base, err
}

func (s *Server) getSchema(r *http.Request) (any, error) {
	name, err := schemaTopic(r)
	if err != nil {
		return nil, err
	}
	version := int64(-1)
	if text := r.PathValue("version"); text != "" {
		if version, err = strconv.ParseInt(text, 10, 64); err != nil || version < 0 {
			return nil, edge.ErrSchemaNotFound
		}
	}
	schema, version, ok := s.broker.Catalog().Schema(name, version)
	if !ok {
		return nil, edge.ErrSchemaNotFound
	}
	return dataOf(schema, version), nil
}

// living visits the versions since the last deletion, in order.
func (s *Server) living(name edge.TopicName, visit func(edge.Schema, int64)) {
	_, last, _ := s.broker.Catalog().Schema(name, -1)
	first := last + 1
	for first > 0 {
		if _, _, ok := s.broker.Catalog().Schema(name, first-1); !ok {
			break
		}
		first--
	}
	for v := first; v <= last; v++ {
		if schema, _, ok := s.broker.Catalog().Schema(name, v); ok {
			visit(schema, v)
		}
	}
}

// listSchemas tells all versions since the last deletion, as Pulsar does.
func (s *Server) listSchemas(r *http.Request) (any, error) {
	name, err := schemaTopic(r)
	if err != nil {
		return nil, err
	}
	all := struct {
		Responses []schemaData `json:"getSchemaResponses"`
	}{[]schemaData{}}
	s.living(name, func(schema edge.Schema, v int64) { all.Responses = append(all.Responses, dataOf(schema, v)) })
	return all, nil
}

// upload is the body of an upload.
type upload struct {
	Type       string            `json:"type"`
	Schema     *string           `json:"schema"`
	Properties map[string]string `json:"properties"`
}

// schemaIn reads an upload. Definitions that are JSON have to be, at least; whether
// they make sense is not looked at here.
func schemaIn(r *http.Request, name edge.TopicName) (edge.Schema, error) {
	var up upload
	present, err := body(r, &up)
	switch {
	case err != nil:
		return edge.Schema{}, err
	case !present || up.Schema == nil || up.Type == "":
		return edge.Schema{}, refuse(http.StatusBadRequest, "A schema has type, schema and properties")
	}
	number, ok := typeNumber(up.Type)
	if !ok {
		return edge.Schema{}, refuse(http.StatusUnprocessableEntity, "Unknown schema type %s", up.Type)
	}
	schema := edge.Schema{
		Name:       name.NamespaceName() + "/" + name.Local,
		Type:       number,
		Data:       []byte(*up.Schema),
		Properties: up.Properties,
	}
	switch up.Type {
	case "JSON", "AVRO", "PROTOBUF", "PROTOBUF_NATIVE":
		ok = json.Valid(schema.Data)
	case keyValue:
		schema.Data, ok = joined(*up.Schema)
	}
	if !ok {
		return edge.Schema{}, refuse(http.StatusUnprocessableEntity, "Invalid schema definition data for %s schema", up.Type)
	}
	return schema, nil
}

// version is a number in an answer.
type version struct {
	Version int64 `json:"version"`
}

func (s *Server) postSchema(r *http.Request) (any, error) {
	name, err := schemaTopic(r)
	if err != nil {
		return nil, err
	}
	if !s.broker.Catalog().HasNamespace(name.NamespaceName()) {
		return nil, refuse(http.StatusNotFound, "Namespace does not exist")
	}
	schema, err := schemaIn(r, name)
	if err != nil {
		return nil, err
	}
	v, err := s.broker.Catalog().PutSchema(r.Context(), name, schema)
	if err != nil {
		return nil, err
	}
	return struct {
		Version version `json:"version"`
	}{version{v}}, nil
}

// deleteSchema answers the number of the deletion's own version, −1 by force, after
// which the count begins anew.
func (s *Server) deleteSchema(r *http.Request) (any, error) {
	name, err := schemaTopic(r)
	if err != nil {
		return nil, err
	}
	if switchOn(r, "force") {
		return version{-1}, s.broker.Catalog().ForgetSchemas(r.Context(), name)
	}
	v, err := s.broker.Catalog().DeleteSchema(r.Context(), name)
	if err != nil {
		return nil, err
	}
	return version{v}, nil
}

// schemaVersion answers which version a definition has, −1 for none.
func (s *Server) schemaVersion(r *http.Request) (any, error) {
	name, err := schemaTopic(r)
	if err != nil {
		return nil, err
	}
	schema, err := schemaIn(r, name)
	if err != nil {
		return nil, err
	}
	return version{s.versionOf(name, &schema)}, nil
}

// versionOf is the version of an equal schema, −1 for none.
func (s *Server) versionOf(name edge.TopicName, schema *edge.Schema) int64 {
	found := int64(-1)
	s.living(name, func(have edge.Schema, v int64) {
		if have.Type == schema.Type && bytes.Equal(have.Data, schema.Data) {
			found = v
		}
	})
	return found
}

// schemaCompatibility says whether an upload would be taken, with 202 as Pulsar does: the
// first schema is, and one that the topic has.
func (s *Server) schemaCompatibility(r *http.Request) (any, error) {
	name, err := schemaTopic(r)
	if err != nil {
		return nil, err
	}
	schema, err := schemaIn(r, name)
	if err != nil {
		return nil, err
	}
	_, _, exists := s.broker.Catalog().Schema(name, -1)
	return withStatus{http.StatusAccepted, struct {
		Strategy   string `json:"schemaCompatibilityStrategy"`
		Compatible bool   `json:"compatibility"`
	}{"FULL", !exists || s.versionOf(name, &schema) >= 0}}, nil
}
