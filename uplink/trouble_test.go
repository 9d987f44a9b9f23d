package uplink

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/log"
)

func TestClassify(t *testing.T) {
	for _, c := range []struct {
		err  error
		want trouble
		text string
	}{
		{errors.New("connection error"), unreachable, "the cloud cannot be reached: connection error"},
		{errors.New("request timed out"), unreachable, "the cloud cannot be reached: request timed out"},
		{pulsar.ErrProducerClosed, unreachable, "the cloud cannot be reached: producer already been closed"},
		{errors.New("server error: ProducerBusy: Producer with name 'x' is already connected to topic"), unreachable,
			"an earlier connection still holds the producer's name (Producer with name 'x' is already connected to topic)"},
		{errors.New("server error: ServiceNotReady: loading\nat java.lang"), unreachable, "the cloud is not ready (loading)"},
		{errors.New("server error: AuthorizationError: Client is not authorized to Produce"), refused,
			"the cloud does not allow producing to this topic (Client is not authorized to Produce)"},
		{errors.New("AuthorizationError"), refused, "the cloud does not allow producing to this topic"},
		{errors.New("server error: TopicNotFound: "), refused, "the cloud has no such topic and does not create it"},
		{errors.New("server error: ProducerBlockedQuotaExceededError: full"), refused, "the cloud topic is over its backlog quota (full)"},
		{errors.New("server error: TopicTerminatedError: over"), refused, "the cloud topic is terminated (over)"},
		{errors.New("MetadataError"), refused, "the cloud has no such namespace, or cannot read what it knows of it"},
		{errors.New("server error: AuthenticationError: no"), credentials, "the cloud does not accept the credentials (no)"},
		{pulsar.ErrMessageTooLarge, poison, "larger than the cloud takes"},
		{fmt.Errorf("encryptedPayload exceeds MaxMessageSize, size: 7, MaxMessageSize: 5"), poison, "larger than the cloud takes"},
		{errors.Join(pulsar.ErrSchema, errors.New("get schema version fail, err: server error: IncompatibleSchema: no")), poison,
			"the cloud topic has another schema (no)"},
		{errors.Join(pulsar.ErrSchema, errors.New("get schema version fail, err: request timed out")), unreachable, "the cloud cannot be reached: schema error"},
	} {
		if got := classify(c.err); got != c.want {
			t.Errorf("%v: %d, want %d", c.err, got, c.want)
		}
		if got := plainWords(c.err, ""); got != c.text {
			t.Errorf("%v: %q, want %q", c.err, got, c.text)
		}
	}
	if got := plainWords(errors.New("connection error"), "no route to host"); got != "the cloud cannot be reached: no route to host" {
		t.Error(got)
	}
}

// Pauses are drawn evenly between nothing and a bound that doubles.
func TestPauses(t *testing.T) {
	p := pauses{min: time.Second}
	for try, bound := range []time.Duration{1, 2, 4, 8, 10, 10, 10} {
		bound *= time.Second
		sum, most := time.Duration(0), time.Duration(0)
		for range 2000 {
			q := p
			d := q.next(10 * time.Second)
			sum += d
			most = max(most, d)
		}
		p.next(10 * time.Second)
		if mean := sum / 2000; most > bound || most < bound*95/100 || mean < bound*45/100 || mean > bound*55/100 {
			t.Errorf("try %d: up to %v, %v on average, want up to %v", try, most, mean, bound)
		}
	}
	for range 100 {
		p.next(time.Hour) // no overflow
	}
	p.reset()
	if d := p.next(time.Hour); d > time.Second {
		t.Errorf("%v after a reset", d)
	}
}

func TestRation(t *testing.T) {
	now := time.Now()
	r := ration{limit: 3, span: time.Minute}
	for i := range 3 {
		if d := r.pause(now); d != 0 {
			t.Errorf("event %d waits %v", i, d)
		}
		r.spend(now)
		now = now.Add(time.Second)
	}
	if d := r.pause(now); d != 57*time.Second {
		t.Errorf("fourth waits %v", d)
	}
	if d := (&ration{}).pause(now); d != 0 {
		t.Errorf("without a limit: %v", d)
	}
}

func testGate() *gate {
	o := testOptions("pulsar://c:1")
	o.BackoffMin, o.BackoffMax, o.RefusedMax = time.Second, 10*time.Second, 5*time.Minute
	o.ReconnectsPerMinute = 10
	return newGate(&o)
}

// While the cloud cannot be reached one at a time may try, and five topics cost no more
// than one: in five minutes at most ten tries a minute.
func TestGateRationsTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := testGate()
		tries := 0
		var mu sync.Mutex
		var wg sync.WaitGroup
		end := time.Now().Add(5 * time.Minute)
		for range 5 {
			wg.Go(func() {
				for time.Now().Before(end) {
					ok, pause, changed := g.enter(time.Now())
					if !ok {
						select {
						case <-changed:
						case <-time.After(pause):
						}
						continue
					}
					mu.Lock()
					tries++
					mu.Unlock()
					began := time.Now()
					time.Sleep(20 * time.Millisecond) // the try takes its time
					g.failed(time.Now(), began, false, "gone")
				}
			})
		}
		wg.Wait()
		if tries < 25 || tries > 60 {
			t.Errorf("%d tries in 5 minutes", tries)
		}
	})
}

