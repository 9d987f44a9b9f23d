package admin

import (
	"net/http"
	"slices"
	"strconv"
)

// pulsarVersion is the Pulsar whose API this is, for tools that compare versions.
const pulsarVersion = "4.0.7"

// brokerRoutes: the list of brokers, which is this one under any cluster's name, the
// leader and the version (protocol 5.2, captures curl-brokers). Brokers name themselves
// by host and HTTP port; here that is how the client reached it. configuration/runtime
// tells those of Pulsar's settings that this broker has too, as text; pulsar-admin looks
// for the cluster's name there.
func (s *Server) brokerRoutes() {
	s.handle("GET /admin/v2/brokers", s.listBrokers)
	s.handle("GET /admin/v2/brokers/{cluster}", s.listBrokers)
	s.handle("GET /admin/v2/brokers/leaderBroker", s.leaderBroker)
	s.handle("GET /admin/v2/brokers/configuration/runtime", s.runtimeConfiguration)
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

func (s *Server) runtimeConfiguration(*http.Request) (any, error) {
	o := s.broker.Options()
	return map[string]string{
		"clusterName":                       s.opts.Cluster,
		"maxMessageSize":                    strconv.Itoa(o.MaxMessageSize),
		"allowAutoTopicCreation":            strconv.FormatBool(o.AutoCreate),
		"brokerDeduplicationEnabled":        strconv.FormatBool(o.Deduplication),
		"forceDeleteNamespaceAllowed":       "false",
		"forceDeleteTenantAllowed":          "false",
		"maxUnackedMessagesPerConsumer":     strconv.Itoa(o.UnackedPerConsumer),
		"maxUnackedMessagesPerSubscription": strconv.Itoa(o.UnackedPerSubscription),
	}, nil
}
