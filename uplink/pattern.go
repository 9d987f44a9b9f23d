package uplink

import (
	"fmt"
	"regexp"
	"strings"

	"wayside/edge"
)

// pattern matches topic names. A * stands for one or more characters within tenant,
// namespace or topic, and captures them.
type pattern struct {
	tenant, namespace, local string // as written
	match                    *regexp.Regexp
	stars                    int
}

// parsePattern takes the forms that people type: topic, tenant/namespace/topic, and
// the full name.
func parsePattern(s string) (pattern, error) {
	full, found := strings.CutPrefix(s, edge.Persistent+"://")
	if !found && strings.Contains(s, "://") {
		return pattern{}, fmt.Errorf("%q: only persistent topics are forwarded", s)
	}
	part := strings.Split(full, "/")
	if len(part) == 1 && !found {
		part = []string{"public", "default", full}
	}
	if len(part) != 3 {
		return pattern{}, fmt.Errorf("%q is neither topic nor tenant/namespace/topic", s)
	}
	// Names with something in place of each star have to be legal ones.
	if _, err := edge.ParseTopicName(strings.ReplaceAll(strings.Join(part, "/"), "*", "x")); err != nil {
		return pattern{}, err
	}
	p := pattern{tenant: part[0], namespace: part[1], local: part[2], stars: strings.Count(full, "*")}
	expr := strings.ReplaceAll(regexp.QuoteMeta(strings.Join(part, "/")), `\*`, `([^/]+?)`)
	match, err := regexp.Compile("^" + expr + "$")
	p.match = match
	return p, err
}

// captures matches a topic by its base name: all partitions of it match alike. What
// the stars stand for is returned in order.
func (p *pattern) captures(name edge.TopicName) ([]string, bool) {
	base, _ := name.Partition()
	found := p.match.FindStringSubmatch(base.NamespaceName() + "/" + base.Local)
	if found == nil {
		return nil, false
	}
	return found[1:], true
}

// globsMeet reports whether one text could match both globs, whose stars stand for any
// text.
func globsMeet(a, b string) bool {
	switch {
	case a == "" && b == "":
		return true
	case a != "" && a[0] == '*':
		return globsMeet(a[1:], b) || b != "" && globsMeet(a, b[1:])
	case b != "" && b[0] == '*':
		return globsMeet(b[1:], a) || a != "" && globsMeet(b, a[1:])
	case a == "" || b == "" || a[0] != b[0]:
		return false
	}
	return globsMeet(a[1:], b[1:])
}
