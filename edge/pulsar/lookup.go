package pulsar

// LOOKUP (protocol version 0 on).
//
// Answered by Connect, with authoritative and an address, for every name whose
// namespace exists; the topic need not exist and is not made. Without a configured
// address it is the one at which this connection arrived, and proxy_through_service_url
// is set: then official clients open their data connections to the address that they
// dialled, which is right behind any NAT or port mapping (protocol 2.5). A client that
// does not know the flag finds the broker as long as nothing translates addresses.
//
// Deviations: advertised_listener_name is ignored where the reference refuses unknown
// ones. A failure is never ServiceNotReady or TooManyRequests, which would cost the
// client its connection (protocol 4, numbers 6 and 7).

import (
	"fmt"
	"net"
	"net/url"
	"strings"

	"google.golang.org/protobuf/proto"

	"wayside/edge"
	"wayside/wire/pulsarpb"
)

// Addresses in lookup answers where the connection's own cannot be said in a URL, and
// the ports of addresses that are configured without one.
const (
	logicalURL    = "pulsar://wayside:6650"
	logicalURLTLS = "pulsar+ssl://wayside:6651"
	port          = "6650"
	portTLS       = "6651"
)

// advertise decides what lookups answer.
func (s *Server) advertise() (err error) {
	s.proxied = s.opts.Advertised == "" && s.opts.AdvertisedTLS == ""
	s.url, s.urlTLS = logicalURL, logicalURLTLS
	if s.opts.Advertised != "" {
		if s.url, err = serviceURL("pulsar", s.opts.Advertised, port); err != nil {
			return err
		}
	}
	if s.opts.AdvertisedTLS != "" {
		s.urlTLS, err = serviceURL("pulsar+ssl", s.opts.AdvertisedTLS, portTLS)
	}
	return err
}

// serviceURL makes scheme://host:port of what somebody configured.
func serviceURL(scheme, address, defaultPort string) (string, error) {
	rest, given := address, ""
	if before, after, ok := strings.Cut(address, "://"); ok {
		given, rest = before, strings.TrimSuffix(after, "/")
	}
	if given != "" && given != scheme {
		return "", fmt.Errorf("advertised address %q: its scheme has to be %s", address, scheme)
	}
	host, port, err := net.SplitHostPort(rest)
	if err != nil {
		host, port = strings.Trim(rest, "[]"), defaultPort
	}
	out := scheme + "://" + net.JoinHostPort(host, port)
	if u, err := url.Parse(out); err != nil || u.Hostname() == "" || u.Path != "" {
		return "", fmt.Errorf("advertised address %q: is not host:port", address)
	}
	return out, nil
}

func (s *session) handleLookup(c *pulsarpb.BaseCommand) error {
	m := c.GetLookupTopic()
	if err := s.lookup(m.GetTopic()); err != nil {
		code, text := explainLookup(err)
		s.out.reply(&pulsarpb.CommandLookupTopicResponse{
			RequestId: m.RequestId,
			Response:  pulsarpb.CommandLookupTopicResponse_Failed.Enum(),
			Error:     code.Enum(), Message: &text,
		})
		return nil
	}
	url, urlTLS := s.addresses()
	answer := &pulsarpb.CommandLookupTopicResponse{
		BrokerServiceUrl: &url,
		Response:         pulsarpb.CommandLookupTopicResponse_Connect.Enum(),
		RequestId:        m.RequestId,
		Authoritative:    proto.Bool(true), ProxyThroughServiceUrl: &s.srv.proxied,
	}
	if s.tls != nil || s.srv.opts.AdvertisedTLS != "" {
		answer.BrokerServiceUrlTls = &urlTLS
	}
	s.out.reply(answer)
	return nil
}

// addresses are those of the broker as this client should know them.
func (s *session) addresses() (url, urlTLS string) {
	url, urlTLS = s.srv.url, s.srv.urlTLS
	at, ok := s.conn.LocalAddr().(*net.TCPAddr)
	switch {
	case !s.srv.proxied || !ok || at.Zone != "":
	case s.tls != nil:
		urlTLS = "pulsar+ssl://" + at.String()
	default:
		url = "pulsar://" + at.String()
	}
	return url, urlTLS
}

func (s *session) lookup(topic string) error {
	name, err := edge.ParseTopicName(topic)
	if err != nil {
		return err
	}
	return s.srv.broker.Lookup(name)
}

// explainLookup is explain for answers in which some codes close the connection.
func explainLookup(err error) (pulsarpb.ServerError, string) {
	code, text, _ := explain(err)
	if code == pulsarpb.ServerError_ServiceNotReady || code == pulsarpb.ServerError_TooManyRequests {
		code = pulsarpb.ServerError_MetadataError
	}
	return code, text
}
