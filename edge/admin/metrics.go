package admin

import (
	"fmt"
	"maps"
	"net/http"
	"slices"

	"wayside/edge"
)

// metricsHandler answers GET /metrics in Prometheus' text form: Pulsar's names and labels
// where Pulsar has the thing (captures metric-names), all gauges as there; wayside_… for
// the rest, and the Go runtime's own. Two collectors cannot have a name between them.
func (s *Server) metricsHandler() (http.Handler, error) {
	collectors := append([]Collector{s.brokerCollector().collector(), runtimeCollector()}, s.opts.Collectors...)
	owner := map[string]int{}
	for i, c := range collectors {
		for _, f := range c.Families {
			if other, ok := owner[f.Name]; ok && other != i {
				return nil, fmt.Errorf("metric %s has two collectors", f.Name)
			}
			owner[f.Name] = i
		}
	}
	return &exposition{s.opts.Cluster, collectors, make(chan struct{}, scrapes)}, nil
}

// brokerCollector reads the broker anew for each scrape.
type brokerCollector struct {
	server *Server
	made   map[string]*Family
	topics topicFamilies
}

// brokerFamilies are the metrics of the whole broker: kind, name, help and where the
// value comes from.
var brokerFamilies = []struct {
	counts bool
	name   string
	help   string
	value  func(*brokerNow) float64
}{
	{false, "pulsar_broker_topics_count", "Topics that exist, every partition counted.", func(c *brokerNow) float64 { return float64(c.stats.Topics) }},
	{false, "pulsar_broker_subscriptions_count", "Subscriptions of all topics.", func(c *brokerNow) float64 { return float64(c.stats.Subscriptions) }},
	{false, "pulsar_broker_producers_count", "Connected producers.", func(c *brokerNow) float64 { return float64(c.stats.Producers) }},
	{false, "pulsar_broker_consumers_count", "Connected consumers.", func(c *brokerNow) float64 { return float64(c.stats.Consumers) }},
	{false, "pulsar_broker_rate_in", "Messages published per second.", func(c *brokerNow) float64 { return c.stats.RateIn }},
	{false, "pulsar_broker_rate_out", "Messages dispatched per second.", func(c *brokerNow) float64 { return c.stats.RateOut }},
	{false, "pulsar_broker_throughput_in", "Bytes published per second.", func(c *brokerNow) float64 { return c.stats.ThroughputIn }},
	{false, "pulsar_broker_throughput_out", "Bytes dispatched per second.", func(c *brokerNow) float64 { return c.stats.ThroughputOut }},
	{false, "pulsar_broker_storage_size", "Bytes stored for all topics.", func(c *brokerNow) float64 { return c.stored }},
	{false, "pulsar_broker_storage_logical_size", "Bytes stored for all topics.", func(c *brokerNow) float64 { return c.stored }},

	{false, "wayside_topics_open", "Topics that are loaded.", func(c *brokerNow) float64 { return float64(c.stats.Open) }},
	{false, "wayside_healthy", "1 if the broker is healthy, 0 if not: the status says why.", func(c *brokerNow) float64 { return c.healthy }},
	{true, "wayside_messages_in_total", "Messages published since start.", func(c *brokerNow) float64 { return float64(c.stats.MsgIn) }},
	{true, "wayside_bytes_in_total", "Bytes published since start.", func(c *brokerNow) float64 { return float64(c.stats.BytesIn) }},
	{true, "wayside_messages_out_total", "Messages dispatched since start.", func(c *brokerNow) float64 { return float64(c.stats.MsgOut) }},
	{true, "wayside_bytes_out_total", "Bytes dispatched since start.", func(c *brokerNow) float64 { return float64(c.stats.BytesOut) }},
	{true, "wayside_lost_ranges_total", "Ranges of entries found gone or damaged since start.", func(c *brokerNow) float64 { return float64(c.stats.Lost) }},
	{true, "wayside_duplicates_total", "Messages that deduplication has dropped since start.", func(c *brokerNow) float64 { return float64(c.stats.Duplicates) }},
	{true, "wayside_dropped_entries_total", "Entries that gave way to newer ones in a full store since start.", func(c *brokerNow) float64 { return float64(c.stats.Dropped) }},

	{false, "wayside_store_live_bytes", "Bytes not yet acknowledged by all, or retained: what the quota counts.", func(c *brokerNow) float64 { return float64(c.stats.Store.LiveBytes) }},
	{false, "wayside_store_quota_bytes", "Quota of live bytes, 0 for none.", func(c *brokerNow) float64 { return float64(c.stats.Store.Quota) }},
	{false, "wayside_store_file_bytes", "Bytes that the store's files take.", func(c *brokerNow) float64 { return float64(c.stats.Store.FileBytes) }},
	{false, "wayside_store_file_limit_bytes", "Limit of the files' bytes, 0 for none.", func(c *brokerNow) float64 { return float64(c.stats.Store.FileLimit) }},
	{false, "wayside_store_remarks", "What happened to the store's files at the start: damage found, files reset; status has the words.", func(c *brokerNow) float64 { return float64(len(c.stats.Store.Remarks)) }},
	{true, "wayside_store_commits_total", "Commits since start.", func(c *brokerNow) float64 { return float64(c.stats.Store.Commits) }},
	{true, "wayside_store_syncs_total", "Syncs to disk since start.", func(c *brokerNow) float64 { return float64(c.stats.Store.Syncs) }},
	{true, "wayside_store_written_bytes_total", "Bytes of entries committed since start.", func(c *brokerNow) float64 { return float64(c.stats.Store.WrittenData) }},
}

