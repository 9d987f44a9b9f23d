package pulsar

// reset is a seek or an unsubscription that is being worked on. A SUBSCRIBE that was
// sent behind it on the same connection waits for it.
type reset struct {
	by   *consumer
	done <-chan struct{}
}

// noteReset remembers the request that a consumer has queued last.
func (s *session) noteReset(c *consumer) {
	running := s.resets[:0]
	for _, r := range s.resets {
		select {
		case <-r.done:
		default:
			running = append(running, r)
		}
	}
	clear(s.resets[len(running):])
	s.resets = append(running, reset{c, c.line})
}

// resetsOf returns what a new consumer has to wait for.
func (s *session) resetsOf(c *consumer) (running []<-chan struct{}) {
	for _, r := range s.resets {
		if r.by.topic == c.topic && r.by.name == c.name {
			running = append(running, r.done)
		}
	}
	return running
}
