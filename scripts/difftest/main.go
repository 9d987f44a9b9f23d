// Command difftest plays programs against Wayside and a real Pulsar at once, step by step, through recording proxies,
// and compares what the two say: modulo positions, times, generated names and where one read ends and the next begins.
// A difference that the table does not name fails the run, and so does a row of the table that no run shows any more.
// Random programs follow, by seed.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path"
	"sync"
	"time"
)

// options are what the command line says.
type options struct {
	bin     string
	pulsar  side
	only    string
	workers int
	random  int
	seed    uint64
	verbose bool
	self    bool
	quick   bool
}

func main() {
	var o options
	flag.StringVar(&o.bin, "bin", "bin/wayside", "the broker under test, a `FILE`")
	flag.StringVar(&o.pulsar.addr, "pulsar", "127.0.0.1:6650", "a real Pulsar, `HOST:PORT`")
	flag.StringVar(&o.pulsar.admin, "admin", "127.0.0.1:8080", "its admin interface, `HOST:PORT`")
	flag.StringVar(&o.only, "run", "*", "which programs, a `PATTERN`")
	flag.IntVar(&o.workers, "workers", 6, "programs at once")
	flag.IntVar(&o.random, "random", 40, "random programs")
	flag.Uint64Var(&o.seed, "seed", 1, "of the first random program; each has the next")
	flag.BoolVar(&o.verbose, "v", false, "tell named differences too")
	flag.BoolVar(&o.quick, "quick", false, "leave out programs that wait for something to come later, and those for the full form alone")
	flag.BoolVar(&o.self, "self", false, "compare the real Pulsar with itself")
	flag.Parse()
	o.pulsar.name = "pulsar"
	if err := run(&o); err != nil {
		fmt.Fprintln(os.Stderr, "differ:", err)
		os.Exit(1)
	}
}

// run plays everything.
func run(o *options) error {
	dir, err := os.MkdirTemp("", "wayside-differ-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	instances := map[string]*wayside{}
	for _, s := range settings() {
		if instances[s.name], err = start(o.bin, dir, &s); err != nil {
			return err
		}
		defer instances[s.name].stop()
	}
	if err := prepare(&o.pulsar, instances); err != nil {
		return err
	}
	t := &theatre{options: o, instances: instances, run: fmt.Sprintf("d%x", time.Now().Unix()), shown: map[string]int{}}
	return errors.Join(t.programs(), t.randoms())
}

// theatre is where programs are played.
type theatre struct {
	*options
	instances map[string]*wayside
	run       string // told by all names of topics
	pace      pace

	mu     sync.Mutex // guards what follows
	played int
	shown  map[string]int // how often a row of the table showed
	bad    int            // programs that failed
}

// programs plays the written ones.
func (t *theatre) programs() error {
	table := differences()
	var chosen []*program
	all := programs()
	for i := range all {
		if ok, err := path.Match(t.only, all[i].name); err != nil {
			return err
		} else if ok && (!t.quick || all[i].quick()) {
			chosen = append(chosen, &all[i])
		}
	}
	t.each(len(chosen), func(i int) { t.one(chosen[i], table) })
	for i := range table {
		if t.only == "*" && !t.self && !t.quick && !table[i].rare && t.shown[table[i].name] == 0 {
			t.bad++
			fmt.Printf("row %q of the table did not show: take it out\n", table[i].name)
		}
	}
	fmt.Printf("%d programs played, %d failed, %d kinds of difference seen\n", t.played, t.bad, len(t.shown))
	if t.bad > 0 {
		return fmt.Errorf("%d programs or rows failed", t.bad)
	}
	return nil
}

// each does something n times, several at once.
func (t *theatre) each(n int, do func(i int)) {
	var all sync.WaitGroup
	next := make(chan int)
	for range t.workers {
		all.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	all.Wait()
}

// worlds makes the two worlds of a program.
func (t *theatre) worlds(name, setting string) (pulsar, wayside *world) {
	var space string
	for _, s := range settings() {
		if s.name == setting {
			space = s.space
		}
	}
	prefix, now := t.run+"-"+name, time.Now().UnixMilli()
	if t.self {
		pulsar, wayside = newWorld(&t.pulsar, prefix+"-1", space, now), newWorld(&t.pulsar, prefix+"-2", space, now)
		pulsar.alike, wayside.alike = true, true
		return pulsar, wayside
	}
	return newWorld(&t.pulsar, prefix, space, now), newWorld(&t.instances[setting].side, prefix, space, now)
}

// one plays a program and says what came of it.
func (t *theatre) one(p *program, table []difference) {
	pulsar, wayside := t.worlds(p.name, p.setting)
	r, err := play(p, table, &t.pace, pulsar, wayside)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.played++
	failed := err != nil
	if failed {
		fmt.Printf("%v\n", err)
	}
	t.tell(p, r, &failed)
	if failed {
		t.bad++
		if t.verbose {
			fmt.Printf("--- %s on pulsar\n%s\n--- %s on wayside\n%s\n", p.name, pulsar.transcript(), p.name, wayside.transcript())
		}
	}
}

// tell says how the two differed. The theatre is locked.
func (t *theatre) tell(p *program, r *pair, failed *bool) {
	for _, f := range r.findings {
		if f.row != nil {
			t.shown[f.row.name]++
		} else {
			*failed = true
		}
		if f.row == nil || t.verbose {
			fmt.Print(f.String())
		}
	}
}
