package admin

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"wayside/edge"
)

// namespaceRoutes: lists, creation, deletion, policies as read, topics of a namespace,
// and what is done to all its topics at once (protocol 5.2, captures curl-namespaces).
// Forced deletion is switched off, as in Pulsar. The rules that
// it obeys stand in rules.go.
func (s *Server) namespaceRoutes() {
	s.handle("GET /admin/v2/namespaces/{tenant}", s.listNamespaces)
	const ns = " /admin/v2/namespaces/{tenant}/{namespace}"
	s.handle("GET"+ns, s.getNamespace)
	s.handle("PUT"+ns, s.putNamespace)
	s.handle("DELETE"+ns, s.deleteNamespace)
	s.handle("GET"+ns+"/topics", s.namespaceTopics)
	s.handle("GET"+ns+"/bundles", s.namespaceBundles)
	s.handle("PUT"+ns+"/unload", s.unloadNamespace)
	s.handle("PUT"+ns+"/{bundle}/unload", s.unloadNamespace)
	s.handle("POST"+ns+"/clearBacklog", s.clearNamespace)
	s.handle("POST"+ns+"/clearBacklog/{subscription}", s.clearNamespace)
	s.handle("POST"+ns+"/unsubscribe/{subscription}", s.unsubscribeNamespace)
}

func (s *Server) listNamespaces(r *http.Request) (any, error) {
	tenant := r.PathValue("tenant")
	if _, ok := s.broker.Catalog().Tenant(tenant); !ok {
		return nil, refuse(http.StatusNotFound, "Tenant not found")
	}
	return list(s.broker.Catalog().Namespaces(tenant)), nil
}

// existing is the namespace that a path names, if it exists.
func (s *Server) existing(r *http.Request) (string, error) {
	ns, err := namespaceOf(r)
	if err != nil {
		return "", err
	}
	if !s.broker.Catalog().HasNamespace(ns) {
		return "", refuse(http.StatusNotFound, "Namespace does not exist")
	}
	return ns, nil
}

func (s *Server) getNamespace(r *http.Request) (any, error) {
	ns, err := namespaceOf(r)
	if err != nil {
		return nil, err
	}
	raw, ok := s.broker.Catalog().NamespaceData(ns)
	if !ok {
		return nil, refuse(http.StatusNotFound, "Namespace does not exist")
	}
	return s.policiesOf(raw, s.broker.Catalog().Policies(ns))
}

func (s *Server) namespaceBundles(r *http.Request) (any, error) {
	ns, err := s.existing(r)
	if err != nil {
		return nil, err
	}
	raw, _ := s.broker.Catalog().NamespaceData(ns)
	p, err := s.policiesOf(raw, &edge.Policies{})
	return p.Bundles, err
}

func (s *Server) putNamespace(r *http.Request) (any, error) {
	ns, err := namespaceOf(r)
	if err != nil {
		return nil, err
	}
	raw, rules, err := s.policiesIn(r)
	if err != nil {
		return nil, err
	}
	if err = s.broker.Catalog().CreateNamespace(r.Context(), ns, raw); err != nil {
		return nil, reworded(err, edge.ErrExists, "Namespace already exists")
	}
	return nil, s.changeRules(r, ns, func(p *edge.Policies) error { *p = *rules; return nil })
}

func (s *Server) deleteNamespace(r *http.Request) (any, error) {
	ns, err := namespaceOf(r)
	if err != nil {
		return nil, err
	}
	if s.broker.Catalog().HasNamespace(ns) && switchOn(r, "force") {
		return nil, refuse(http.StatusMethodNotAllowed, "Broker doesn't allow forced deletion of namespaces")
	}
	err = s.broker.DeleteNamespace(r.Context(), ns, false)
	err = reworded(err, edge.ErrNamespaceNotFound, "Namespace %s does not exist.", ns)
	return nil, reworded(err, edge.ErrNotEmpty, "Cannot delete non empty namespace")
}

// namespaceTopics lists by mode: PERSISTENT, which is the default, NON_PERSISTENT, ALL.
// Every partition has its own name.
func (s *Server) namespaceTopics(r *http.Request) (any, error) {
	ns, err := s.existing(r)
	if err != nil {
		return nil, err
	}
	switch mode := r.URL.Query().Get("mode"); mode {
	case "", "PERSISTENT":
		return namesIn(s.broker.Names(ns), edge.Persistent), nil
	case "NON_PERSISTENT":
		return namesIn(s.broker.Names(ns), edge.NonPersistent), nil
	case "ALL":
		return namesIn(s.broker.Names(ns), ""), nil
	default:
		return nil, refuse(http.StatusNotFound, "There is no mode %q", mode)
	}
}

// namesIn are the full names of a domain, of both for "". Topics that the broker keeps
// for itself are left out.
func namesIn(names []edge.TopicName, domain string) []string {
	full := make([]string, 0, len(names))
	for _, n := range names {
		if (domain == "" || n.Domain == domain) && !strings.HasPrefix(n.Local, "__") {
			full = append(full, n.String())
		}
	}
	return full
}

func (s *Server) unloadNamespace(r *http.Request) (any, error) {
	ns, err := namespaceOf(r)
	if err != nil {
		return nil, err
	}
	if !s.broker.Catalog().HasNamespace(ns) {
		return nil, edge.ErrNamespaceNotFound
	}
	for _, name := range s.broker.Names(ns) {
		if err := s.broker.Unload(r.Context(), name); err != nil && !errors.Is(err, edge.ErrTopicNotFound) {
			return nil, err
		}
	}
	return nil, nil
}

// clearNamespace acknowledges everything of one subscription name, or of all, on every
// topic. What is not there is no error, as in a missing namespace on 4.0.7.
func (s *Server) clearNamespace(r *http.Request) (any, error) {
	ns, err := namespaceOf(r)
	if err != nil {
		return nil, err
	}
	only := r.PathValue("subscription")
	for _, name := range s.broker.Names(ns) {
		err := s.withTopic(r.Context(), name, func(t *edge.Topic) error {
			for _, sub := range t.Subscriptions() {
				if only != "" && sub != only {
					continue
				}
				if err := t.SkipAll(r.Context(), sub); err != nil && !gone(err) {
					return err
				}
			}
			return nil
		})
		if err != nil && !gone(err) {
			return nil, err
		}
	}
	return nil, nil
}

// unsubscribeNamespace deletes a subscription on every topic that has it, up to the
// first one where it has consumers.
func (s *Server) unsubscribeNamespace(r *http.Request) (any, error) {
	ns, err := namespaceOf(r)
	if err != nil {
		return nil, err
	}
	sub := r.PathValue("subscription")
	for _, name := range s.broker.Names(ns) {
		err := s.withTopic(r.Context(), name, func(t *edge.Topic) error {
			if !slices.Contains(t.Subscriptions(), sub) {
				return nil
			}
			return t.DeleteSubscription(r.Context(), sub, false)
		})
		if err != nil && !gone(err) {
			return nil, ofSubscription(err, name, sub)
		}
	}
	return nil, nil
}

// gone reports whether what was to be changed went away meanwhile.
func gone(err error) bool {
	return errors.Is(err, edge.ErrTopicNotFound) || errors.Is(err, edge.ErrSubscriptionNotFound)
}
