package admin

import (
	"encoding/json"
	"net/http"

	"wayside/edge"
)

// The two kinds of backlog quotas.
const (
	quotaOfSize = "destination_storage"
	quotaOfAge  = "message_age"
)

// backlogRoutes: the backlog quotas of namespaces and topics. The kind stands in the
// query, and is that of size without one; GET lists both. An older name of the size is
// "limit", which answers repeat.
func (s *Server) backlogRoutes() {
	const ns = " /admin/v2/namespaces/{tenant}/{namespace}/"
	s.handle("GET"+ns+"backlogQuotaMap", func(q *http.Request) (any, error) {
		name, err := s.existing(q)
		if err != nil {
			return nil, err
		}
		return quotas(s.broker.Catalog().Policies(name)), nil
	})
	for _, verb := range []string{"POST", "DELETE"} {
		s.handle(verb+ns+"backlogQuota", func(q *http.Request) (any, error) {
			name, err := s.existing(q)
			if err != nil {
				return nil, err
			}
			return nil, s.changeQuota(q, func(change func(*edge.Policies) error) error { return s.changeRules(q, name, change) })
		})
	}
	s.handleTopic(edge.Persistent, "GET", "/backlogQuotaMap", s.topicQuotas)
	for _, verb := range []string{"POST", "DELETE"} {
		s.handleTopic(edge.Persistent, verb, "/backlogQuota", func(q *http.Request, name edge.TopicName) (any, error) {
			return nil, s.changeQuota(q, func(change func(*edge.Policies) error) error { return s.changeTopicRule(q, name, change) })
		})
	}
}

// quota is one as it is answered.
type quota struct {
	Limit  int64  `json:"limit"`
	Size   int64  `json:"limitSize"`
	Time   int64  `json:"limitTime"`
	Policy string `json:"policy"`
}

func quotas(p *edge.Policies) map[string]quota {
	m := map[string]quota{}
	for kind, q := range map[string]*edge.BacklogQuota{quotaOfSize: p.BacklogSize, quotaOfAge: p.BacklogAge} {
		if q != nil {
			m[kind] = quota{q.Size, q.Size, q.Time, q.Policy}
		}
	}
	return m
}

func (s *Server) topicQuotas(q *http.Request, name edge.TopicName) (any, error) {
	if err := s.ruled(name); err != nil {
		return nil, err
	}
	if !switchOn(q, "applied") {
		return quotas(s.broker.Catalog().Policies(name.String())), nil
	}
	m := map[string]quota{}
	for _, kind := range []string{quotaOfSize, quotaOfAge} {
		m[kind] = quota{-1, -1, -1, edge.QuotaHold}
	}
	for kind, own := range quotas(s.broker.Effective(name)) {
		m[kind] = own
	}
	return m, nil
}

// changeQuota sets or removes the quota that a request names, by a function that changes
// the rules in question.
func (s *Server) changeQuota(q *http.Request, by func(func(*edge.Policies) error) error) error {
	field, err := quotaField(q.URL.Query().Get("backlogQuotaType"))
	if err != nil {
		return err
	}
	if q.Method == http.MethodDelete {
		return by(func(p *edge.Policies) error { *field(p) = nil; return nil })
	}
	data, err := value(q, rule{})
	if err != nil {
		return err
	}
	wanted, err := quotaOf(data)
	if err != nil {
		return err
	}
	return by(func(p *edge.Policies) error { *field(p) = wanted; return nil })
}

func quotaField(kind string) (func(*edge.Policies) **edge.BacklogQuota, error) {
	switch kind {
	case "", quotaOfSize:
		return func(p *edge.Policies) **edge.BacklogQuota { return &p.BacklogSize }, nil
	case quotaOfAge:
		return func(p *edge.Policies) **edge.BacklogQuota { return &p.BacklogAge }, nil
	default:
		return nil, refuse(http.StatusNotFound, "There is no backlog quota type %q", kind)
	}
}

// quotaOf reads one.
func quotaOf(data []byte) (*edge.BacklogQuota, error) {
	var in struct {
		Limit, LimitSize, LimitTime *int64
		Policy                      string
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return nil, refuse(http.StatusBadRequest, "Body is not what is expected here: %s", complaint(err))
	}
	switch in.Policy {
	case edge.QuotaHold, edge.QuotaFail, edge.QuotaEvict:
	default:
		return nil, refuse(http.StatusBadRequest, "Backlog quota needs a policy: %s, %s or %s", edge.QuotaHold, edge.QuotaFail, edge.QuotaEvict)
	}
	out := &edge.BacklogQuota{Policy: in.Policy}
	for _, v := range []*int64{in.Limit, in.LimitSize} { // the newer name counts
		if v != nil && (out.Size == 0 || *v != 0) {
			out.Size = *v
		}
	}
	if in.LimitTime != nil {
		out.Time = *in.LimitTime
	}
	return out, nil
}
