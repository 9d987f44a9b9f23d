package uplink

import "time"

// watchdog notices a producer that has gone silent: some errors leave the official
// client's producer dead without a word.
type watchdog struct {
	timeout time.Duration
	since   time.Time // last receipt, or the first send behind a pause
	rate    float64   // bytes per second that receipts came for, 0 unknown
	alarms  int       // in a row without a receipt
}

const (
	// slowest is the rate in bytes per second that is assumed before one is known.
	slowest = 8 << 10
	// bulk is from how many bytes on a receipt tells the link's rate, not its delay.
	bulk = 4 << 10
	// mostAlarms bounds how often the patience doubles.
	mostAlarms = 4
)

// start begins to wait: there is a new producer, or something was sent while nothing
// was unanswered.
func (w *watchdog) start(now time.Time) { w.since = now }

// progress is told of receipts for so many bytes.
func (w *watchdog) progress(now time.Time, bytes int) {
	if passed := now.Sub(w.since).Seconds(); passed > 0 && bytes >= bulk {
		w.rate = max(float64(bytes)/passed, w.rate*7/8)
	}
	w.since, w.alarms = now, 0
}

// due is when the next receipt has to be there, if so many bytes go with it. The
// patience doubles with each alarm, or a link slower than anybody thought would never
// get a batch through.
func (w *watchdog) due(bytes int) time.Time {
	rate := w.rate
	if rate == 0 {
		rate = slowest
	}
	most := w.timeout << mostAlarms
	sending := min(time.Duration(float64(bytes)/rate*float64(time.Second)), most)
	return w.since.Add((w.timeout + sending) << min(w.alarms, mostAlarms))
}

// alarm counts a producer given up for silence.
func (w *watchdog) alarm() { w.alarms++ }
