package main

import (
	"cmp"
	"encoding/json"
	"slices"
	"sort"
	"time"

	"wayside/uplink"
)

// maxUplinkTopics bounds the topics of the uplink that are told by name: in the status the
// worst of them, in the metrics all or none.
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
	r := reportOf(b.uplink.Status(), time.Now())
	r.EdgeID, r.Routes = b.edgeID, len(b.Uplink.Routes)
	return r
}

// reportOf adds the topics up, and names as many as may be.
func reportOf(st uplink.Status, now time.Time) uplinkReport {
	r := uplinkReport{URL: st.URL, State: string(st.State), Reason: st.Reason, Topics: []uplinkTopic{}}
	named := st.Topics
	if len(named) > maxUplinkTopics {
		named = worst(named)
		r.Left = len(st.Topics) - len(named)
	}
	for i := range named {
		r.Topics = append(r.Topics, topicReport(&named[i], now))
	}
	for i := range st.Topics {
		t := &st.Topics[i]
		r.Backlog += t.Backlog
		r.BacklogBytes += t.BacklogBytes
		r.Sent += t.Sent
		r.Duplicates += t.Duplicates
		r.Parked += t.Parked
	}
	return r
}

// worst are the topics of which somebody has to know: those in trouble, the refused ones
// first, then those with the most that waits.
func worst(all []uplink.TopicStatus) []uplink.TopicStatus {
	grave := func(t *uplink.TopicStatus) int {
		return slices.Index([]uplink.State{uplink.BackingOff, uplink.Refused}, t.State)
	}
	sorted := slices.Clone(all)
	sort.SliceStable(sorted, func(i, j int) bool {
		a, b := &sorted[i], &sorted[j]
		return cmp.Or(cmp.Compare(grave(b), grave(a)), cmp.Compare(b.BacklogBytes, a.BacklogBytes)) < 0
	})
	return sorted[:maxUplinkTopics]
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
