package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// maxConfigFile bounds what is read of a configuration file, in bytes.
const maxConfigFile = 1 << 20

// override is a value given by a flag.
type override struct {
	flag  string // as typed, for messages
	path  string
	value string
}

// settings is a whole configuration and where each of its values comes from.
type settings struct {
	Config
	file    string // "" without one
	origins map[string]place
}

// loadConfig overlays the defaults with the file, unless its name is empty, and
// with the overrides. The error is a *fault that lists every problem.
func loadConfig(file string, overrides []override, env func(string) (string, bool)) (settings, error) {
	s := settings{Config: defaultConfig(), file: file, origins: map[string]place{}}
	var problems []problem
	if file != "" {
		r := &reader{source: file, env: env, origins: s.origins}
		if err := r.readFile(&s.Config); err != nil {
			return s, err
		}
		problems = r.problems
	}
	for _, o := range overrides {
		r := &reader{source: o.flag, env: env, origins: s.origins}
		r.readOverride(&s.Config, o)
		problems = append(problems, r.problems...)
	}
	if len(problems) == 0 {
		problems = s.check()
	}
	if len(problems) > 0 {
		return s, badConfig(problems)
	}
	return s, nil
}

func badConfig(problems []problem) error {
	lines := make([]string, len(problems))
	for i, p := range problems {
		lines[i] = p.String()
	}
	return &fault{code: exitUsage, lines: lines}
}

// readFile returns an error if there is no document to read at all.
func (r *reader) readFile(to *Config) error {
	data, err := readBounded(r.source)
	if err != nil {
		return err
	}
	var document, second yaml.Node
	decoder := yaml.NewDecoder(strings.NewReader(string(data)))
	err = decoder.Decode(&document)
	switch {
	case errors.Is(err, io.EOF):
		return failed(exitUsage, "configuration file is empty", r.source, "write at least one key, or leave -c away to run on the defaults")
	case err != nil:
		r.problems = syntaxProblems(r.source, string(data), err)
		return nil
	}
	readGroup(r, to, document.Content[0], "", "", configKeys())
	if err := decoder.Decode(&second); err == nil {
		r.report(&second, "", "a second document begins here, one is all that is read")
	}
	return nil
}

func readBounded(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, failed(exitUsage, "cannot open the configuration", name, reason(err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxConfigFile+1))
	switch {
	case err != nil:
		return nil, failed(exitUsage, "cannot read the configuration", name, reason(err))
	case len(data) > maxConfigFile:
		return nil, failed(exitUsage, "configuration file is too large", name, "at most "+formatSize(maxConfigFile))
	}
	return data, nil
}

// syntaxProblems turns the parser's error into places. Indentation by tabs, which it
// reports in words nobody understands and one at a time, is found by ourselves.
func syntaxProblems(source, text string, err error) []problem {
	var found []problem
	for i, line := range strings.Split(text, "\n") {
		indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
		if at := strings.IndexByte(indent, '\t'); at >= 0 && indent != line {
			found = append(found, problem{place{source, i + 1, at + 1}, "", "a tab, indent with spaces"})
		}
	}
	if len(found) > 0 {
		return found
	}
	message, at := strings.TrimPrefix(err.Error(), "yaml: "), place{source, 1, 1}
	if _, scanErr := fmt.Sscanf(message, "line %d:", &at.line); scanErr == nil {
		_, message, _ = strings.Cut(message, ": ")
	}
	return []problem{{at, "", "is not YAML: " + message}}
}

// readOverride sets one key from a flag. A scalar is taken as typed, without YAML's
// quoting; a list is YAML.
func (r *reader) readOverride(to *Config, o override) {
	keys, at := configKeys(), &yaml.Node{}
	i := slices.IndexFunc(keys, func(k key[Config]) bool { return k.path == o.path })
	switch {
	case i < 0 && isGroup(keys, o.path):
		r.report(at, o.path, "is a group, name one of its keys")
		return
	case i < 0:
		r.report(at, o.path, "unknown key%s", hint(keys, "", o.path))
		return
	}
	k := keys[i]
	value := &yaml.Node{Kind: yaml.ScalarNode, Tag: k.tags[0], Value: o.value}
	if k.list != nil {
		var document yaml.Node
		if err := yaml.Unmarshal([]byte(o.value), &document); err != nil || len(document.Content) == 0 {
			r.report(at, o.path, "wants %s, written as YAML", k.wants)
			return
		}
		value = document.Content[0]
		withoutPlace(value)
	}
	readKey(r, to, value, o.path, k)
}

// withoutPlace drops lines and columns, which mean nothing inside a flag.
func withoutPlace(n *yaml.Node) {
	n.Line, n.Column = 0, 0
	for _, c := range n.Content {
		withoutPlace(c)
	}
}

// check looks at what only several values together tell.
func (s *settings) check() []problem {
	var found []problem
	report := func(path, format string, args ...any) {
		found = append(found, problem{s.origin(path), path, fmt.Sprintf(format, args...)})
	}
	if s.Storage.FileLimit != 0 && s.Storage.FileLimit < s.Storage.Quota {
		report("storage.file_limit", "%s is less than storage.quota, %s", formatSize(s.Storage.FileLimit), formatSize(s.Storage.Quota))
	}
	if s.Limits.MessageSize > s.Limits.Memory/4 {
		report("limits.message_size", "%s is more than a quarter of limits.memory, %s", formatSize(s.Limits.MessageSize), formatSize(s.Limits.Memory))
	}
	if s.Listen.Admin == s.Listen.Pulsar && !strings.HasSuffix(s.Listen.Admin, ":0") {
		report("listen.admin", "%s is the address of listen.pulsar too", s.Listen.Admin)
	}
	s.checkUplink(report)
	return found
}

func (s *settings) checkUplink(report func(path, format string, args ...any)) {
	u := s.Uplink
	_, urlGiven := s.origins["uplink.url"]
	switch {
	case len(u.Routes) > 0 && !urlGiven:
		report("uplink.routes", "leads nowhere, set uplink.url (\"\" keeps the routes at rest)")
	case u.URL != "" && len(u.Routes) == 0:
		report("uplink.url", "is set, but uplink.routes names nothing to forward")
	}
	if len(u.Routes) > 0 {
		s.checkRoutes(report)
	}
	if u.Token != "" && u.TokenFile != "" {
		report("uplink.auth.token", "and uplink.auth.token_file are both set, keep one")
	}
	if u.CAFile != "" && u.URL != "" && !strings.HasPrefix(u.URL, "pulsar+ssl://") {
		report("uplink.tls.ca_file", "has no use with %s, which is not pulsar+ssl://", u.URL)
	}
}

// origin tells where a value was set.
func (s *settings) origin(path string) place {
	if at, ok := s.origins[path]; ok {
		return at
	}
	return place{source: "default"}
}
