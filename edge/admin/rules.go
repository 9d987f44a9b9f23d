package admin

import (
	"cmp"
	"encoding/json"
	"net/http"
	"path"
	"strconv"

	"wayside/edge"
)

// rule is one policy that can be set for namespaces or topics (protocol 5.2, captures
// curl-namespace-policies and curl-topic-policies).
type rule struct {
	namespace, topic string // last parts of its paths, "" where there is none
	member           string // its name in a namespace's policies object
	byCluster        bool   // where it is an object by cluster
	verb             string // that sets it
	namespaceVerb    string // that sets it for a namespace
	bare             int    // what GET answers for an unset one of a topic: 200 or 204, both without a body
	get              func(*edge.Policies) any
	set              func(*edge.Policies, []byte) error
	unset            func(*edge.Policies)
	usual            any  // what holds where nothing is set, nil for nothing to tell
	blank            any  // what GET answers for an unset one, nil for no body
	bodiless         bool // set without a body it is unset
	lasting          bool // of a namespace it cannot be deleted
}

// ruleOf makes a rule of one field. check says why a value is refused.
func ruleOf[T any](namespace, topic, member string, field func(*edge.Policies) **T, check func(*T) error, usual any) rule {
	return rule{
		namespace: namespace, topic: topic, member: member, verb: http.MethodPost, namespaceVerb: http.MethodPost, bare: http.StatusOK, usual: usual,
		get: func(p *edge.Policies) any {
			if v := *field(p); v != nil {
				return v
			}
			return nil
		},
		set: func(p *edge.Policies, data []byte) error {
			value := new(T)
			if err := json.Unmarshal(data, value); err != nil {
				return refuse(http.StatusBadRequest, "Body is not what is expected here: %s", complaint(err))
			}
			if err := check(value); err != nil {
				return err
			}
			*field(p) = value
			return nil
		},
		unset: func(p *edge.Policies) { *field(p) = nil },
	}
}

// answering changes what GET answers for an unset one.
func (r rule) answering(status int) rule {
	r.bare = status
	return r
}

// or changes what holds where nothing is set.
func (r rule) or(usual any) rule {
	r.usual = usual
	return r
}

// showing changes what GET answers where nothing is set.
func (r rule) showing(blank any) rule {
	r.blank = blank
	return r
}

// orNothing says that setting nothing unsets it.
func (r rule) orNothing() rule {
	r.bodiless = true
	return r
}

// forGood says that a namespace's is changed and never deleted.
func (r rule) forGood() rule {
	r.lasting = true
	return r
}

// putOnNamespaces says that it is set for namespaces by PUT.
func (r rule) putOnNamespaces() rule {
	r.namespaceVerb = http.MethodPut
	return r
}

// byClusters says that the policies object has one for each cluster.
func (r rule) byClusters() rule {
	r.byCluster = true
	return r
}

// anything takes every value.
func anything[T any](*T) error { return nil }

// atMost is a rule about how many there may be: 0, no limit, and what is above.
func atMost(namespace, topic, member string, field func(*edge.Policies) **int64) rule {
	return ruleOf(namespace, topic, member, field, func(n *int64) error {
		if *n < 0 {
			return refuse(http.StatusPreconditionFailed, "%s must be 0 or more", cmp.Or(topic, namespace))
		}
		return nil
	}, 0)
}

// ruleRoutes: all of them, the quotas, which have a shape of their own, and plain
// refusals for those that this broker does not obey.
func (s *Server) ruleRoutes() {
	const ns = " /admin/v2/namespaces/{tenant}/{namespace}/"
	for _, r := range s.rules() {
		if r.namespace != "" {
			s.handle("GET"+ns+r.namespace, func(q *http.Request) (any, error) { return s.getRule(q, r) })
			s.handle(r.namespaceVerb+ns+r.namespace, func(q *http.Request) (any, error) { return s.setNamespaceRule(q, r) })
			if !r.lasting {
				s.handle("DELETE"+ns+r.namespace, func(q *http.Request) (any, error) { return s.dropNamespaceRule(q, r) })
			}
		}
		if r.topic != "" {
			for _, domain := range []string{edge.Persistent, edge.NonPersistent} {
				s.topicRule(domain, r)
			}
		}
	}
	for _, word := range disobeyed {
		for _, verb := range []string{"POST", "PUT"} {
			s.handle(verb+ns+word, s.disobey)
			s.handle(verb+" /admin/v2/persistent/{tenant}/{namespace}/{topic}/"+word, s.disobey)
		}
	}
}

// disobeyed are Pulsar's policies that are refused.
var disobeyed = []string{
	"antiAffinity", "deduplicationSnapshotInterval",
	"dispatcherPauseOnAckStatePersistent", "entryFilters", "inactiveTopicPolicies",
	"offloadDeletionLagMs", "offloadPolicies",
	"offloadThreshold", "offloadThresholdInSeconds", "persistence", "replication",
	"replicatorDispatchRate", "resourcegroup", "subscribeRate", "subscriptionAuthMode",
	"subscriptionExpirationTime",
}

func (s *Server) disobey(r *http.Request) (any, error) {
	word := path.Base(r.URL.Path)
	return nil, refuse(http.StatusNotImplemented, "Policy %s cannot be enforced by this broker, so it is not kept", word)
}

