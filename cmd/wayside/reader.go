package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// place is where a value was written: a line of a file, or a flag.
type place struct {
	source string
	line   int // from 1; 0 for a flag
	column int
}

func (p place) String() string {
	if p.line == 0 {
		return p.source
	}
	return fmt.Sprintf("%s:%d:%d", p.source, p.line, p.column)
}

// problem is one thing wrong with the configuration.
type problem struct {
	at   place
	path string
	text string
}

func (p problem) String() string {
	if p.path == "" {
		return fmt.Sprintf("%v: %s", p.at, p.text)
	}
	return fmt.Sprintf("%v: %s: %s", p.at, p.path, p.text)
}

// reader overlays a configuration with what a document says. It goes on after a
// problem, so that all of them are told in one go.
type reader struct {
	source   string
	env      func(string) (string, bool)
	origins  map[string]place // of every value that was set, by path
	problems []problem
}

func (r *reader) report(n *yaml.Node, path, format string, args ...any) {
	r.problems = append(r.problems, problem{r.place(n), path, fmt.Sprintf(format, args...)})
}

func (r *reader) place(n *yaml.Node) place {
	if n.Line == 0 {
		return place{source: r.source}
	}
	return place{r.source, n.Line, n.Column}
}

// readGroup reads a mapping whose members are keys, or groups of keys, of a T.
// An empty group says nothing.
func readGroup[T any](r *reader, to *T, n *yaml.Node, prefix, group string, keys []key[T]) {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return
	}
	if n.Kind != yaml.MappingNode {
		r.report(n, strings.TrimSuffix(prefix+group, "."), "wants a group of keys, has %s", describe(n))
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		path := join(group, name.Value)
		if first, ok := seen[name.Value]; ok {
			r.report(name, prefix+path, "is repeated, first in line %d", first)
			continue
		}
		seen[name.Value] = name.Line
		readMember(r, to, name, value, prefix, path, keys)
	}
}

func readMember[T any](r *reader, to *T, name, value *yaml.Node, prefix, path string, keys []key[T]) {
	at := slices.IndexFunc(keys, func(k key[T]) bool { return k.path == path })
	switch {
	case value.Kind == yaml.AliasNode || value.Anchor != "":
		r.report(value, prefix+path, "has an anchor or alias, write the value out")
	case at >= 0:
		readKey(r, to, value, prefix+path, keys[at])
	case isGroup(keys, path):
		readGroup(r, to, value, prefix, path, keys)
	default:
		r.report(name, prefix+path, "unknown key%s", hint(keys, prefix, path))
	}
}

// readKey checks the written type before the text, so that `id: 12` is told from `id: "12"`.
func readKey[T any](r *reader, to *T, n *yaml.Node, path string, k key[T]) {
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		r.report(n, path, "has no value, remove the line or write one: wants %s", k.wants)
		return
	case !slices.Contains(k.tags, n.Tag):
		r.report(n, path, "wants %s, has %s", k.wants, describe(n))
		return
	}
	r.origins[path] = r.place(n)
	if k.list != nil {
		k.list(r, to, n, path)
		return
	}
	text, err := r.expand(n.Value, k.secret)
	if err == nil {
		err = k.set(to, text)
	}
	if err != nil {
		r.report(n, path, "%v", err)
	}
}

var reference = regexp.MustCompile(`^\$\{([A-Za-z_][A-Za-z0-9_]*)\}$`)

// expand takes ${NAME} from the environment, for a secret and for nothing else. A
// secret that is written out is refused: files and command lines are read by many.
func (r *reader) expand(text string, secret bool) (string, error) {
	match := reference.FindStringSubmatch(text)
	switch {
	case !secret && match != nil:
		return "", fmt.Errorf("%s: only secrets are taken from the environment", text)
	case !secret || text == "":
		return text, nil
	case match == nil:
		return "", fmt.Errorf("is a secret, write ${NAME} and put it into the environment, or use a file")
	}
	value, ok := r.env(match[1])
	if !ok || value == "" {
		return "", fmt.Errorf("%s is not set in the environment", match[1])
	}
	return value, nil
}

// readRoutes reads the list of routes. Each starts from the defaults.
func readRoutes(r *reader, to *Config, n *yaml.Node, path string) {
	to.Uplink.Routes = nil
	for i, item := range n.Content {
		route, prefix := defaultRoute(), fmt.Sprintf("%s[%d]", path, i)
		before := len(r.problems)
		readGroup(r, &route, item, prefix+".", "", routeKeys())
		if len(r.problems) == before {
			r.checkRoute(item, prefix, route)
		}
		r.origins[prefix] = r.place(item)
		to.Uplink.Routes = append(to.Uplink.Routes, route)
	}
}

func (r *reader) checkRoute(n *yaml.Node, path string, route Route) {
	switch {
	case route.From == "":
		r.report(n, path, "lacks from, the topic or pattern to forward")
	case route.Forward == "acknowledged" && route.By == "":
		r.report(n, path, "lacks by, the subscription whose acknowledgements are meant")
	case route.Forward != "acknowledged" && route.By != "":
		r.report(n, path+".by", "goes with forward: acknowledged only")
	}
}

func join(group, name string) string {
	if group == "" {
		return name
	}
	return group + "." + name
}

func isGroup[T any](keys []key[T], path string) bool {
	return slices.ContainsFunc(keys, func(k key[T]) bool { return strings.HasPrefix(k.path, path+".") })
}

// hint names the known key that is meant: one beside it that looks alike, one of
// the same name in another group, or any that looks alike.
func hint[T any](keys []key[T], prefix, path string) string {
	group, name := "", path
	if i := strings.LastIndex(path, "."); i >= 0 {
		group, name = path[:i+1], path[i+1:]
	}
	var beside, all []string
	for _, k := range keys {
		all = append(all, k.path)
		if rest, ok := strings.CutPrefix(k.path, group); ok {
			member, _, _ := strings.Cut(rest, ".")
			beside = append(beside, member)
		}
	}
	meant := nearest(name, beside)
	if meant != "" {
		meant = group + meant
	}
	for _, p := range all {
		if meant == "" && strings.HasSuffix(p, "."+name) {
			meant = p
		}
	}
	if meant == "" {
		meant = nearest(path, all)
	}
	if meant == "" {
		return ""
	}
	return ", did you mean " + prefix + meant + "?"
}

// describe names what a node is, in words of people.
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a group of keys"
	case yaml.SequenceNode:
		return "a list"
	}
	names := map[string]string{"!!str": "the text", "!!int": "the number", "!!float": "the number", "!!bool": "the switch", "!!timestamp": "the date"}
	if name, ok := names[n.Tag]; ok {
		return fmt.Sprintf("%s %s", name, n.Value)
	}
	if n.Tag == "!!null" {
		return "no value"
	}
	return "the tag " + n.Tag
}
