package boltstore

import (
	"errors"
	"fmt"

	"wayside/edge"
)

// forgetTopic is dropTopic for who holds topicsMu.
func (s *Store) forgetTopic(t *topic) {
	delete(s.unsaved, t)
	s.tighten(t, len(t.loose))
}

// sparing makes a transaction on several topics. One whose pages are damaged, at says
// which is worked on, is given up, and it is tried again without that one.
func (s *Store) sparing(apply func(g *group, at **topic) error) error {
	for {
		var at *topic
		err := s.change(func(g *group) error { return apply(g, &at) })
		if at == nil || !errors.Is(err, errDamaged) {
			return err
		}
		s.giveUp(at, err)
	}
}

// giveUp lets a topic take no changes until the next start has looked at the file. What
// the journal has of it would keep segments from being used again, and is dropped.
func (s *Store) giveUp(t *topic, cause error) {
	t.bad = fmt.Errorf("%w: topic %s: %w", edge.ErrStorage, t.name, cause)
	if s.serving {
		s.logger().Error("topic is damaged, it takes no changes", "topic", t.name.String(), "error", cause)
	} else {
		s.remark(t.bad.Error())
	}
	s.dropTopic(t)
}

// dropTopic drops what the journal has of a topic.
func (s *Store) dropTopic(t *topic) {
	s.topicsMu.Lock()
	defer s.topicsMu.Unlock()
	s.forgetTopic(t)
}
