package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// onlyFlags is for commands that take nothing beside flags.
func onlyFlags(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return misused(c, strings.Join(args, " "), c.CommandPath()+" takes flags only, ")
}

// oneTopic is for commands that take a topic.
func oneTopic(c *cobra.Command, args []string) error {
	switch len(args) {
	case 0:
		return misused(c, "no TOPIC", "")
	case 1:
		return nil
	}
	return misused(c, strings.Join(args, " "), c.CommandPath()+" takes one TOPIC, ")
}

// oneCommand is for commands that are nothing but groups of others. What cobra finds no
// command for comes here.
func oneCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var known []string
	for _, each := range c.Commands() {
		known = append(known, each.Name())
	}
	_, group, _ := strings.Cut(c.CommandPath()+" ", " ")
	todo := "see " + c.CommandPath() + " --help"
	if meant := nearest(args[0], known); meant != "" {
		todo = "did you mean " + c.CommandPath() + " " + meant + "?"
	}
	return failed(exitUsage, "unknown command", group+args[0], todo)
}

// badFlag is the answer to flags that cannot be read.
func badFlag(c *cobra.Command, err error) error { return misused(c, err.Error(), "") }

func misused(c *cobra.Command, what, why string) error {
	return failed(exitUsage, "wrong usage", what, why+"see "+c.CommandPath()+" --help")
}
