package admin

import (
	"net/http"
	"slices"
)

// pulsarVersion is the Pulsar whose API this is, for tools that compare versions.
const pulsarVersion = "4.0.7"

// brokerRoutes: the list of brokers, which is this one under any cluster's name, the
// leader and the version (protocol 5.2, captures curl-brokers). Brokers name themselves
// by host and HTTP port; here that is how the client reached it.
func (s *Server) brokerRoutes() {
	s.handle("GET /admin/v2/brokers", s.listBrokers)
	s.handle("GET /admin/v2/brokers/{cluster}", s.listBrokers)
	s.handle("GET /admin/v2/brokers/leaderBroker", s.leaderBroker)
	s.handle("GET /admin/v2/brokers/version", func(*http.Request) (any, error) { return text(pulsarVersion), nil })
}

// elsewhere are Pulsar's paths beside the clusters' names that do not exist here.
var elsewhere = []string{"configuration", "internal-configuration", "backlog-quota-check", "shutdown"}

func (s *Server) listBrokers(r *http.Request) (any, error) {
	if slices.Contains(elsewhere, r.PathValue("cluster")) {
		return nil, refuse(http.StatusNotFound, "Not found")
	}
	return []string{s.brokerID(r)}, nil
}

func (s *Server) leaderBroker(r *http.Request) (any, error) {
	return struct {
		ServiceURL string `json:"serviceUrl"`
		BrokerID   string `json:"brokerId"`
	}{s.addresses(r).http(), s.brokerID(r)}, nil
}
