package main

import (
	"strings"
	"testing"

	"github.com/apache/pulsar-client-go/pulsar"
)

// A run passes only if messages were receipted, read and acknowledged.
func TestIdle(t *testing.T) {
	b := newBook()
	for _, step := range []struct {
		want string
		next func()
	}{
		{"receipt", func() { b.receipt(topics[0], "p", pulsar.NewMessageID(1, 2, -1, -1)) }},
		{"read", func() { b.totals.seen++ }},
		{"acknowledgement", func() { b.ackConfirmed(topics[0], "p") }},
	} {
		if got := b.idle(); !strings.Contains(got, step.want) {
			t.Errorf("%q, want something of %s", got, step.want)
		}
		step.next()
	}
	if got := b.idle(); got != "" {
		t.Errorf("%q, want nothing", got)
	}
}

// What the audit may not meet: ids that fall, a message twice, a number left out.
func TestReadFindsDisorder(t *testing.T) {
	for name, c := range map[string]struct {
		payload string
		entry   int64
		want    string
	}{
		"next":            {"p/1/1/x", 6, ""},
		"other producer":  {"q/1/0/x", 6, ""},
		"id falls":        {"p/1/1/x", 5, "came after"},
		"twice":           {"p/1/0/x", 6, "is there twice"},
		"number left out": {"p/1/2/x", 6, "is number 2"},
		"no beginning":    {"q/1/1/x", 6, "is number 1"},
		"strange":         {"p", 6, "strange payload"},
	} {
		p, seen := newBook().topic[topics[0]], map[string]entryID{}
		if err := p.read(stub{"p/1/0/x", 5}, seen); err != nil {
			t.Fatal(err)
		}
		err := p.read(stub{c.payload, c.entry}, seen)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// stub is a received message of which only id and payload are asked.
type stub struct {
	payload string
	entry   int64
}

func (s stub) ID() pulsar.MessageID { return pulsar.NewMessageID(1, s.entry, -1, -1) }
func (s stub) Payload() []byte      { return []byte(s.payload) }
