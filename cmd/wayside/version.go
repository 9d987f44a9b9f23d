package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Set by the linker (-X main.version=… -X main.commit=…) where the Go tool cannot note
// them by itself.
var version, commit string

// build is what the binary knows of its own making.
type build struct {
	version  string
	commit   string
	modified bool
	goes     string // Go's version
	platform string
}

// thisBuild reads what the Go tool noted in the binary; a test binary has no commit.
func thisBuild() build {
	b := build{version: "unreleased", commit: "unknown", goes: runtime.Version(), platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.version = v
	}
	if version != "" {
		b.version = version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.commit = s.Value
		case "vcs.modified":
			b.modified = s.Value == "true"
		case "GOARM":
			b.platform += "v" + s.Value
		}
	}
	if commit != "" {
		b.commit = commit
	}
	return b
}

func (b build) String() string {
	commit := b.commit
	if b.modified {
		commit += " with changes"
	}
	return fmt.Sprintf("wayside %s, commit %s, %s, %s", b.version, commit, b.goes, b.platform)
}

func (m *Main) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print version, commit, Go version and platform",
		Args:  onlyFlags,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(c.OutOrStdout(), thisBuild())
			return err
		},
	}
}
