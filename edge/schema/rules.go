package schema

import (
	"bytes"
	"fmt"

	"wayside/edge"
)

// Rules is the edge.SchemaRules of a Pulsar broker. The zero value is ready to use.
type Rules struct{}

// Numbers of Pulsar's Schema.Type that are treated apart (protocol 6.4).
const (
	typeNone           = 0
	typeString         = 1
	typeJSON           = 2
	typeProtobuf       = 3
	typeAvro           = 4
	typeKeyValue       = 15
	typeLocalDateTime  = 19
	typeProtobufNative = 20
	typeAutoConsume    = 21
)

// errForm says that a definition is none. It is always wrapped as edge.ErrSchemaForm.
func errForm(format string, args ...any) error {
	return fmt.Errorf("%w: %w", edge.ErrSchemaForm, fmt.Errorf(format, args...))
}

func incompatible(format string, args ...any) error {
	return fmt.Errorf("%w: %w", edge.ErrSchema, fmt.Errorf(format, args...))
}

// Validate implements edge.SchemaRules.
func (r Rules) Validate(s *edge.Schema) error {
	return validate(s)
}

func validate(s *edge.Schema) error {
	switch t := s.Type; {
	case t == typeNone:
		return nil
	case t == typeString:
		if len(s.Data) > 0 && string(s.Data) != "null" { // as the Python client sends it
			return errForm("Invalid schema definition data for string schema : '%.40s'", s.Data)
		}
		return nil
	case usesAvro(t):
		return validateAvro(s)
	case t == typeKeyValue:
		return validatePair(s)
	case t == typeProtobufNative:
		_, err := rootMessage(s.Data)
		return err
	case t == typeAutoConsume:
		return errForm("Schema AUTO_CONSUME is a client-side schema type")
	case t > 0 && t <= typeLocalDateTime:
		if len(s.Data) > 0 {
			return errForm("Invalid schema definition data for primitive schemas :length of schema data should be zero, but %d bytes is found", len(s.Data))
		}
		return nil
	}
	return errForm("Unknown schema type : %d", s.Type)
}

// usesAvro reports whether definitions of a type are Avro's text form.
func usesAvro(t int32) bool { return t == typeAvro || t == typeJSON || t == typeProtobuf }

// Find implements edge.SchemaRules. Definitions in Avro's form are equal when they mean the same:
// spaces, order of members, documentation and aliases do not matter, anything else does.
// All others are equal byte by byte, those of pairs too, whatever their properties say
// the parts are (watched on 4.0.7).
func (r Rules) Find(s *edge.Schema, among []edge.Schema) int {
	for i := range among {
		if among[i].Type == s.Type && bytes.Equal(among[i].Data, s.Data) {
			return i
		}
	}
	if !usesAvro(s.Type) {
		return -1
	}
	tree, err := parseAvro(s.Data)
	if err != nil {
		return -1
	}
	for i := range among {
		if among[i].Type != s.Type {
			continue
		}
		if other, err := parseAvro(among[i].Data); err == nil && equalTrees(tree, other) {
			return i
		}
	}
	return -1
}

// Follows implements edge.SchemaRules.
func (r Rules) Follows(s *edge.Schema, have []edge.Schema, strategy edge.SchemaStrategy) error {
	if strategy == edge.AlwaysCompatible || len(have) == 0 {
		return nil
	}
	if !strategy.Transitive() {
		last := &have[len(have)-1]
		if last.Type == s.Type && bytes.Equal(last.Data, s.Data) {
			return nil
		}
		have = have[len(have)-1:]
	}
	return checkAll(s, have, strategy)
}

// Reads implements edge.SchemaRules. One way is enough under the plain strategies:
// a consumer has to read the latest (watched on 4.0.7).
func (r Rules) Reads(s *edge.Schema, have []edge.Schema, strategy edge.SchemaStrategy) error {
	switch strategy {
	case edge.Backward, edge.Forward, edge.ForwardTransitive, edge.Full:
		return r.Follows(s, have[max(0, len(have)-1):], edge.Backward)
	case edge.AlwaysCompatible:
		return nil
	}

	return checkAll(s, have, strategy)
}

// checkAll compares with every one of them, the latest first.
func checkAll(s *edge.Schema, have []edge.Schema, strategy edge.SchemaStrategy) error {
	for i := range have {
		if have[i].Type != s.Type {
			return incompatible("Incompatible schema: exists schema type %s, new schema type %s",
				edge.SchemaTypeName(have[i].Type), edge.SchemaTypeName(s.Type))
		}
	}
	w := newWork()
	for i := len(have) - 1; i >= 0; i-- {
		if err := w.check(&have[i], s, strategy); err != nil {
			return err
		}
	}
	return nil
}

// check compares two of a type.
func (w *work) check(old, next *edge.Schema, strategy edge.SchemaStrategy) error {
	if strategy == edge.AlwaysIncompatible {
		return incompatible("Schema compatibility strategy is ALWAYS_INCOMPATIBLE")
	}
	switch {
	case usesAvro(next.Type):
		return w.checkAvro(old, next, strategy)
	case next.Type == typeKeyValue:
		return w.checkPair(old, next, strategy)
	case next.Type == typeProtobufNative:
		return checkNative(old, next)
	}
	return nil // primitives have nothing that could differ
}
