package edge

import (
	"context"
	"fmt"
	"maps"
)

// maxTopicProperties bounds a topic's properties in bytes as JSON, so that they fit the
// state that a ledger keeps, and other things beside them.
const maxTopicProperties = MaxProperties / 2

// Properties are what administrators noted with the topic. The map is a copy.
func (t *Topic) Properties() map[string]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.state.Properties)
}

// ChangeProperties lets change edit the topic's properties, with the topic locked, and
// makes them durable. It may wait. ErrLimit if they become too large; then nothing changes.
func (t *Topic) ChangeProperties(ctx context.Context, change func(map[string]string)) error {
	t.mu.Lock()
	if t.closed != nil {
		defer t.mu.Unlock()
		return t.closed
	}
	next := maps.Clone(t.state.Properties)
	if next == nil {
		next = map[string]string{}
	}
	change(next)
	if size := len((&topicState{Properties: next}).encode()); size > maxTopicProperties {
		defer t.mu.Unlock()
		return fmt.Errorf("%w: properties of topic %s take %d bytes, at most %d", ErrLimit, t.name, size, maxTopicProperties)
	}
	t.state.Properties = next
	t.mu.Unlock()
	return t.saveState(ctx)
}
