package admin

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"wayside/edge"
)

// scrapes bounds how many answers of /metrics are made at once.
const scrapes = 2

// metricsHandler answers GET /metrics in Prometheus' text form: Pulsar's names and labels
// where Pulsar has the thing (captures metric-names), all gauges as there; wayside_… for
// the rest, and the Go runtime's and the process's own. It has a registry of its own, and
// leaves out a metric that fails rather than all of them.
func (s *Server) metricsHandler() (http.Handler, error) {
	registry := prometheus.NewRegistry()
	own := []prometheus.Collector{
		s.brokerCollector(),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	}
	var errs []error
	for _, c := range append(own, s.opts.Collectors...) {
		errs = append(errs, registry.Register(c))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorLog:            slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
		ErrorHandling:       promhttp.ContinueOnError,
		MaxRequestsInFlight: scrapes,
		Timeout:             s.opts.RequestTimeout,
	}), nil
}

// family is a metric's description, made once.
type family struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

// gather is where a scrape's values go.
type gather chan<- prometheus.Metric

// put sends a value with the values of the family's labels. Names of topics and
// subscriptions are any bytes, labels are not.
func (f family) put(out gather, value float64, labels ...string) {
	for i := range labels {
		labels[i] = strings.ToValidUTF8(labels[i], "\uFFFD")
	}
	metric, err := prometheus.NewConstMetric(f.desc, f.kind, value, labels...)
	if err != nil {
		metric = prometheus.NewInvalidMetric(f.desc, err)
	}
	out <- metric
}

// brokerCollector reads the broker anew for each scrape.
type brokerCollector struct {
	server *Server
	made   map[string]family
	topics topicFamilies
}

// family describes a metric with the cluster as its constant label.
func (s *Server) family(kind prometheus.ValueType, name, help string, labels ...string) family {
	constant := prometheus.Labels{"cluster": s.opts.Cluster}
	return family{prometheus.NewDesc(name, help, labels, constant), kind}
}

// brokerFamilies are the metrics of the whole broker: kind, name, help and where the
// value comes from.
var brokerFamilies = []struct {
	kind  prometheus.ValueType
	name  string
	help  string
	value func(*scrape) float64
}{
	{prometheus.GaugeValue, "pulsar_broker_topics_count", "Topics that exist, every partition counted.", func(c *scrape) float64 { return float64(c.stats.Topics) }},
	{prometheus.GaugeValue, "pulsar_broker_subscriptions_count", "Subscriptions of all topics.", func(c *scrape) float64 { return float64(c.stats.Subscriptions) }},
	{prometheus.GaugeValue, "pulsar_broker_producers_count", "Connected producers.", func(c *scrape) float64 { return float64(c.stats.Producers) }},
	{prometheus.GaugeValue, "pulsar_broker_consumers_count", "Connected consumers.", func(c *scrape) float64 { return float64(c.stats.Consumers) }},
	{prometheus.GaugeValue, "pulsar_broker_rate_in", "Messages published per second.", func(c *scrape) float64 { return c.stats.RateIn }},
	{prometheus.GaugeValue, "pulsar_broker_rate_out", "Messages dispatched per second.", func(c *scrape) float64 { return c.stats.RateOut }},
	{prometheus.GaugeValue, "pulsar_broker_throughput_in", "Bytes published per second.", func(c *scrape) float64 { return c.stats.ThroughputIn }},
	{prometheus.GaugeValue, "pulsar_broker_throughput_out", "Bytes dispatched per second.", func(c *scrape) float64 { return c.stats.ThroughputOut }},
	{prometheus.GaugeValue, "pulsar_broker_storage_size", "Bytes stored for all topics.", func(c *scrape) float64 { return c.stored }},
	{prometheus.GaugeValue, "pulsar_broker_storage_logical_size", "Bytes stored for all topics.", func(c *scrape) float64 { return c.stored }},

	{prometheus.GaugeValue, "wayside_topics_open", "Topics that are loaded.", func(c *scrape) float64 { return float64(c.stats.Open) }},
	{prometheus.GaugeValue, "wayside_healthy", "1 if the broker is healthy, 0 if not: the status says why.", func(c *scrape) float64 { return c.healthy }},
	{prometheus.CounterValue, "wayside_messages_in_total", "Messages published since start.", func(c *scrape) float64 { return float64(c.stats.MsgIn) }},
	{prometheus.CounterValue, "wayside_bytes_in_total", "Bytes published since start.", func(c *scrape) float64 { return float64(c.stats.BytesIn) }},
	{prometheus.CounterValue, "wayside_messages_out_total", "Messages dispatched since start.", func(c *scrape) float64 { return float64(c.stats.MsgOut) }},
	{prometheus.CounterValue, "wayside_bytes_out_total", "Bytes dispatched since start.", func(c *scrape) float64 { return float64(c.stats.BytesOut) }},
	{prometheus.CounterValue, "wayside_lost_ranges_total", "Ranges of entries found gone or damaged since start.", func(c *scrape) float64 { return float64(c.stats.Lost) }},
	{prometheus.CounterValue, "wayside_dropped_entries_total", "Entries that gave way to newer ones in a full store since start.", func(c *scrape) float64 { return float64(c.stats.Dropped) }},

	{prometheus.GaugeValue, "wayside_store_live_bytes", "Bytes not yet acknowledged by all, or retained: what the quota counts.", func(c *scrape) float64 { return float64(c.stats.Store.LiveBytes) }},
	{prometheus.GaugeValue, "wayside_store_quota_bytes", "Quota of live bytes, 0 for none.", func(c *scrape) float64 { return float64(c.stats.Store.Quota) }},
	{prometheus.GaugeValue, "wayside_store_file_bytes", "Bytes that the store's files take.", func(c *scrape) float64 { return float64(c.stats.Store.FileBytes) }},
	{prometheus.GaugeValue, "wayside_store_file_limit_bytes", "Limit of the files' bytes, 0 for none.", func(c *scrape) float64 { return float64(c.stats.Store.FileLimit) }},
	{prometheus.CounterValue, "wayside_store_commits_total", "Commits since start.", func(c *scrape) float64 { return float64(c.stats.Store.Commits) }},
	{prometheus.CounterValue, "wayside_store_syncs_total", "Syncs to disk since start.", func(c *scrape) float64 { return float64(c.stats.Store.Syncs) }},
	{prometheus.CounterValue, "wayside_store_written_bytes_total", "Bytes of entries committed since start.", func(c *scrape) float64 { return float64(c.stats.Store.WrittenData) }},
}

