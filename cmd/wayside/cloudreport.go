package main

import (
	"encoding/json"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"wayside/edge"
	"wayside/uplink"
)

// maxUplinkTopics bounds the topics of the uplink that are told by name, in status and
// metrics; the worst come first.
const maxUplinkTopics = 100

// uplinkReport is what status says of the uplink.
type uplinkReport struct {
	URL          string        `json:"url"`
	EdgeID       string        `json:"edgeId"`
	State        string        `json:"state"` // off, or the gravest of its topics
	Reason       string        `json:"reason,omitempty"`
	Routes       int           `json:"routes"`
	Backlog      int64         `json:"backlog"` // messages
	BacklogBytes int64         `json:"backlogBytes"`
	Sent         int64         `json:"sent"`       // messages confirmed by the cloud since start
	Duplicates   int64         `json:"duplicates"` // of them the cloud had already
	Parked       int64         `json:"parked"`
	Topics       []uplinkTopic `json:"topics"`
	Left         int           `json:"left"` // topics beyond those named
}

type uplinkTopic struct {
	Route        string  `json:"route"`
	Topic        string  `json:"topic"`
	Target       string  `json:"target"`
	State        string  `json:"state"`
	Since        string  `json:"since,omitempty"` // RFC 3339
	RetrySeconds float64 `json:"retrySeconds,omitempty"`
	Reason       string  `json:"reason,omitempty"`
	Backlog      int64   `json:"backlog"`
	BacklogBytes int64   `json:"backlogBytes"`
	OldestAge    float64 `json:"oldestSeconds"`
	Rate         float64 `json:"bytesPerSecond"`
	Drain        float64 `json:"drainSeconds,omitempty"` // at that rate
	Sent         int64   `json:"sent"`
	SentBytes    int64   `json:"sentBytes"`
	HandedBytes  int64   `json:"handedBytes"` // to the client, repeats included
	Duplicates   int64   `json:"duplicates"`
	Parked       int64   `json:"parked"`
	Reconnects   int64   `json:"reconnects"`
	Conflicts    int64   `json:"conflicts"`
}

func (b *server) reportUplink() any {
	if b.uplink == nil {
		return uplinkReport{State: "off", EdgeID: b.edgeID, Routes: len(b.Uplink.Routes), Topics: []uplinkTopic{}}
	}
	st := b.uplink.Status()
	r := uplinkReport{
		URL: st.URL, EdgeID: b.edgeID, State: string(st.State), Reason: st.Reason, Routes: len(b.Uplink.Routes), Topics: []uplinkTopic{},
	}
	now := time.Now()
	for i := range st.Topics {
		t := topicReport(&st.Topics[i], now)
		r.Backlog += t.Backlog
		r.BacklogBytes += t.BacklogBytes
		r.Sent += t.Sent
		r.Duplicates += t.Duplicates
		r.Parked += t.Parked
		if len(r.Topics) < maxUplinkTopics {
			r.Topics = append(r.Topics, t)
		} else {
			r.Left++
		}
	}
	return r
}

func topicReport(t *uplink.TopicStatus, now time.Time) uplinkTopic {
	r := uplinkTopic{
		Route: t.Route, Topic: t.Topic, Target: t.Target, State: string(t.State), Reason: t.Reason,
		Backlog: t.Backlog, BacklogBytes: t.BacklogBytes, OldestAge: t.OldestAge.Seconds(), Rate: t.Rate,
		Sent: t.Sent, SentBytes: t.SentBytes, HandedBytes: t.Handed, Duplicates: t.Duplicates,
		Parked: t.Parked, Reconnects: t.Reconnects, Conflicts: t.Conflicts,
	}
	if !t.Since.IsZero() {
		r.Since = t.Since.UTC().Format(time.RFC3339)
	}
	if left := t.Until.Sub(now); !t.Until.IsZero() && left > 0 {
		r.RetrySeconds = left.Seconds()
	}
	if t.Rate > 0 {
		r.Drain = float64(t.BacklogBytes) / t.Rate
	}
	return r
}

// uplinkMetrics are the uplink's figures under the names that Pulsar has for
// replication, and our own where it has none.
type uplinkMetrics struct {
	status func() uplink.Status
	texts  []uplinkMetric
}

type uplinkMetric struct {
	description *prometheus.Desc
	kind        prometheus.ValueType
	value       func(*uplink.TopicStatus) float64
}