func TestGateOpensWithAReceipt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := testGate()
		begin := time.Now()
		for range 8 {
			g.failed(time.Now(), time.Now(), false, "gone")
			time.Sleep(time.Minute)
		}
		if ok, _, _ := g.enter(time.Now()); !ok {
			t.Fatal("nobody may try")
		}
		if ok, _, changed := g.enter(time.Now()); ok {
			t.Fatal("two may try")
		} else {
			g.received(time.Now())
			<-changed
		}
		for range 3 {
			if ok, _, _ := g.enter(time.Now()); !ok {
				t.Fatal("shut after a receipt")
			}
		}
		// A topic that lost the old connection says so late: that is no news.
		g.failed(time.Now(), time.Now(), false, "gone again")
		_, _, until := g.trouble()
		g.failed(time.Now(), begin, false, "old")
		if reason, _, now := g.trouble(); now != until || reason != "gone again" {
			t.Errorf("%v, %s", now.Sub(until), reason)
		}
		if d := time.Until(until); d > time.Second {
			t.Errorf("pause of %v after a receipt", d)
		}
	})
}

// A cloud that accepts and then closes is no progress: pauses stay long.
func TestGateNeedsAReceipt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := testGate()
		longest := time.Duration(0)
		for range 60 {
			now := time.Now()
			g.failed(now, now, false, "closed")
			_, _, until := g.trouble()
			longest = max(longest, until.Sub(now))
			time.Sleep(until.Sub(now))
			g.passed()
			time.Sleep(time.Millisecond)
		}
		if longest < 5*time.Second {
			t.Errorf("pauses up to %v", longest)
		}
	})
}

func TestWatchdog(t *testing.T) {
	now := time.Now()
	w := watchdog{timeout: 20 * time.Second}
	w.start(now)
	due := func(bytes int) time.Duration { return w.due(bytes).Sub(now) }
	if d := due(0); d != 20*time.Second {
		t.Errorf("%v", d)
	}
	if d := due(64 << 10); d != 28*time.Second {
		t.Errorf("%v for a batch at an unknown rate", d)
	}
	w.progress(now.Add(4*time.Second), 40_000) // 10,000 bytes a second
	if d := w.due(50_000).Sub(now.Add(4 * time.Second)); d != 25*time.Second {
		t.Errorf("%v at a known rate", d)
	}
	w.progress(now.Add(5*time.Second), 100) // tells the delay, not the rate
	if w.rate != 10_000 {
		t.Errorf("rate %v", w.rate)
	}
	w.alarm()
	w.start(now)
	if d := due(0); d != 40*time.Second {
		t.Errorf("%v after an alarm", d)
	}
	for range 40 {
		w.alarm()
	}
	if d := due(1 << 30); d > time.Hour*3 {
		t.Errorf("%v after many", d)
	}
}

func TestClientLinesAreFolded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		var seen []string
		f := newFolder(slog.New(slog.NewTextHandler(&out, nil)), func(line, cause string) { seen = append(seen, line+": "+cause) })
		var l log.Logger = &lines{f: f}
		l = l.SubLogger(log.Fields{"topic": "t"})
		for i := range 50 {
			l.WithError(fmt.Errorf("read 127.0.0.1:%d: reset", 40_000+i)).Warn("Failed to write on connection")
		}
		if n := strings.Count(out.String(), "\n"); n != 1 || !strings.Contains(out.String(), "topic=t") {
			t.Errorf("%d lines: %s", n, out.String())
		}
		time.Sleep(2 * time.Minute)
		l.WithError(errors.New("read 127.0.0.1:9: reset")).Warn("Failed to write on connection")
		if !strings.Contains(out.String(), "repeated=49") {
			t.Error(out.String())
		}
		if len(seen) != 51 || seen[50] != "Failed to write on connection: read 127.0.0.1:9: reset" {
			t.Errorf("%d seen", len(seen))
		}
		l.Info("not said")
		l.Debugf("nor %d", 1)
		if strings.Contains(out.String(), "not said") {
			t.Error(out.String())
		}
		for i := range 1000 { // memory does not grow with them
			l.Warn(strings.Repeat("x", i))
		}
		if len(f.lines) > foldLines {
			t.Errorf("%d remembered", len(f.lines))
		}
	})
}

func TestLinkReadsTheLog(t *testing.T) {
	o := testOptions("pulsar://c:1")
	l := newLink(&o, newGroup())
	before := time.Now().Add(-time.Second)
	if hint, _ := l.hintSince(before); hint != "" {
		t.Errorf("%q", hint)
	}
	for _, c := range []struct {
		line, cause, hint string
		denied            bool
	}{
		{"Failed to connect to broker.", "dial tcp: no route to host", "dial tcp: no route to host", false},
		{"Failed to establish connection with broker: 'Unable to authenticate'", "", "Unable to authenticate", true},
		{"Failed to establish connection with broker: 'too many connections'", "", "too many connections", false},
		{"Failed to load auth credentials", "no such file", "credentials cannot be read: no such file", true},
		{"Detected stale connection to broker", "", "the connection has gone silent", false},
	} {
		l.note(c.line, c.cause)
		if hint, denied := l.hintSince(before); hint != c.hint || denied != c.denied {
			t.Errorf("%s: %q, %t", c.line, hint, denied)
		}
	}
	if hint, _ := l.hintSince(time.Now().Add(time.Second)); hint != "" {
		t.Errorf("an old hint: %q", hint)
	}
	l.note("Received send error from server: [NotAllowedError] : [Exceed maximum message size]", "")
	if b, ok := l.banSince(before); !ok || b.name != "NotAllowedError" || b.text != "Exceed maximum message size" {
		t.Errorf("%+v, %t", b, ok)
	}
}
