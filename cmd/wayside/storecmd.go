package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sort"

	"github.com/spf13/cobra"

	"wayside/boltstore"
	"wayside/edge"
)

func (m *Main) storeCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "store",
		Short: "Look at, check, mend, compact and back up a data directory",
		Args:  oneCommand,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(m.storeStatCommand(), m.storeCheckCommand(), m.storeSalvageCommand(), m.storeCompactCommand(), m.storeBackupCommand())
	return c
}

// oneDirectory is for commands that take a data directory.
func oneDirectory(c *cobra.Command, args []string) error {
	switch len(args) {
	case 0:
		return misused(c, "no DIR", "")
	case 1:
		return nil
	}
	return misused(c, fmt.Sprint(args[1:]), c.CommandPath()+" takes one DIR, ")
}

// stopped finds a directory that nobody has open. running says what serves where a broker
// has.
func stopped(path, running string) (dataDir, error) {
	d := dataDir{path: path}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return d, failed(exitFailed, "cannot read the data directory", path, reason(err))
	case !info.IsDir():
		return d, failed(exitFailed, "data directory is a file", path, "name a directory")
	case d.inUse():
		return d, d.inUseBy(running)
	}
	return d, nil
}

func (d *dataDir) inUseBy(running string) error {
	who := "another process has it"
	if pid := d.holder(); pid != "" && pid != "0" {
		who = "process " + pid + " has it"
	}
	return failed(exitInUse, "data directory is in use", d.path, who+", stop it"+running)
}

// refuse says for people why a store's directory was not worked on.
func (d *dataDir) refuse(what string, err error) error {
	code, advice := exitFailed, err.Error()
	switch {
	case errors.Is(err, boltstore.ErrLocked):
		return d.inUseBy("")
	case errors.Is(err, boltstore.ErrNoStore):
		what, advice = "no data directory of a Wayside", "name the one that storage.path or --data has"
	case errors.Is(err, boltstore.ErrFormat):
		what, advice = "data directory was written by another version", "use that version"
	case errors.Is(err, os.ErrPermission):
		advice += "; its files belong to somebody else, do this as that user"
	case errors.Is(err, boltstore.ErrSalvage):
		advice += "; run wayside store salvage first"
	case errors.Is(err, edge.ErrStoreFull):
		advice += "; make room on its disk and run this again, nothing is lost"
	case errors.Is(err, context.Canceled):
		advice = "stopped by a signal, nothing is lost"
	}
	f := failed(code, what, d.path, advice)
	f.cause = err
	return f
}

// inspect reads a stopped directory.
func inspectStore(path, running string) (dataDir, *boltstore.Inspection, error) {
	d, err := stopped(path, running)
	if err != nil {
		return d, nil, err
	}
	i, err := boltstore.Inspect(path)
	if err != nil {
		return d, nil, d.refuse("cannot read the data directory", err)
	}
	return d, i, nil
}

// storeReport is what store stat says as JSON.
type storeReport struct {
	Path         string             `json:"path"`
	Format       int64              `json:"format"`
	Topics       int                `json:"topics"`
	Entries      int64              `json:"entries"`
	LiveBytes    int64              `json:"liveBytes"`
	FileBytes    int64              `json:"fileBytes"`
	JournalBytes int64              `json:"journalBytes"`
	Volumes      int                `json:"volumes"`
	Remarks      []string           `json:"remarks"`
	Largest      []storeTopicReport `json:"largest"`
	Left         int                `json:"left"` // topics that are not in the list
}

type storeTopicReport struct {
	Name          string `json:"name"`
	Entries       int64  `json:"entries"`
	Bytes         int64  `json:"bytes"`
	LiveBytes     int64  `json:"liveBytes"`
	Subscriptions int    `json:"subscriptions"`
}

