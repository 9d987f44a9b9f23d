package admin

import (
	"errors"
	"net/http"

	"wayside/edge"
)

// compactionRoutes: PUT has a topic compacted, or all partitions of one, without waiting
// for it; 409 while that goes on. GET tells how it stands since the topic was loaded. On
// a partitioned topic that is asked of its partitions (watched on 4.0.7: 404).
func (s *Server) compactionRoutes(domain string) {
	s.handleTopic(domain, "PUT", "/compaction", s.compact)
	s.handleTopic(domain, "GET", "/compaction", s.compactionStatus)
}

// longRunning is how Pulsar tells of what goes on by itself.
type longRunning struct {
	Status string `json:"status"` // NOT_RUN, RUNNING, SUCCESS or ERROR
	Error  string `json:"lastError"`
}

func (s *Server) compact(r *http.Request, name edge.TopicName) (any, error) {
	for _, n := range s.each(name) {
		err := s.withTopic(r.Context(), n, (*edge.Topic).Compact)
		if errors.Is(err, edge.ErrExists) {
			return nil, refuse(http.StatusConflict, "Compaction already in progress")
		}
		if err != nil {
			return nil, ofTopic(err, n)
		}
	}
	return nil, nil
}

func (s *Server) compactionStatus(r *http.Request, name edge.TopicName) (any, error) {
	if _, ok := s.broker.Partitions(name); ok {
		return nil, edge.ErrTopicNotFound
	}
	var answer longRunning
	err := s.withTopic(r.Context(), name, func(t *edge.Topic) error {
		st := t.Compaction()
		switch {
		case st.Running:
			answer.Status = "RUNNING"
		case st.Err != nil:
			answer = longRunning{"ERROR", st.Err.Error()}
		case st.Ran:
			answer.Status = "SUCCESS"
		default:
			answer.Status = "NOT_RUN"
		}
		return nil
	})
	return answer, err
}

func compactionOf(st edge.CompactionStatus) compactionStats {
	return compactionStats{
		Removed: st.Removed, Succeeded: st.Succeeded, Failed: st.Failed, Duration: st.Took.Milliseconds(),
	}
}
