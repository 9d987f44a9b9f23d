package edge

import (
	"context"
	"encoding/json"
	"fmt"
)

// keyPartProperties is followed by the base name of a partitioned topic.
const keyPartProperties = "catalog/properties/"

// PartitionProperties are what administrators noted with a partitioned topic, nil where
// nothing ever was. They are in the store and not in memory.
func (b *Broker) PartitionProperties(base TopicName) (properties map[string]string, err error) {
	key := keyPartProperties + base.String()
	var bad error
	err = b.catalog.values.ScanValues(key, func(found string, value []byte) bool {
		if found == key { // else a longer name: this one has nothing
			bad = json.Unmarshal(value, &properties)
		}
		return false
	})
	if err == nil {
		err = bad
	}
	if err != nil {
		return nil, fmt.Errorf("%w: read properties of %s: %w", ErrStorage, base, err)
	}
	return properties, nil
}

// ChangePartitionProperties lets change edit the properties of a partitioned topic and
// makes them durable. It may wait. ErrLimit if they become too large; then nothing changes.
func (b *Broker) ChangePartitionProperties(ctx context.Context, base TopicName, change func(map[string]string)) error {
	c := b.catalog
	c.change.Lock()
	defer c.change.Unlock()
	if _, ok := c.partitions(base); !ok {
		return fmt.Errorf("%w: Partitioned Topic %s not found", ErrTopicNotFound, base)
	}
	next, err := b.PartitionProperties(base)
	if err != nil {
		return err
	}
	if next == nil {
		next = map[string]string{}
	}
	change(next)
	raw, err := json.Marshal(next)
	if err != nil {
		return fmt.Errorf("write properties of %s: %w", base, err)
	}
	if len(raw) > maxTopicProperties {
		return fmt.Errorf("%w: properties of topic %s take %d bytes, at most %d", ErrLimit, base, len(raw), maxTopicProperties)
	}
	return c.put(ctx, keyPartProperties+base.String(), raw, func() {})
}

// forgetPartitionProperties drops them, before their topic goes: the next of its name
// begins without. c.change is held.
func (b *Broker) forgetPartitionProperties(ctx context.Context, base TopicName) error {
	if have, err := b.PartitionProperties(base); err == nil && have == nil {
		return nil
	}
	return b.catalog.put(ctx, keyPartProperties+base.String(), nil, func() {})
}