func (m *Main) storeStatCommand() *cobra.Command {
	var asJSON bool
	var n int
	c := &cobra.Command{
		Use:   "stat DIR",
		Short: "Show what the data directory of a stopped broker holds",
		Long:  "Changes nothing. A running broker is asked with wayside status.",
		Args:  oneDirectory,
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print everything as JSON")
	c.Flags().IntVarP(&n, "topics", "n", 20, "topics named, those that take most first")
	c.RunE = func(c *cobra.Command, args []string) error {
		if n < 0 {
			return failed(exitUsage, "wrong usage", fmt.Sprint("-n ", n), "not below 0")
		}
		d, i, err := inspectStore(args[0], ", or ask it with wayside status")
		if err != nil {
			return err
		}
		r := newStoreReport(d.path, i.Summary(), n)
		if err := i.Close(); err != nil {
			return d.refuse("cannot read the data directory", err)
		}
		if asJSON {
			e := json.NewEncoder(m.Stdout)
			e.SetEscapeHTML(false)
			return e.Encode(r)
		}
		r.show(screen{m.Stdout})
		return nil
	}
	return c
}

func newStoreReport(path string, s boltstore.Summary, n int) *storeReport {
	r := &storeReport{
		Path: path, Format: s.Format, Topics: len(s.Topics), Entries: s.Entries, LiveBytes: s.LiveBytes,
		FileBytes: s.FileBytes, JournalBytes: s.JournalBytes, Volumes: s.Volumes, Remarks: []string{}, Largest: []storeTopicReport{},
	}
	for _, f := range s.Findings {
		r.Remarks = append(r.Remarks, f.String())
	}
	sort.SliceStable(s.Topics, func(a, b int) bool { return s.Topics[a].Bytes > s.Topics[b].Bytes })
	for _, t := range s.Topics[:min(n, len(s.Topics))] {
		r.Largest = append(r.Largest, storeTopicReport{t.Name.String(), t.Entries, t.Bytes, t.LiveBytes, t.Subscriptions})
	}
	r.Left = len(s.Topics) - len(r.Largest)
	return r
}

func (r *storeReport) show(w screen) {
	w.line("data", "%s, format %d", r.Path, r.Format)
	w.line("topics", "%s, %s", count(r.Topics, "topic"), entryCount(r.Entries))
	for _, t := range r.Largest {
		w.line("", "%10s  %s, %s, %s not acknowledged, %s", roughSize(t.Bytes), t.Name, entryCount(t.Entries), roughSize(t.LiveBytes), count(t.Subscriptions, "subscription"))
	}
	if r.Left > 0 {
		w.line("", "and %s more", count(r.Left, "topic"))
	}
	w.line("disk", "%s not acknowledged, files take %s, of these the journal %s, %s", roughSize(r.LiveBytes), roughSize(r.FileBytes), roughSize(r.JournalBytes), count(r.Volumes, "volume"))
	for _, remark := range r.Remarks {
		w.line("", "%s", remark)
	}
}

func entryCount(n int64) string {
	if n == 1 {
		return "1 entry"
	}
	return fmt.Sprintf("%d entries", n)
}

func (m *Main) storeCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check DIR",
		Short: "Verify everything in the data directory of a stopped broker",
		Long: "Changes nothing. Reads every page, entry, cursor and frame, and prints a line for each finding: what is damaged, " +
			"which topic, ledger and entries, and what to do. Exit status 0: sound, 1: damaged, 4: in use.",
		Args: oneDirectory,
		RunE: func(c *cobra.Command, args []string) error {
			d, i, err := inspectStore(args[0], "")
			if err != nil {
				return err
			}
			sum, err := i.Check(func(f boltstore.Finding) { fmt.Fprintln(m.Stdout, f) })
			if err = errors.Join(err, i.Close()); err != nil {
				return d.refuse("cannot check the data directory", err)
			}
			read := fmt.Sprintf("%s, %s read", count(sum.Topics, "topic"), entryCount(sum.Entries))
			if sum.Damaged > 0 {
				return failed(exitFailed, "data directory is damaged", d.path, fmt.Sprintf("%s, %s", count(sum.Damaged, "finding"), read))
			}
			fmt.Fprintf(m.Stdout, "%s: sound, %s\n", d.path, read)
			return nil
		},
	}
}

func (m *Main) storeSalvageCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "salvage DIR",
		Short: "Do with a damaged data directory what a start would do",
		Long: "Sets aside under a dated name what cannot be served, keeps what can be read of it, and replays the journal. Nothing is " +
			"deleted. Says what was set aside and what is lost. A sound directory is left as it is. Exit status 0: what is left is whole.",
		Args: oneDirectory,
		RunE: func(c *cobra.Command, args []string) error {
			d, err := stopped(args[0], "")
			if err != nil {
				return err
			}
			out, err := boltstore.Salvage(d.path, slog.New(slog.DiscardHandler))
			for _, r := range out.Remarks {
				fmt.Fprintln(m.Stdout, r)
			}
			if err != nil {
				return d.refuse("cannot salvage the data directory", err)
			}
			return tellSalvaged(m.Stdout, d.path, &out)
		},
	}
}

// tellSalvaged says what is left. What is lost and cannot be mended is no reason to fail.
func tellSalvaged(w io.Writer, path string, out *boltstore.Salvaged) error {
	broken := 0
	for _, f := range out.Left {
		fmt.Fprintln(w, "lost:", f)
		if f.Mends {
			broken++
		}
	}
	if broken > 0 {
		return failed(exitFailed, "data directory is still damaged", path, count(broken, "finding")+" as told; restore it from a backup")
	}
	what := "is whole"
	if len(out.Remarks) == 0 {
		what = "had nothing to salvage"
	}
	fmt.Fprintf(w, "%s: %s, %s, %s\n", path, what, count(out.Checked.Topics, "topic"), entryCount(out.Checked.Entries))
	return nil
}

func (m *Main) storeCompactCommand() *cobra.Command {
	var keep bool
	c := &cobra.Command{
		Use:   "compact DIR",
		Short: "Give back all space in the data directory of a stopped broker",
		Long: "Rewrites the files in which little is still needed, in the small steps of a running broker: it may be stopped at any " +
			"moment, by a power cut too. What all subscriptions of a topic have acknowledged goes, even where a reader or a retention " +
			"policy may want it; --keep-acked leaves it. Topics without a subscription stay as they are. Needs as much free space as the " +
			"largest file holds of what is needed.",
		Args: oneDirectory,
	}
	c.Flags().BoolVar(&keep, "keep-acked", false, "keep what is acknowledged and not yet trimmed")
	c.RunE = func(c *cobra.Command, args []string) error {
		d, err := stopped(args[0], "")
		if err != nil {
			return err
		}
		ctx, cancel := m.untilSignal(c.Context())
		defer cancel()
		r, err := boltstore.Compact(ctx, d.path, keep, slog.New(slog.DiscardHandler))
		if err != nil {
			return d.refuse("cannot compact the data directory", err)
		}
		fmt.Fprintf(m.Stdout, "%s: files took %s and take %s, %s not acknowledged\n", d.path, roughSize(r.Before), roughSize(r.After), roughSize(r.Live))
		return nil
	}
	return c
}
