package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// still is how long both must at least have been quiet before what they said is taken for all.
	still = 100 * time.Millisecond
	// stillest is the same where the machine is so busy that answers take long.
	stillest = time.Second
	// doubt is the same while they differ in a way that is known.
	doubt = 300 * time.Millisecond
	// patience is the same while they differ.
	patience = 10 * time.Second
	// timeout is the same while they owe an answer: as long as clients wait.
	timeout = 30 * time.Second
	// tick is how often is looked.
	tick = 4 * time.Millisecond
)

// finding is one difference that was seen.
type finding struct {
	program, step, stream string
	pulsar, wayside       string
	row                   *difference // of the table; nil if it has no name
}

// pair is a program being played on two brokers.
type pair struct {
	program  *program
	table    []difference
	pulsar   *world
	wayside  *world
	fold     func(*world) map[string][]string // what of the conversation is compared
	pace     *pace
	findings []finding
}

// pace is how long the brokers take to answer at present, on a machine that may have other things to do. Who takes long
// to answer takes long to deliver, which nobody owes.
type pace struct {
	mu    sync.Mutex
	worst time.Duration // of late; fades with every answer
}

// answered notes a time that both have needed.
func (p *pace) answered(took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.worst = max(took, p.worst*98/100)
}

// still is how long both must have been quiet.
func (p *pace) still() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return min(max(still, 2*p.worst), stillest)
}

// play plays a program from its first step to its last and returns how the two differed.
func play(p *program, table []difference, pace *pace, pulsar, wayside *world) (*pair, error) {
	run := &pair{program: p, table: table, pulsar: pulsar, wayside: wayside, fold: (*world).heard, pace: pace}
	defer pulsar.close()
	defer wayside.close()
	for i := range p.steps {
		if err := run.step(&p.steps[i]); err != nil {
			return run, fmt.Errorf("program %s: %s: %w", p.name, p.steps[i].title, err)
		}
	}
	return run, nil
}

// step plays one step on both sides at once.
func (r *pair) step(s *step) error {
	done := make(chan error, 2)
	for _, w := range []*world{r.pulsar, r.wayside} {
		w.begin(s.title)
		go func() {
			if err := s.do(w); err != nil {
				err = fmt.Errorf("on %s: %w", w.side.name, err)
				done <- err
				return
			}
			w.probe()
			done <- nil
		}()
	}
	if err := errors.Join(<-done, <-done); err != nil {
		return err
	}
	r.findings = append(r.findings, r.settle(s)...)
	r.pulsar.forgive()
	r.wayside.forgive()
	return nil
}

// settle waits until both have said what they have to say, and compares.
func (r *pair) settle(s *step) []finding {
	begin, answered := time.Now(), false
	for {
		time.Sleep(tick)
		owed := r.pulsar.owes() + r.wayside.owes()
		if !answered && owed == 0 && s.wait == 0 {
			answered = true
			r.pace.answered(time.Since(begin))
		}
		quiet := min(r.pulsar.quiet(), r.wayside.quiet())
		all := r.compare(s)
		known := !slices.ContainsFunc(all, func(f finding) bool { return f.row == nil })
		need := r.pace.still()
		switch {
		case owed > 0:
			need = timeout
		case !known:
			need = patience
		case len(all) > 0:
			need = max(need, doubt)
		}
		if quiet >= max(need, s.wait-time.Since(begin)) && time.Since(begin) >= s.wait {
			return all
		}
		if time.Since(begin) > s.wait+time.Minute { // one of them never stops
			return all
		}
	}
}

// compare tells, stream by stream, where the two differ by now.
func (r *pair) compare(s *step) []finding {
	pulsar, wayside := r.fold(r.pulsar), r.fold(r.wayside)
	streams := maps.Clone(pulsar)
	maps.Copy(streams, wayside)
	var all []finding
	for _, stream := range slices.Sorted(maps.Keys(streams)) {
		p, w := strings.Join(pulsar[stream], "; "), strings.Join(wayside[stream], "; ")
		if p == w {
			continue
		}
		f := finding{program: r.program.name, step: s.title, stream: stream, pulsar: p, wayside: w}
		f.row = named(r.table, &f)
		all = append(all, f)
	}
	return all
}

// String tells a finding.
func (f *finding) String() string {
	name := "WITHOUT A NAME"
	if f.row != nil {
		name = f.row.name
	}
	return fmt.Sprintf("%s: %s\n  step     %s\n  stream   %s\n  pulsar   %s\n  wayside  %s\n", f.program, name, f.step, f.stream, f.pulsar, f.wayside)
}
