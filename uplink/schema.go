package uplink

import (
	"context"
	"encoding/binary"
	"errors"
	"strconv"

	"github.com/apache/pulsar-client-go/pulsar"

	"wayside/edge"
)

// pass is a schema object that names a schema and never encodes: payloads go as they
// came.
type pass struct{ info *pulsar.SchemaInfo }

var errPass = errors.New("payloads pass through unchanged")

// Encode is never used: messages have payloads, not values.
func (s *pass) Encode(any) ([]byte, error) { return nil, errPass }

// Decode is never used.
func (s *pass) Decode([]byte, any) error { return errPass }

// Validate accepts everything.
func (s *pass) Validate([]byte) error { return nil }

// GetSchemaInfo names the schema.
func (s *pass) GetSchemaInfo() *pulsar.SchemaInfo { return s.info }

// schemas are those of one topic, by the version in the metadata of its entries. The
// client keeps a hash in each object, so there is one for each version. At most as
// many are kept as a topic has versions.
type schemas struct {
	run     context.Context // of the uplink
	catalog *edge.Catalog
	base    edge.TopicName
	known   map[string]schemaOf
}

type schemaOf struct {
	object        pulsar.Schema
	group, family string
}

// maxSchemas bounds the versions that are kept; beyond it all are looked up anew.
const maxSchemas = 64

// find returns the schema object of a version, nil if the catalog has none; group tells
// messages apart that cannot share a batch, family those that cannot share a producer:
// the client knows schemas by their text, which primitive ones have not.
func (s *schemas) find(version []byte) (object pulsar.Schema, group, family string) {
	if found, ok := s.known[string(version)]; ok {
		return found.object, found.group, found.family
	}
	if len(s.known) >= maxSchemas {
		clear(s.known)
	}
	made, err := s.look(version)
	if err == nil || errors.Is(err, edge.ErrSchemaNotFound) {
		if s.known == nil {
			s.known = map[string]schemaOf{}
		}
		s.known[string(version)] = made
	}
	return made.object, made.group, made.family
}

// look asks the catalog; versions are 8 bytes, big endian, and not negative.
func (s *schemas) look(version []byte) (schemaOf, error) {
	if len(version) != 8 || version[0]&0x80 != 0 {
		return schemaOf{}, edge.ErrSchemaNotFound
	}
	stored, _, err := s.catalog.Schema(s.run, s.base, int64(binary.BigEndian.Uint64(version)))
	if err != nil {
		return schemaOf{}, err
	}
	made := schemaOf{
		object: &pass{&pulsar.SchemaInfo{
			Name: stored.Name, Schema: string(stored.Data), Type: pulsar.SchemaType(stored.Type), Properties: stored.Properties,
		}},
		group: string(version),
	}
	if len(stored.Data) == 0 {
		made.family = strconv.Itoa(int(stored.Type))
	}
	return made, nil
}