// value reads the body of a request that sets something, nil if nothing is to be set.
// Numbers may come as strings.
func value(q *http.Request, r rule) ([]byte, error) {
	var raw any
	present, err := body(q, &raw)
	if err != nil {
		return nil, err
	}
	if !present && r.bodiless {
		return nil, nil
	}
	if !present {
		return nil, refuse(http.StatusBadRequest, "The request entity cannot be empty.")
	}
	return encode(unquoted(raw))
}

// unquoted makes numbers of strings that are ones, in a value or in an object of values.
func unquoted(raw any) any {
	switch v := raw.(type) {
	case string:
		if n, err := strconv.ParseInt(v, 10, 64); err == nil {
			return n
		}
	case float64:
		if n := int64(v); float64(n) == v {
			return n
		}
	case map[string]any:
		for name := range v {
			v[name] = unquoted(v[name])
		}
	}
	return raw
}

func (s *Server) getRule(q *http.Request, r rule) (any, error) {
	ns, err := s.existing(q)
	if err != nil {
		return nil, err
	}
	if v := r.get(s.broker.Catalog().Policies(ns)); v != nil {
		return v, nil
	}
	switch {
	case r.blank != nil:
		return r.blank, nil
	case r.topic == "" && r.usual != nil:
		return r.usual, nil
	}
	return empty{}, nil
}

func (s *Server) setNamespaceRule(q *http.Request, r rule) (any, error) {
	ns, err := s.existing(q)
	if err != nil {
		return nil, err
	}
	data, err := value(q, r)
	if err != nil {
		return nil, err
	}
	return nil, s.changeRules(q, ns, func(p *edge.Policies) error { return r.change(p, data) })
}

// change sets it, or unsets it without data.
func (r rule) change(p *edge.Policies, data []byte) error {
	if data == nil || string(data) == "[]" { // an empty list says nothing
		r.unset(p)
		return nil
	}
	return r.set(p, data)
}

func (s *Server) dropNamespaceRule(q *http.Request, r rule) (any, error) {
	ns, err := s.existing(q)
	if err != nil {
		return nil, err
	}
	return nil, s.changeRules(q, ns, func(p *edge.Policies) error { r.unset(p); return nil })
}

// changeRules changes what is set for a namespace or topic, and refuses what makes no
// sense together.
func (s *Server) changeRules(q *http.Request, of string, change func(*edge.Policies) error) error {
	return s.broker.ChangePolicies(q.Context(), of, func(p *edge.Policies) error {
		before := *p
		if err := change(p); err != nil {
			return err
		}
		if p.Retention == nil || p.BacklogSize == nil || p.Retention.MiB < 0 || p.BacklogSize.Size <= 0 || p.Retention.MiB<<20 > p.BacklogSize.Size {
			return nil
		}
		if before.Retention == p.Retention {
			return refuse(http.StatusPreconditionFailed, "Backlog Quota exceeds configured retention quota for namespace. Please increase retention quota and retry")
		}
		return refuse(http.StatusPreconditionFailed, "Retention Quota must exceed configured backlog quota for namespace.")
	})
}

func (s *Server) topicRule(domain string, r rule) {
	s.handleTopic(domain, "GET", "/"+r.topic, func(q *http.Request, name edge.TopicName) (any, error) { return s.getTopicRule(q, name, r) })
	s.handleTopic(domain, r.verb, "/"+r.topic, func(q *http.Request, name edge.TopicName) (any, error) {
		data, err := topicValue(q, r)
		if err != nil {
			return nil, err
		}
		return nil, s.changeTopicRule(q, name, func(p *edge.Policies) error { return r.change(p, data) })
	})
	s.handleTopic(domain, "DELETE", "/"+r.topic, func(q *http.Request, name edge.TopicName) (any, error) {
		return nil, s.changeTopicRule(q, name, func(p *edge.Policies) error { r.unset(p); return nil })
	})
}

// topicValue is value, but for the one that comes in the query.
func topicValue(q *http.Request, r rule) ([]byte, error) {
	if text := q.URL.Query().Get(r.topic); text != "" {
		if _, err := strconv.ParseInt(text, 10, 64); err != nil {
			return nil, refuse(http.StatusNotFound, "%q is no number", text)
		}
		return []byte(text), nil
	}
	return value(q, r)
}

// ruled is the base name of a topic that exists and may have rules of its own.
func (s *Server) ruled(name edge.TopicName) error {
	_, partitioned := s.broker.Partitions(name)
	base, index := name.Partition()
	if index >= 0 {
		if _, ok := s.broker.Partitions(base); ok {
			return refuse(http.StatusPreconditionFailed, "Not allowed to set/get topic policy for a partition")
		}
	}
	if !partitioned && !s.broker.Exists(name) {
		return edge.ErrTopicNotFound
	}
	return nil
}

func (s *Server) getTopicRule(q *http.Request, name edge.TopicName, r rule) (any, error) {
	if err := s.ruled(name); err != nil {
		return nil, err
	}
	rules := s.broker.Catalog().Policies(name.String())
	if switchOn(q, "applied") {
		rules = s.broker.Effective(name)
	}
	v := r.get(rules)
	switch {
	case v != nil:
		return v, nil
	case switchOn(q, "applied") && r.usual != nil:
		return r.usual, nil
	case r.blank != nil:
		return r.blank, nil
	case r.bare == http.StatusNoContent:
		return nil, nil
	}
	return empty{}, nil
}

func (s *Server) changeTopicRule(q *http.Request, name edge.TopicName, change func(*edge.Policies) error) error {
	if err := s.ruled(name); err != nil {
		return err
	}
	return s.changeRules(q, name.String(), change)
}
