package admin

import (
	"net/http"
	"slices"
)

// clusterRoutes: the one cluster of this broker. Others cannot be declared, since
// nothing would replicate to them; set-up scripts that declare the cluster itself are
// told that it is there (409), which they expect.
func (s *Server) clusterRoutes() {
	s.handle("GET /admin/v2/clusters", func(*http.Request) (any, error) { return []string{s.opts.Cluster}, nil })
	s.handle("GET /admin/v2/clusters/{cluster}", s.getCluster)
	s.handle("PUT /admin/v2/clusters/{cluster}", s.putCluster)
}

// clusterData is what Pulsar tells of a cluster, without its TLS settings for clients.
type clusterData struct {
	ServiceURL            string `json:"serviceUrl"`
	ServiceURLTLS         string `json:"serviceUrlTls,omitempty"`
	BrokerServiceURL      string `json:"brokerServiceUrl"`
	BrokerServiceURLTLS   string `json:"brokerServiceUrlTls,omitempty"`
	ClientTLSEnabled      bool   `json:"brokerClientTlsEnabled"`
	AllowInsecure         bool   `json:"tlsAllowInsecureConnection"`
	ClientTLSWithKeyStore bool   `json:"brokerClientTlsEnabledWithKeyStore"`
}

func (s *Server) getCluster(r *http.Request) (any, error) {
	if r.PathValue("cluster") != s.opts.Cluster {
		return nil, refuse(http.StatusNotFound, "Cluster does not exist")
	}
	a := s.addresses(r)
	return clusterData{
		ServiceURL:          a.httpPlain(),
		ServiceURLTLS:       a.httpTLS(),
		BrokerServiceURL:    a.pulsar(),
		BrokerServiceURLTLS: a.pulsarTLS(),
	}, nil
}

func (s *Server) putCluster(r *http.Request) (any, error) {
	if _, err := body(r, &struct{}{}); err != nil {
		return nil, err
	}
	if r.PathValue("cluster") == s.opts.Cluster {
		return nil, refuse(http.StatusConflict, "Cluster already exists")
	}
	return nil, refuse(http.StatusPreconditionFailed, "This broker is a cluster of its own, %s, and knows no other", s.opts.Cluster)
}

// strangers are the clusters of a list that are not this one.
func (s *Server) strangers(clusters []string) []string {
	return slices.DeleteFunc(slices.Clone(clusters), func(c string) bool { return c == s.opts.Cluster })
}
