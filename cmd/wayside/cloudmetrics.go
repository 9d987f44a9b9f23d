package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"wayside/edge"
	"wayside/uplink"
)

// uplinkMetrics are the uplink's figures under the names that Pulsar has for
// replication, and our own where it has none. With more than maxUplinkTopics topics they
// are sums per namespace and route, without the label of the topic, like those of topics.
type uplinkMetrics struct {
	status   func() uplink.Status
	families []uplinkFamily
}

// uplinkFamily is one metric in both forms.
type uplinkFamily struct {
	single, sum *prometheus.Desc
	kind        prometheus.ValueType
	value       func(*uplink.TopicStatus) float64
	largest     bool // the sum is none, but the largest value
}

// uplinkColumns are the families: a gauge unless it counts.
var uplinkColumns = []struct {
	name, help     string
	counts, oldest bool
	value          func(*uplink.TopicStatus) float64
}{
	{name: "pulsar_replication_backlog", help: "Messages that the cloud has not confirmed.",
		value: func(t *uplink.TopicStatus) float64 { return float64(t.Backlog) }},
	{name: "pulsar_replication_throughput_out", help: "Bytes per second confirmed lately, before compression.",
		value: func(t *uplink.TopicStatus) float64 { return t.Rate }},
	{name: "pulsar_replication_connected_count", help: "Topics with an open producer in the cloud.",
		value: func(t *uplink.TopicStatus) float64 { return truth(t.State == uplink.Connected) }},
	{name: "pulsar_replication_disconnected_count", help: "Topics that something keeps from the cloud.",
		value: func(t *uplink.TopicStatus) float64 {
			return truth(t.State == uplink.BackingOff || t.State == uplink.Refused)
		}},
	{name: "pulsar_replication_delay_in_seconds", help: "Age of the oldest message that is on its way.", oldest: true,
		value: func(t *uplink.TopicStatus) float64 { return t.OldestAge.Seconds() }},
	{name: "wayside_uplink_sent_total", help: "Messages confirmed by the cloud.", counts: true,
		value: func(t *uplink.TopicStatus) float64 { return float64(t.Sent) }},
	{name: "wayside_uplink_handed_bytes_total", help: "Bytes handed to the client, repeats included.", counts: true,
		value: func(t *uplink.TopicStatus) float64 { return float64(t.Handed) }},
	{name: "wayside_uplink_duplicates_total", help: "Messages that the cloud had already.", counts: true,
		value: func(t *uplink.TopicStatus) float64 { return float64(t.Duplicates) }},
	{name: "wayside_uplink_parked_total", help: "Messages that the cloud will never take.", counts: true,
		value: func(t *uplink.TopicStatus) float64 { return float64(t.Parked) }},
	{name: "wayside_uplink_reconnects_total", help: "Producers opened in the cloud.", counts: true,
		value: func(t *uplink.TopicStatus) float64 { return float64(t.Reconnects) }},
	{name: "wayside_uplink_conflicts_total", help: "New producer names taken: what was open then may be in the cloud twice.", counts: true,
		value: func(t *uplink.TopicStatus) float64 { return float64(t.Conflicts) }},
}

func newUplinkMetrics(status func() uplink.Status, cluster string) *uplinkMetrics {
	m, constant := &uplinkMetrics{status: status}, prometheus.Labels{"cluster": cluster}
	for _, c := range uplinkColumns {
		f := uplinkFamily{
			single: prometheus.NewDesc(c.name, c.help, []string{"namespace", "remote_cluster", "route", "topic"}, constant),
			sum:    prometheus.NewDesc(c.name, c.help, []string{"namespace", "remote_cluster", "route"}, constant),
			kind:   prometheus.GaugeValue, value: c.value, largest: c.oldest,
		}
		if c.counts {
			f.kind = prometheus.CounterValue
		}
		m.families = append(m.families, f)
	}
	return m
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Describe says nothing, so that the families may have the topic's label or not.
func (m *uplinkMetrics) Describe(chan<- *prometheus.Desc) {}

// Collect takes a snapshot.
func (m *uplinkMetrics) Collect(to chan<- prometheus.Metric) {
	st := m.status()
	if len(st.Topics) > maxUplinkTopics {
		m.collectSums(to, &st)
		return
	}
	for i := range st.Topics {
		t := &st.Topics[i]
		for _, f := range m.families {
			to <- prometheus.MustNewConstMetric(f.single, f.kind, f.value(t), namespaceName(t), st.Cluster, t.Route, t.Topic)
		}
	}
}

func (m *uplinkMetrics) collectSums(to chan<- prometheus.Metric, st *uplink.Status) {
	type place struct{ namespace, route string }
	sums := map[place][]float64{}
	for i := range st.Topics {
		t := &st.Topics[i]
		at := place{namespaceName(t), t.Route}
		if sums[at] == nil {
			sums[at] = make([]float64, len(m.families))
		}
		for j, f := range m.families {
			if v := f.value(t); f.largest {
				sums[at][j] = max(sums[at][j], v)
			} else {
				sums[at][j] += v
			}
		}
	}
	for at, values := range sums {
		for j, f := range m.families {
			to <- prometheus.MustNewConstMetric(f.sum, f.kind, values[j], at.namespace, st.Cluster, at.route)
		}
	}
}

// namespaceName of a topic that the broker itself has named, "" for none.
func namespaceName(t *uplink.TopicStatus) string {
	name, err := edge.ParseTopicName(t.Topic)
	if err != nil {
		return ""
	}
	return name.NamespaceName()
}
