package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"wayside/wire/pulsarpb"
)

// operations is how long a random program is.
const operations = 30

// randoms plays random programs, one for each seed.
func (t *theatre) randoms() error {
	if t.only != "*" && t.only != "random" {
		return nil
	}
	before := t.bad
	t.each(t.random, func(i int) { t.oneRandom(t.seed + uint64(i)) })
	fmt.Printf("%d random programs played, seeds %d to %d, %d failed\n", t.random, t.seed, t.seed+uint64(t.random)-1, t.bad-before)
	if t.bad > before {
		return fmt.Errorf("%d random programs failed", t.bad-before)
	}
	return nil
}

func (t *theatre) oneRandom(seed uint64) {
	if t.self && seed%8 == 3 || t.quick && seed%4 == 3 {
		return // Failover: whom it chooses depends on the topic's name, and it waits
	}
	p := &program{name: fmt.Sprintf("random-%d", seed)}
	pulsar, wayside := t.worlds(p.name, "")
	run := &pair{program: p, pulsar: pulsar, wayside: wayside, pace: &t.pace}
	err := newTwin(seed, run).play()
	pulsar.close()
	wayside.close()
	t.mu.Lock()
	defer t.mu.Unlock()
	failed := err != nil
	if failed {
		fmt.Printf("%s: %v\n", p.name, err)
	}
	t.tell(p, run, &failed)
	if failed {
		t.bad++
		fmt.Printf("%s, step by step:\n%s\n", p.name, titles(run.pulsar))
		if t.verbose {
			fmt.Printf("--- %s on pulsar\n%s\n--- %s on wayside\n%s\n", p.name, pulsar.transcript(), p.name, wayside.transcript())
		}
	}
}

// titles are the steps that were played.
func titles(w *world) string {
	var all []string
	for _, line := range strings.Split(w.transcript(), "\n") {
		if strings.HasPrefix(line, "-- ") {
			all = append(all, "  "+line)
		}
	}
	return strings.Join(all, "\n")
}

// fold tells what of a step has to be the same: all that Exclusive and Failover deliver, by consumer and in order; the
// same for each key of Key_Shared. Of the rest that it is there.
func (w *twin) fold(on *world) map[string][]string {
	all := map[string][]string{}
	for stream, lines := range on.heard() {
		if strings.HasSuffix(stream, "handshake") {
			continue
		}
		for _, line := range lines {
			key := stream
			label, isMessage := strings.CutPrefix(line, pulsarpb.BaseCommand_MESSAGE.String()+" ")
			switch {
			case strings.HasPrefix(line, pulsarpb.BaseCommand_ACTIVE_CONSUMER_CHANGE.String()), isMessage && w.kind == "Shared":
				continue
			case w.kind == "Shared":
				key, line = "all consumers", numbers().ReplaceAllString(line, "")
			case w.kind == "Key_Shared" && isMessage:
				key += " key " + w.key(strings.Fields(label)[0])
			}
			all[key] = append(all[key], line)
		}
	}
	if w.kind == "Shared" {
		slices.Sort(all["all consumers"])
		all["held"] = w.holding(on)
	}
	return all
}

// numbers are what depends on who was given what.
func numbers() *regexp.Regexp { return regexp.MustCompile(`(request_id|consumer_id):\d+ ?`) }

func (w *twin) key(label string) string {
	for _, e := range w.entries {
		if e.label == label {
			return e.key
		}
	}
	return "of nobody"
}

// holding tells what is unacknowledged and held by somebody who is there, with the count of redeliveries. On a Shared
// subscription that has to be the same, whoever holds it.
func (w *twin) holding(on *world) []string {
	var all []string
	for _, e := range w.entries {
		if e.left != 0 && w.held(on, e) != "" {
			on.mu.Lock()
			all = append(all, fmt.Sprintf("%s count %d", e.label, on.counts[e.label]))
			on.mu.Unlock()
		}
	}
	return all
}
