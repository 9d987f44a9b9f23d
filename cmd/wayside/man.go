package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// manCommand prints the whole manual as one page. It is written by hand because the
// generator that comes with the command library would add a Markdown parser to the binary.
func (m *Main) manCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "man",
		Short: "Print the manual page, for man(1): wayside man | man -l -",
		Args:  onlyFlags,
		RunE: func(c *cobra.Command, _ []string) error {
			w := c.OutOrStdout()
			fmt.Fprintf(w, ".TH WAYSIDE 1 \"\" %s\n.SH NAME\nwayside \\- %s\n", roff(quoted("wayside "+thisBuild().version)), roff(root.Short))
			fmt.Fprint(w, ".SH SYNOPSIS\n.B wayside\n.I COMMAND\n[\\fIFLAG\\fR]...\n.SH COMMANDS\n")
			manCommands(w, root)
			manExit(w)
			return nil
		},
	}
}

func manCommands(w io.Writer, parent *cobra.Command) {
	for _, c := range parent.Commands() {
		if !c.IsAvailableCommand() || c.Name() == "help" {
			continue
		}
		if c.Name() == "completion" {
			fmt.Fprintf(w, ".SS %s\n%s.\n", roff(quoted(c.CommandPath()+" SHELL")), roff("Print the completion script for bash, zsh, fish or powershell"))
			continue
		}
		if c.HasAvailableSubCommands() {
			manCommands(w, c)
			continue
		}
		fmt.Fprintf(w, ".SS %s\n%s.\n", roff(quoted(c.UseLine())), roff(c.Short))
		if c.Long != "" {
			fmt.Fprintf(w, ".PP\n%s\n", roff(c.Long))
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) { manFlag(w, f) })
	}
}

func manFlag(w io.Writer, f *pflag.Flag) {
	if f.Hidden || f.Name == "help" {
		return
	}
	value, usage := pflag.UnquoteUsage(f)
	name := "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	fmt.Fprintf(w, ".TP\n\\fB%s\\fR \\fI%s\\fR\n%s", roff(name), roff(value), roff(usage))
	if f.DefValue != "" && f.DefValue != "[]" && f.DefValue != "false" && f.DefValue != "0" {
		fmt.Fprintf(w, " (%s)", roff(f.DefValue))
	}
	fmt.Fprintln(w)
}

func manExit(w io.Writer) {
	fmt.Fprint(w, ".SH EXIT STATUS\n")
	for code, text := range exitTexts() {
		fmt.Fprintf(w, ".TP\n.B %d\n%s\n", code, text)
	}
}

func exitTexts() []string {
	return []string{
		"done", "failed; for status: degraded", "wrong usage or configuration", "broker not reachable", "data directory in use",
	}
}

func quoted(s string) string { return `"` + s + `"` }

// roff escapes what the formatter would take for itself.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return strings.ReplaceAll(s, "\n.", "\n\\&.")
}
