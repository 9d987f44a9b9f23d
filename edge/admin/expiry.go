package admin

import (
	"errors"
	"net/http"
	"strconv"

	"wayside/edge"
)

// expiryRoutes: letting messages expire by request, by age or up to an id, of one
// subscription or of all, and skipping some (protocol 5.2, captures curl-subscriptions).
// On a partitioned topic all partitions take part, except in what goes by an id or by a
// number. Where there is nothing to expire the answer is 409, of several subscriptions
// for the first that has nothing; what others have has expired then.
func (s *Server) expiryRoutes(domain string) {
	const sub = "/subscription/{subscription}"
	s.handleSubscription(domain, "POST", sub+"/expireMessages/{seconds}", s.expire)
	s.handleSubscription(domain, "POST", sub+"/expireMessages", s.expireUpTo)
	s.handleSubscription(domain, "POST", sub+"/skip/{n}", s.skip)
	s.handleTopic(domain, "POST", "/all_subscription/expireMessages/{seconds}", s.expireAll)
}

func (s *Server) expire(r *http.Request, name edge.TopicName, subscription string) (any, error) {
	seconds, err := secondsOf(r)
	if err != nil {
		return nil, err
	}
	for _, n := range s.each(name) {
		err := s.withTopic(r.Context(), n, func(t *edge.Topic) error {
			return t.Expire(r.Context(), subscription, seconds)
		})
		if err != nil {
			return nil, ofSubscription(notIssued(err, "timestamp", n, subscription), n, subscription)
		}
	}
	return nil, nil
}

func secondsOf(r *http.Request) (int64, error) {
	seconds, err := strconv.ParseInt(r.PathValue("seconds"), 10, 32)
	if err != nil {
		return 0, refuse(http.StatusNotFound, "%q is no number of seconds", r.PathValue("seconds"))
	}
	return seconds, nil
}

// notIssued is what Pulsar says where there is nothing to expire.
func notIssued(err error, by string, name edge.TopicName, subscription string) error {
	if !errors.Is(err, edge.ErrNothingToExpire) {
		return err
	}
	return refuse(http.StatusConflict, "Expire message by %s not issued on topic %s for subscription %s due to ongoing message expiration"+
		" not finished or subscription almost catch  up. If it's performed on a partitioned topic operation might succeeded on"+
		" other partitions, please check stats of individual partition.", by, name, subscription)
}

func (s *Server) expireUpTo(r *http.Request, name edge.TopicName, subscription string) (any, error) {
	if _, ok := s.broker.Partitions(name); ok {
		return nil, refuse(http.StatusMethodNotAllowed, "Expire message at position is not supported for partitioned-topic")
	}
	var at place
	present, err := body(r, &at)
	if err != nil {
		return nil, err
	}
	if !present {
		return nil, refuse(http.StatusBadRequest, "A message id is expected")
	}
	upTo := at.position
	if at.excluded {
		upTo = upTo.Before()
	}
	err = s.withTopic(r.Context(), name, func(t *edge.Topic) error {
		return t.ExpireUpTo(r.Context(), subscription, upTo)
	})
	return nil, notIssued(err, "position", name, subscription)
}

func (s *Server) expireAll(r *http.Request, name edge.TopicName) (any, error) {
	seconds, err := secondsOf(r)
	if err != nil {
		return nil, err
	}
	for _, n := range s.each(name) {
		var refused error
		err := s.withTopic(r.Context(), n, func(t *edge.Topic) error {
			for _, sub := range t.Subscriptions() {
				err := t.Expire(r.Context(), sub, seconds)
				if errors.Is(err, edge.ErrNothingToExpire) && refused == nil {
					refused = notIssued(err, "timestamp", n, sub)
				} else if err != nil && refused == nil {
					return err
				}
			}
			return refused
		})
		if err != nil {
			return nil, ofTopic(err, n)
		}
	}
	return nil, nil
}

func (s *Server) skip(r *http.Request, name edge.TopicName, subscription string) (any, error) {
	if _, ok := s.broker.Partitions(name); ok {
		return nil, refuse(http.StatusMethodNotAllowed, "Skip messages on a partitioned topic is not allowed")
	}
	n, err := strconv.ParseInt(r.PathValue("n"), 10, 32)
	if err != nil {
		return nil, refuse(http.StatusNotFound, "%q is no number of messages", r.PathValue("n"))
	}
	return nil, s.withTopic(r.Context(), name, func(t *edge.Topic) error {
		return t.Skip(r.Context(), subscription, int(n))
	})
}
