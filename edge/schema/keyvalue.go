package schema

import (
	"encoding/binary"

	"wayside/edge"
)

// A pair's definition has for key and value each a length of four bytes, the highest
// first, and so many bytes. Properties tell the types of both; without, they are bytes.

func pairParts(s *edge.Schema) (key, value edge.Schema, err error) {
	data := s.Data
	for _, part := range []struct {
		of *edge.Schema
		in string
	}{{&key, "key.schema.type"}, {&value, "value.schema.type"}} {
		var ok bool
		if part.of.Data, data, ok = cut(data); !ok {
			return key, value, errForm("Invalid schema definition data for KEY_VALUE schema")
		}
		if name := s.Properties[part.in]; name != "" {
			if part.of.Type, ok = edge.SchemaTypeNumber(name); !ok {
				return key, value, errForm("Unknown schema type : %.40s", name)
			}
		}
		if part.of.Type == typeKeyValue {
			return key, value, errForm("A part of a KEY_VALUE schema cannot be one itself")
		}
	}
	return key, value, nil
}

func cut(data []byte) (part, rest []byte, ok bool) {
	if len(data) < 4 {
		return nil, nil, false
	}
	n := uint64(binary.BigEndian.Uint32(data))
	if data = data[4:]; n > uint64(len(data)) {
		return nil, nil, false
	}
	return data[:n], data[n:], true
}

func validatePair(s *edge.Schema) error {
	key, value, err := pairParts(s)
	if err == nil {
		err = validate(&key)
	}
	if err == nil {
		err = validate(&value)
	}
	return err
}

func (w *work) checkPair(old, next *edge.Schema, strategy edge.SchemaStrategy) error {
	oldKey, oldValue, err := pairParts(old)
	if err != nil {
		return incompatible("%w", err)
	}
	key, value, err := pairParts(next)
	if err != nil {
		return incompatible("%w", err)
	}
	if oldKey.Type != key.Type || oldValue.Type != value.Type {
		return incompatible("Key schema type %s and value schema type %s do not match %s and %s",
			edge.SchemaTypeName(key.Type), edge.SchemaTypeName(value.Type),
			edge.SchemaTypeName(oldKey.Type), edge.SchemaTypeName(oldValue.Type))
	}
	if err := w.check(&oldKey, &key, strategy); err != nil {
		return err
	}
	return w.check(&oldValue, &value, strategy)
}
