package uplink

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"wayside/edge"
)

// template makes a topic name of fixed text and placeholders: {edge}, {tenant},
// {namespace}, {topic}, and {1}, {2} … for what the stars of the pattern captured.
type template struct {
	pieces []piece
}

type piece struct {
	text string
	name string // of a placeholder, "" for fixed text
}

// parseTemplate checks the braces, the placeholders' names, and that some topic name
// can come of it.
func parseTemplate(s string, stars int) (template, error) {
	var t template
	for rest := s; rest != ""; {
		text, after, found := strings.Cut(rest, "{")
		if strings.Contains(text, "}") {
			return t, fmt.Errorf("%q: } without {", s)
		}
		if text != "" {
			t.pieces = append(t.pieces, piece{text: text})
		}
		if !found {
			break
		}
		name, end, closed := strings.Cut(after, "}")
		if !closed {
			return t, fmt.Errorf("%q: { without }", s)
		}
		if err := knownPlaceholder(name, stars); err != nil {
			return t, fmt.Errorf("%q: %w", s, err)
		}
		t.pieces = append(t.pieces, piece{name: name})
		rest = end
	}
	sample, err := edge.ParseTopicName(t.fill(func(string) string { return "x" }))
	if err == nil && !sample.IsPersistent() {
		err = fmt.Errorf("%q: only persistent topics are written to", s)
	}
	return t, err
}

func knownPlaceholder(name string, stars int) error {
	if slices.Contains([]string{"edge", "tenant", "namespace", "topic"}, name) {
		return nil
	}
	n, err := strconv.Atoi(name)
	switch {
	case err != nil:
		return fmt.Errorf("unknown placeholder {%s}: there are {edge}, {tenant}, {namespace}, {topic} and {1}, {2} …", name)
	case n < 1 || n > stars:
		return fmt.Errorf("{%s}: the pattern has %d stars", name, stars)
	}
	return nil
}

func (t *template) fill(value func(name string) string) string {
	var b strings.Builder
	for _, p := range t.pieces {
		if p.name != "" {
			b.WriteString(value(p.name))
		}
		b.WriteString(p.text)
	}
	return b.String()
}

// expand gives the topic for a source. A partition leads to the partition of the same
// number.
func (t *template) expand(edgeID string, source edge.TopicName, captured []string) (edge.TopicName, error) {
	base, partition := source.Partition()
	name, err := edge.ParseTopicName(t.fill(func(name string) string {
		switch name {
		case "edge":
			return edgeID
		case "tenant":
			return base.Tenant
		case "namespace":
			return base.Namespace
		case "topic":
			return base.Local
		}
		n, _ := strconv.Atoi(name)
		return captured[n-1]
	}))
	if err == nil && partition >= 0 {
		name = name.WithPartition(partition)
	}
	return name, err
}

// glob is the set of names that may come of a pattern's topics, with a star for what
// is not known.
func (t *template) glob(edgeID string, from *pattern) string {
	s := t.fill(func(name string) string {
		switch name {
		case "edge":
			return edgeID
		case "tenant":
			return from.tenant
		case "namespace":
			return from.namespace
		case "topic":
			return from.local
		}
		return "*"
	})
	s = strings.TrimPrefix(s, edge.Persistent+"://")
	if !strings.Contains(s, "/") {
		s = "public/default/" + s
	}
	return s
}
