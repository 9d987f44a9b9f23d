package admin

import (
	"encoding/json"
	"net/http"

	"wayside/edge"
)

// schemaPolicyRoutes: which schemas may follow which, and who may bring them (protocol 5.2,
// captures curl-namespace-policies and curl-topic-policies). Unlike other policies those of
// a namespace always have a value and cannot be removed; an unknown strategy counts as
// UNDEFINED, as in Pulsar.
func (s *Server) schemaPolicyRoutes() {
	const ns = " /admin/v2/namespaces/{tenant}/{namespace}/"
	strategy := func(p *edge.Policies) **string { return &p.SchemaStrategy }
	older := func(p *edge.Policies) **string { return &p.SchemaAutoUpdateStrategy }
	s.handle("GET"+ns+"schemaCompatibilityStrategy", namespacePolicy(s, strategy, edge.StrategyUndefined.String()))
	s.handle("PUT"+ns+"schemaCompatibilityStrategy", setNamespacePolicy(s, strategy, knownStrategy))
	s.handle("GET"+ns+"schemaAutoUpdateCompatibilityStrategy", namespacePolicy(s, older, nil))
	s.handle("PUT"+ns+"schemaAutoUpdateCompatibilityStrategy", setNamespacePolicy(s, older, knownAutoUpdate))
	for name, field := range map[string]func(*edge.Policies) **bool{
		"schemaValidationEnforced": func(p *edge.Policies) **bool { return &p.SchemaEnforced },
		"isAllowAutoUpdateSchema":  func(p *edge.Policies) **bool { return &p.SchemaAutoUpdate },
	} {
		usual := name == "isAllowAutoUpdateSchema" && s.broker.Options().SchemaAutoUpdate
		s.handle("GET"+ns+name, namespacePolicy(s, field, usual))
		s.handle("POST"+ns+name, setNamespacePolicy(s, field, func(v *bool) *bool { return v }))
	}
	for _, domain := range []string{edge.Persistent, edge.NonPersistent} {
		s.handleTopic(domain, "GET", "/schemaCompatibilityStrategy", s.topicStrategy)
		s.handleTopic(domain, "PUT", "/schemaCompatibilityStrategy", s.setTopicStrategy)
		s.handleTopic(domain, "DELETE", "/schemaCompatibilityStrategy", s.dropTopicStrategy)
		s.handleTopic(domain, "GET", "/schemaValidationEnforced", s.topicEnforced)
		s.handleTopic(domain, "POST", "/schemaValidationEnforced", s.setTopicEnforced)
	}
}

// namespacePolicy answers a policy of a namespace, or what stands for none.
func namespacePolicy[T any](s *Server, field func(*edge.Policies) **T, usual any) handler {
	return func(r *http.Request) (any, error) {
		ns, err := s.existing(r)
		if err != nil {
			return nil, err
		}
		if v := *field(s.broker.Catalog().Policies(ns)); v != nil {
			return *v, nil
		}
		return usual, nil
	}
}

// setNamespacePolicy keeps what clean makes of a value, nil for nothing.
func setNamespacePolicy[T any](s *Server, field func(*edge.Policies) **T, clean func(*T) *T) handler {
	return func(r *http.Request) (any, error) {
		ns, err := s.existing(r)
		if err != nil {
			return nil, err
		}
		value, err := policyIn(r, clean)
		if err != nil {
			return nil, err
		}
		return nil, s.broker.ChangePolicies(r.Context(), ns, func(p *edge.Policies) error {
			*field(p) = value
			return nil
		})
	}
}

func policyIn[T any](r *http.Request, clean func(*T) *T) (*T, error) {
	var raw json.RawMessage
	value := new(T)
	present, err := body(r, &raw)
	switch {
	case err != nil:
		return nil, err
	case !present:
		return nil, nil
	}
	if err := json.Unmarshal(raw, value); err != nil {
		return nil, refuse(http.StatusBadRequest, "Body is not what is expected here: %s", complaint(err))
	}
	return clean(value), nil
}

func knownStrategy(name *string) *string {
	if strategy, ok := edge.ParseSchemaStrategy(*name); !ok || strategy == edge.StrategyUndefined {
		return nil
	}
	return name
}

