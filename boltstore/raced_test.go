//go:build race

package boltstore

// raced makes large tests smaller: the race detector slows them tenfold.
const raced = true

// often is how many of many trials a test takes.
func often(n int) int { return max(n/8, 1) }
