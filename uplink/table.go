package uplink

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"wayside/edge"
)

// table is all routes of an uplink.
type table struct {
	edgeID string
	routes []*route
}

// parseTable checks all routes and says everything that is wrong in one error. self are
// the host:port addresses of this broker, by which loops are told.
func parseTable(edgeID, target string, self []string, routes []Route) (*table, error) {
	t := &table{edgeID: edgeID}
	var errs []error
	seen := map[string]bool{}
	for _, r := range routes {
		c, err := parseRoute(r)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if seen[c.Name] {
			errs = append(errs, fmt.Errorf("route %s: there are two of this name, give each its own", c.Name))
		}
		seen[c.Name] = true
		t.routes = append(t.routes, c)
	}
	if leadsHome(target, self) {
		errs = append(errs, t.loops()...)
	}
	return t, errors.Join(errs...)
}

// leadsHome reports whether a service URL names this broker.
func leadsHome(target string, self []string) bool {
	u, err := url.Parse(target)
	if err != nil {
		return false
	}
	for _, host := range strings.Split(u.Host, ",") {
		if slices.Contains(self, host) {
			return true
		}
	}
	return false
}

// loops finds targets that would be forwarded again.
func (t *table) loops() (errs []error) {
	for _, r := range t.routes {
		to := r.to.glob(t.edgeID, &r.from)
		for _, other := range t.routes {
			from := other.from.tenant + "/" + other.from.namespace + "/" + other.from.local
			if globsMeet(to, from) {
				errs = append(errs, fmt.Errorf("route %s: writes to this very broker, where route %s forwards %s: a loop", r.Name, other.Name, other.From))
			}
		}
	}
	return errs
}

// match returns the routes of a topic. Parking topics have none.
func (t *table) match(name edge.TopicName) []*route {
	if !name.IsPersistent() || t.isParking(name) {
		return nil
	}
	var found []*route
	for _, r := range t.routes {
		if _, ok := r.from.captures(name); ok {
			found = append(found, r)
		}
	}
	return found
}

// isParking reports whether messages may be parked on a topic.
func (t *table) isParking(name edge.TopicName) bool {
	full := name.NamespaceName() + "/" + name.Local
	for _, r := range t.routes {
		if globsMeet(r.park.glob(t.edgeID, &r.from), full) {
			return true
		}
	}
	return false
}

// reserved are the subscriptions that are made together with a topic.
func (t *table) reserved(name edge.TopicName) []string {
	if t.isParking(name) {
		return []string{parkedSubscription}
	}
	var names []string
	for _, r := range t.match(name) {
		names = append(names, r.subscription())
	}
	return names
}

// places says where messages of a topic go and where they are parked.
func (t *table) places(r *route, source edge.TopicName) (to, park edge.TopicName, err error) {
	captured, _ := r.from.captures(source)
	if to, err = r.to.expand(t.edgeID, source, captured); err != nil {
		return to, park, fmt.Errorf("route %s: target of %s: %w", r.Name, source, err)
	}
	base, _ := source.Partition()
	if park, err = r.park.expand(t.edgeID, base, captured); err != nil {
		return to, park, fmt.Errorf("route %s: parking topic of %s: %w", r.Name, source, err)
	}
	return to, park, nil
}
