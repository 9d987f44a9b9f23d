package pulsar

import (
	"log/slog"
	"sync"
	"time"
)

const (
	// complaintPause is how long the same complaint about the same host is kept quiet.
	// Clients that are refused come back several times a second (protocol 4, number 83).
	complaintPause = time.Minute
	// maxComplaints is how many are remembered. Beyond that all are forgotten, which
	// costs a line more.
	maxComplaints = 512
)

// complaints logs what is wrong with clients, once for each host and thing.
type complaints struct {
	log *slog.Logger

	mu   sync.Mutex
	seen map[complaint]*silence
}

type complaint struct{ host, what string }

type silence struct {
	until time.Time
	kept  int
}

// about logs a warning, unless it was logged not long ago. args are as for slog.
func (c *complaints) about(host, what string, args ...any) {
	c.mu.Lock()
	now := time.Now()
	s := c.seen[complaint{host, what}]
	if s != nil && now.Before(s.until) {
		s.kept++
		c.mu.Unlock()
		return
	}
	kept := 0
	if s != nil {
		kept = s.kept
	}
	if c.seen == nil || len(c.seen) >= maxComplaints {
		c.seen = map[complaint]*silence{}
	}
	c.seen[complaint{host, what}] = &silence{until: now.Add(complaintPause)}
	c.mu.Unlock()
	if kept > 0 {
		args = append(args, "repeated", kept)
	}
	c.log.Warn(what, args...)
}
