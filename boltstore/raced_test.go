//go:build race

package boltstore

// raced makes large tests smaller: the race detector slows them tenfold.
const raced = true
