package uplink

import (
	"fmt"
	"net"
	"testing"
	"time"

	"wayside/edge"
	"wayside/wire/pulsarpb"
)

// A topic that the cloud does not want waits with its reason, and others go on.
func TestRefusedTopicWaits(t *testing.T) {
	r := newRig(t, nil)
	r.cloud.set(func() {
		r.cloud.refuse = func(topic string) (pulsarpb.ServerError, bool) {
			return pulsarpb.ServerError_AuthorizationError, topic == "persistent://public/default/out-a"
		}
	})
	r.publish("in-a", 0, 5)
	r.publish("in-b", 0, 5)
	r.expect("out-b", 5)
	s := r.status("in-a", inState(Refused))
	if s.Reason != "the cloud does not allow producing to this topic (by script)" || s.Backlog != 5 || s.OldestAge < 0 {
		t.Errorf("%+v", s)
	}
	if all := r.up.Status(); all.State != Refused || all.Reason != s.Reason {
		t.Errorf("%+v", all)
	}
	r.cloud.set(func() { r.cloud.refuse = nil })
	r.expect("out-a", 5)
	r.settled("in-a")
}

// A partitioned cloud topic would spread a batch over its partitions.
func TestPartitionedTargetIsRefused(t *testing.T) {
	r := newRig(t, nil)
	r.cloud.set(func() { r.cloud.partitions = 3 })
	r.publish("in-a", 0, 2)
	if s := r.status("in-a", inState(Refused)); s.Reason != "the cloud topic has 3 partitions: name one of them, -partition-0 and so on" {
		t.Errorf("%+v", s)
	}
	r.cloud.set(func() { r.cloud.partitions = 0 })
	r.expect("out-a", 2)
}

// As long as the first topic's try of a new link lasts, no other one that has something
// to send says that it is idle.
func TestWhoWaitsForTheFirstTryIsNotIdle(t *testing.T) {
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	r := newRig(t, func(o *Options) { o.URL, o.OperationTimeout = "pulsar://"+mute.Addr().String(), 2*time.Second })
	for _, topic := range []string{"in-a", "in-b", "in-c"} {
		r.publish(topic, 0, 1)
	}
	for _, topic := range []string{"in-a", "in-b", "in-c"} {
		r.status(topic, inState(Connecting))
	}
}

// A cloud that accepts and hangs up is not hammered, however many topics wait.
func TestHangingUpIsNotHammered(t *testing.T) {
	r := newRig(t, func(o *Options) {
		o.BackoffMin, o.BackoffMax = 10*time.Millisecond, 100*time.Millisecond
		o.ReconnectsPerMinute, o.ReconnectSpan = 5, time.Second
	})
	r.cloud.set(func() { r.cloud.refuse = deny(pulsarpb.ServerError_UnknownError) })
	for i := range 5 {
		r.publish(fmt.Sprint("in-", i), 0, 3)
	}
	begin := time.Now()
	r.cloud.until(t, "11 producers tried", func() bool { return r.cloud.creations >= 11 })
	if took := time.Since(begin); took < 1900*time.Millisecond {
		t.Errorf("11 tries in %v, at 5 a second", took)
	}
	r.cloud.set(func() { r.cloud.refuse = nil })
	for i := range 5 {
		r.expect(fmt.Sprint("out-", i), 3)
	}
}

// The rate limit holds over all topics.
func TestRateLimit(t *testing.T) {
	r := newRig(t, func(o *Options) { o.RateLimit, o.WindowBytes, o.BatchBytes = 20_000, 4_000, 2_000 })
	begin := time.Now()
	payload := make([]byte, 900)
	for range 8 {
		r.put("in-a", &pulsarpb.MessageMetadata{}, edge.Facts{}, payload)
		r.put("in-b", &pulsarpb.MessageMetadata{}, edge.Facts{}, payload)
	}
	r.cloud.frames(t, "out-a", 8)
	r.cloud.frames(t, "out-b", 8)
	if took := time.Since(begin); took < 400*time.Millisecond { // 15,400 bytes, of which the burst is free
		t.Errorf("16 messages in %v", took)
	}
}

// Stopping waits for what is in flight.
func TestStopWaitsForReceipts(t *testing.T) {
	r := newRig(t, func(o *Options) { o.ReceiptTimeout = time.Minute })
	r.cloud.set(func() {
		r.cloud.judge = func(s *stubSend) stubAnswer { return answerNothing }
	})
	r.publish("in-a", 0, 1)
	r.cloud.frames(t, "out-a", 1)
	ctx, cancel := testContext(200 * time.Millisecond)
	defer cancel()
	begin := time.Now()
	_ = r.up.Close(ctx)
	if took := time.Since(begin); took < 200*time.Millisecond {
		t.Errorf("closed after %v without the receipt", took)
	}
	o := r.up.o
	r.crash()
	r.cloud.set(func() { r.cloud.judge = nil })
	r.restart(o)
	r.settled("in-a")
	r.expect("out-a", 1)
}
