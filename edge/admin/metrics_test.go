package admin

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"wayside/edge"
)

// scraped reads /metrics as Prometheus does.
func scraped(t testing.TB, s *Server) map[string]*dto.MetricFamily {
	t.Helper()
	got := ask(s, http.MethodGet, "/metrics", "", "")
	if got.Code != http.StatusOK || !strings.HasPrefix(got.Header().Get("Content-Type"), "text/plain") {
		t.Fatalf("%d %s", got.Code, got.Header())
	}
	var parser expfmt.TextParser
	families, err := parser.TextToMetricFamilies(bytes.NewReader(got.Body.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// labels are those of a metric, without values, in their order.
func labels(m *dto.Metric) string {
	var names []string
	for _, l := range m.GetLabel() {
		names = append(names, l.GetName())
	}
	slices.Sort(names)
	return strings.Join(names, ",")
}

// valueOf finds the metric whose labels have the given values, "name=value".
func valueOf(f *dto.MetricFamily, want ...string) (float64, bool) {
metrics:
	for _, m := range f.GetMetric() {
		have := map[string]bool{}
		for _, l := range m.GetLabel() {
			have[l.GetName()+"="+l.GetValue()] = true
		}
		for _, w := range want {
			if !have[w] {
				continue metrics
			}
		}
		if m.Counter != nil {
			return m.Counter.GetValue(), true
		}
		return m.Gauge.GetValue(), true
	}
	return 0, false
}

func TestMetricsHavePulsarsNames(t *testing.T) {
	server, _ := newServer(t)
	busy(t, open(t, server, "persistent://public/default/t"))
	families := scraped(t, server)
	raw, err := os.ReadFile("testdata/metric-names.list")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, line := range strings.Split(strings.TrimSpace(string(raw)), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var name, kind, label string
		if _, err := fmt.Sscan(line, &name, &kind, &label); err != nil {
			t.Fatal(err)
		}
		known[name] = true
		f := families[name]
		if f == nil {
			t.Errorf("%s is not there", name)
			continue
		}
		want := strings.Split(strings.Trim(label, "{}"), ",")
		slices.Sort(want)
		if got := labels(f.GetMetric()[0]); got != strings.Join(want, ",") || strings.ToLower(f.GetType().String()) != kind {
			t.Errorf("%s is a %s with %s, want a %s with %s", name, f.GetType(), got, kind, want)
		}
	}
	for name := range families {
		if strings.HasPrefix(name, "pulsar_") && !known[name] {
			t.Errorf("%s is no name of Pulsar's", name)
		}
		if !strings.HasPrefix(name, "pulsar_") && !strings.HasPrefix(name, "wayside_") && !strings.HasPrefix(name, "go_") && !strings.HasPrefix(name, "process_") {
			t.Errorf("%s has no prefix of ours", name)
		}
	}
}

func TestMetricsValues(t *testing.T) {
	server, _ := newServer(t, func(o *Options, _ *edge.Options) {
		o.Clients = func() int { return 7 }
		extra := &Family{Name: "wayside_extra", Help: "a \\ and\na line"}
		o.Collectors = []Collector{{[]*Family{extra}, func(to *Scrape) { to.Put(extra, 3) }}}
	})
	const name = "persistent://public/default/t"
	busy(t, open(t, server, name))
	families := scraped(t, server)
	topic := []string{"namespace=public/default", "topic=" + name, "cluster=standalone"}
	for _, want := range []struct {
		name   string
		labels []string
		value  float64
	}{
		{"pulsar_topics_count", []string{"namespace=public/default"}, 1},
		{"pulsar_broker_topics_count", nil, 1},
		{"pulsar_producers_count", topic, 1},
		{"pulsar_consumers_count", topic, 6},
		{"pulsar_subscriptions_count", topic, 5},
		{"pulsar_in_messages_total", topic, 4},
		{"pulsar_in_bytes_total", topic, 15},
		{"pulsar_storage_size", topic, 15},
		{"pulsar_msg_backlog", topic, 20},
		{"pulsar_subscription_back_log", append(topic, "subscription=shared"), 4},
		{"pulsar_subscription_consumers_count", append(topic, "subscription=shared"), 2},
		{"pulsar_out_messages_total", append(topic, "subscription=shared"), 4},
		{"wayside_connections", nil, 7},
		{"wayside_extra", nil, 3},
		{"wayside_healthy", nil, 1},
		{"wayside_topics_open", nil, 1},
		{"wayside_messages_in_total", nil, 4},
	} {
		if got, ok := valueOf(families[want.name], want.labels...); !ok || got != want.value {
			t.Errorf("%s%v is %v, %v, want %v", want.name, want.labels, got, ok, want.value)
		}
	}
	if _, ok := valueOf(families["pulsar_subscription_back_log"], "subscription=look-fctvo"); ok {
		t.Error("a reader has metrics of its own")
	}
	if got, _ := valueOf(families["wayside_memory_share_limit_bytes"], "share=publish"); got <= 0 {
		t.Errorf("share has limit %v", got)
	}
}

func TestMetricsAreBounded(t *testing.T) {
	server, _ := newServer(t, func(o *Options, _ *edge.Options) { o.MetricsTopics, o.MetricsSubscriptions = 3, 2 })
	mustDo(t, server, http.MethodPut, "/admin/v2/namespaces/public/other", "", http.StatusNoContent)
	for _, name := range []string{"default/a", "default/b", "other/c"} {
		produce(t, open(t, server, "persistent://public/"+name), "p", 0, "12345").Close(nil)
	}
	sub := "/admin/v2/persistent/public/default/a/subscription/"
	for i := range 2 {
		mustDo(t, server, http.MethodPut, fmt.Sprint(sub, i), `"earliest"`, http.StatusNoContent)
	}
	count := func(name string) int { return len(scraped(t, server)[name].GetMetric()) }
	if n := count("pulsar_storage_size"); n != 3 {
		t.Errorf("%d topics, want each of 3", n)
	}
	if n := count("pulsar_subscription_back_log"); n != 2 {
		t.Errorf("%d subscriptions, want each of 2", n)
	}
	mustDo(t, server, http.MethodPut, sub+"2", "", http.StatusNoContent)
	if n := count("pulsar_subscription_back_log"); n != 0 {
		t.Errorf("%d subscriptions, want none above the bound", n)
	}
	open(t, server, "persistent://public/other/d")
	families := scraped(t, server)
	sums := families["pulsar_storage_size"]
	if got := labels(sums.GetMetric()[0]); got != "cluster,namespace" || len(sums.GetMetric()) != 2 {
		t.Errorf("%d sums with %s", len(sums.GetMetric()), got)
	}
	if got, _ := valueOf(sums, "namespace=public/default"); got != 10 {
		t.Errorf("sum of public/default is %v, want 10", got)
	}
	if got, _ := valueOf(families["pulsar_topics_count"], "namespace=public/other"); got != 2 {
		t.Errorf("public/other has %v topics, want 2", got)
	}
}

func TestMetricsOpenNoTopic(t *testing.T) {
	server, _ := newServer(t)
	const name = "persistent://public/default/t"
	topic := open(t, server, name)
	produce(t, topic, "p", 0, "12345", "12345").Close(nil)
	mustDo(t, server, http.MethodPut, "/admin/v2/persistent/public/default/t/subscription/s", `"earliest"`, http.StatusNoContent)
	mustDo(t, server, http.MethodPut, "/admin/v2/persistent/public/default/t/unload", "", http.StatusNoContent)
	families := scraped(t, server)
	if got, _ := valueOf(families["wayside_topics_open"]); got != 0 {
		t.Errorf("%v topics are open after a scrape", got)
	}
	for name, want := range map[string]float64{
		"pulsar_storage_size": 10, "pulsar_subscriptions_count": 1, "pulsar_msg_backlog": 2, "pulsar_storage_backlog_size": 10, "pulsar_producers_count": 0,
	} {
		if got, ok := valueOf(families[name], "topic=persistent://public/default/t"); !ok || got != want {
			t.Errorf("%s of an unloaded topic is %v, %v, want %v", name, got, ok, want)
		}
	}
}

func TestMetricsThatContradict(t *testing.T) {
	server, _ := newServer(t)
	o := server.opts
	gauge := func() Collector { return Collector{Families: []*Family{{Name: "wayside_twice"}}} }
	o.Collectors = []Collector{gauge(), gauge()}
	if _, err := New(o); err == nil {
		t.Error("two collectors with one name are taken")
	}
}

// A column that is listed twice, or a family without help, would spoil the whole scrape.
func TestMetricColumns(t *testing.T) {
	seen := map[string]bool{}
	note := func(name, help string) {
		if seen[name] || help == "" {
			t.Errorf("%s is there twice, or without help", name)
		}
		seen[name] = true
	}
	for _, c := range brokerFamilies {
		note(c.name, c.help)
	}
	for _, c := range topicColumns {
		note(c.name, c.help)
	}
	for _, c := range subscriptionColumns {
		note(c.name, c.help)
	}
	if len(slices.Collect(maps.Keys(seen))) < 40 {
		t.Errorf("only %d families", len(seen))
	}
}
