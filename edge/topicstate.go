package edge

import (
	"context"
	"encoding/json"
	"fmt"
)

// topicState is the topic's own small state, kept as JSON in its properties, where
// later versions may add fields: unknown ones are refused by none.
type topicState struct {
	Terminated bool              `json:"terminated,omitempty"`
	Epoch      int64             `json:"epoch,omitempty"` // of exclusive producers, counted from 1 here: wire epoch + 1
	Properties map[string]string `json:"properties,omitempty"`
	Txns       *txnFacts         `json:"txns,omitempty"` // nil without aborted transactions; replaced as a whole
}

// encode never fails: the type has nothing that JSON cannot say.
func (s *topicState) encode() []byte {
	raw, _ := json.Marshal(s)
	return raw
}

func (t *Topic) loadState() error {
	raw, err := t.ledger.Properties()
	if err != nil {
		return fmt.Errorf("read topic state: %w", err)
	}
	if len(raw) == 0 {
		return nil
	}
	if err := json.Unmarshal(raw, &t.state); err != nil {
		return fmt.Errorf("read topic state: %w", err)
	}
	t.terminatedNow.Store(t.state.Terminated)
	return nil
}

// saveState makes the state durable. t.mu is not held; the newest state is written.
func (t *Topic) saveState(ctx context.Context) error {
	err := wait(ctx, func(done func(error)) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.ledger.SetProperties(t.state.encode(), done)
	})
	if err != nil {
		return fmt.Errorf("%w: save state of %s: %w", ErrStorage, t.name, err)
	}
	return nil
}
