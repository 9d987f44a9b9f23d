package admin

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"

	"wayside/edge"
)

// propertyRoutes: what administrators note with a topic (protocol 5.2, captures
// curl-topics). PUT adds to what is there, DELETE removes one key. A partitioned topic
// has some of its own, which its partitions do not share.
func (s *Server) propertyRoutes(domain string) {
	s.handleTopic(domain, "GET", "/properties", s.getProperties)
	s.handleTopic(domain, "PUT", "/properties", s.putProperties)
	s.handleTopic(domain, "DELETE", "/properties", s.deleteProperty)
}

// scalar is a property's value; numbers and booleans are kept as text.
type scalar string

// UnmarshalJSON refuses lists and objects.
func (v *scalar) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		*v = scalar(text)
		return nil
	}
	if data[0] == '{' || data[0] == '[' {
		return errors.New("a property is a string")
	}
	*v = scalar(data)
	return nil
}

// propertiesIn reads a body of properties, none if there is no body.
func propertiesIn(r *http.Request) (map[string]string, error) {
	var in map[string]scalar
	if _, err := body(r, &in); err != nil {
		return nil, err
	}
	properties := make(map[string]string, len(in))
	for k, v := range in {
		properties[k] = string(v)
	}
	return properties, nil
}

func (s *Server) getProperties(r *http.Request, name edge.TopicName) (any, error) {
	if _, ok := s.broker.Partitions(name); ok {
		properties, err := s.broker.PartitionProperties(name)
		if properties == nil && err == nil {
			return empty{}, nil
		}
		return properties, err
	}
	var properties map[string]string
	err := s.withTopic(r.Context(), name, func(t *edge.Topic) error {
		properties = t.Properties()
		return nil
	})
	return dictionary(properties), err
}

func (s *Server) putProperties(r *http.Request, name edge.TopicName) (any, error) {
	properties, err := propertiesIn(r)
	if err != nil {
		return nil, err
	}
	return nil, s.changeProperties(r, name, func(have map[string]string) { maps.Copy(have, properties) })
}

func (s *Server) deleteProperty(r *http.Request, name edge.TopicName) (any, error) {
	key := r.URL.Query().Get("key")
	return nil, s.changeProperties(r, name, func(have map[string]string) { delete(have, key) })
}

func (s *Server) changeProperties(r *http.Request, name edge.TopicName, change func(map[string]string)) error {
	if _, ok := s.broker.Partitions(name); ok {
		return s.broker.ChangePartitionProperties(r.Context(), name, change)
	}
	return s.withTopic(r.Context(), name, func(t *edge.Topic) error {
		return t.ChangeProperties(r.Context(), change)
	})
}
