package pulsar

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"wayside/edge"
	"wayside/wire"
	"wayside/wire/pulsarpb"
)

// rule sets policies of a topic, or of its namespace for "".
func (r *rig) rule(topic string, change func(*edge.Policies)) {
	r.t.Helper()
	of := "public/default"
	if topic != "" {
		of = public + topic
	}
	if err := r.broker.ChangePolicies(r.t.Context(), of, func(p *edge.Policies) error { change(p); return nil }); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) publishRate(topic string, rate *edge.PublishRate) {
	r.t.Helper()
	r.rule(topic, func(p *edge.Policies) { p.PublishRate = rate })
}

func receiptOf(sequence int) string {
	return fmt.Sprintf("SEND_RECEIPT {producer_id:1 sequence_id:%d *", sequence)
}

// What is held back holds nothing else on its connection: PINGs, acknowledgements and
// another topic's sends go on, and errors keep their place.
func TestPublishersAreHeldBackAlone(t *testing.T) {
	r := serve(t)
	c := r.connect().producing("slow").consuming("slow", "s", shared, 1)
	c.say(producerCmd("free", 2, 2))
	c.hear("PRODUCER_SUCCESS {request_id:2 *")
	r.publishRate("slow", &edge.PublishRate{Messages: 2})
	for i := range 6 {
		c.publish(1, uint64(i), "m")
	}
	bad := entryOf(t, 6, 0, []byte("bad"))
	bad[len(bad)-1] ^= 1
	c.sendEntry(&pulsarpb.CommandSend{ProducerId: num(1), SequenceId: num(6)}, bad)
	c.hear(receiptOf(0), receiptOf(1))
	c.sync()
	c.publish(2, 0, "m")
	c.hear("SEND_RECEIPT {producer_id:2 *")
	c.say(closeProducerCmd(1, 9))
	c.sync()
	r.publishRate("slow", &edge.PublishRate{})
	c.hear(receiptOf(2), receiptOf(3), receiptOf(4), receiptOf(5),
		"SEND_ERROR {producer_id:1 sequence_id:6 error:ChecksumError *", "SUCCESS {request_id:9}")
}

func TestPublishersGetTheirRate(t *testing.T) {
	r := serve(t)
	c := r.connect().producing("slow")
	r.publishRate("slow", &edge.PublishRate{Messages: 50})
	begun := time.Now()
	for i := range 100 {
		c.publish(1, uint64(i), "m")
	}
	for i := range 100 {
		c.hear(receiptOf(i))
	}
	if took := time.Since(begun); took < 950*time.Millisecond || took > 3*time.Second {
		t.Errorf("100 messages took %v at 50 a second", took)
	}
}

// All that a connection may be owed is held back: it is not read from until some goes,
// and an end finds it as well.
func TestHeldBackSendsAreBounded(t *testing.T) {
	for name, end := range map[string]func(r *rig, c *client){
		"the client goes": func(r *rig, c *client) {
			c.Close()              //nolint:errcheck // it is the end
			r.only().fail(errMute) // who is not read from is found dead by a write
			eventually(r.t, "its session ends", func() bool { return r.server.Sessions() == 0 })
		},
		"the topic is closed": func(r *rig, c *client) {
			r.unload("slow")
			c.hear("CLOSE_PRODUCER {producer_id:1 *").sync()
		},
		"the rate is removed": func(r *rig, c *client) {
			r.publishRate("slow", nil)
			for i := range 20 {
				c.hear(receiptOf(i + 1))
			}
		},
		"the server stops": func(r *rig, c *client) {
			ctx, cancel := context.WithTimeout(context.Background(), patientFor)
			defer cancel()
			if err := r.server.Close(ctx); err != nil {
				r.t.Error(err)
			}
			for i := range 4 {
				c.hear(receiptOf(i + 1))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := serve(t, func(o *Options, _ *edge.Options) { o.Replies = 4 })
			c := r.connect().producing("slow")
			r.publishRate("slow", &edge.PublishRate{Bytes: 1})
			for i := range 21 {
				c.publish(1, uint64(i), "m")
			}
			c.hear(receiptOf(0))
			s := r.only()
			eventually(t, "the reader waits", s.held.Load)
			end(r, c)
			if used, _ := r.broker.Budget().Usage(edge.SharePublish); used != 0 {
				t.Errorf("%d bytes are held", used)
			}
		})
	}
}

