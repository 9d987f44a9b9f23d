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

// Bounds of schemas. They are in the store and not in memory; a topic's are read, and
// written, together.
const (
	maxSchemaVersions   = 100
	maxSchemaBytes      = 128 << 10 // of one definition with its properties
	maxSchemasOfOne     = 512 << 10 // all versions of a topic as stored: half of what a value may have
	maxSchemaProperties = 100
)

func (s *Schema) same(o *Schema) bool {
	return s.Type == o.Type && bytes.Equal(s.Data, o.Data)
}

// bounded says what of a schema is too large.
func (s *Schema) bounded() error {
	size := len(s.Data)
	for k, v := range s.Properties {
		size += len(k) + len(v)
	}
	if size > maxSchemaBytes || len(s.Properties) > maxSchemaProperties {
		return fmt.Errorf("%w: a schema has at most %d bytes and %d properties", ErrSchemaForm, maxSchemaBytes, maxSchemaProperties)
	}
	return nil
}

// lookAtSchemas hands out all versions of a topic's schema, deletions among them, and the
// time to judge them, to one at a time: lists and what is parsed of them are large.
func (c *Catalog) lookAtSchemas(ctx context.Context, name TopicName, look func(list []Schema) error) error {
	select {
	case c.looking <- struct{}{}:
		defer func() { <-c.looking }()
	case <-ctx.Done():
		return fmt.Errorf("look at schemas of %s: %w", name, ctx.Err())
	}
	base, _ := name.Partition()
	list, err := c.readSchemas(base)
	if err != nil {
		return err
	}
	return look(list)
}

// readSchemas asks the store.
func (c *Catalog) readSchemas(base TopicName) (list []Schema, err error) {
	key := keySchema + base.String()
	var bad error
	err = c.values.ScanValues(key, func(found string, value []byte) bool {
		if found == key { // else a longer name: this one has nothing
			bad = json.Unmarshal(value, &list)
		}
		return false
	})
	if err == nil && bad != nil {
		err = bad
	}
	if err != nil {
		return nil, fmt.Errorf("%w: read schemas of %s: %w", ErrStorage, base, err)
	}
	return list, nil
}

// alive are the versions behind the last deletion, the first of which has number first.
func alive(list []Schema) (live []Schema, first int64) {
	n := len(list)
	for n > 0 && !list[n-1].Deleted {
		n--
	}
	return list[n:], int64(n)
}

// Schema returns a version of a topic's schema, the latest for −1, and its number. A
// deletion is a version too, and only found as the latest; what was before it is still
// found. ErrSchemaNotFound if there is none. It may wait.
func (c *Catalog) Schema(ctx context.Context, name TopicName, version int64) (s Schema, at int64, err error) {
	err = c.lookAtSchemas(ctx, name, func(list []Schema) error {
		latest := int64(len(list)) - 1
		if at = version; version < 0 {
			at = latest
		}
		if at < 0 || at > latest || version >= 0 && list[at].Deleted {
			return fmt.Errorf("%w: %s", ErrSchemaNotFound, name)
		}
		s = list[at]
		return nil
	})
	return s, at, err
}

// LiveSchema is Schema for those who may not see what was before a deletion, as clients.
func (c *Catalog) LiveSchema(ctx context.Context, name TopicName, version int64) (s Schema, at int64, err error) {
	err = c.lookAtSchemas(ctx, name, func(list []Schema) error {
		live, first := alive(list)
		switch {
		case version < 0 && len(list) > 0:
			s, at = list[len(list)-1], int64(len(list))-1
		case version >= first && version < first+int64(len(live)):
			s, at = live[version-first], version
		default:
			return fmt.Errorf("%w: %s", ErrSchemaNotFound, name)
		}
		return nil
	})
	return s, at, err
}

// SchemaHistory returns the versions since the last deletion, oldest first, and the number
// of the first. It may wait.
func (c *Catalog) SchemaHistory(ctx context.Context, name TopicName) (live []Schema, first int64, err error) {
	err = c.lookAtSchemas(ctx, name, func(list []Schema) error {
		live, first = alive(list)
		return nil
	})
	return live, first, err
}

// DeleteSchema ends a topic's schema; the count of versions goes on. It returns the
// number of the deletion's own version. It may wait.
func (c *Catalog) DeleteSchema(ctx context.Context, base TopicName) (int64, error) {
	base, _ = base.Partition()
	c.change.Lock()
	defer c.change.Unlock()
	list, err := c.readSchemas(base)
	if err != nil {
		return 0, err
	}
	if n := len(list); n > 0 && list[n-1].Deleted {
		return int64(n) - 1, nil
	}
	return c.appendSchema(ctx, base, list, Schema{Deleted: true})
}

// addSchema appends a version if the topic still has so many; else it returns false.
func (c *Catalog) addSchema(ctx context.Context, base TopicName, s Schema, have int) (version int64, ok bool, err error) {
	c.change.Lock()
	defer c.change.Unlock()
	list, err := c.readSchemas(base)
	if err != nil || len(list) != have {
		return 0, false, err
	}
	version, err = c.appendSchema(ctx, base, list, s)
	return version, true, err
}

// appendSchema adds a version. c.change is held.
func (c *Catalog) appendSchema(ctx context.Context, base TopicName, list []Schema, s Schema) (int64, error) {
	if len(list) >= maxSchemaVersions {
		return 0, fmt.Errorf("%w: topic %s has %d schema versions", ErrLimit, base, len(list))
	}
	s.Created = c.clock().UnixMilli()
	raw, err := json.Marshal(append(list, s))
	if err != nil {
		return 0, err
	}
	if len(raw) > maxSchemasOfOne {
		return 0, fmt.Errorf("%w: schemas of topic %s take %d bytes", ErrLimit, base, len(raw))
	}
	return int64(len(list)), c.put(ctx, keySchema+base.String(), raw, func() {})
}

// ForgetSchemas drops a topic's schemas and their count, as deleting the topic does:
// the next one is version 0. It may wait.
func (c *Catalog) ForgetSchemas(ctx context.Context, base TopicName) error {
	base, _ = base.Partition()
	c.change.Lock()
	defer c.change.Unlock()
	if list, err := c.readSchemas(base); err == nil && len(list) == 0 {
		return nil
	}
	return c.put(ctx, keySchema+base.String(), nil, func() {})
}
