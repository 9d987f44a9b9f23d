package admin

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"slices"
	"strconv"

	"wayside/edge"
)

// subscriptionRoutes: lists, creation, deletion, and moving of subscriptions (protocol
// 5.2, captures curl-subscriptions). On a partitioned topic all partitions take part,
// except in a reset to a message id, which belongs to one ledger. A creation makes a
// missing topic where topics are created by themselves. A reset has the effect of SEEK:
// any time and any id is taken, consumers are sent away and come back; skip_all leaves
// them where they are.
func (s *Server) subscriptionRoutes(domain string) {
	s.handleTopic(domain, "GET", "/subscriptions", s.listSubscriptions)
	const sub = "/subscription/{subscription}"
	s.handleSubscription(domain, "PUT", sub, s.createSubscription)
	s.handleSubscription(domain, "DELETE", sub, s.deleteSubscription)
	s.handleSubscription(domain, "POST", sub+"/resetcursor/{timestamp}", s.resetToTime)
	s.handleSubscription(domain, "POST", sub+"/resetcursor", s.resetToID)
	s.handleSubscription(domain, "POST", sub+"/skip_all", s.skipAll)
}

// subscriptionHandler does the work of a route below a subscription's name.
type subscriptionHandler func(r *http.Request, name edge.TopicName, subscription string) (any, error)

func (s *Server) handleSubscription(domain, method, rest string, h subscriptionHandler) {
	s.handleTopic(domain, method, rest, func(r *http.Request, name edge.TopicName) (any, error) {
		subscription, err := subscriptionOf(r)
		if err != nil {
			return nil, err
		}
		value, err := h(r, name, subscription)
		return value, ofSubscription(err, name, subscription)
	})
}

func (s *Server) listSubscriptions(r *http.Request, name edge.TopicName) (any, error) {
	names := []string{}
	for _, n := range s.each(name) {
		err := s.withTopic(r.Context(), n, func(t *edge.Topic) error {
			names = append(names, t.Subscriptions()...)
			return nil
		})
		if err != nil {
			return nil, ofTopic(err, n)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// place is where a subscription is created or moved to: an id, or in words.
type place struct {
	position edge.Position
	excluded bool // the entry at position is not wanted any more
	batch    bool // inside of a batch
	own      bool // there are properties to be kept
}

// UnmarshalJSON takes the object of Pulsar's clients, "earliest" or "latest".
func (p *place) UnmarshalJSON(data []byte) error {
	var word string
	if json.Unmarshal(data, &word) == nil {
		switch word {
		case "earliest":
			p.position = edge.Earliest
		case "latest":
			p.position = edge.Latest
		default:
			return errors.New(`a position is an object, "earliest" or "latest"`)
		}
		return nil
	}
	var id struct {
		Ledger     number            `json:"ledgerId"`
		Entry      number            `json:"entryId"`
		BatchIndex *number           `json:"batchIndex"`
		Excluded   bool              `json:"isExcluded"`
		Properties map[string]string `json:"properties"`
	}
	if err := json.Unmarshal(data, &id); err != nil {
		return err
	}
	p.position = edge.Position{Ledger: int64(id.Ledger), Entry: int64(id.Entry)}
	if p.position.Ledger == math.MaxInt64 { // old clients cut the entry id off
		p.position = edge.Latest
	}
	p.excluded, p.own = id.Excluded, len(id.Properties) > 0
	p.batch = id.BatchIndex != nil && *id.BatchIndex >= 0
	return nil
}

// next is the first entry that is wanted. A batch of which a part is excluded is wanted.
func (p place) next() edge.Position {
	if p.excluded && !p.batch && p.position != edge.Latest && p.position != edge.Earliest {
		return p.position.Next()
	}
	return p.position
}

func (s *Server) createSubscription(r *http.Request, name edge.TopicName, subscription string) (any, error) {
	at := place{position: edge.Latest}
	if _, err := body(r, &at); err != nil {
		return nil, err
	}
	if at.own {
		return nil, refuse(http.StatusPreconditionFailed, "Properties of a subscription cannot be set here: its consumers bring them")
	}
	create := s.broker.AutoCreates(name)
	for _, n := range s.each(name) {
		err := s.withOpened(r.Context(), n, create, func(t *edge.Topic) error {
			return t.CreateSubscription(r.Context(), subscription, at.next())
		})
		err = reworded(err, edge.ErrExists, "Subscription already exists for topic")
		if errors.Is(err, edge.ErrNotAllowed) && n.IsPersistent() { // it is one too many
			err = refuse(http.StatusConflict, "Exceed the maximum number of subscriptions of the topic: %s", n)
		}
		if errors.Is(err, edge.ErrTopicNotFound) && !create {
			err = refuse(http.StatusPreconditionFailed, "Topic does not exist and cannot be auto-created")
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func (s *Server) deleteSubscription(r *http.Request, name edge.TopicName, subscription string) (any, error) {
	_, partitioned := s.broker.Partitions(name)
	deleted := false
	for _, n := range s.each(name) {
		err := s.withTopic(r.Context(), n, func(t *edge.Topic) error {
			return t.DeleteSubscription(r.Context(), subscription, switchOn(r, "force"))
		})
		switch {
		case err == nil:
			deleted = true
		case !partitioned || !gone(err):
			return nil, ofSubscription(err, n, subscription)
		}
	}
	if !deleted {
		return nil, refuse(http.StatusNotFound, "Subscription not found")
	}
	return nil, nil
}

func (s *Server) resetToTime(r *http.Request, name edge.TopicName, subscription string) (any, error) {
	ms, err := strconv.ParseInt(r.PathValue("timestamp"), 10, 64)
	if err != nil {
		return nil, refuse(http.StatusNotFound, "%q is no timestamp", r.PathValue("timestamp"))
	}
	return nil, s.reset(r, name, subscription, edge.SeekTarget{Time: ms, ByTime: true})
}

func (s *Server) resetToID(r *http.Request, name edge.TopicName, subscription string) (any, error) {
	if _, ok := s.broker.Partitions(name); ok {
		return nil, refuse(http.StatusMethodNotAllowed, "Reset-cursor at position is not allowed for partitioned-topic")
	}
	var to place
	present, err := body(r, &to)
	if err != nil {
		return nil, err
	}
	if !present {
		return nil, refuse(http.StatusBadRequest, "A message id is expected")
	}
	return nil, s.reset(r, name, subscription, edge.SeekTarget{Position: to.next()})
}

func (s *Server) skipAll(r *http.Request, name edge.TopicName, subscription string) (any, error) {
	return nil, s.onEach(r, name, subscription, func(t *edge.Topic) error {
		return t.SkipAll(r.Context(), subscription)
	})
}

// reset moves the subscription on the topic or on all of its partitions.
func (s *Server) reset(r *http.Request, name edge.TopicName, subscription string, to edge.SeekTarget) error {
	return s.onEach(r, name, subscription, func(t *edge.Topic) error {
		return t.ResetSubscription(r.Context(), subscription, to)
	})
}

// onEach does something to the subscription on every topic that a name stands for, up to
// the first failure.
func (s *Server) onEach(r *http.Request, name edge.TopicName, subscription string, do func(*edge.Topic) error) error {
	for _, n := range s.each(name) {
		if err := s.withTopic(r.Context(), n, do); err != nil {
			return ofSubscription(err, n, subscription)
		}
	}
	return nil
}
