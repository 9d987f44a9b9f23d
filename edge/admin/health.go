package admin

import (
	"net/http"
	"strings"
)

// healthRoutes: GET /healthz says that the process lives, GET /readyz that the broker
// serves, with reasons when it does not; brokers/health and brokers/ready are the same
// question in Pulsar's form (protocol 5.2), answered "ok" or 503 with a reason.
func (s *Server) healthRoutes() {
	s.handle("GET /healthz", func(*http.Request) (any, error) { return text(`{"alive":true}`), nil })
	s.handle("GET /readyz", s.ready)
	s.handle("GET /admin/v2/brokers/health", s.health)
	s.handle("GET /admin/v2/brokers/ready", s.health)
}

// Readiness is the answer of /readyz.
type Readiness struct {
	Ready   bool     `json:"ready"`
	Reasons []string `json:"reasons"` // why not, in plain words; empty when ready
	Remarks []string `json:"remarks"` // what happened to the store's files at the start
}

// reasons are why the broker is not well, none if it is.
func (s *Server) reasons() []string {
	reasons := s.broker.Health()
	if s.closing.Load() {
		reasons = append(reasons, "broker is stopping")
	}
	if reasons == nil {
		reasons = []string{}
	}
	return reasons
}

func (s *Server) ready(*http.Request) (any, error) {
	reasons := s.reasons()
	ready := Readiness{len(reasons) == 0, reasons, list(s.broker.Stats().Store.Remarks)}
	if ready.Ready {
		return ready, nil
	}
	return withStatus{http.StatusServiceUnavailable, ready}, nil
}

func (s *Server) health(*http.Request) (any, error) {
	if reasons := s.reasons(); len(reasons) > 0 {
		return withStatus{http.StatusServiceUnavailable, reason{strings.Join(reasons, "; ")}}, nil
	}
	return text("ok"), nil
}