func newUplinkMetrics(u *uplink.Uplink, cluster string) *uplinkMetrics {
	m := &uplinkMetrics{status: u.Status}
	add := func(name, help string, kind prometheus.ValueType, value func(*uplink.TopicStatus) float64) {
		labels := prometheus.Labels{"cluster": cluster}
		d := prometheus.NewDesc(name, help, []string{"namespace", "topic", "remote_cluster", "route"}, labels)
		m.texts = append(m.texts, uplinkMetric{d, kind, value})
	}
	gauge, counter := prometheus.GaugeValue, prometheus.CounterValue
	add("pulsar_replication_backlog", "Messages that the cloud has not confirmed.", gauge,
		func(t *uplink.TopicStatus) float64 { return float64(t.Backlog) })
	add("pulsar_replication_throughput_out", "Bytes per second confirmed lately, before compression.", gauge,
		func(t *uplink.TopicStatus) float64 { return t.Rate })
	add("pulsar_replication_connected_count", "1 while a producer in the cloud is open.", gauge,
		func(t *uplink.TopicStatus) float64 { return truth(t.State == uplink.Connected) })
	add("pulsar_replication_disconnected_count", "1 while something keeps the topic from the cloud.", gauge,
		func(t *uplink.TopicStatus) float64 {
			return truth(t.State == uplink.BackingOff || t.State == uplink.Refused)
		})
	add("pulsar_replication_delay_in_seconds", "Age of the oldest message that is on its way.", gauge,
		func(t *uplink.TopicStatus) float64 { return t.OldestAge.Seconds() })
	add("wayside_uplink_sent_total", "Messages confirmed by the cloud.", counter,
		func(t *uplink.TopicStatus) float64 { return float64(t.Sent) })
	add("wayside_uplink_handed_bytes_total", "Bytes handed to the client, repeats included.", counter,
		func(t *uplink.TopicStatus) float64 { return float64(t.Handed) })
	add("wayside_uplink_duplicates_total", "Messages that the cloud had already.", counter,
		func(t *uplink.TopicStatus) float64 { return float64(t.Duplicates) })
	add("wayside_uplink_parked_total", "Messages that the cloud will never take.", counter,
		func(t *uplink.TopicStatus) float64 { return float64(t.Parked) })
	add("wayside_uplink_reconnects_total", "Producers opened in the cloud.", counter,
		func(t *uplink.TopicStatus) float64 { return float64(t.Reconnects) })
	return m
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Describe tells the names.
func (m *uplinkMetrics) Describe(to chan<- *prometheus.Desc) {
	for _, t := range m.texts {
		to <- t.description
	}
}

// Collect takes a snapshot. Beyond the bound only the first topics have figures.
func (m *uplinkMetrics) Collect(to chan<- prometheus.Metric) {
	st := m.status()
	for i := range st.Topics[:min(len(st.Topics), maxUplinkTopics)] {
		t := &st.Topics[i]
		name, err := edge.ParseTopicName(t.Topic)
		if err != nil {
			continue
		}
		for _, each := range m.texts {
			to <- prometheus.MustNewConstMetric(each.description, each.kind, each.value(t), name.NamespaceName(), t.Topic, st.Cluster, t.Route)
		}
	}
}

// uplink lays the uplink's section of a status out.
func (w screen) uplink(raw json.RawMessage) (refused string) {
	var r uplinkReport
	if raw == nil || json.Unmarshal(raw, &r) != nil {
		return ""
	}
	if r.State == "off" {
		w.line("uplink", "off")
		return ""
	}
	w.line("uplink", "%s, to %s as %s", r.State, r.URL, r.EdgeID)
	if r.Reason != "" {
		w.line("", "%s", r.Reason)
	}
	w.line("", "%s waiting (%s), %d confirmed since the start, %d parked", count(int(r.Backlog), "message"), roughSize(r.BacklogBytes), r.Sent, r.Parked)
	for _, t := range r.Topics {
		w.line("", "%s -> %s: %s", t.Topic, t.Target, t.describe())
	}
	if r.Left > 0 {
		w.line("", "and %s more", count(r.Left, "topic"))
	}
	if r.State == string(uplink.Refused) {
		return "uplink is refused: " + r.Reason
	}
	return ""
}

func (t *uplinkTopic) describe() string {
	text := t.State + ", " + count(int(t.Backlog), "message") + " waiting"
	if t.OldestAge > 0 {
		text += ", the oldest for " + seconds(t.OldestAge)
	}
	if t.Rate > 0 {
		text += ", " + roughSize(int64(t.Rate)) + "/s"
	}
	if t.Drain >= 1 {
		text += ", done in " + seconds(t.Drain)
	}
	if t.RetrySeconds > 0 {
		text += ", next try in " + seconds(t.RetrySeconds)
	}
	if t.Parked > 0 {
		text += ", " + count(int(t.Parked), "message") + " parked"
	}
	return text
}

func seconds(s float64) string {
	return (time.Duration(s * float64(time.Second))).Round(time.Second).String()
}
