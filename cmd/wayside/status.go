package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"wayside/edge/admin"
)

const (
	statusTimeout = 10 * time.Second
	// maxStatus bounds the answer in bytes: a hundred named topics take a tenth of it.
	maxStatus = 4 << 20
)

type statusFlags struct {
	admin  string
	asJSON bool
}

func (m *Main) statusCommand() *cobra.Command {
	f := &statusFlags{}
	c := &cobra.Command{
		Use:   "status",
		Short: "Show health, topics, backlog, disk and uplink of a running broker",
		Long:  "Exit status 0: healthy, 1: degraded, 3: not reachable.",
		Args:  onlyFlags,
	}
	c.Flags().StringVar(&f.admin, "admin", "http://127.0.0.1:8080", "`URL` of the broker's admin listener")
	c.Flags().BoolVar(&f.asJSON, "json", false, "print everything as JSON")
	c.RunE = func(c *cobra.Command, _ []string) error { return m.status(c.Context(), f) }
	return c
}

func (m *Main) status(ctx context.Context, f *statusFlags) error {
	url := withScheme(f.admin)
	ctx, cancel := m.untilSignal(ctx)
	defer cancel()
	raw, err := fetchStatus(ctx, url)
	if err != nil {
		return err
	}
	var s admin.Status
	if err := json.Unmarshal(raw, &s); err != nil {
		return failed(exitUnreachable, "no status of a Wayside", url, err.Error())
	}
	w := screen{m.Stdout}
	if f.asJSON {
		fmt.Fprintln(m.Stdout, strings.TrimSpace(string(raw)))
		w.Writer = io.Discard
	}
	w.show(url, &s)
	reasons := s.Reasons
	if refused := w.uplink(s.Sections["uplink"]); refused != "" {
		reasons = append(reasons, refused)
	}
	if len(reasons) > 0 {
		return failed(exitFailed, "broker is degraded", url, strings.Join(reasons, "; "))
	}
	return nil
}

// withScheme completes HOST:PORT.
func withScheme(url string) string {
	if strings.Contains(url, "://") {
		return url
	}
	return "http://" + url
}

func fetchStatus(ctx context.Context, url string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	status, raw, err := askAdmin(ctx, url, http.MethodGet, admin.StatusPath, nil)
	if err == nil && status != http.StatusOK {
		err = noWayside(url, status)
	}
	return raw, err
}

func noWayside(url string, status int) error {
	return failed(exitUnreachable, "no Wayside answers", url, fmt.Sprintf("it said %d %s", status, http.StatusText(status)))
}

// askAdmin sends one request to an admin listener.
func askAdmin(ctx context.Context, url, method, path string, body io.Reader) (status int, raw []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil || request.URL.Host == "" {
		return 0, nil, failed(exitUsage, "wrong usage", "--admin "+url, "write http://HOST:PORT")
	}
	request.URL.Path = strings.TrimSuffix(request.URL.Path, "/") + path
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return 0, nil, failed(exitUnreachable, "broker not reachable", url, fmt.Sprintf("%v; is it running, and is this its listen.admin?", rootCause(err)))
	}
	defer response.Body.Close()
	raw, err = io.ReadAll(io.LimitReader(response.Body, maxStatus+1))
	if err == nil && len(raw) > maxStatus {
		err = errors.New("the answer is too long")
	}
	if err != nil {
		return 0, nil, failed(exitUnreachable, "no status of a Wayside", url, err.Error())
	}
	return response.StatusCode, raw, nil
}

// screen lays a status out for people.
type screen struct{ io.Writer }

func (w screen) line(name, format string, args ...any) {
	fmt.Fprintf(w, "%-9s%s\n", name, fmt.Sprintf(format, args...))
}

func (w screen) show(url string, s *admin.Status) {
	w.line("wayside", "%s at %s, up %v", s.Version, url, time.Duration(s.UptimeSeconds)*time.Second)
	if s.Healthy {
		w.line("health", "healthy")
	} else {
		w.line("health", "DEGRADED")
		for _, r := range s.Reasons {
			w.line("", "%s", r)
		}
	}
	t := s.Topics
	w.line("topics", "%s, %d open, %s", count(t.Count, "topic"), t.Open, count(t.Subscriptions, "subscription"))
	clients := ""
	if t.Clients >= 0 {
		clients = count(t.Clients, "connection") + ", "
	}
	w.line("clients", "%s%s, %s", clients, count(t.Producers, "producer"), count(t.Consumers, "consumer"))
	w.line("rates", "%.1f messages a second in, %.1f out", t.RateIn, t.RateOut)
	w.backlog(t)
	w.disk(s.Disk)
	w.line("memory", "%s heap, %s stacks", roughSize(int64(s.Memory.Heap)), roughSize(int64(s.Memory.Stacks)))
	w.data(s.Sections["data"])
}

func (w screen) data(raw json.RawMessage) {
	var d dataReport
	if raw == nil || json.Unmarshal(raw, &d) != nil {
		return
	}
	w.line("data", "%s on %s, %s free", d.Path, d.FileSystem, roughSize(d.Free))
	for _, warning := range d.Warnings {
		w.line("", "WARNING: %s", warning)
	}
}

func (w screen) backlog(t admin.TopicSummary) {
	w.line("backlog", "%s", roughSize(t.BacklogBytes))
	for _, topic := range t.Largest {
		w.line("", "%10s  %s, %s", roughSize(topic.BacklogBytes), topic.Name, count(topic.Subscriptions, "subscription"))
	}
	if t.Left > 0 {
		w.line("", "and %s more", count(t.Left, "topic"))
	}
}

func (w screen) disk(d admin.DiskSummary) {
	quota := ""
	if d.Quota > 0 {
		quota = fmt.Sprintf(" of %s quota (%.0f %%)", roughSize(d.Quota), 100*float64(d.LiveBytes)/float64(d.Quota))
	}
	w.line("disk", "%s not acknowledged%s, files take %s", roughSize(d.LiveBytes), quota, roughSize(d.FileBytes))
	if d.Failure != "" {
		w.line("", "publishes are refused: %s", d.Failure)
	}
	for _, r := range d.Remarks {
		w.line("", "%s", r)
	}
}

// count writes "1 topic" and "2 topics".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
