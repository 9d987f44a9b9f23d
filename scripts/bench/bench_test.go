package main

import (
	"net"
	"testing"
	"time"
)

// TestNullBrokerReceiptsEverything publishes in every way with the official client.
func TestNullBrokerReceiptsEverything(t *testing.T) {
	address, err := freeAddress()
	if err != nil {
		t.Fatal(err)
	}
	go serveNull(address, nil)
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
		if c.kind != publish {
			continue
		}
		publishers, err := c.open(&peer{driver: d}, kept(), 100)
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
		s := newNullSession(far, "", nil)
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
