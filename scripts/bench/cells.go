package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A cell is one thing that is measured.
type cell struct {
	name       string
	kind       kind
	publishers int    // publish: with one message in flight each; 0: one publisher with a window of messages
	batch      int    // messages per batch, 0 for none
	shared     bool   // fanout: the consumers are those of one subscription, not of one each
	stopped    bool   // fanout: one of the consumers stops to take messages
	base       string // the cell that stands in for a peer without batches; of a stopped one, the same without
}

// A kind of cell has a table of its own.
type kind int

const (
	publish kind = iota // for some seconds, with each size
	drain               // of messages that are there
	fanout              // to many consumers, at a given rate
	kinds
)

func (k kind) String() string {
	return [...]string{publish: "publish", drain: "drain", fanout: "fanout"}[k]
}

const (
	pipelined  = "publish-pipelined"
	batched    = "publish-batches"
	fanoutEach = "fanout-each"
	fanoutOne  = "fanout-shared"
)

// defaultCells are those of a short run.
const defaultCells = "publish"

// cells lists all. Peers without batches are set by their pipelined publisher against batches.
func cells() []cell {
	return []cell{
		{name: "publish-1", publishers: 1},
		{name: "publish-16", publishers: 16},
		{name: "publish-256", publishers: 256},
		{name: pipelined},
		{name: batched, batch: 100, base: pipelined},
		{name: "drain-singles", kind: drain},
		{name: "drain-batches", kind: drain, batch: 100},
		{name: fanoutEach, kind: fanout},
		{name: "fanout-each-stopped", kind: fanout, stopped: true, base: fanoutEach},
		{name: fanoutOne, kind: fanout, shared: true},
		{name: "fanout-shared-stopped", kind: fanout, shared: true, stopped: true, base: fanoutOne},
	}
}

// choose returns the cells that are named, or whose names begin with one of names and a dash, and those that they are
// set against.
func choose(names string) ([]cell, error) {
	all, wanted := cells(), map[string]bool{}
	for name := range strings.SplitSeq(names, ",") {
		found := false
		for _, c := range all {
			if name == "all" || c.name == name || strings.HasPrefix(c.name, name+"-") {
				found, wanted[c.name] = true, true
				if c.base != "" {
					wanted[c.base] = true
				}
			}
		}
		if !found {
			return nil, fmt.Errorf("-cells: no %q; there are %s, what they begin with before a dash, and all", name, cellNames(all))
		}
	}
	return slices.DeleteFunc(all, func(c cell) bool { return !wanted[c.name] }), nil
}

func cellNames(all []cell) string {
	names := make([]string, len(all))
	for i, c := range all {
		names[i] = c.name
	}
	return strings.Join(names, ", ")
}

// applies tells whether a peer can do what is measured.
func (c cell) applies(p *peer) bool {
	return (c.batch == 0 || p.batches) && (c.kind == publish || p.consumes)
}

// options are what all runs of cells have in common.
type options struct {
	size      int
	long      time.Duration // of a run of publishing or of fanning out
	drain     int           // messages
	consumers int           // of a fan-out
	rate      float64       // messages a second that are fanned out to all
}

// sharedRate is how many times that rate is published to consumers that divide the messages.
const sharedRate = 10

func (c cell) run(p *peer, o options) (result, error) {
	switch c.kind {
	case drain:
		return c.draining(p, o)
	case fanout:
		return c.fanning(p, o)
	}
	return c.publishing(p, o)
}

func newTopic(subscriptions []string, shared bool) topic {
	return topic{name: fmt.Sprintf("bench-%d", time.Now().UnixNano()), subscriptions: subscriptions, shared: shared}
}

// result is what one run of a cell showed.
type result struct {
	repetition int
	rate       float64       // messages with a receipt per second, or delivered ones
	median     time.Duration // from send to receipt, or to delivery; 0: not measured
	late       time.Duration // the same, of the slowest in a hundred
	cpu        time.Duration // of the server, per message
}

// newResult sorts latencies.
func newResult(n int, took, used time.Duration, latencies []time.Duration) result {
	r := result{rate: float64(n) / took.Seconds(), cpu: used / time.Duration(n)}
	if count := len(latencies); count > 0 {
		slices.Sort(latencies)
		r.median, r.late = latencies[count/2], latencies[count*99/100]
	}
	return r
}
