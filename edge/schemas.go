package edge

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
)

// Schema is one version of a topic's schema (protocol 3.15). Versions count from 0.
type Schema struct {
	Name       string            `json:"name"`
	Type       int32             `json:"type"` // number of Pulsar's Schema.Type
	Data       []byte            `json:"data"`
	Properties map[string]string `json:"properties,omitempty"`
	Created    int64             `json:"created"`           // ms since 1970
	Deleted    bool              `json:"deleted,omitempty"` // this version is a deletion
}

// Bounds of schemas, which are held in memory.
const (
	maxSchemaVersions = 100
	maxSchemaBytes    = 256 << 10 // all versions of a topic together, so that they fit one value
)

func (s *Schema) same(o *Schema) bool {
	return s.Type == o.Type && bytes.Equal(s.Data, o.Data)
}

// Schema returns a version of a topic's schema, the latest for −1. A deletion counts
// as a version, and false is returned where it is asked for as the latest.
func (c *Catalog) Schema(base TopicName, version int64) (Schema, int64, bool) {
	base, _ = base.Partition()
	c.mu.RLock()
	defer c.mu.RUnlock()
	list := c.schemas[base]
	if version < 0 {
		version = int64(len(list)) - 1
	}
	if version < 0 || version >= int64(len(list)) || list[version].Deleted {
		return Schema{}, version, false
	}
	return list[version], version, true
}

// PutSchema returns the version of a schema, which it appends on a topic that has
// none, or whose schema was deleted. One that differs from what the topic has is refused with ErrSchema. It may wait.
func (c *Catalog) PutSchema(ctx context.Context, base TopicName, s Schema) (int64, error) {
	base, _ = base.Partition()
	if len(s.Data) > maxSchemaBytes/2 {
		return 0, fmt.Errorf("%w: schema of %d bytes", ErrLimit, len(s.Data))
	}
	c.change.Lock()
	defer c.change.Unlock()
	c.mu.RLock()
	list := c.schemas[base]
	c.mu.RUnlock()
	for v := len(list) - 1; v >= 0 && !list[v].Deleted; v-- {
		if list[v].same(&s) {
			return int64(v), nil
		}
	}
	if n := len(list); n > 0 && !list[n-1].Deleted {
		return 0, fmt.Errorf("%w: it differs from version %d of %s", ErrSchema, n-1, base)
	}
	s.Created = c.clock().UnixMilli()
	return c.appendSchema(ctx, base, list, s)
}

// DeleteSchema ends a topic's schema; the count of versions goes on. It returns the
// number of the deletion's own version, 0 where there was nothing. It may wait.
func (c *Catalog) DeleteSchema(ctx context.Context, base TopicName) (int64, error) {
	base, _ = base.Partition()
	c.change.Lock()
	defer c.change.Unlock()
	c.mu.RLock()
	list := c.schemas[base]
	c.mu.RUnlock()
	if n := len(list); n > 0 && list[n-1].Deleted {
		return int64(n) - 1, nil
	}
	return c.appendSchema(ctx, base, list, Schema{Deleted: true, Created: c.clock().UnixMilli()})
}

// appendSchema adds a version. c.change is held.
func (c *Catalog) appendSchema(ctx context.Context, base TopicName, list []Schema, s Schema) (int64, error) {
	if len(list) >= maxSchemaVersions {
		return 0, fmt.Errorf("%w: topic %s has %d schema versions", ErrLimit, base, len(list))
	}
	list = append(list[:len(list):len(list)], s)
	raw, err := json.Marshal(list)
	if err != nil {
		return 0, err
	}
	if len(raw) > 2*maxSchemaBytes {
		return 0, fmt.Errorf("%w: schemas of topic %s take %d bytes", ErrLimit, base, len(raw))
	}
	err = c.put(ctx, keySchema+base.String(), raw, func() { c.schemas[base] = list })
	return int64(len(list)) - 1, err
}

// ForgetSchemas drops a topic's schemas and their count, as deleting the topic does:
// the next one is version 0. It may wait.
func (c *Catalog) ForgetSchemas(ctx context.Context, base TopicName) error {
	base, _ = base.Partition()
	c.change.Lock()
	defer c.change.Unlock()
	c.mu.RLock()
	_, ok := c.schemas[base]
	c.mu.RUnlock()
	if !ok {
		return nil
	}
	return c.put(ctx, keySchema+base.String(), nil, func() { delete(c.schemas, base) })
}
