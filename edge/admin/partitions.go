package admin

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"

	"wayside/edge"
)

// partitionRoutes: metadata of partitioned topics (protocol 5.2, captures curl-topics).
// The number comes bare, or in an object with the media type of Pulsar's own clients;
// both are taken whatever the type says. checkAllowAutoCreation=true, sent by clients
// with http:// service URLs, answers 0 for a missing topic where topics are created by
// themselves. The number only grows; the same number again is fine.
func (s *Server) partitionRoutes(domain string) {
	s.handleTopic(domain, "GET", "/partitions", s.getPartitions)
	s.handleTopic(domain, "PUT", "/partitions", s.createPartitions)
	s.handleTopic(domain, "POST", "/partitions", s.updatePartitions)
	s.handleTopic(domain, "DELETE", "/partitions", s.deletePartitions)
	s.handleTopic(domain, "POST", "/createMissedPartitions", s.createMissed)
}

// partitionMetadata answers the question how many partitions a topic has, 0 for a plain
// one.
type partitionMetadata struct {
	Partitions int               `json:"partitions"`
	Deleted    bool              `json:"deleted"`
	Properties map[string]string `json:"properties,omitzero"`
}

func (s *Server) metadataOf(name edge.TopicName, n int) (partitionMetadata, error) {
	m := partitionMetadata{Partitions: n}
	var err error
	if n > 0 {
		m.Properties, err = s.broker.PartitionProperties(name)
	}
	return m, err
}

func (s *Server) listPartitioned(r *http.Request, domain string) (any, error) {
	ns, err := s.existing(r)
	if err != nil {
		return nil, err
	}
	return namesIn(s.broker.PartitionedTopics(ns), domain), nil
}

func (s *Server) getPartitions(r *http.Request, name edge.TopicName) (any, error) {
	n, err := s.broker.Metadata(r.Context(), name, switchOn(r, "checkAllowAutoCreation"))
	if err != nil {
		return nil, err
	}
	return s.metadataOf(name, n)
}

// partitionCount is a body with a number of partitions in either form.
type partitionCount struct {
	n          number
	properties map[string]string
}

// UnmarshalJSON takes the object or the bare number.
func (c *partitionCount) UnmarshalJSON(data []byte) error {
	if len(data) == 0 || data[0] != '{' {
		return c.n.UnmarshalJSON(data)
	}
	var object struct {
		Partitions number            `json:"partitions"`
		Properties map[string]string `json:"properties"`
	}
	if err := json.Unmarshal(data, &object); err != nil {
		return err
	}
	c.n, c.properties = object.Partitions, object.Properties
	return nil
}

func (s *Server) createPartitions(r *http.Request, name edge.TopicName) (any, error) {
	var count partitionCount
	if _, err := body(r, &count); err != nil {
		return nil, err
	}
	switch {
	case name.LikePartition():
		return nil, refuse(http.StatusPreconditionFailed, "Partitioned Topic Name should not contain '-partition-'")
	case count.n <= 0:
		return nil, refuse(http.StatusNotAcceptable, "Number of partitions should be more than 0")
	}
	err := s.broker.CreatePartitions(r.Context(), name, int(count.n))
	if errors.Is(err, edge.ErrBadRequest) {
		return nil, refuse(http.StatusNotAcceptable, "Number of partitions %d is too large", count.n)
	}
	if err == nil && len(count.properties) > 0 {
		err = s.broker.ChangePartitionProperties(r.Context(), name, func(have map[string]string) { maps.Copy(have, count.properties) })
	}
	return nil, reworded(err, edge.ErrExists, "This topic already exists")
}

func (s *Server) updatePartitions(r *http.Request, name edge.TopicName) (any, error) {
	var count partitionCount
	if _, err := body(r, &count); err != nil {
		return nil, err
	}
	have, ok := s.broker.Partitions(name)
	switch {
	case !ok:
		return nil, refuse(http.StatusConflict, "Topic %s is not the partitioned topic.", name)
	case int64(count.n) < int64(have):
		return nil, refuse(http.StatusUnprocessableEntity,
			"Desired partitions %d can't be less than the current partitions %d.", count.n, have)
	}
	err := s.broker.UpdatePartitions(r.Context(), name, int(count.n))
	if errors.Is(err, edge.ErrBadRequest) {
		return nil, refuse(http.StatusUnprocessableEntity, "Desired partitions %d are too many or fewer than there are", count.n)
	}
	return nil, err
}

func (s *Server) deletePartitions(r *http.Request, name edge.TopicName) (any, error) {
	if _, ok := s.broker.Partitions(name); !ok {
		if s.broker.Exists(name) {
			return nil, refuse(http.StatusConflict,
				"%s is a non-partitioned topic. Instead of calling delete-partitioned-topic please call delete.", name)
		}
		return nil, refuse(http.StatusNotFound, "Topic %s not found.", name)
	}
	err := s.broker.DeletePartitions(r.Context(), name, switchOn(r, "force"))
	if !errors.Is(err, edge.ErrTopicInUse) {
		return nil, err
	}
	n := 0
	for _, partition := range s.each(name) {
		n += s.clients(r.Context(), partition)
	}
	return nil, reworded(err, edge.ErrTopicInUse, "Topic has %d connected producers/consumers", n)
}

// createMissed makes partitions anew that were deleted one by one.
func (s *Server) createMissed(r *http.Request, name edge.TopicName) (any, error) {
	n, ok := s.broker.Partitions(name)
	if !ok {
		return nil, refuse(http.StatusNotFound, "Topic %s not found", name)
	}
	return nil, s.broker.UpdatePartitions(r.Context(), name, n)
}
