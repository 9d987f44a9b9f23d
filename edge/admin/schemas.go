package admin

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

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
	s.handle("GET"+topic+"/metadata", s.schemaMetadata)
	s.handle("POST"+topic+"/schema", s.postSchema)
	s.handle("DELETE"+topic+"/schema", s.deleteSchema)
	s.handle("POST"+topic+"/version", s.schemaVersion)
	s.handle("POST"+topic+"/compatibility", s.schemaCompatibility)
}

const keyValue = "KEY_VALUE"

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
		Type:       edge.SchemaTypeName(schema.Type),
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
	schema, version, err := s.broker.Catalog().LiveSchema(r.Context(), name, version)
	if err == nil && schema.Deleted {
		err = edge.ErrSchemaNotFound
	}
	if err != nil {
		return nil, err
	}
	return dataOf(schema, version), nil
}

// listSchemas tells all versions since the last deletion, as Pulsar does.
func (s *Server) listSchemas(r *http.Request) (any, error) {
	name, err := schemaTopic(r)
	if err != nil {
		return nil, err
	}
	live, first, err := s.broker.Catalog().SchemaHistory(r.Context(), name)
	if err != nil {
		return nil, err
	}
	all := struct {
		Responses []schemaData `json:"getSchemaResponses"`
	}{[]schemaData{}}
	for i, schema := range live {
		all.Responses = append(all.Responses, dataOf(schema, first+int64(i)))
	}
	return all, nil
}

// schemaPlace says where a version is stored. Here all of a topic's are in one place.
type schemaPlace struct {
	Ledger  int64 `json:"ledgerId"`
	Entry   int64 `json:"entryId"`
	Version int64 `json:"version"`
}

func (s *Server) schemaMetadata(r *http.Request) (any, error) {
	name, err := schemaTopic(r)
	if err != nil {
		return nil, err
	}
	_, last, err := s.broker.Catalog().Schema(r.Context(), name, -1)
	switch {
	case errors.Is(err, edge.ErrSchemaNotFound):
		return empty{}, nil
	case err != nil:
		return nil, err
	}
	all := struct {
		Info  schemaPlace   `json:"info"`
		Index []schemaPlace `json:"index"`
	}{Info: schemaPlace{0, last, last}}
	for v := range last + 1 {
		all.Index = append(all.Index, schemaPlace{0, v, v})
	}
	return all, nil
}

// upload is the body of an upload.
type upload struct {
	Type       string            `json:"type"`
	Schema     *string           `json:"schema"`
	Properties map[string]string `json:"properties"`
}

// schemaIn reads an upload.
func schemaIn(r *http.Request, name edge.TopicName) (edge.Schema, error) {
	var up upload
	present, err := body(r, &up)
	switch {
	case err != nil:
		return edge.Schema{}, err
	case !present || up.Schema == nil || up.Type == "":
		return edge.Schema{}, refuse(http.StatusBadRequest, "A schema has type, schema and properties")
	}
	number, ok := edge.SchemaTypeNumber(up.Type)
	if !ok {
		return edge.Schema{}, refuse(http.StatusUnprocessableEntity, "Unknown schema type %s", up.Type)
	}
	schema := edge.Schema{
		Name:       name.NamespaceName() + "/" + name.Local,
		Type:       number,
		Data:       []byte(*up.Schema),
		Properties: up.Properties,
	}
	if up.Type == keyValue {
		if schema.Data, ok = joined(*up.Schema); !ok {
			return edge.Schema{}, refuse(http.StatusUnprocessableEntity, "Invalid schema definition data for %s schema", up.Type)
		}
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
	v, err := s.broker.PutSchema(r.Context(), name, schema, true)
	if err != nil {
		return nil, ofSchema(err)
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
	v, err := s.broker.SchemaVersion(r.Context(), name, &schema)
	return version{v}, err
}

// schemaCompatibility says whether an upload would be taken, with 202 as Pulsar does. One
// that would not is no failure here, while Pulsar answers 500.
func (s *Server) schemaCompatibility(r *http.Request) (any, error) {
	name, err := schemaTopic(r)
	if err != nil {
		return nil, err
	}
	schema, err := schemaIn(r, name)
	if err == nil {
		err = s.broker.MayPutSchema(r.Context(), name, &schema)
	}
	if err != nil && !errors.Is(err, edge.ErrSchema) {
		return nil, ofSchema(err)
	}
	return withStatus{http.StatusAccepted, struct {
		Strategy   string `json:"schemaCompatibilityStrategy"`
		Compatible bool   `json:"compatibility"`
	}{s.broker.SchemaPolicy(name).Strategy.String(), err == nil}}, nil
}

// ofSchema tells what the core found wrong with a schema.
func ofSchema(err error) error {
	for _, sentinel := range []error{edge.ErrSchemaForm, edge.ErrSchema} {
		err = reworded(err, sentinel, "%s", strings.TrimPrefix(err.Error(), sentinel.Error()+": "))
	}
	return err
}
