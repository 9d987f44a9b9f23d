package admin

import (
	"net/http"
	"strings"

	"wayside/edge"
)

// tenantRoutes: GET lists and reads, PUT creates, POST changes, DELETE removes
// (protocol 5.2, captures curl-tenants). Forced deletion is switched off, as in Pulsar.
func (s *Server) tenantRoutes() {
	s.handle("GET /admin/v2/tenants", func(*http.Request) (any, error) { return s.broker.Catalog().Tenants(), nil })
	s.handle("GET /admin/v2/tenants/{tenant}", s.getTenant)
	s.handle("PUT /admin/v2/tenants/{tenant}", s.putTenant)
	s.handle("POST /admin/v2/tenants/{tenant}", s.postTenant)
	s.handle("DELETE /admin/v2/tenants/{tenant}", s.deleteTenant)
}

// tenantData is a tenant as it is read and written.
type tenantData struct {
	AdminRoles      []string `json:"adminRoles"`
	AllowedClusters []string `json:"allowedClusters"`
}

func (s *Server) getTenant(r *http.Request) (any, error) {
	t, ok := s.broker.Catalog().Tenant(r.PathValue("tenant"))
	if !ok {
		return nil, edge.ErrTenantNotFound
	}
	if len(t.AllowedClusters) == 0 { // made without an administrator
		t.AllowedClusters = []string{s.opts.Cluster}
	}
	return tenantData{list(t.AdminRoles), t.AllowedClusters}, nil
}

func (s *Server) putTenant(r *http.Request) (any, error) {
	name := r.PathValue("tenant")
	if !edge.ValidPart(name) {
		return nil, refuse(http.StatusPreconditionFailed, "Tenant name is not valid")
	}
	t, err := s.tenantIn(r)
	if err != nil {
		return nil, err
	}
	if _, ok := s.broker.Catalog().Tenant(name); ok {
		return nil, refuse(http.StatusConflict, "Tenant already exist")
	}
	return nil, s.broker.Catalog().PutTenant(r.Context(), name, t)
}

func (s *Server) postTenant(r *http.Request) (any, error) {
	t, err := s.tenantIn(r)
	if err != nil {
		return nil, err
	}
	name := r.PathValue("tenant")
	if _, ok := s.broker.Catalog().Tenant(name); !ok {
		return nil, refuse(http.StatusNotFound, "Tenant %s not found", name)
	}
	return nil, s.broker.Catalog().PutTenant(r.Context(), name, t)
}

// tenantIn reads the body, which has to allow this cluster and no other.
func (s *Server) tenantIn(r *http.Request) (edge.Tenant, error) {
	var t tenantData
	present, err := body(r, &t)
	why := ""
	switch {
	case err != nil:
		return edge.Tenant{}, err
	case !present:
		why = "TenantInfo is null"
	case t.AllowedClusters == nil:
		why = "Clusters cannot be null"
	case len(t.AllowedClusters) == 0 || strings.TrimSpace(strings.Join(t.AllowedClusters, "")) == "":
		why = "Clusters cannot be empty or blank"
	case len(s.strangers(t.AllowedClusters)) > 0:
		why = "Clusters do not exist"
	}
	if why != "" {
		return edge.Tenant{}, refuse(http.StatusPreconditionFailed, "%s", why)
	}
	return edge.Tenant{AdminRoles: list(t.AdminRoles), AllowedClusters: t.AllowedClusters}, nil
}

func (s *Server) deleteTenant(r *http.Request) (any, error) {
	name := r.PathValue("tenant")
	if _, ok := s.broker.Catalog().Tenant(name); ok && switchOn(r, "force") {
		return nil, refuse(http.StatusMethodNotAllowed, "Broker doesn't allow forced deletion of tenants")
	}
	err := s.broker.Catalog().DeleteTenant(r.Context(), name)
	err = reworded(err, edge.ErrTenantNotFound, "Tenant doesn't exist")
	return nil, reworded(err, edge.ErrNotEmpty, "The tenant still has active namespaces")
}

// list is the slice itself, or an empty one for nil, which JSON would write as null.
func list[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}
