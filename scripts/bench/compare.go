package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const smallSize = 128 // bytes of a message that is drained or fanned out

// A comparison is what one run measures.
type comparison struct {
	peers   []*peer
	cells   []cell
	reps    int
	warm    int // repetitions before them
	options options
	failed  int // runs
}

// compare measures the chosen peers with the chosen cells and prints a table for each kind of cell and size.
func compare(args []string) error {
	f := flag.NewFlagSet("bench", flag.ExitOnError)
	var files programs
	f.StringVar(&files.wayside, "wayside", "", "`FILE` of the broker under test")
	f.StringVar(&files.nats, "nats", "", "`FILE` of nats-server")
	f.StringVar(&files.redis, "redis", "", "`FILE` of redis-server")
	f.StringVar(&files.mosquitto, "mosquitto", "", "`FILE` of mosquitto")
	f.StringVar(&files.pulsar, "pulsar", "", "`SCRIPT` that starts and stops a Pulsar: scripts/pulsar")
	names := f.String("peers", defaultPeers, "`NAMES`, the first is set against the others: "+candidateNames(candidates(files, ""))+", or all")
	chosen := f.String("cells", defaultCells, "`NAMES`, or what they begin with before a dash: "+cellNames(cells())+", or all")
	data := f.String("data", "", "`FOLDER` below which a new one for all data is made, and removed at the end")
	reps := f.Int("reps", 3, "repetitions")
	warm := f.Int("warm", 1, "repetitions before them that do not count: a server in Java wants one")
	secs := f.Float64("secs", 3, "seconds of one run of publishing or fanning out")
	sizes := f.String("sizes", "128,1024", "payload `BYTES` of publishing, with commas between; all else is done with 128")
	drained := f.Int("drain", 100_000, "messages that are drained")
	consumers := f.Int("consumers", 100, "consumers that are fanned out to")
	rate := f.Float64("rate", 100, "messages a second to all of them; ten times that to those that divide them")
	if err := f.Parse(args); err != nil {
		return err
	}
	bytes, err := parseSizes(*sizes)
	if err != nil {
		return err
	}
	c := &comparison{reps: *reps, warm: *warm, options: options{
		long: time.Duration(*secs * float64(time.Second)), drain: *drained, consumers: *consumers, rate: *rate,
	}}
	if f.NArg() > 0 || *reps < 1 || *warm < 0 || *secs <= 0 || *drained < 1 || *consumers < 2 || *rate <= 0 {
		return fmt.Errorf("want flags with positive numbers, 2 consumers at least; %q is too much", f.Args())
	}
	if c.cells, err = choose(*chosen); err != nil {
		return err
	}
	folder, err := os.MkdirTemp(*data, "bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	if folder, err = filepath.Abs(folder); err != nil {
		return err
	}
	var out []string
	if c.peers, out, err = newPeers(*names, files, folder); err != nil {
		return err
	}
	defer stopAll(c.peers)
	defer c.stopOnInterrupt(folder)()
	for _, p := range c.peers {
		if err := p.start(); err != nil {
			return err
		}
	}
	fmt.Printf("%s; %d cores; %s; %d repetitions of %g s\n", fileSystem(folder), runtime.NumCPU(), runtime.Version(), *reps, *secs)
	fmt.Printf("drained: %d messages; fanned out: %g messages/s to each of %d consumers, %g to all that share them\n",
		*drained, *rate, *consumers, *rate*sharedRate)
	for _, o := range out {
		fmt.Println(o)
	}
	fmt.Println()
	for k := range kinds {
		all := []int{smallSize}
		if k == publish {
			all = bytes
		}
		for _, size := range all {
			c.measure(k, size)
		}
	}
	if c.failed > 0 {
		return fmt.Errorf("%d runs failed, see above", c.failed)
	}
	return nil
}

func parseSizes(text string) ([]int, error) {
	var sizes []int
	for s := range strings.SplitSeq(text, ",") {
		size, err := strconv.Atoi(s)
		if err != nil || size < 1 {
			return nil, fmt.Errorf("-sizes: %q is no number of bytes", s)
		}
		sizes = append(sizes, size)
	}
	return sizes, nil
}

// stopOnInterrupt leaves no server behind; what it returns ends the watch.
func (c *comparison) stopOnInterrupt(folder string) func() {
	signals, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case <-signals:
			stopAll(c.peers)
			_ = os.RemoveAll(folder)
			os.Exit(130)
		case <-done:
		}
	}()
	return func() {
		signal.Stop(signals)
		close(done)
	}
}

// measure runs all cells of a kind with one size of payload and prints their table. A run that fails is told and
// counted; the others go on.
func (c *comparison) measure(k kind, size int) {
	cells := slices.DeleteFunc(slices.Clone(c.cells), func(one cell) bool { return one.kind != k })
	if len(cells) == 0 {
		return
	}
	o := c.options
	o.size = size
	results := newResults()
	for rep := -c.warm; rep < c.reps; rep++ { // those below 0 warm up, and do not count
		for _, one := range cells {
			for _, p := range c.peers {
				if !one.applies(p) {
					continue
				}
				if r, ok := c.try(one, p, o); ok && rep >= 0 {
					r.repetition = rep
					results.add(one.name, p.name, r)
				}
			}
		}
		fmt.Fprintf(os.Stderr, "bench: %s cells, %d B: %d of %d repetitions\n", k, size, rep+1, c.reps)
	}
	results.print(os.Stdout, cells, c.peers, size)
}

func (c *comparison) try(one cell, p *peer, o options) (result, bool) {
	r, err := one.run(p, o)
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench: %s, %s: %v\n", p.name, one.name, err)
		c.failed++
	}
	return r, err == nil
}

func dataFolder(given string) (string, func(), error) {
	if given != "" {
		folder, err := filepath.Abs(given)
		return folder, func() {}, err
	}
	folder, err := os.MkdirTemp("", "bench")
	return folder, func() { _ = os.RemoveAll(folder) }, err
}
