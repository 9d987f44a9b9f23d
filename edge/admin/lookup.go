package admin

import (
	"cmp"
	"net"
	"net/http"
	"strconv"
	"strings"

	"wayside/edge"
)

// lookupRoutes: GET /lookup/v2/topic/{domain}/{tenant}/{namespace}/{topic} is asked by
// clients with an http:// service URL (protocol 5.2, captures curl-lookup). The answer
// is always this broker. 404 for a missing namespace, for a partition beyond the count,
// and, unlike LOOKUP of the binary protocol, for a missing topic where topics are not
// created by themselves. Listener names are ignored. Below it /bundle tells a bundle
// that exists in this answer alone.
func (s *Server) lookupRoutes() {
	for _, domain := range []string{edge.Persistent, edge.NonPersistent} {
		path := "GET /lookup/v2/topic/" + domain + "/{tenant}/{namespace}/{topic}"
		s.handle(path, func(r *http.Request) (any, error) { return s.lookup(r, domain) })
		s.handle(path+"/bundle", func(r *http.Request) (any, error) { return s.bundleOf(r, domain) })
	}
}

// lookupData names the addresses, as Pulsar 4.0.7 does: the two TLS ones are absent
// without TLS, the last one is always there and empty.
type lookupData struct {
	BrokerURL    string `json:"brokerUrl"`
	BrokerURLTLS string `json:"brokerUrlTls,omitempty"`
	HTTPURL      string `json:"httpUrl"`
	HTTPURLTLS   string `json:"httpUrlTls,omitempty"`
	NativeURL    string `json:"nativeUrl"`
	BrokerURLSSL string `json:"brokerUrlSsl"`
}

func (s *Server) lookup(r *http.Request, domain string) (any, error) {
	name, err := topicOf(r, domain)
	if err != nil {
		return nil, err
	}
	if err := s.broker.Lookup(name); err != nil {
		return nil, err
	}
	_, known, err := s.broker.Known(name)
	if err == nil && !known && !s.broker.AutoCreates(name) {
		err = edge.ErrTopicNotFound
	}
	if err != nil {
		return nil, reworded(err, edge.ErrTopicNotFound, "Topic not found %s", name)
	}
	a := s.addresses(r)
	return lookupData{
		BrokerURL:    a.pulsar(),
		BrokerURLTLS: a.pulsarTLS(),
		HTTPURL:      a.httpPlain(),
		HTTPURLTLS:   a.httpTLS(),
		NativeURL:    a.pulsar(),
	}, nil
}

// wholeRange is the one bundle that this broker answers for any topic.
const wholeRange = "0x00000000_0xffffffff"

func (s *Server) bundleOf(r *http.Request, domain string) (any, error) {
	name, err := topicOf(r, domain)
	if err != nil {
		return nil, err
	}
	if err := s.broker.Lookup(name); err != nil {
		return nil, err
	}
	return text(wholeRange), nil
}

// addresses are where a client that sent a request finds this broker.
type addresses struct {
	host       string // without port, an IPv6 address without brackets
	httpPort   string
	pulsarPort string // "" without a plain Pulsar listener
	secure     bool
	opts       *Options
}

// addresses takes the host from the request, so that the client stays on an address
// that it can reach, unless another one is advertised.
func (s *Server) addresses(r *http.Request) addresses {
	a := addresses{secure: s.opts.TLS, opts: &s.opts}
	host, port := hostAndPort(r.Host)
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		localHost, localPort, err := net.SplitHostPort(local.String())
		if err == nil && host == "" {
			host = localHost
		}
		if err == nil && port == "" {
			port = localPort
		}
	}
	a.host, a.httpPort = host, port
	if s.opts.PulsarPort != 0 {
		a.pulsarPort = strconv.Itoa(s.opts.PulsarPort)
	}
	if adv := s.opts.Advertised; adv != "" && !strings.Contains(adv, "://") {
		a.host, port = hostAndPort(adv)
		a.pulsarPort = cmp.Or(port, a.pulsarPort)
	}
	return a
}

// hostAndPort takes an address apart that may lack its port.
func hostAndPort(address string) (host, port string) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return strings.Trim(address, "[]"), ""
	}
	return host, port
}

func (a addresses) join(port string) string {
	if port == "" {
		if strings.Contains(a.host, ":") {
			return "[" + a.host + "]"
		}
		return a.host
	}
	return net.JoinHostPort(a.host, port)
}

// pulsar is the plain URL, or the advertised one.
func (a addresses) pulsar() string {
	if strings.HasPrefix(a.opts.Advertised, "pulsar://") {
		return a.opts.Advertised
	}
	if a.pulsarPort == "" {
		return ""
	}
	return "pulsar://" + a.join(a.pulsarPort)
}

func (a addresses) pulsarTLS() string {
	if strings.HasPrefix(a.opts.Advertised, "pulsar+ssl://") {
		return a.opts.Advertised
	}
	if a.opts.PulsarTLSPort == 0 {
		return ""
	}
	return "pulsar+ssl://" + a.join(strconv.Itoa(a.opts.PulsarTLSPort))
}

// http is the URL by which the client came.
func (a addresses) http() string {
	if a.secure {
		return a.httpTLS()
	}
	return a.httpPlain()
}

func (a addresses) httpPlain() string {
	if a.secure {
		return ""
	}
	return "http://" + a.join(a.httpPort)
}

func (a addresses) httpTLS() string {
	if !a.secure {
		return ""
	}
	return "https://" + a.join(a.httpPort)
}

// brokerID is host and port by which the client came, Pulsar's name of a broker.
func (s *Server) brokerID(r *http.Request) string {
	a := s.addresses(r)
	return a.join(a.httpPort)
}
