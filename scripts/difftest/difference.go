package main

import (
	"path"
	"regexp"
)

// kind says what a difference is. Chance is none: a program whose course the real broker leaves to chance is not
// played, which comparing it with itself shows.
type kind string

const (
	// deliberate: the real broker does it wrong, or leaves it free, and the specification asks for what is done here.
	deliberate kind = "deliberate"
	// missing: not there yet.
	missing kind = "missing"
)

// difference names one way in which the brokers differ.
type difference struct {
	name     string
	kind     kind
	programs string // which programs it may show in, a pattern of package path; "" means any
	rare     bool   // need not show in every run
	// pulsar and wayside match all of what either says in one stream of one step, its parts parted by "; ".
	pulsar, wayside string
	cause           string // in the code of either side
}

// named finds the row that a finding belongs to.
func named(table []difference, f *finding) *difference {
	for i := range table {
		if table[i].covers(f) {
			return &table[i]
		}
	}
	return nil
}

func (d *difference) covers(f *finding) bool {
	if d.programs != "" {
		if ok, err := path.Match(d.programs, f.program); err != nil || !ok {
			return false
		}
	}
	return whole(d.pulsar, f.pulsar) && whole(d.wayside, f.wayside)
}

// whole tells whether a pattern matches a text from end to end.
func whole(pattern, text string) bool {
	re, err := regexp.Compile(`^(?s:` + pattern + `)$`)
	return err == nil && re.MatchString(text)
}