// scrape is the broker as one scrape sees it.
type scrape struct {
	stats   edge.BrokerStats
	records []edge.TopicRecord
	stored  float64
	healthy float64
}

func (s *Server) brokerCollector() *brokerCollector {
	c := &brokerCollector{server: s, made: map[string]family{}, topics: s.topicFamilies()}
	for _, f := range brokerFamilies {
		c.made[f.name] = s.family(f.kind, f.name, f.help)
	}
	c.made[versionInfo] = s.family(prometheus.GaugeValue, versionInfo, "1; version says which Wayside runs.", "version")
	c.made[connections] = s.family(prometheus.GaugeValue, connections, "Connected Pulsar clients.")
	c.made[memoryUsed] = s.family(prometheus.GaugeValue, memoryUsed, "Bytes taken of a share of the memory limit.", "share")
	c.made[memoryLimit] = s.family(prometheus.GaugeValue, memoryLimit, "Bytes of a share of the memory limit.", "share")
	return c
}

// Names of the metrics that are not plain numbers of a scrape.
const (
	versionInfo = "wayside_version_info"
	connections = "wayside_connections"
	memoryUsed  = "wayside_memory_share_used_bytes"
	memoryLimit = "wayside_memory_share_limit_bytes"
)

// Describe says nothing, so that families of topics may have the topic's label or not.
func (c *brokerCollector) Describe(chan<- *prometheus.Desc) {}

// Collect reads the broker. It opens no topic.
func (c *brokerCollector) Collect(out chan<- prometheus.Metric) {
	now := scrape{stats: c.server.broker.Stats(), records: c.server.broker.Records(), healthy: 1}
	if len(c.server.reasons()) > 0 {
		now.healthy = 0
	}
	for _, record := range now.records {
		now.stored += float64(record.Bytes)
	}
	for _, f := range brokerFamilies {
		c.made[f.name].put(out, f.value(&now))
	}
	c.made[versionInfo].put(out, 1, c.server.opts.Version)
	if n := c.server.clientCount(); n >= 0 {
		c.made[connections].put(out, float64(n))
	}
	for _, named := range shareNames {
		used, limit := c.server.broker.Budget().Usage(named.share)
		c.made[memoryUsed].put(out, float64(used), named.name)
		c.made[memoryLimit].put(out, float64(limit), named.name)
	}
	c.collectTopics(out, &now)
}
