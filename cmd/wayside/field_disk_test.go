package main

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

// DF-01: the store hits "no space", and every client's connection is torn down in a loop.
func TestFieldDF01AFullDiskRefusesPublishersAndNobodyElse(t *testing.T) {
	onSmallDisk(t, 32<<20, func(t *testing.T, dir string) {
		b := serve(t, dir, "--set", "topics.backlog_check_interval=100ms", "--set", "storage.when_full=fail")
		c := b.official()
		s, err := c.Subscribe(pulsar.ConsumerOptions{Topic: "df01", SubscriptionName: "s", ReceiverQueueSize: 10, AckWithResponse: true})
		if err != nil {
			t.Fatal(err)
		}
		o := pulsarProducer("df01")
		o.DisableBatching, o.SendTimeout = true, 20*time.Second
		p := producerOf(t, c, o)
		sent, err := untilRefused(t, p)
		if !errors.Is(err, pulsar.ErrProducerBlockedQuotaExceeded) {
			t.Errorf("refused with %v", err)
		}
		if raced {
			p.Close()
		}
		t.Logf("refused after %d of 10 KiB: %v", sent, err)
		if status, why := b.get("/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(why, "no room") {
			t.Errorf("health %d %s", status, why)
		}
		take(t, s, sent)
		again := &pulsar.ProducerMessage{Payload: []byte(strings.Repeat("y", 10<<10))}
		if !raced { // the official client's way to come back is a race of its own
			comes(t, "the same producer goes on", func() bool { _, err := p.Send(t.Context(), again); return err == nil })
			take(t, s, 1)
		}
		comes(t, "a producer is admitted", func() (ok bool) { p, err = c.CreateProducer(o); return err == nil })
		for range 100 {
			if _, err := p.Send(t.Context(), again); err != nil {
				t.Fatal(err)
			}
		}
		take(t, s, 100)
		comes(t, "it is healthy", func() bool { status, _ := b.get("/readyz"); return status == http.StatusOK })
		if n := strings.Count(b.stderr(), "publishing failed"); n != 1 {
			t.Errorf("that publishing failed is told %d times", n)
		}
		c.Close()
		b.end()
	})
}

// untilRefused sends 10 KiB at a time and returns how many went, and the error of the next.
func untilRefused(t *testing.T, p pulsar.Producer) (sent int, err error) {
	t.Helper()
	body := []byte(strings.Repeat("x", 10<<10))
	for ; sent < 10_000; sent++ {
		if _, err = p.Send(t.Context(), &pulsar.ProducerMessage{Payload: body}); err != nil {
			return sent, err
		}
	}
	t.Fatal("never refused")
	return 0, nil
}

// DF-09: a volume that is full at the start is a crash loop, and after the fix what was
// stored is removed.
func TestFieldDF09AFullVolumeAtTheStart(t *testing.T) {
	onSmallDisk(t, 32<<20, func(t *testing.T, dir string) {
		b := serve(t, dir)
		c := b.official()
		o := pulsarProducer("df09")
		o.DisableBatching = true
		s := consumerOf(t, c, "df09", "s")
		publish(t, producerOf(t, c, o), bodies("stored", 200)...)
		s.Close()
		c.Close()
		b.end()
		free := fill(t, dir)
		for again := range 2 {
			b = serve(t, dir, "--set", "storage.when_full=fail", "--set", "topics.backlog_check_interval=100ms")
			c = b.official()
			s = consumerOf(t, c, "df09", "s")
			if got := take(t, s, 50); !slices.Equal(got, bodies("stored", 200)[50*again:50*(again+1)]) {
				t.Errorf("%q came", got)
			}
			if status, body := b.get("/admin/v2/persistent/public/default/df09/stats"); status != http.StatusOK {
				t.Errorf("stats: %d %s", status, body)
			}
			s.Close()
			if again == 0 {
				c.Close()
				b.end()
			}
		}
		p := producerOf(t, c, o)
		_, err := untilRefused(t, p)
		if !errors.Is(err, pulsar.ErrProducerBlockedQuotaExceeded) {
			t.Errorf("refused with %v", err)
		}
		p.Close()
		if status, why := b.get("/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(why, "publishing is refused") {
			t.Errorf("health %d %s", status, why)
		}
		free()
		comes(t, "a producer is admitted", func() (ok bool) {
			if p, err = c.CreateProducer(o); err != nil {
				return false
			}
			defer p.Close()
			_, err = p.Send(t.Context(), &pulsar.ProducerMessage{Payload: []byte("new")})
			return err == nil
		})
		comes(t, "it is healthy", func() bool { status, _ := b.get("/readyz"); return status == http.StatusOK })
		c.Close()
		after := killed(t, dir) // what was acknowledged meanwhile is durable
		b.end()
		b = serve(t, after)
		c = b.official()
		if got := take(t, consumerOf(t, c, "df09", "s"), 100); !slices.Equal(got, bodies("stored", 200)[100:]) {
			t.Errorf("%q came", got)
		}
		c.Close()
		b.end()
	})
}
