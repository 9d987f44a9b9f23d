package uplink

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

// tally is the outcome of a comparison.
type tally struct {
	arrived, lost, doubled, disordered, changed int
	first                                       string // of what is wrong
}

func (t *tally) wrong(format string, args ...any) {
	if t.first == "" {
		t.first = fmt.Sprintf(format, args...)
	}
}

func (t *tally) add(o tally) {
	t.arrived += o.arrived
	t.lost += o.lost
	t.doubled += o.doubled
	t.disordered += o.disordered
	t.changed += o.changed
	if t.first == "" {
		t.first = o.first
	}
}

func (t *tally) clean() bool { return t.lost+t.doubled+t.disordered+t.changed == 0 }

func (t *tally) String() string {
	return fmt.Sprintf("%d arrived, %d lost, %d doubled, %d out of order, %d changed %s",
		t.arrived, t.lost, t.doubled, t.disordered, t.changed, t.first)
}

// compare reads a topic from its beginning, waiting for the last of count numbered
// messages, and compares each with what was published under name. Where the uplink has
// added properties they are left out.
func compare(ctx context.Context, c pulsar.Client, topic, name string, count int) (tally, error) {
	var t tally
	var r pulsar.Reader
	err := retry(ctx, func() (err error) {
		r, err = c.CreateReader(pulsar.ReaderOptions{Topic: topic, StartMessageID: pulsar.EarliestMessageID()})
		return err
	})
	if err != nil {
		return t, err
	}
	defer r.Close()
	seen := make([]int, count)
	last := -1
	for !done(r, last, count) {
		wait, cancel := context.WithTimeout(ctx, time.Minute)
		m, err := r.Next(wait)
		cancel()
		if err != nil {
			t.wrong("%s: nothing behind %d: %v", topic, last, err)
			break
		}
		i := -1
		if _, err := fmt.Sscan(m.Properties()["n"], &i); err != nil || i < 0 || i >= count {
			return t, fmt.Errorf("%s: a message of no number: %v", topic, m.Properties())
		}
		t.arrived++
		seen[i]++
		if i <= last {
			t.disordered++
			t.wrong("%s: %d behind %d", topic, i, last)
		}
		last = max(last, i)
		if err := differs(m, numbered{name, i}.message()); err != nil {
			t.changed++
			t.wrong("%s: message %d: %v", topic, i, err)
		}
	}
	for i, n := range seen {
		switch {
		case n == 0:
			t.lost++
			t.wrong("%s: %d is lost", topic, i)
		case n > 1:
			t.doubled += n - 1
			t.wrong("%s: %d is there %d times", topic, i, n)
		}
	}
	return t, nil
}

// done reports whether the last message was seen and nothing follows it.
func done(r pulsar.Reader, last, count int) bool {
	return last == count-1 && !r.HasNext()
}

func differs(got pulsar.Message, want *pulsar.ProducerMessage) error {
	properties := maps.Clone(got.Properties())
	delete(properties, "wayside")
	switch {
	case !bytes.Equal(got.Payload(), want.Payload):
		return fmt.Errorf("payload %.40q", got.Payload())
	case got.Key() != want.Key:
		return fmt.Errorf("key %q instead of %q", got.Key(), want.Key)
	case got.OrderingKey() != want.OrderingKey:
		return fmt.Errorf("ordering key %q instead of %q", got.OrderingKey(), want.OrderingKey)
	case !maps.Equal(properties, want.Properties):
		return fmt.Errorf("properties %v instead of %v", properties, want.Properties)
	case !want.EventTime.IsZero() && !got.EventTime().Equal(want.EventTime):
		return fmt.Errorf("event time %v instead of %v", got.EventTime(), want.EventTime)
	}
	return nil
}
