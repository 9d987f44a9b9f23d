package pulsar

import "time"

// Short messages that come one by one, thousands in a second, cost more to wait for than
// to take: each wakes a reader, and every second one the disk. So the reader of such a
// connection lets them gather for a lull between two reads, as network cards do with
// their interrupts. It costs each message a lull at most.
//
// That is good only while they come by themselves. Who sends because we have answered
// would be held up, and sends less at once; so before each stretch of lulls it is
// measured how much comes without them, and who sends much less with them is left alone
// for a while, longer each time.
const (
	lull        = time.Millisecond
	lullAwake   = 32          // reads that are measured without lulls
	lullTrial   = 8           // lulls after which it is seen whether less comes
	lullStretch = time.Second // until it is measured again
	lullRate    = 2           // messages in a lull that make it worth while
	lullMost    = 8           // messages in a read that have gathered by themselves
	lullLeast   = 0.8         // of what came without lulls has to come with them
	lullBan     = time.Second // how long one is left alone at first
	lullBanMost = time.Minute
)

// lulls decides for one reader whether it lets messages gather before it reads on. It
// belongs to the reader's goroutine.
type lulls struct {
	sends  int // SENDs since it was begun to measure
	others int // other frames
	reads  int
	began  time.Time

	on    bool
	tried bool      // what comes with lulls has been seen to be enough
	alone float64   // messages in a lull's time, without lulls
	awake time.Time // when the next stretch without them begins
	ban   time.Duration
	until time.Time // when the ban is over
}

// took notes a frame.
func (l *lulls) took(send bool) {
	if send {
		l.sends++
	} else {
		l.others++
	}
}

// due is asked before each read between two frames, and reports whether a lull comes first.
func (l *lulls) due(clock func() time.Time) bool {
	l.reads++
	if l.reads <= lullTrial || !l.on && l.reads <= lullAwake {
		return l.on
	}
	now := clock()
	rate := float64(l.sends) * float64(lull) / float64(max(now.Sub(l.began), 1))
	worth := rate >= lullRate && l.others < l.sends/4
	switch {
	case !l.on:
		l.on = worth && l.sends < lullMost*l.reads && !now.Before(l.until)
		l.tried, l.alone, l.awake = false, rate, now.Add(lullStretch)
	case rate < lullLeast*l.alone && !l.tried:
		l.on, l.ban = false, min(max(2*l.ban, lullBan), lullBanMost)
		l.until = now.Add(l.ban)
	case !worth || now.After(l.awake):
		l.on = false
	default:
		l.tried, l.ban = true, 0
	}
	l.sends, l.others, l.reads, l.began = 0, 0, 0, now
	return l.on
}
