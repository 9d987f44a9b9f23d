// Command bench measures how fast publishers get their receipts: from Wayside, from a broker that stores nothing, and
// from NATS JetStream, which syncs every message to disk as Wayside does.
//
//	bench -wayside FILE -nats FILE [-data FOLDER] [-reps 3] [-secs 3] [-sizes 128,1024]
//	bench memory -wayside FILE [-data FOLDER] [-clients 50] [-millions 1,10] [-topics 10000]
//	bench backlog -wayside FILE [-data FOLDER] [-gb 10] [-size 1000] [-cgroup 67108864]
//	bench null HOST:PORT      is the broker that stores nothing
//
// Way of a run: peers are started once each (peer.go), with folders side by side on one file system; then every cell
// (cells.go) is run against every peer in turn, all of it several times, so that whatever else the machine does meets
// all of them. A ratio is taken between runs of the same repetition, next to each other in time, and told as the median
// with the lowest and the highest (table.go). Wayside and the null broker are driven by the official Go client, which
// is why the null broker is the ceiling: what client and machine allow (pulsar.go, null.go). JetStream is driven by its
// own client (nats.go).
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

func main() {
	var err error
	switch {
	case len(os.Args) == 3 && os.Args[1] == "null":
		err = serveNull(os.Args[2])
	case len(os.Args) > 1 && os.Args[1] == "null":
		err = fmt.Errorf("want HOST:PORT behind null")
	case len(os.Args) > 1 && os.Args[1] == "memory":
		err = memory(os.Args[2:])
	case len(os.Args) > 1 && os.Args[1] == "backlog":
		err = backlog(os.Args[2:])
	default:
		err = compare()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

func compare() error {
	wayside := flag.String("wayside", "", "`FILE` of the broker under test")
	nats := flag.String("nats", "", "`FILE` of nats-server")
	data := flag.String("data", "", "`FOLDER` for all data (a new one, removed at the end)")
	reps := flag.Int("reps", 3, "repetitions")
	secs := flag.Float64("secs", 3, "seconds of one run")
	sizes := flag.String("sizes", "128,1024", "payload `BYTES`, with commas between")
	flag.Parse()
	folder, leave, err := dataFolder(*data)
	if err != nil {
		return err
	}
	defer leave()
	peers, err := newPeers(*wayside, *nats, folder)
	if err != nil {
		return err
	}
	defer stopAll(peers)
	for _, p := range peers {
		if err := p.start(); err != nil {
			return err
		}
	}
	fmt.Printf("%s; %d cores; %s; %d repetitions of %g s\n\n", fileSystem(folder), runtime.NumCPU(), runtime.Version(), *reps, *secs)
	for _, s := range strings.Split(*sizes, ",") {
		size, err := strconv.Atoi(s)
		if err != nil || size < 1 {
			return fmt.Errorf("-sizes: %q is no number of bytes", s)
		}
		if err := measure(peers, size, *reps, time.Duration(*secs*float64(time.Second))); err != nil {
			return err
		}
	}
	return nil
}

// measure runs all cells with one size of payload and prints their table.
func measure(peers []*peer, size, reps int, long time.Duration) error {
	cells := cells()
	results := newResults()
	for _, p := range peers {
		if _, err := (cell{name: "warm-up", publishers: 16}).run(p, size, time.Second); err != nil {
			return err
		}
	}
	for rep := range reps {
		for _, c := range cells {
			for _, p := range peers {
				if c.batch > 0 && !p.batches {
					continue
				}
				r, err := c.run(p, size, long)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", p.name, c.name, err)
				}
				results.add(c.name, p.name, r)
			}
		}
		fmt.Fprintf(os.Stderr, "bench: %d B: %d of %d repetitions\n", size, rep+1, reps)
	}
	results.print(os.Stdout, cells, peers, size)
	return nil
}

func dataFolder(given string) (string, func(), error) {
	if given != "" {
		folder, err := filepath.Abs(given)
		return folder, func() {}, err
	}
	folder, err := os.MkdirTemp("", "bench")
	return folder, func() { _ = os.RemoveAll(folder) }, err
}
