package wiretest

import (
	"sync/atomic"

	"wayside/wire"
	"wayside/wire/pulsarpb"
)

// Counts are what a Proxy did while in one mode. The arrays are by Direction. In
// raw mode a frame is what one read gave.
type Counts struct {
	Accepted        int // connections taken from clients
	Unreachable     int // of these, where the server could not be reached
	Frames, Bytes   [2]int64
	Lost, LostBytes [2]int64 // frames and bytes swallowed
}

// Counts returns what was done in a mode so far.
func (p *Proxy) Counts(m Mode) Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts[m]
}

func (p *Proxy) countFrame(d Direction, bytes int, lost bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := &p.counts[p.mode]
	if lost {
		c.Lost[d]++
		c.LostBytes[d] += int64(bytes)
		return
	}
	c.Frames[d]++
	c.Bytes[d] += int64(bytes)
}

func (p *Proxy) countUnreachable() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts[p.mode].Unreachable++
}

// NextOf makes a judge for Swallow that loses the next n frames of a type.
func NextOf(n int, typ pulsarpb.BaseCommand_Type) func(Direction, wire.Frame) bool {
	var left atomic.Int64
	left.Store(int64(n))
	return func(_ Direction, f wire.Frame) bool {
		return f.Type == typ && left.Add(-1) >= 0
	}
}
