package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"wayside/boltstore"
	"wayside/edge/admin"
)

type backupFlags struct {
	to    string
	rate  string
	admin string
}

func (m *Main) storeBackupCommand() *cobra.Command {
	f := &backupFlags{}
	c := &cobra.Command{
		Use:   "backup [DIR] --to TARGET",
		Short: "Copy a data directory as it stands at one moment",
		Long: "Of a stopped broker DIR is copied. A running one makes the backup itself, of its own directory, with --admin instead of " +
			"DIR: TARGET is a path on its machine. TARGET must not exist, or be empty. It is complete or not there, and is a data directory itself: wayside serve --data " +
			"TARGET. What is published after the backup is not in it. A broker on it serves the same topics under the same edge id; it " +
			"takes new ledger and birth ids, so that nothing takes it for the original, and its uplink sends again what the original " +
			"had sent after the backup.",
		Example: "  wayside store backup /var/lib/wayside --to /media/usb/wayside-monday\n" +
			"  wayside store backup --admin http://127.0.0.1:8080 --to /media/usb/wayside-monday --rate 2MiB",
		Args: func(c *cobra.Command, args []string) error {
			if f.admin == "" {
				return oneDirectory(c, args)
			}
			return onlyFlags(c, args)
		},
	}
	c.Flags().StringVar(&f.to, "to", "", "`DIRECTORY` that the backup becomes")
	c.Flags().StringVar(&f.rate, "rate", "0", "bytes copied per second at most, as 4MiB; 0 for no limit")
	c.Flags().StringVar(&f.admin, "admin", "", "`URL` of a running broker's admin listener")
	c.RunE = func(c *cobra.Command, args []string) error { return m.storeBackup(c, f, args) }
	return c
}

func (m *Main) storeBackup(c *cobra.Command, f *backupFlags, args []string) error {
	rate, err := parseSize(f.rate)
	if err != nil {
		return failed(exitUsage, "wrong usage", "--rate "+f.rate, err.Error())
	}
	if f.to == "" {
		return misused(c, "no --to", "")
	}
	ctx, cancel := m.untilSignal(c.Context())
	defer cancel()
	if f.admin != "" {
		if !filepath.IsAbs(f.to) {
			return failed(exitUsage, "wrong usage", "--to "+f.to, "write an absolute path on the broker's machine")
		}
		return m.backupRunning(ctx, withScheme(f.admin), admin.BackupRequest{To: f.to, Rate: rate})
	}
	target, err := filepath.Abs(f.to)
	if err != nil {
		return failed(exitUsage, "wrong usage", "--to "+f.to, err.Error())
	}
	d, i, err := inspectStore(args[0], ", or have it make one with --admin URL")
	if err != nil {
		return err
	}
	copied := int64(0)
	err = i.Backup(ctx, target, rate, func(done, _ int64) { copied = done })
	if err = errors.Join(err, i.Close()); err != nil {
		return d.refuseBackup(target, err)
	}
	fmt.Fprintf(m.Stdout, "%s: backup of %s, %s copied\n", target, d.path, roughSize(copied))
	return nil
}

func (d *dataDir) refuseBackup(target string, err error) error {
	switch {
	case errors.Is(err, boltstore.ErrTarget):
		return failed(exitFailed, "cannot back up the data directory", d.path, err.Error())
	case errors.Is(err, context.Canceled):
		return failed(exitFailed, "backup was given up", target, "stopped by a signal, nothing of it is left")
	}
	return d.refuse("cannot back up the data directory", err)
}
