package admin

import (
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"

	"wayside/edge"
)

// A connection above the limit waits until another one ends.
func TestConnectionsAreLimited(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := limit(inner, 2)
	accepted, ended := make(chan net.Conn), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	for range 3 {
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	first, second := <-accepted, <-accepted
	if room := l.(*limited).room; len(room) != 2 || cap(room) != 2 {
		t.Fatalf("%d of %d places are taken, want 2 of 2", len(room), cap(room))
	}
	select {
	case <-accepted:
		t.Error("a third connection was accepted")
	default:
	}
	first.Close()
	first.Close() // gives back one place, not two
	third := <-accepted
	if room := len(l.(*limited).room); room != 2 {
		t.Errorf("%d of 2 places are taken", room)
	}
	second.Close()
	third.Close()
	l.Close()
	<-ended
}

// Only a partition that the metadata promises may be created by name.
func TestPromisedPartitions(t *testing.T) {
	server, _ := newServer(t, func(*Options, *edge.Options) {})
	const topic = "/admin/v2/persistent/public/default/p"
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{"PUT", topic + "/partitions", "3", 204},
		{"DELETE", topic + "-partition-2", "", 204},
		{"PUT", topic + "-partition-2", "", 204},
		{"PUT", topic + "-partition-3", "", 412},
		{"PUT", topic + "-partition-x/partitions", "1", 412}, // no partition's name, but near enough
	} {
		if got := ask(server, c.method, c.path, "application/json", c.body); got.Code != c.status {
			t.Errorf("%s %s: %d %s, want %d", c.method, c.path, got.Code, got.Body, c.status)
		}
	}
}

// One subscription too many is a conflict (watched on 4.0.7).
func TestOneSubscriptionTooMany(t *testing.T) {
	server, _ := newServer(t, func(_ *Options, o *edge.Options) { o.SubscriptionsPerTopic = 1 })
	const topic = "/admin/v2/persistent/public/default/t"
	for i, want := range []int{204, 409} {
		got := ask(server, "PUT", fmt.Sprintf("%s/subscription/s%d", topic, i), "application/json", "")
		if got.Code != want || want == 409 && !strings.Contains(got.Body.String(), "maximum number of subscriptions") {
			t.Errorf("%d: %d %s, want %d", i, got.Code, got.Body, want)
		}
	}
}

// What is excluded is the message that is named; a batch of which it is one stays wanted.
func TestPlaceNext(t *testing.T) {
	for body, want := range map[string]edge.Position{
		`{"ledgerId":4,"entryId":5}`:                                   {Ledger: 4, Entry: 5},
		`{"ledgerId":4,"entryId":5,"isExcluded":true}`:                 {Ledger: 4, Entry: 6},
		`{"ledgerId":4,"entryId":5,"isExcluded":true,"batchIndex":-1}`: {Ledger: 4, Entry: 6},
		`{"ledgerId":4,"entryId":5,"isExcluded":true,"batchIndex":2}`:  {Ledger: 4, Entry: 5},
		`{"ledgerId":9223372036854775807,"entryId":-1}`:                edge.Latest,
		`"earliest"`: edge.Earliest,
	} {
		var p place
		if err := json.Unmarshal([]byte(body), &p); err != nil {
			t.Fatal(err)
		}
		if got := p.next(); got != want {
			t.Errorf("%s begins at %v, want %v", body, got, want)
		}
	}
}

// However many holes a cursor has, so many are written out.
func TestHolesAreBounded(t *testing.T) {
	runs := make([]edge.Run, maxHoles+1)
	for i := range runs {
		runs[i] = edge.Run{Ledger: 1, First: int64(2*i + 1), Last: int64(2*i + 1)}
	}
	if n := strings.Count(holes(runs), "("); n != maxHoles {
		t.Errorf("%d holes, want %d", n, maxHoles)
	}
}

// Reasons hold names as they are.
func TestReasonsAreNotEscaped(t *testing.T) {
	text, err := encode(reason{"a<b>&c"})
	if err != nil || string(text) != `{"reason":"a<b>&c"}` {
		t.Errorf("%s, %v", text, err)
	}
}
