package main

import (
	"bytes"
	"net"
	"strings"
	"testing"
	"time"
)

// TestNullBrokerReceiptsEverything publishes in every way with the official client.
func TestNullBrokerReceiptsEverything(t *testing.T) {
	address, err := freeAddress()
	if err != nil {
		t.Fatal(err)
	}
	go serveNull(address)
	for end := time.Now().Add(10 * time.Second); ; {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
			break
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	d := &pulsarDriver{url: "pulsar://" + address}
	for _, c := range cells() {
		publishers, err := c.open(&peer{driver: d}, "topic", 100)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		latencies, err := asynchronous(publishers[0], 100, 10*time.Millisecond)
		if err != nil || len(latencies) == 0 {
			t.Errorf("%s: %d receipts, %v", c.name, len(latencies), err)
		}
		closeAll(publishers)
	}
}

func TestNullBrokerClosesOnNonsense(t *testing.T) {
	for name, frame := range map[string]string{
		"too large":    "\xff\xff\xff\xff",
		"too small":    "\x00\x00\x00\x01x",
		"command long": "\x00\x00\x00\x08\x00\x00\x00\x09abcd",
	} {
		near, far := net.Pipe()
		s := &nullSession{}
		s.reset(far)
		failed := make(chan error, 1)
		go func() { failed <- s.run() }()
		if _, err := near.Write([]byte(frame)); err != nil {
			t.Fatal(err)
		}
		if err := <-failed; err == nil {
			t.Errorf("%s: accepted", name)
		}
		near.Close()
	}
}

func TestRatiosAreTakenWithinARepetition(t *testing.T) {
	r := newResults()
	for _, rate := range []float64{100, 400} {
		r.add(pipelined, "a", result{rate: 2 * rate})
		r.add(batched, "a", result{rate: 20 * rate})
		r.add(pipelined, "b", result{rate: rate})
	}
	var out bytes.Buffer
	r.print(&out, cells(), []*peer{{name: "a"}, {name: "b"}}, 128)
	for _, want := range []string{"2.00", "(2.00-2.00)", "b, pipelined", "20.00", "(200-800)"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in\n%s", want, out.String())
		}
	}
}

func TestWithin(t *testing.T) {
	for _, c := range []struct {
		path, folder string
		want         bool
	}{
		{"/data/x", "/", true}, {"/data/x", "/data", true}, {"/data", "/data", true}, {"/database", "/data", false}, {"/x", "/data", false},
	} {
		if got := within(c.path, c.folder); got != c.want {
			t.Errorf("within(%q, %q) = %v", c.path, c.folder, got)
		}
	}
}
