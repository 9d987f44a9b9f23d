package main

import (
	"context"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// Main is the program without its process: whoever starts it brings arguments,
// streams, environment and signals. Several may run in one process.
type Main struct {
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	Env    func(string) (string, bool)
	// Signals brings SIGINT and SIGTERM, which end a command, a second one at
	// once, and SIGHUP, which makes serve read its file again. May be nil.
	Signals <-chan os.Signal
}

// Run runs one command, args without the program's name, and returns its exit code.
// The end of ctx ends the command like a signal.
func (m *Main) Run(ctx context.Context, args []string) int {
	root := m.command()
	root.SetArgs(args)
	return tell(m.Stderr, root.ExecuteContext(ctx))
}

func (m *Main) command() *cobra.Command {
	root := &cobra.Command{
		Use:   "wayside",
		Short: "A lean edge broker that speaks Pulsar and forwards topics to the cloud",
		Args:  oneCommand,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },

		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(m.Stdin)
	root.SetOut(m.Stdout)
	root.SetErr(m.Stderr)
	root.SetFlagErrorFunc(badFlag)
	root.AddCommand(
		m.serveCommand(), m.configCommand(), m.statusCommand(), m.storeCommand(),
		m.produceCommand(), m.consumeCommand(), m.demoCommand(),
		m.versionCommand(), m.manCommand(root),
	)
	return root
}

// untilSignal ends the context at the first SIGINT or SIGTERM. stop has to be called.
func (m *Main) untilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		for {
			select {
			case s := <-m.Signals:
				if s != hangup {
					cancel()
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, cancel
}
