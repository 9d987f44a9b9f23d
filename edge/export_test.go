package edge

import "time"

// Sweep does one round of housekeeping, at a time that may lie ahead.
func (b *Broker) Sweep(ahead time.Duration) { b.sweep(time.Now().Add(ahead)) }

// DropTail lets what is kept for readers of the tail go: the next read asks the ledger.
func (b *Broker) DropTail() { b.tails.drop() }