// brokerNow is the broker as one scrape sees it.
type brokerNow struct {
	stats   edge.BrokerStats
	records []edge.TopicRecord
	stored  float64
	healthy float64
}

func (s *Server) brokerCollector() *brokerCollector {
	c := &brokerCollector{server: s, made: map[string]*Family{}, topics: newTopicFamilies()}
	for _, f := range brokerFamilies {
		c.made[f.name] = &Family{Name: f.name, Help: f.help, Counts: f.counts}
	}
	c.made[versionInfo] = &Family{Name: versionInfo, Help: "1; version says which Wayside runs.", Labels: []string{"version"}}
	c.made[connections] = &Family{Name: connections, Help: "Connected Pulsar clients."}
	c.made[memoryUsed] = &Family{Name: memoryUsed, Help: "Bytes taken of a share of the memory limit.", Labels: []string{"share"}}
	c.made[memoryLimit] = &Family{Name: memoryLimit, Help: "Bytes of a share of the memory limit.", Labels: []string{"share"}}
	return c
}

// Names of the metrics that are not plain numbers of a scrape.
const (
	versionInfo = "wayside_version_info"
	connections = "wayside_connections"
	memoryUsed  = "wayside_memory_share_used_bytes"
	memoryLimit = "wayside_memory_share_limit_bytes"
)

// collector names the families, those of topics in both forms.
func (c *brokerCollector) collector() Collector {
	all := slices.Collect(maps.Values(c.made))
	all = slices.Concat(all, []*Family{c.topics.count}, c.topics.topic, c.topics.namespace, c.topics.subscriptions)
	return Collector{all, c.collect}
}

// collect reads the broker. It opens no topic.
func (c *brokerCollector) collect(out *Scrape) {
	now := brokerNow{stats: c.server.broker.Stats(), records: c.server.broker.Records(), healthy: 1}
	if len(c.server.reasons()) > 0 {
		now.healthy = 0
	}
	for _, record := range now.records {
		now.stored += float64(record.Bytes)
	}
	for _, f := range brokerFamilies {
		out.Put(c.made[f.name], f.value(&now))
	}
	out.Put(c.made[versionInfo], 1, c.server.opts.Version)
	if n := c.server.clientCount(); n >= 0 {
		out.Put(c.made[connections], float64(n))
	}
	for _, named := range shareNames {
		used, limit := c.server.broker.Budget().Usage(named.share)
		out.Put(c.made[memoryUsed], float64(used), named.name)
		out.Put(c.made[memoryLimit], float64(limit), named.name)
	}
	c.collectTopics(out, &now)
}
