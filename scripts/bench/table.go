package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// results holds, by cell and peer, one result per repetition that did not fail.
type results map[string]map[string][]result

func newResults() results { return results{} }

func (r results) add(cell, peer string, one result) {
	if r[cell] == nil {
		r[cell] = map[string][]result{}
	}
	r[cell][peer] = append(r[cell][peer], one)
}

// print writes a line per cell and peer, with what the first peer is to it. A ratio is the median of those of the single
// repetitions, with the lowest and the highest: of the rates, or of what a delivery costs the server, so that more is
// always better for the first peer.
func (r results) print(w io.Writer, cells []cell, peers []*peer, size int) {
	if len(cells) == 0 {
		return
	}
	unit, compared := "messages/s", peers[0].name+" / this one"
	if cells[0].kind == fanout {
		unit, compared = "deliveries/s", "server µs, this one / "+peers[0].name
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "%d B\tbroker\t%s\t(spread)\tmedian ms\tp99 ms\tserver µs/message\t%s\n", size, unit, compared)
	for _, c := range cells {
		for _, p := range peers {
			name, runs := p.name, r[c.name][p.name]
			if !c.applies(p) && c.base != "" {
				name, runs = p.name+", "+c.base, r[c.base][p.name] // this peer has no such cell, its base stands in
			}
			if len(runs) > 0 {
				fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", c.name, name, figures(runs), r.compared(c, p, peers[0], runs, size))
			}
		}
	}
	t.Flush()
	fmt.Fprintln(w)
}

// figures are the cells of a line that need no other peer.
func figures(runs []result) string {
	ms := func(of func(result) time.Duration) string {
		v := median(each(runs, func(r result) float64 { return of(r).Seconds() * 1e3 }))
		if v == 0 {
			return ""
		}
		return fmt.Sprintf("%.2f", v)
	}
	rates := each(runs, func(r result) float64 { return r.rate })
	return fmt.Sprintf("%.0f\t(%.0f–%.0f)\t%s\t%s\t%.1f", median(rates), slices.Min(rates), slices.Max(rates),
		ms(func(r result) time.Duration { return r.median }), ms(func(r result) time.Duration { return r.late }),
		median(each(runs, func(r result) float64 { return r.cpu.Seconds() * 1e6 })))
}

// compared tells how the first peer stands to another one and, of a cell with a stopped consumer, how much later the
// others got theirs for it.
func (r results) compared(c cell, p, first *peer, runs []result, size int) string {
	if c.stopped {
		if v := ratios(runs, r[c.base][p.name], lateness); len(v) > 0 {
			return "p99 " + spread(v) + " of that without"
		}
		return ""
	}
	of, to, what := r[c.name][first.name], runs, pace
	if c.kind == fanout {
		of, to, what = runs, r[c.name][first.name], cost
	}
	v := ratios(of, to, what)
	if p == first || len(v) == 0 {
		return ""
	}
	want := wanted(c.name, p.name, size)
	if first.name != "wayside" || want == 0 {
		return spread(v)
	}
	verdict := ""
	if median(v) < want {
		verdict = ", missed"
	}
	return fmt.Sprintf("wanted ≥ %gx: %s%s", want, spread(v), verdict)
}

func pace(r result) float64     { return r.rate }
func cost(r result) float64     { return r.cpu.Seconds() }
func lateness(r result) float64 { return r.late.Seconds() }

// ratios are taken between runs of the same repetition, which are next to each other in time. One whose partner failed,
// or that shows nothing, has none.
func ratios(of, to []result, what func(result) float64) []float64 {
	var out []float64
	for _, a := range of {
		for _, b := range to {
			if a.repetition == b.repetition && what(b) > 0 {
				out = append(out, what(a)/what(b))
			}
		}
	}
	return out
}

func each(runs []result, f func(result) float64) []float64 {
	out := make([]float64, len(runs))
	for i, r := range runs {
		out[i] = f(r)
	}
	return out
}

// spread is the median, then the lowest and the highest.
func spread(v []float64) string {
	return fmt.Sprintf("%.2fx (%.2f–%.2f)", median(v), slices.Min(v), slices.Max(v))
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
