package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"wayside/edge"
	"wayside/uplink"
)

// makeUplink checks everything that the uplink needs, before the broker is opened: the
// broker asks it for the subscriptions that a new topic has from its beginning.
func (b *server) makeUplink() (err error) {
	if b.Uplink.URL == "" {
		return nil
	}
	for _, f := range []struct{ path, name string }{{"uplink.auth.token_file", b.Uplink.TokenFile}, {"uplink.tls.ca_file", b.Uplink.CAFile}} {
		if f.name == "" {
			continue
		}
		if _, err := os.ReadFile(f.name); err != nil {
			return failed(exitUsage, "cannot read "+f.path, f.name, reason(err))
		}
	}
	o := uplinkOptions(&b.Config, b.edgeID)
	o.Logger = b.log
	o.Auth = b.cloudAuth()
	if b.uplink, err = uplink.New(o); err != nil {
		return failed(exitUsage, "wrong configuration", "uplink", err.Error())
	}
	return nil
}

// startUplink lets it forward. It stops before the broker does.
func (b *server) startUplink() error {
	if b.uplink == nil {
		b.log.Info("uplink", "state", "off", "routes", len(b.Uplink.Routes))
		return nil
	}
	b.uplink.Start(b.broker)
	b.push("uplink", b.uplink.Close)
	b.log.Info("uplink", "state", "on", "target", b.Uplink.URL, "routes", len(b.Uplink.Routes), "edge_id", b.edgeID)
	return nil
}

func (b *server) reserved() func(edge.TopicName) []string {
	if b.uplink == nil {
		return nil
	}
	return b.uplink.Reserved
}

func uplinkOptions(c *Config, edgeID string) uplink.Options {
	o := uplink.DefaultOptions()
	o.URL, o.EdgeID = c.Uplink.URL, edgeID
	o.RateLimit = c.Uplink.RateLimit
	o.MaxMessageSize = int(c.Limits.MessageSize)
	o.Self = ownAddresses(c)
	for _, r := range c.Uplink.Routes {
		o.Routes = append(o.Routes, r.forUplink())
	}
	return o
}

func (r *Route) forUplink() uplink.Route {
	return uplink.Route{
		Name: r.Name, From: r.From, To: r.To, Forward: uplink.Forward(r.Forward), By: r.By,
		Compression: uplink.Compression(r.Compression), Provenance: uplink.Provenance(r.Provenance), Park: r.Park,
	}
}

// cloudAuth hands the files in as functions: they are read again for each connection,
// so that renewed ones take effect.
func (b *server) cloudAuth() uplink.Auth {
	var a uplink.Auth
	token, tokenFile, caFile := b.Uplink.Token, b.Uplink.TokenFile, b.Uplink.CAFile
	switch {
	case token != "":
		a.Token = func() (string, error) { return token, nil }
	case tokenFile != "":
		a.Token = func() (string, error) {
			data, err := os.ReadFile(tokenFile)
			return strings.TrimSpace(string(data)), err
		}
	}
	if caFile != "" {
		a.Roots = func() ([]byte, error) { return os.ReadFile(caFile) }
	}
	return a
}

// ownAddresses are the host:port forms by which this broker may be named in a URL, as
// far as the configuration and the machine's own interfaces tell.
func ownAddresses(c *Config) []string {
	host, port, err := net.SplitHostPort(c.Listen.Pulsar)
	if err != nil {
		return nil
	}
	hosts := []string{host}
	if ip := net.ParseIP(host); host == "" || ip != nil && (ip.IsUnspecified() || ip.IsLoopback()) {
		hosts = append(hosts, "localhost", "127.0.0.1", "::1")
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		hosts = append(hosts, machineAddresses()...)
	}
	var all []string
	for _, h := range hosts {
		all = append(all, net.JoinHostPort(h, port))
	}
	if c.Listen.Advertised != "" {
		number, _ := strconv.Atoi(port) // checked when the configuration was read
		all = append(all, strings.TrimPrefix(withPort(c.Listen.Advertised, number), "pulsar://"))
	}
	return all
}

// machineAddresses are the machine's name and the addresses of its interfaces; what
// cannot be asked is left out, for it only sharpens a warning.
func machineAddresses() []string {
	var hosts []string
	if name, err := os.Hostname(); err == nil {
		hosts = append(hosts, name)
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return hosts
	}
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok {
			hosts = append(hosts, n.IP.String())
		}
	}
	return hosts
}

// checkRoutes has the uplink itself look at the routes: each alone, so that the place
// of a mistake is known, then all together for names and loops.
func (s *settings) checkRoutes(report func(path, format string, args ...any)) {
	o := uplinkOptions(&s.Config, "edge")
	if s.Edge.ID != "" {
		o.EdgeID = s.Edge.ID
	}
	if o.URL == "" {
		o.URL = "pulsar://localhost:1" // at rest: the routes are looked at all the same
	}
	sound := true
	for i := range o.Routes {
		alone := o
		alone.Routes, alone.Self = o.Routes[i:i+1], nil
		for _, text := range uplinkComplaints(alone) {
			sound = false
			report(fmt.Sprintf("uplink.routes[%d]", i), "%s", text)
		}
	}
	if !sound {
		return
	}
	for _, text := range uplinkComplaints(o) {
		report("uplink.routes", "%s", text)
	}
}

// uplinkComplaints are the texts of everything that is wrong with the options.
func uplinkComplaints(o uplink.Options) []string {
	_, err := uplink.New(o)
	if err == nil {
		return nil
	}
	var all []string
	if inner := errors.Unwrap(err); inner != nil {
		err = inner
	}
	for line := range strings.Lines(err.Error()) {
		all = append(all, strings.TrimSpace(line))
	}
	return all
}
