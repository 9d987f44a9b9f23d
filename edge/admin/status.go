package admin

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime/metrics"
	"sort"
	"time"

	"wayside/edge"
)

// StatusPath is where a Status is read with GET.
const StatusPath = "/admin/v2/wayside/status"

// Status is the whole broker on one screen. It is made at the moment of the request and
// opens no topic.
type Status struct {
	Version       string   `json:"version"`
	Cluster       string   `json:"cluster"`
	Time          string   `json:"time"`          // the broker's clock, RFC 3339
	UptimeSeconds int64    `json:"uptimeSeconds"` // of the admin server
	Healthy       bool     `json:"healthy"`
	Reasons       []string `json:"reasons"` // why not healthy, in plain words

	Topics TopicSummary `json:"topics"`
	Disk   DiskSummary  `json:"disk"`
	Memory MemoryReport `json:"memory"`

	// Sections are what other parts of the program add, by name: "uplink" if there is one.
	Sections map[string]json.RawMessage `json:"sections,omitempty"`
}

// TopicSummary tells of all topics, and of those with the largest backlog by name.
type TopicSummary struct {
	Count         int           `json:"count"`
	Open          int           `json:"open"`
	Producers     int           `json:"producers"`     // connected now
	Consumers     int           `json:"consumers"`     // connected now
	Subscriptions int           `json:"subscriptions"` // of all topics
	Clients       int           `json:"clients"`       // Pulsar connections; −1 if nobody counts
	RateIn        float64       `json:"rateIn"`        // messages per second
	RateOut       float64       `json:"rateOut"`
	BacklogBytes  int64         `json:"backlogBytes"` // not yet acknowledged by everybody
	Largest       []TopicReport `json:"largest"`      // by backlog, largest first; bounded
	Left          int           `json:"left"`         // topics with a backlog that are not in the list
}

// TopicReport is one topic as its record tells it.
type TopicReport struct {
	Name          string `json:"name"`
	Entries       int64  `json:"entries"`      // stored
	StoredBytes   int64  `json:"storedBytes"`  // all that is stored
	BacklogBytes  int64  `json:"backlogBytes"` // of it, not acknowledged by the slowest subscription
	Subscriptions int    `json:"subscriptions"`
	LastAppend    string `json:"lastAppend"` // RFC 3339, "" for never
}

// DiskSummary is the store's account.
type DiskSummary struct {
	LiveBytes int64    `json:"liveBytes"` // what the quota counts
	Quota     int64    `json:"quota"`     // 0 for none
	FileBytes int64    `json:"fileBytes"` // what the files take
	FileLimit int64    `json:"fileLimit"` // 0 for none
	Commits   int64    `json:"commits"`   // since start
	Syncs     int64    `json:"syncs"`
	Failure   string   `json:"failure,omitempty"` // why publishes are refused
	Remarks   []string `json:"remarks"`           // what happened to the files at opening
}

// MemoryReport tells of the process's own memory, in bytes.
type MemoryReport struct {
	Heap   uint64        `json:"heap"`   // objects, dead ones not yet swept included
	Stacks uint64        `json:"stacks"` // of goroutines
	System uint64        `json:"system"` // all that the Go runtime has from the system
	Shares []ShareReport `json:"shares"`
}

// ShareReport is a part of the memory limit and what is taken of it.
type ShareReport struct {
	Name  string `json:"name"`
	Used  int64  `json:"used"`
	Limit int64  `json:"limit"`
}

func (s *Server) statusRoutes() {
	s.handle("GET "+StatusPath, func(*http.Request) (any, error) { return s.Status() })
}

