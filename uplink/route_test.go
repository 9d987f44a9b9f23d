package uplink

import (
	"slices"
	"strings"
	"testing"

	"wayside/edge"
)

func mustName(t *testing.T, s string) edge.TopicName {
	t.Helper()
	n, err := edge.ParseTopicName(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		from, topic string
		captured    string // joined by |, "no" for no match
	}{
		{"temperature", "temperature", ""},
		{"temperature", "persistent://public/default/temperature", ""},
		{"temperature", "public/other/temperature", "no"},
		{"temperature", "temperatures", "no"},
		{"temperature", "temperature-partition-3", ""},
		{"persistent://public/default/temperature", "temperature", ""},
		{"sensors/plant-*/t", "sensors/plant-7/t", "7"},
		{"sensors/plant-*/t", "sensors/plant-/t", "no"},
		{"sensors/plant-*/t", "sensors/plant-7/tt", "no"},
		{"sensors/*/*", "sensors/a/b", "a|b"},
		{"*/*/*", "a/b/c", "a|b|c"},
		{"sensors/plant-*-*/t", "sensors/plant-a-b-c/t", "a|b-c"},
		{"a.b/c+d/e", "a.b/c+d/e", "bad"},
		{"a.b/c/e", "axb/c/e", "no"},
		{"in-*", "in-a-partition-0", "a"},
	} {
		p, err := parsePattern(c.from)
		if err != nil {
			if c.captured != "bad" {
				t.Errorf("%s: %v", c.from, err)
			}
			continue
		}
		got, ok := p.captures(mustName(t, c.topic))
		if s := strings.Join(got, "|"); ok != (c.captured != "no") || ok && s != c.captured {
			t.Errorf("%s on %s: %q, %t", c.from, c.topic, s, ok)
		}
	}
}

func TestTargets(t *testing.T) {
	for _, c := range []struct{ from, to, topic, want string }{
		{"a", "", "a", "persistent://public/default/a"},
		{"a", "{edge}-{topic}", "a", "persistent://public/default/edge-1-a"},
		{"x/plant-*/t", "cloud/{namespace}/{edge}.{1}.{topic}", "x/plant-7/t", "persistent://cloud/plant-7/edge-1.7.t"},
		{"*/*/*", "{1}/{2}/{3}", "a/b/c", "persistent://a/b/c"},
		{"a", "persistent://cloud/n/all", "a-partition-3", "persistent://cloud/n/all-partition-3"},
		{"a", "{tenant}/{namespace}/{topic}", "a-partition-0", "persistent://public/default/a-partition-0"},
	} {
		table, err := parseTable("edge-1", "pulsar://c:1", nil, []Route{{From: c.from, To: c.to}})
		if err != nil {
			t.Errorf("%s to %s: %v", c.from, c.to, err)
			continue
		}
		to, _, err := table.places(table.routes[0], mustName(t, c.topic))
		if err != nil || to.String() != c.want {
			t.Errorf("%s: %v, %v; want %s", c.to, to, err, c.want)
		}
	}
}

func TestRoutesAreChecked(t *testing.T) {
	for _, c := range []struct {
		name   string
		routes []Route
		want   []string
	}{
		{"no source", []Route{{To: "a"}}, []string{"from is missing"}},
		{"bad source", []Route{{From: "a/b"}}, []string{`"a/b" is neither topic nor`}},
		{"non-persistent source", []Route{{From: "non-persistent://a/b/c"}}, []string{"only persistent topics are forwarded"}},
		{"non-persistent target", []Route{{From: "a", To: "non-persistent://a/b/c"}}, []string{"only persistent topics are written to"}},
		{"unknown placeholder", []Route{{From: "a", To: "{tpoic}"}}, []string{"unknown placeholder {tpoic}"}},
		{"capture that is none", []Route{{From: "a-*", To: "{2}"}}, []string{"{2}: the pattern has 1 stars"}},
		{"open brace", []Route{{From: "a", To: "b{topic"}}, []string{"{ without }"}},
		{"closing brace", []Route{{From: "a", To: "b}"}}, []string{"} without {"}},
		{"target of two parts", []Route{{From: "a", To: "b/{topic}"}}, []string{"to: "}},
		{"by without need", []Route{{From: "a", By: "w"}}, []string{"by goes with forward: acknowledged only"}},
		{"by missing", []Route{{From: "a", Forward: ForwardAcknowledged}}, []string{"by is missing"}},
		{"by an uplink", []Route{{From: "a", Forward: ForwardAcknowledged, By: "wayside.uplink.x"}}, []string{"an uplink's own subscription"}},
		{"words", []Route{{From: "a", Forward: "x"}, {From: "b", Compression: "x"}, {From: "c", Provenance: "x"}},
			[]string{"route a: forward:", "route b: compression:", "route c: provenance:"}},
		{"two of a name", []Route{{From: "a"}, {From: "a", To: "b"}}, []string{"route a: there are two of this name"}},
		{"loop", []Route{{From: "a", To: "b"}, {From: "b", To: "c"}}, []string{"route a: writes to this very broker, where route b forwards b: a loop"}},
		{"loop by pattern", []Route{{From: "x/*/t", To: "x/{1}-copy/t"}}, []string{"a loop"}},
		{"bad parking topic", []Route{{From: "a", Park: "{x}"}}, []string{"park: "}},
		{"slash in the name", []Route{{From: "a", Name: "a/b"}}, []string{"name: "}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := parseTable("edge-1", "pulsar://c:1,self:6650", []string{"self:6650"}, c.routes)
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%v, want %q in it", err, want)
				}
			}
		})
	}
}