func knownAutoUpdate(name *string) *string {
	if !edge.KnownAutoUpdate(*name) {
		return nil
	}
	return name
}

// schemaTopicExists refuses topics that there are not.
func (s *Server) schemaTopicExists(name edge.TopicName) error {
	if _, ok := s.broker.Partitions(name); !ok && !s.broker.Exists(name) {
		return edge.ErrTopicNotFound
	}
	return nil
}

func (s *Server) topicStrategy(r *http.Request, name edge.TopicName) (any, error) {
	if err := s.schemaTopicExists(name); err != nil {
		return nil, err
	}
	if switchOn(r, "applied") {
		return s.broker.SchemaPolicy(name).Strategy.String(), nil
	}
	base, _ := name.Partition()
	if own := s.broker.Catalog().Policies(base.String()).SchemaStrategy; own != nil {
		return *own, nil
	}
	return empty{}, nil
}

func (s *Server) changeSchemaPolicy(r *http.Request, name edge.TopicName, change func(*edge.Policies)) error {
	if err := s.schemaTopicExists(name); err != nil {
		return err
	}
	base, _ := name.Partition()
	return s.broker.ChangePolicies(r.Context(), base.String(), func(p *edge.Policies) error {
		change(p)
		return nil
	})
}

func (s *Server) setTopicStrategy(r *http.Request, name edge.TopicName) (any, error) {
	value, err := policyIn(r, knownStrategy)
	if err != nil {
		return nil, err
	}
	return nil, s.changeSchemaPolicy(r, name, func(p *edge.Policies) { p.SchemaStrategy = value })
}

func (s *Server) dropTopicStrategy(r *http.Request, name edge.TopicName) (any, error) {
	return nil, s.changeSchemaPolicy(r, name, func(p *edge.Policies) { p.SchemaStrategy = nil })
}

func (s *Server) topicEnforced(r *http.Request, name edge.TopicName) (any, error) {
	if err := s.schemaTopicExists(name); err != nil {
		return nil, err
	}
	own := s.broker.Effective(name).SchemaEnforced
	return own != nil && *own, nil
}

func (s *Server) setTopicEnforced(r *http.Request, name edge.TopicName) (any, error) {
	value, err := policyIn(r, func(v *bool) *bool { return v })
	if err != nil {
		return nil, err
	}
	return nil, s.changeSchemaPolicy(r, name, func(p *edge.Policies) { p.SchemaEnforced = value })
}

// schemaPoliciesIn picks the policies out of the members of a namespace's object.
func schemaPoliciesIn(members map[string]json.RawMessage, p *edge.Policies) error {
	var in struct {
		Strategy   *string `json:"schema_compatibility_strategy"`
		Older      *string `json:"schema_auto_update_compatibility_strategy"`
		AutoUpdate *bool   `json:"is_allow_auto_update_schema"`
		Enforced   *bool   `json:"schema_validation_enforced"`
	}
	raw, err := encode(members)
	if err == nil {
		err = json.Unmarshal(raw, &in)
	}
	if err != nil {
		return refuse(http.StatusBadRequest, "Body is not what is expected here: %s", complaint(err))
	}
	if in.Strategy != nil {
		p.SchemaStrategy = knownStrategy(in.Strategy)
	}
	if in.Older != nil {
		p.SchemaAutoUpdateStrategy = knownAutoUpdate(in.Older)
	}
	p.SchemaAutoUpdate = in.AutoUpdate
	if in.Enforced != nil && *in.Enforced {
		p.SchemaEnforced = in.Enforced
	}
	return nil
}

// showSchemaPolicies sets the members that tell of schemas.
func showSchemaPolicies(object *policies, p *edge.Policies, autoUpdate bool) {
	object.SchemaCompatibility, object.SchemaAutoUpdate = edge.StrategyUndefined.String(), p.SchemaAutoUpdateStrategy
	if p.SchemaStrategy != nil {
		object.SchemaCompatibility = *p.SchemaStrategy
	}
	if object.AllowAutoUpdateSchema = autoUpdate; p.SchemaAutoUpdate != nil {
		object.AllowAutoUpdateSchema = *p.SchemaAutoUpdate
	}
	object.SchemaEnforced = p.SchemaEnforced != nil && *p.SchemaEnforced
}
