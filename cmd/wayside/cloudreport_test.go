package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"wayside/edge/admin"
	"wayside/uplink"
)

// statusOf is an uplink with so many topics, half of them in another namespace. The last
// one is refused, the one before it backs off.
func statusOf(n int) uplink.Status {
	st := uplink.Status{Cluster: "cloud", State: uplink.Refused, Reason: "no"}
	for i := range n {
		topic := fmt.Sprintf("persistent://public/%s/t%d", []string{"a", "b"}[i%2], i)
		st.Topics = append(st.Topics, uplink.TopicStatus{
			Route: "r", Topic: topic, State: uplink.Connected, Backlog: 2, BacklogBytes: int64(i), OldestAge: time.Duration(i) * time.Second, Sent: 3,
		})
	}
	st.Topics[n-1].State, st.Topics[n-1].BacklogBytes = uplink.Refused, 0
	st.Topics[n-2].State = uplink.BackingOff
	return st
}

// What is left out of a long list is never what is in trouble.
func TestReportNamesTheWorst(t *testing.T) {
	r := reportOf(statusOf(300), time.Now())
	if len(r.Topics) != maxUplinkTopics || r.Left != 200 || r.Backlog != 600 || r.Sent != 900 {
		t.Errorf("%d topics and %d more, backlog %d, sent %d", len(r.Topics), r.Left, r.Backlog, r.Sent)
	}
	for i, want := range []string{"refused", "backing off", "connected"} {
		if r.Topics[i].State != want {
			t.Errorf("topic %d is %s, want %s", i, r.Topics[i].State, want)
		}
	}
	if r.Topics[2].BacklogBytes != 297 || r.Topics[99].BacklogBytes != 200 {
		t.Errorf("backlogs from %d to %d", r.Topics[2].BacklogBytes, r.Topics[99].BacklogBytes)
	}
	few := reportOf(statusOf(3), time.Now())
	if len(few.Topics) != 3 || few.Left != 0 || few.Topics[0].Topic != "persistent://public/a/t0" {
		t.Errorf("of three: %+v", few)
	}
}

// Up to the bound every topic has its own figures, above it namespaces have sums.
func TestUplinkMetricsAreBounded(t *testing.T) {
	lines := gathered(t, statusOf(maxUplinkTopics))
	if want := maxUplinkTopics * len(uplinkColumns); len(lines) != want {
		t.Errorf("%d figures, want %d", len(lines), want)
	}
	lines = gathered(t, statusOf(300))
	if want := 2 * len(uplinkColumns); len(lines) != want {
		t.Errorf("%d figures, want %d", len(lines), want)
	}
	for _, want := range []string{
		"pulsar_replication_backlog cluster=standalone namespace=public/a remote_cluster=cloud route=r 300",
		"pulsar_replication_connected_count cluster=standalone namespace=public/a remote_cluster=cloud route=r 149",
		"pulsar_replication_disconnected_count cluster=standalone namespace=public/b remote_cluster=cloud route=r 1",
		"pulsar_replication_delay_in_seconds cluster=standalone namespace=public/b remote_cluster=cloud route=r 299",
		"wayside_uplink_sent_total cluster=standalone namespace=public/b remote_cluster=cloud route=r 450",
	} {
		if !lines[want] {
			t.Errorf("lacks %s in %v", want, lines)
		}
	}
}

// gathered are the figures of a scrape, a line each.
func gathered(t *testing.T, st uplink.Status) map[string]bool {
	t.Helper()
	scrape := admin.NewScrape("standalone")
	newUplinkMetrics(func() uplink.Status { return st }).Collect(scrape)
	lines := map[string]bool{}
	for line := range strings.Lines(string(scrape.Text())) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), "{")
		labels, value, ok := strings.Cut(rest, "} ")
		if ok {
			all := strings.Split(strings.ReplaceAll(labels, `"`, ""), ",")
			slices.Sort(all)
			lines[strings.Join(append(append([]string{name}, all...), value), " ")] = true
		}
	}
	return lines
}