// Large sends that are held back leave memory to other topics, and their connections wait
// without taking any.
func TestHeldBackSendsLeaveMemory(t *testing.T) {
	r := serve(t, func(_ *Options, o *edge.Options) { o.Budget = edge.NewBudget(8 << 20) })
	_, limit := r.broker.Budget().Usage(edge.SharePublish)
	c, free := r.connect().producing("slow"), r.connect().producing("free")
	r.publishRate("slow", &edge.PublishRate{Messages: 1})
	body := bytes.Repeat([]byte("m"), 100<<10)
	sent := make(chan error, 1)
	go func() {
		var err error
		for i := 0; i < 40 && err == nil; i++ {
			err = c.SendEntry(&pulsarpb.CommandSend{ProducerId: num(1), SequenceId: num(uint64(i))}, entryOf(t, uint64(i), 0, body))
		}
		sent <- err
	}()
	eventually(t, "its part of the memory is held", func() bool { used, _ := r.broker.Budget().Usage(edge.SharePublish); return used > limit/5 })
	for i := range 50 {
		free.sendEntry(&pulsarpb.CommandSend{ProducerId: num(1), SequenceId: num(uint64(i))}, entryOf(t, uint64(i), 0, body))
		free.hear(receiptOf(i))
	}
	if used, _ := r.broker.Budget().Usage(edge.SharePublish); used > limit/4+300<<10 {
		t.Errorf("%d of %d bytes are held", used, limit)
	}
	r.publishRate("slow", nil)
	for i := range 40 {
		c.hear(receiptOf(i))
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
}

// Where encryption is required clients are told so (watched on 4.0.7).
func TestEncryptionThatIsRequired(t *testing.T) {
	r := serve(t)
	c := r.connect().producing("e")
	r.rule("", func(p *edge.Policies) { p.EncryptionRequired = new(true) })
	c.hear("CLOSE_PRODUCER {producer_id:1 request_id:18446744073709551615}")
	c.say(producerCmd("e", 2, 2))
	c.hear(`ERROR {request_id:2 error:MetadataError message:"Encryption is required in ` + public + `e"}`)
	encrypted := producerCmd("e", 3, 3)
	encrypted.Encrypted = proto.Bool(true)
	c.say(encrypted)
	c.hear("PRODUCER_SUCCESS {request_id:3 *")
	c.publish(3, 7, "plain")
	c.hear(`SEND_ERROR {producer_id:3 sequence_id:7 error:MetadataError message:"Messages must be encrypted"}`)
	data, err := wire.Build(&pulsarpb.MessageMetadata{
		ProducerName: proto.String("p"), SequenceId: num(8), PublishTime: num(1),
		EncryptionKeys: []*pulsarpb.EncryptionKeys{{Key: proto.String("k"), Value: []byte("v")}},
	}, []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	c.sendEntry(&pulsarpb.CommandSend{ProducerId: num(3), SequenceId: num(8)}, data)
	c.hear("SEND_RECEIPT {producer_id:3 sequence_id:8 *")
}

// A request that policies refuse is refused alone (watched on 4.0.7).
func TestWhatPoliciesRefuse(t *testing.T) {
	r := serve(t)
	c := r.connect().producing("m")
	r.rule("m", func(p *edge.Policies) {
		p.SubscriptionTypes = &[]string{"Shared"}
		p.MessageSize = new(int64(100))
		p.DelayedDelivery = &edge.DelayedDelivery{Active: true, Most: 5000}
	})
	c.say(subscribeCmd("m", "s", exclusive, 1, 11))
	c.hear(`ERROR {request_id:11 error:NotAllowedError message:"Topic[{` + public + `m}] doesn't support Exclusive sub type!"}`)
	c.consuming("m", "s", shared, 1)
	plain := len(entryOf(t, 1, 0, nil))
	for size, answer := range map[int]string{
		100: "SEND_RECEIPT {producer_id:1 *",
		101: `SEND_ERROR {producer_id:1 sequence_id:101 error:NotAllowedError message:"Exceed maximum message size"}`,
	} {
		c.sendEntry(&pulsarpb.CommandSend{ProducerId: num(1), SequenceId: num(uint64(size))}, entryOf(t, 1, 0, make([]byte, size-plain)))
		c.hear(answer)
	}
	late, err := wire.Build(&pulsarpb.MessageMetadata{
		ProducerName: proto.String("p"), SequenceId: num(1), PublishTime: num(1000), DeliverAtTime: proto.Int64(6001),
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.sendEntry(&pulsarpb.CommandSend{ProducerId: num(1), SequenceId: num(102)}, late)
	c.hear(`SEND_ERROR {producer_id:1 sequence_id:102 error:NotAllowedError message:"Exceeds max allowed delivery delay of 5000 milliseconds"}`)
}
