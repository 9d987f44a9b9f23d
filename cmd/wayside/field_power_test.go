package main

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"wayside/edge/admin"
)

// PL-01: after outages the whole store file reads as zero bytes and the broker refuses to
// start, again and again.
func TestFieldPL01ALostFileIsSetAsideAndToldOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	b := serve(t, dir)
	for _, topic := range []string{"a", "b"} {
		command(t, "", "produce", topic, "-m", "before", "-n", "100", "--url", b.url).want(t, exitDone, "100 confirmed", "")
	}
	b.end()
	for name, damage := range map[string]func([]byte) []byte{
		"zeros": func(b []byte) []byte { return make([]byte, len(b)) },
		"empty": func([]byte) []byte { return nil },
		"half":  func(b []byte) []byte { return b[:len(bytes.TrimRight(b, "\x00"))/8192*4096] }, // of what is written
	} {
		t.Run(name, func(t *testing.T) {
			dir := killed(t, dir)
			edit(t, dir, "wayside-*.db", damage)
			damaged, _ := os.ReadFile(filepath.Join(dir, "wayside-000001.db"))
			begin := time.Now()
			b := serve(t, dir)
			if took := time.Since(begin); took > 5*time.Second {
				t.Errorf("ready after %s", took)
			}
			aside, err := filepath.Glob(filepath.Join(dir, "wayside-000001.damaged-*.db"))
			if err != nil || len(aside) != 1 {
				t.Fatalf("set aside: %q in\n%s", aside, tree(t, dir))
			}
			if kept, err := os.ReadFile(aside[0]); err != nil || !bytes.Equal(kept, damaged) {
				t.Errorf("%d of %d bytes were kept: %v", len(kept), len(damaged), err)
			}
			told := b.errors()
			if len(told) != 1 || !strings.Contains(told[0], filepath.Base(aside[0])) || !strings.Contains(told[0], "lost") && !strings.Contains(told[0], "starts empty") {
				t.Errorf("it says %q", told)
			}
			var ready admin.Readiness
			b.ask("/readyz", &ready)
			if !ready.Ready || !strings.Contains(strings.Join(ready.Remarks, "\n"), filepath.Base(aside[0])) || b.metric("wayside_store_remarks") == "0" {
				t.Errorf("readyz %+v, metric %s", ready, b.metric("wayside_store_remarks"))
			}
			command(t, "", "produce", "a", "-m", "after", "--url", b.url).want(t, exitDone, "1 confirmed", "")
			command(t, "", "consume", "a", "-s", "new", "--from", "earliest", "-n", "1", "--url", b.url).want(t, exitDone, anything, "")
			b.end()
			b = serve(t, dir)
			if told := b.errors(); len(told) > 0 || b.metric("wayside_store_remarks") != "0" {
				t.Errorf("again it says %q", told)
			}
			if again, err := filepath.Glob(filepath.Join(dir, "*damaged*")); err != nil || !slices.Equal(again, aside) {
				t.Errorf("set aside now: %q", again)
			}
			b.end()
		})
	}
}

// PL-05: after an abrupt stop ids begin anew, and consumers that remember higher ones get
// nothing more.
func TestFieldPL05IDsOnlyGoUp(t *testing.T) {
	const topic = "persistent://public/default/pl05"
	dir := filepath.Join(t.TempDir(), "data")
	quick := []string{"--set", "storage.keep_acked=0", "--set", "topics.backlog_check_interval=100ms"}
	b := serve(t, dir, quick...)
	c := b.official()
	s := consumerOf(t, c, topic, "s")
	p := producerOf(t, c, pulsarProducer(topic))
	ids := publish(t, p, bodies("first", 1000)...)
	last := ids[len(ids)-1]
	take(t, s, 1000)
	var stats struct{ StorageSize int64 }
	comes(t, "the topic is empty", func() bool {
		b.ask("/admin/v2/persistent/public/default/pl05/stats", &stats)
		return stats.StorageSize == 0
	})
	cut, torn := killed(t, dir), killed(t, dir)
	// The last commit is what stands behind the last that is not zero.
	edit(t, torn, "journal-*.seg", func(b []byte) []byte {
		if end := len(bytes.TrimRight(b, "\x00")); end > 4096 {
			clear(b[max(4096, end-20):end])
		}
		return b
	})
	c.Close()
	b.end()
	for name, dir := range map[string]string{"killed": cut, "torn": torn, "stopped": dir} {
		t.Run(name, func(t *testing.T) {
			b := serve(t, dir, quick...)
			c := b.official()
			s := consumerOf(t, c, topic, "s")
			next := publish(t, producerOf(t, c, pulsarProducer(topic)), bodies("second", 10)...)
			if !less(last, next[0]) {
				t.Errorf("%v after %v", next[0], last)
			}
			if got := take(t, s, 10); !slices.Equal(got, bodies("second", 10)) {
				t.Errorf("%q came", got)
			}
			c.Close()
			request, err := http.NewRequest(http.MethodDelete, b.admin+"/admin/v2/persistent/public/default/pl05?force=true", nil)
			if err != nil {
				t.Fatal(err)
			}
			response, err := http.DefaultClient.Do(request)
			if err != nil || response.StatusCode != http.StatusNoContent {
				t.Fatal(response, err)
			}
			response.Body.Close() //nolint:errcheck // there is none
			http.DefaultClient.CloseIdleConnections()
			again := killed(t, dir)
			b.end()
			b = serve(t, again, quick...)
			c = b.official()
			if third := publish(t, producerOf(t, c, pulsarProducer(topic)), "third"); !less(next[9], third[0]) {
				t.Errorf("made again: %v after %v", third[0], next[9])
			}
			c.Close()
			b.end()
		})
	}
}

// PL-07: one bad record stops the whole process from starting, or the process is "up" but
// moves no data.
func TestFieldPL07OneBadRecordCostsItselfAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	b := serve(t, dir)
	c := b.official()
	topics := []string{"one", "two", "three"}
	for _, topic := range topics {
		s := consumerOf(t, c, topic, "s")
		o := pulsarProducer(topic)
		o.DisableBatching = true // records of their own
		publish(t, producerOf(t, c, o), bodies(topic, 100)...)
		s.Close()
	}
	c.Close()
	b.end()
	flipped := edit(t, dir, "*", func(b []byte) []byte {
		for at := 0; ; {
			i := bytes.Index(b[at:], []byte("two-0017."))
			if i < 0 {
				return b
			}
			b[at+i+4] ^= 1
			at += i + 1
		}
	})
	if flipped == 0 {
		t.Fatal("the message is nowhere")
	}
	b = serve(t, dir)
	healthy := func(when string) {
		t.Helper()
		if status, body := b.get("/readyz"); status != http.StatusOK {
			t.Errorf("%s: health %d %s", when, status, body)
		}
	}
	healthy("at the start")
	c = b.official()
	for _, topic := range topics {
		s := consumerOf(t, c, topic, "s")
		publish(t, producerOf(t, c, pulsarProducer(topic)), topic+" new")
		want := append(bodies(topic, 100), topic+" new")
		if topic == "two" {
			want = slices.Delete(want, 17, 18)
		}
		if got := take(t, s, len(want)); !slices.Equal(got, want) {
			t.Errorf("%s: %d came: %q", topic, len(got), got)
		}
		healthy(topic)
	}
	if n := b.metric("wayside_lost_ranges_total"); n != "1" {
		t.Errorf("%s ranges are lost", n)
	}
	c.Close()
	b.end()
}