// Status takes the snapshot that StatusPath answers. It fails when a section cannot be
// written as JSON.
func (s *Server) Status() (Status, error) {
	reasons := s.reasons()
	stats := s.broker.Stats()
	status := Status{
		Version:       s.opts.Version,
		Cluster:       s.opts.Cluster,
		Time:          iso(s.opts.Clock()),
		UptimeSeconds: int64(time.Since(s.started) / time.Second),
		Healthy:       len(reasons) == 0,
		Reasons:       reasons,
		Topics:        s.topicSummary(stats),
		Disk:          diskSummary(stats.Store),
		Memory:        s.memoryReport(),
	}
	for name, section := range s.opts.Sections {
		raw, err := encode(section())
		if err != nil {
			return Status{}, fmt.Errorf("write section %s of the status: %w", name, err)
		}
		if status.Sections == nil {
			status.Sections = map[string]json.RawMessage{}
		}
		status.Sections[name] = raw
	}
	return status, nil
}

func (s *Server) topicSummary(stats edge.BrokerStats) TopicSummary {
	records := s.broker.Records()
	sum := TopicSummary{
		Count:     len(records),
		Open:      stats.Open,
		Producers: stats.Producers,
		Consumers: stats.Consumers,
		Clients:   s.clientCount(),
		RateIn:    stats.RateIn,
		RateOut:   stats.RateOut,
		Largest:   []TopicReport{},
	}
	behind := make([]edge.TopicRecord, 0, len(records))
	for _, record := range records {
		sum.Subscriptions += record.Subscriptions
		sum.BacklogBytes += record.LiveBytes
		if record.LiveBytes > 0 {
			behind = append(behind, record)
		}
	}
	sort.Slice(behind, func(i, j int) bool {
		a, b := &behind[i], &behind[j]
		return cmp.Or(cmp.Compare(b.LiveBytes, a.LiveBytes), cmp.Compare(a.Name.String(), b.Name.String())) < 0
	})
	named := min(len(behind), max(s.opts.StatusTopics, 0))
	for _, record := range behind[:named] {
		sum.Largest = append(sum.Largest, reportOf(record))
	}
	sum.Left = len(behind) - named
	return sum
}

func (s *Server) clientCount() int {
	if s.opts.Clients == nil {
		return -1
	}
	return s.opts.Clients()
}

func reportOf(record edge.TopicRecord) TopicReport {
	t := TopicReport{
		Name:          record.Name.String(),
		Entries:       record.Entries,
		StoredBytes:   record.Bytes,
		BacklogBytes:  record.LiveBytes,
		Subscriptions: record.Subscriptions,
	}
	if record.LastAppend > 0 {
		t.LastAppend = isoMillis(record.LastAppend)
	}
	return t
}

func diskSummary(store edge.StoreStats) DiskSummary {
	d := DiskSummary{
		LiveBytes: store.LiveBytes,
		Quota:     store.Quota,
		FileBytes: store.FileBytes,
		FileLimit: store.FileLimit,
		Commits:   store.Commits,
		Syncs:     store.Syncs,
		Remarks:   list(store.Remarks),
	}
	if store.Failed != nil {
		d.Failure = store.Failed.Error()
	}
	return d
}

// shareNames are the shares of the memory limit as people read them.
var shareNames = []struct {
	share edge.Share
	name  string
}{
	{edge.SharePublish, "publish"},
	{edge.ShareRead, "read"},
	{edge.ShareSubscription, "subscription"},
	{edge.ShareTail, "tail"},
	{edge.ShareUplink, "uplink"},
}

// memoryMetrics are those of the Go runtime that a MemoryReport shows; reading them
// stops nothing.
var memoryMetrics = [...]string{
	"/memory/classes/heap/objects:bytes",
	"/memory/classes/heap/stacks:bytes",
	"/memory/classes/total:bytes",
}

func (s *Server) memoryReport() MemoryReport {
	var samples [len(memoryMetrics)]metrics.Sample
	for i, name := range memoryMetrics {
		samples[i].Name = name
	}
	metrics.Read(samples[:])
	report := MemoryReport{
		Heap:   samples[0].Value.Uint64(),
		Stacks: samples[1].Value.Uint64(),
		System: samples[2].Value.Uint64(),
	}
	for _, named := range shareNames {
		used, limit := s.broker.Budget().Usage(named.share)
		report.Shares = append(report.Shares, ShareReport{named.name, used, limit})
	}
	return report
}