// What leads to another broker may have any name.
func TestNoLoopElsewhere(t *testing.T) {
	if _, err := parseTable("e", "pulsar://c:1", []string{"self:6650"}, []Route{{From: "a", To: "a"}}); err != nil {
		t.Error(err)
	}
	if _, err := parseTable("e", "pulsar://self:6650", []string{"self:6650"}, []Route{{From: "a", To: "b"}, {From: "c/*/d", To: "e/{1}/d"}}); err != nil {
		t.Error(err)
	}
}

func TestReserved(t *testing.T) {
	table, err := parseTable("e", "pulsar://c:1", nil, []Route{{From: "*/*/*"}, {From: "sensors/*/t", Name: "second", Park: "sensors/{1}/aside"}})
	if err != nil {
		t.Fatal(err)
	}
	for topic, want := range map[string][]string{
		"sensors/a/t":                    {"wayside.uplink.any.any.any", "wayside.uplink.second"},
		"sensors/a/t-partition-1":        {"wayside.uplink.any.any.any", "wayside.uplink.second"},
		"other/a/t":                      {"wayside.uplink.any.any.any"},
		"sensors/a/aside":                {"wayside.parked"},
		"any/ns/wayside.parked":          {"wayside.parked"},
		"non-persistent://sensors/a/t":   nil,
		"persistent://sensors/b/t-x-t-t": {"wayside.uplink.any.any.any"},
	} {
		if got := table.reserved(mustName(t, topic)); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", topic, got, want)
		}
	}
}

func TestGlobsMeet(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"a", "a", true}, {"a", "b", false}, {"*", "", true}, {"a*", "*b", true}, {"a*c", "ab*", true},
		{"a*c", "b*", false}, {"a/*/c", "a/b/c", true}, {"a/*/c", "a/b/d", false}, {"*-copy", "x", false},
	} {
		if got := globsMeet(c.a, c.b); got != c.want || globsMeet(c.b, c.a) != got {
			t.Errorf("%s and %s: %t", c.a, c.b, got)
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	good := func() Options { return testOptions("pulsar://c:1", Route{From: "a"}) }
	if _, err := New(good()); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"scheme":  {func(o *Options) { o.URL = "http://c:1" }, `url: "http://c:1"`},
		"no host": {func(o *Options) { o.URL = "pulsar://" }, "url:"},
		"no id":   {func(o *Options) { o.EdgeID = "" }, "edge id:"},
		"long id": {func(o *Options) { o.EdgeID = strings.Repeat("x", 300) }, "edge id: 300 bytes"},
		"rate":    {func(o *Options) { o.RateLimit = -1 }, "rate limit"},
		"batch":   {func(o *Options) { o.BatchMessages = 5000 }, "batch of 5000 messages"},
		"bytes":   {func(o *Options) { o.BatchBytes = 1 << 20 }, "batch of 1048576 bytes"},
		"time":    {func(o *Options) { o.IdleClose = 0 }, "a time of 0s"},
		"route":   {func(o *Options) { o.Routes = []Route{{From: ""}} }, "from is missing"},
		"ways": {func(o *Options) {
			o.Auth.Basic, o.Auth.OAuth2 = &Basic{}, &OAuth2{}
		}, "auth: 2 ways at once"},
	} {
		o := good()
		c.change(&o)
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
