package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// results holds, by cell and peer, one result per repetition.
type results map[string]map[string][]result

func newResults() results { return results{} }

func (r results) add(cell, peer string, one result) {
	if r[cell] == nil {
		r[cell] = map[string][]result{}
	}
	r[cell][peer] = append(r[cell][peer], one)
}

// print writes a line per cell and peer: its rate, and the first peer's ratio to it. A ratio is the median of those of
// the single repetitions, with the lowest and the highest.
func (r results) print(w io.Writer, cells []cell, peers []*peer, size int) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "%d B\tbroker\tmessages/s\t(spread)\tmedian ms\tp99 ms\tserver µs/message\t%s / this one\t(spread)\n", size, peers[0].name)
	for _, c := range cells {
		for _, p := range peers {
			runs := r[c.name][p.name]
			base := runs
			if len(runs) == 0 && c.base != "" {
				base = r[c.base][p.name]
			}
			if len(base) == 0 {
				continue
			}
			r.line(t, c, p, runs, ratios(r[c.name][peers[0].name], base), p == peers[0])
		}
	}
	t.Flush()
	fmt.Fprintln(w)
}

func (r results) line(w io.Writer, c cell, p *peer, runs []result, ratio []float64, self bool) {
	compared := spread(ratio, "%.2f")
	if self {
		compared = "\t"
	}
	if len(runs) == 0 { // this peer has no such cell, its base stands in
		fmt.Fprintf(w, "%s\t%s, %s\t\t\t\t\t\t%s\n", c.name, p.name, c.base, compared)
		return
	}
	ms := func(of func(result) time.Duration) float64 {
		return median(each(runs, func(r result) float64 { return of(r).Seconds() * 1e3 }))
	}
	fmt.Fprintf(w, "%s\t%s\t%s\t%.2f\t%.2f\t%.1f\t%s\n", c.name, p.name,
		spread(each(runs, func(r result) float64 { return r.rate }), "%.0f"),
		ms(func(r result) time.Duration { return r.median }), ms(func(r result) time.Duration { return r.late }),
		1e3*ms(func(r result) time.Duration { return r.cpu }), compared)
}

func ratios(of, to []result) []float64 {
	out := make([]float64, min(len(of), len(to)))
	for i := range out {
		out[i] = of[i].rate / to[i].rate
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
func spread(v []float64, format string) string {
	return fmt.Sprintf(format+"\t("+format+"-"+format+")", median(v), slices.Min(v), slices.Max(v))
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
