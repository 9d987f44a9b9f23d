// Package edgetest has what tests of the core and of its neighbours share; nothing but
// tests imports it.
//
//   - MemStore is an edge.Store in memory whose commits a test can hold back, fail and
//     damage. It answers from a goroutine of its own, in call order, as a store on disk
//     does.
//   - TestStore is the contract of a store: MemStore and boltstore both run it, so that
//     the one cannot drift from the other.
//   - The twin is a subscription done naively, to compare the real one with.
package edgetest
