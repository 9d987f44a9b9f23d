package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"gopkg.in/yaml.v3"

	"wayside/configs"
)

// configFlags are the flags of every command that reads the configuration.
type configFlags struct {
	file                string
	data, listen, admin string
	sets                []string
}

func (f *configFlags) add(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVarP(&f.file, "config", "c", "", "configuration `FILE`; without it the defaults hold")
	flags.StringVar(&f.data, "data", "", "data `DIR`ectory (storage.path)")
	flags.StringVar(&f.listen, "listen", "", "`ADDR`ess for Pulsar clients (listen.pulsar)")
	flags.StringVar(&f.admin, "admin", "", "`ADDR`ess of admin and metrics (listen.admin)")
	flags.StringArrayVar(&f.sets, "set", nil, "set any key, as `KEY=VALUE`; may be repeated")
}

// load reads the file named by -c and lays the flags over it, --set last.
func (f *configFlags) load(c *cobra.Command, env func(string) (string, bool)) (settings, error) {
	overrides := []override{}
	for _, o := range []override{
		{"data", "storage.path", f.data}, {"listen", "listen.pulsar", f.listen}, {"admin", "listen.admin", f.admin},
	} {
		if c.Flags().Changed(o.flag) {
			o.flag = "--" + o.flag
			overrides = append(overrides, o)
		}
	}
	for _, set := range f.sets {
		path, value, ok := strings.Cut(set, "=")
		if !ok {
			return settings{}, failed(exitUsage, "wrong usage", "--set "+set, "write --set KEY=VALUE")
		}
		overrides = append(overrides, override{"--set", path, value})
	}
	if f.file == "" && c.Flags().Changed("config") {
		return settings{}, failed(exitUsage, "wrong usage", "-c", "name a file, or leave -c away for the defaults")
	}
	return loadConfig(f.file, overrides, env)
}

func (m *Main) configCommand() *cobra.Command {
	c := &cobra.Command{Use: "config", Short: "Print, check or explain the configuration", Args: oneCommand}
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	c.AddCommand(&cobra.Command{
		Use:   "default",
		Short: "Print the default file: every key, its default and what it does",
		Args:  onlyFlags,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := io.WriteString(c.OutOrStdout(), configs.Default())
			return err
		},
	}, m.checkCommand(), m.showCommand())
	return c
}

func (m *Main) checkCommand() *cobra.Command {
	var f configFlags
	c := &cobra.Command{Use: "check", Short: "Check a configuration; all errors in one go, exit 2", Args: onlyFlags}
	f.add(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		s, err := f.load(c, m.Env)
		if err == nil {
			fmt.Fprintf(c.OutOrStdout(), "%s: ok\n", s.name())
		}
		return err
	}
	return c
}

func (m *Main) showCommand() *cobra.Command {
	var f configFlags
	c := &cobra.Command{Use: "show", Short: "Show the values in effect and where each comes from, secrets masked", Args: onlyFlags}
	f.add(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		s, err := f.load(c, m.Env)
		if err == nil {
			s.show(c.OutOrStdout())
		}
		return err
	}
	return c
}

// name is what people call the configuration.
func (s *settings) name() string {
	if s.file == "" {
		return "built-in defaults"
	}
	return s.file
}

// show writes every key in effect as YAML, each with its origin behind it.
func (s *settings) show(w io.Writer) {
	group := ""
	for _, k := range configKeys() {
		indent := ""
		for i, part := range strings.Split(k.path, ".") {
			depth := strings.Join(strings.SplitN(k.path, ".", i+2)[:i+1], ".")
			if depth != k.path && !strings.HasPrefix(group+".", depth+".") {
				fmt.Fprintf(w, "%s%s:\n", indent, part)
			}
			if depth == k.path {
				s.showKey(w, indent+part+":", k)
			}
			indent += "  "
		}
		group = k.path
	}
}

func (s *settings) showKey(w io.Writer, name string, k key[Config]) {
	if k.list != nil {
		s.showRoutes(w, name)
		return
	}
	value := plain(k.tags, k.get(&s.Config))
	if k.secret && k.get(&s.Config) != "" {
		value = `"***"`
	}
	showLine(w, name+" "+value, s.origin(k.path))
}

func (s *settings) showRoutes(w io.Writer, name string) {
	if len(s.Uplink.Routes) == 0 {
		showLine(w, name+" []", s.origin("uplink.routes"))
		return
	}
	fmt.Fprintln(w, name)
	indent := name[:len(name)-len(strings.TrimLeft(name, " "))]
	for i := range s.Uplink.Routes {
		var members []string
		for _, k := range routeKeys() {
			if text := k.get(&s.Uplink.Routes[i]); text != "" {
				members = append(members, k.path+": "+plain(k.tags, text))
			}
		}
		at := s.origin(fmt.Sprintf("uplink.routes[%d]", i))
		showLine(w, fmt.Sprintf("%s  - {%s}", indent, strings.Join(members, ", ")), at)
	}
}

func showLine(w io.Writer, text string, from place) {
	if from.line > 0 {
		fmt.Fprintf(w, "%-42s # %s:%d\n", text, from.source, from.line)
		return
	}
	fmt.Fprintf(w, "%-42s # %s\n", text, from.source)
}

// plain writes a scalar as YAML would have it: texts that could be read as something
// else are quoted.
func plain(tags []string, text string) string {
	if len(tags) > 1 || tags[0] != "!!str" || isPlainText(text) {
		return text
	}
	return strconv.Quote(text)
}

// isPlainText reports whether YAML reads a text without quotes as that very text. It
// knows fewer such texts than YAML does.
func isPlainText(s string) bool {
	if s == "" || strings.ContainsAny(s, "{}[],#\"'`\\ \n\t") || strings.HasSuffix(s, ":") {
		return false
	}
	var n yaml.Node
	if yaml.Unmarshal([]byte(s), &n) != nil || len(n.Content) != 1 {
		return false
	}
	scalar := n.Content[0]
	return scalar.Kind == yaml.ScalarNode && scalar.Tag == "!!str" && scalar.Value == s
}
