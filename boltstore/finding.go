package boltstore

import "strings"

// Finding is something that is not as it should be in a data directory.
type Finding struct {
	What string // happened
	To   string // which thing
	Do   string // what to do
	// Mends says that salvaging does something about it: a start would do the same.
	Mends bool
	// Note says that nothing is damaged.
	Note bool
}

// String is the finding as one line.
func (f Finding) String() string { return strings.Join([]string{f.What, f.To, f.Do}, ": ") }

const (
	doSalvage = "run wayside store salvage, or start the broker, which does the same"
	doNothing = "nothing, what cannot be read is lost and the rest is served"
	doSkipped = "nothing, they are lost and subscriptions skip them"
)
