package main

import (
	"wayside/edge"
	"wayside/edge/admin"
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
	single, sum *admin.Family
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

func newUplinkMetrics(status func() uplink.Status) admin.Collector {
	m, all := &uplinkMetrics{status: status}, admin.Collector{}
	for _, c := range uplinkColumns {
		f := uplinkFamily{
			single: &admin.Family{Name: c.name, Help: c.help, Counts: c.counts, Labels: []string{"namespace", "remote_cluster", "route", "topic"}},
			sum:    &admin.Family{Name: c.name, Help: c.help, Counts: c.counts, Labels: []string{"namespace", "remote_cluster", "route"}},
			value:  c.value, largest: c.oldest,
		}
		m.families = append(m.families, f)
		all.Families = append(all.Families, f.single, f.sum)
	}
	all.Collect = m.collect
	return all
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// collect takes a snapshot.
func (m *uplinkMetrics) collect(to *admin.Scrape) {
	st := m.status()
	if len(st.Topics) > maxUplinkTopics {
		m.collectSums(to, &st)
		return
	}
	for i := range st.Topics {
		t := &st.Topics[i]
		for _, f := range m.families {
			to.Put(f.single, f.value(t), namespaceName(t), st.Cluster, t.Route, t.Topic)
		}
	}
}

func (m *uplinkMetrics) collectSums(to *admin.Scrape, st *uplink.Status) {
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
			to.Put(f.sum, values[j], at.namespace, st.Cluster, at.route)
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
