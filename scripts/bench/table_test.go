package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"
)

// lineOf returns what the table says of a cell and a peer, with single spaces; "" if nothing.
func lineOf(r results, cells []cell, peers []*peer, size int, cell, peer string) string {
	var out bytes.Buffer
	r.print(&out, cells, peers, size)
	for line := range strings.Lines(out.String()) {
		line = strings.Join(strings.Fields(line), " ")
		if strings.HasPrefix(line, cell+" "+peer+" ") {
			return line
		}
	}
	return ""
}

func TestRatiosAreTakenWithinARepetition(t *testing.T) {
	r := newResults()
	for i, rate := range []float64{100, 400} {
		r.add(pipelined, "wayside", result{repetition: i, rate: 2 * rate})
		r.add(batched, "wayside", result{repetition: i, rate: 20 * rate})
		r.add(pipelined, "jetstream", result{repetition: i, rate: rate})
	}
	peers := []*peer{{name: "wayside", batches: true}, {name: "jetstream"}}
	for _, want := range []struct{ cell, peer, end string }{
		{pipelined, "wayside", " 500 (200–800) 0.0"},
		{pipelined, "jetstream", " 2.00x (2.00–2.00)"},
		{batched, "jetstream, publish-pipelined", " wanted ≥ 45x: 20.00x (20.00–20.00), missed"},
	} {
		if got := lineOf(r, cells(), peers, 1024, want.cell, want.peer); !strings.HasSuffix(got, want.end) {
			t.Errorf("%s, %s: %q does not end with %q", want.cell, want.peer, got, want.end)
		}
	}
}

func TestARunThatFailedHasNoRatio(t *testing.T) {
	r := newResults()
	r.add("publish-1", "wayside", result{repetition: 0, rate: 10})
	r.add("publish-1", "wayside", result{repetition: 2, rate: 40})
	r.add("publish-1", "jetstream", result{repetition: 1, rate: 10})
	r.add("publish-1", "jetstream", result{repetition: 2, rate: 20})
	peers := []*peer{{name: "wayside", batches: true}, {name: "jetstream"}}
	if got := lineOf(r, cells(), peers, 1024, "publish-1", "jetstream"); !strings.HasSuffix(got, " wanted ≥ 1.3x: 2.00x (2.00–2.00)") {
		t.Errorf("%q", got)
	}
	if got := lineOf(r, cells(), peers, 128, "publish-1", "jetstream"); !strings.HasSuffix(got, " 2.00x (2.00–2.00)") || strings.Contains(got, "wanted") {
		t.Errorf("a target of another size: %q", got)
	}
}

// TestFanOutComparesCost: the rate is given, so what differs is what a delivery costs, and what a stopped consumer does
// to the others.
func TestFanOutComparesCost(t *testing.T) {
	r := newResults()
	r.add(fanoutEach, "wayside", result{rate: 10, cpu: 10 * time.Microsecond, late: 2 * time.Millisecond})
	r.add(fanoutEach, "redis", result{rate: 10, cpu: 25 * time.Microsecond, late: 3 * time.Millisecond})
	r.add("fanout-each-stopped", "redis", result{rate: 10, cpu: 25 * time.Microsecond, late: 12 * time.Millisecond})
	peers := []*peer{{name: "wayside", consumes: true}, {name: "redis", consumes: true}}
	fan := []cell{}
	for _, c := range cells() {
		if c.kind == fanout {
			fan = append(fan, c)
		}
	}
	for cell, want := range map[string]string{
		fanoutEach: " 25.0 2.50x (2.50–2.50)", "fanout-each-stopped": " 25.0 p99 4.00x (4.00–4.00) of that without",
	} {
		if got := lineOf(r, fan, peers, 128, cell, "redis"); !strings.HasSuffix(got, want) {
			t.Errorf("%s: %q does not end with %q", cell, got, want)
		}
	}
}

func TestEveryTargetHasItsCellAndPeer(t *testing.T) {
	peers := candidates(programs{}, "")
	for _, want := range targets() {
		if _, err := choose(want.cell); err != nil {
			t.Error(err)
		}
		if names := candidateNames(peers); !regexp.MustCompile(`\b` + want.peer + `(,|$)`).MatchString(names) {
			t.Errorf("no %s in %s", want.peer, names)
		}
	}
}

func TestNewResult(t *testing.T) {
	latencies := make([]time.Duration, 200)
	for i := range latencies {
		latencies[i] = time.Duration(200-i) * time.Millisecond
	}
	got := newResult(200, 2*time.Second, time.Second, latencies)
	want := result{rate: 100, median: 101 * time.Millisecond, late: 199 * time.Millisecond, cpu: 5 * time.Millisecond}
	if got != want {
		t.Errorf("%+v, not %+v", got, want)
	}
}
